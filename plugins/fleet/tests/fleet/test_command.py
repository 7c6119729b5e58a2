"""The command: its screen, its folder, what it refuses, and that it says the same again."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plas_fleet import command

from nas.files.yaml_source import dump

Inside = Callable[..., Any]
FOUR = ("--devices", "raspberry_pi_5,snapdragon_8_elite,rtx_4090,l4")
TABLES = ("fleet.csv", "models.csv", "candidates.csv", "summary.json", "config.yaml")


def rows(path: str) -> list[dict[str, str]]:
    """A table's rows."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_bare_command_is_a_screen_about_twelve_devices(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    answer = inside("fleet", "--preset", "paper", "--no-plots")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 80
    assert "The second model buys 0.0139 nats, the third 0.0027 nats, the fourth 0.0013 nats." in " ".join(
        answer.out.split()
    )
    assert "With 4 every case has its own best design" in answer.out
    assert "Exact: no fleet is better; 13,120 architectures evaluated in each case." in answer.out
    assert {path.name for path in Path("runs/fleet-paper").iterdir()} == {*TABLES, "manifest.json"}


def test_devices_mean_preset_device_however_they_are_named(inside: Inside) -> None:
    Path("cases.csv").write_text("device\nl4\n")
    Path("study.yaml").write_text("devices: [l4]\n")
    for i, typed in enumerate(
        ((), ("--devices", "l4"), ("--set", "devices=l4"), ("--table", "cases.csv"), ("study.yaml",))
    ):
        answer = inside("fleet", *typed, "--models", "1", "--no-plots", "--out", f"a{i}")
        assert answer.code == 0, answer
        assert "law evidence" in answer.out, typed


def test_a_folder_repeats_itself_with_weights_limits_and_question(inside: Inside) -> None:
    Path("cases.csv").write_text(
        "case,device,precision,budget,units\none,raspberry_pi_5,int8,total_ms=3000,7\n"
        "two,l4,,total_ms=40 memory_gb=3,1\nthree,rtx_4090,int4,,2\n"
    )
    asked = (
        "--models",
        "1..3",
        "--minimise",
        "regret",
        "--set",
        "training.device=h100_sxm",
    )
    assert inside("fleet", "--table", "cases.csv", *asked, "--no-plots", "--quiet", "--out", "a").code == 0
    Path("cases.csv").unlink()
    assert inside("fleet", "a", "--no-plots", "--quiet", "--out", "b").code == 0
    for name in TABLES:
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes(), name
    assert [row["weight"] for row in rows("a/fleet.csv")[:3]] == ["7.0", "1.0", "2.0"]
    assert inside("devices", "--config", "a", "--no-plots", "--quiet", "--out", "c").code == 0
    assert [row["case"] for row in rows("c/cases.csv")] == ["one", "two", "three"]


def test_tables_agree_with_one_another_and_candidates_are_exported(inside: Inside) -> None:
    assert inside("fleet", *FOUR, "--weights", "4,3,2,1", "--no-plots", "--quiet", "--out", "a").code == 0
    served, models, candidates = (rows(f"a/{name}.csv") for name in ("fleet", "models", "candidates"))
    for row in served:
        (model,) = [m for m in models if m["models"] == row["models"] and m["id"] == row["model"]]
        assert model["loss"] == row["loss"]
        assert row["case"] in model["cases"].split("; ")
        assert 0.0 <= float(row["regret"]) == pytest.approx(float(row["loss"]) - float(row["own_best"]), abs=1e-12)
        assert max(float(v) for name, v in row.items() if name.startswith("used_") and v) == float(row["used"]) <= 1.0
    summary = json.loads(Path("a/summary.json").read_text())
    for fleet in summary["fleets"]:
        there = [row for row in served if int(row["models"]) == fleet["models"]]
        mean = sum(float(row["weight"]) * float(row["loss"]) for row in there) / 10.0
        assert fleet["value"] == pytest.approx(mean, abs=1e-12)
        assert fleet["train_flops"] == pytest.approx(
            sum(float(m["train_flops"]) for m in models if int(m["models"]) == fleet["models"])
        )
    last = summary["fleets"][-1]["models"]
    assert [row["id"] for row in candidates] == [m["id"] for m in models if int(m["models"]) == last]
    assert inside("export", "a/candidates.csv", "--out", "written").code == 0
    assert {path.name for path in Path("written").iterdir()} >= {row["id"] for row in candidates}


def test_a_case_that_no_design_serves_is_named_first_and_left_out(inside: Inside) -> None:
    Path("cases.csv").write_text("case,device,budget\nslow,raspberry_pi_5,decode_ms=1\nfine,l4,decode_ms=50\n")
    answer = inside("fleet", "--table", "cases.csv", "--no-plots", "--out", "a")
    assert answer.code == 0
    assert answer.out.startswith("Left out, since no design fits: slow: decode_ms <= 1, the least is ")
    assert {row["case"] for row in rows("a/fleet.csv")} == {"fine"}
    assert list(json.loads(Path("a/summary.json").read_text())["unserved"]) == ["slow"]


def test_nothing_served_ends_with_three_and_so_does_too_few_models(inside: Inside) -> None:
    answer = inside("fleet", *FOUR, "--budget", "total_ms=0.01", "--no-plots", "--out", "a")
    assert (answer.code, "fleet: no design fits any case" in answer.err) == (3, True)
    Path("cases.csv").write_text("case,device,budget\na,l4,params_total<=4e8 loss<=3.8\nb,l4,loss<=3.1\n")
    poor = inside("fleet", "--table", "cases.csv", "--preset", "paper", "--models", "1", "--no-plots", "--out", "b")
    assert poor.code == 3
    assert "no fleet of 1 serves all 2 cases" in poor.err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--models", "0..2"), "--models: expected 3 or 1..4, from 1 to 64, got '0..2'"),
        (("--minimise", "cost"), "--minimise: "),
        (("--weights", "1,2"), "--weights: expected one for each of 4 cases, got 2"),
        (("--weights", "1,2,0,1"), "--weights"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(inside: Inside, typed: tuple[str, ...], said: str) -> None:
    answer = inside("fleet", *FOUR, *typed, "--no-plots", "--out", "a")
    assert answer.code == 2
    assert said in answer.err
    assert not Path("a").exists()


def test_weights_of_a_table_are_checked_with_their_place(inside: Inside) -> None:
    Path("cases.csv").write_text("case,device,weight\na,l4,2\nb,l4,-1\n")
    answer = inside("fleet", "--table", "cases.csv", "--no-plots")
    assert (answer.code, "cases.csv:3:3: weight: expected a positive number, got -1" in answer.err) == (2, True)
    Path("cases.csv").write_text("case,device,weight,units\na,l4,2,3\n")
    assert "expected weight or units, got both" in inside("fleet", "--table", "cases.csv", "--no-plots").err


def test_several_vocabularies_are_refused(inside: Inside) -> None:
    Path("cases.csv").write_text("case,device,vocabulary\na,l4,32000\nb,l4,64000\n")
    answer = inside("fleet", "--table", "cases.csv", "--no-plots")
    assert answer.code == 2
    assert "vocabulary: expected the same in all cases, since a model has one, got 32,000 and 64,000" in answer.err


def test_a_space_with_devices_of_its_own_is_refused(inside: Inside, tiny: dict[str, Any]) -> None:
    Path("space.yaml").write_text(dump({**tiny, "axes": {**tiny["axes"], "device": ["l4", "rtx_4090"]}}))
    answer = inside("fleet", *FOUR, "--space", "space.yaml", "--no-plots")
    assert answer.code == 2
    assert "space: expected one whose designs run on the case's device" in answer.err


def test_what_is_interrupted_leaves_no_folder(inside: Inside, user_module: Callable[[str], str]) -> None:
    name = user_module("def mj(a):\n    raise KeyboardInterrupt\n") + ":mj"
    assert inside("fleet", *FOUR, "--budget", f"{name}=5", "--out", "a").code == 130
    assert not Path("a").exists()


def test_what_is_interrupted_while_it_is_written_leaves_no_half_folder(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "write_tables", interrupted)
    assert inside("fleet", *FOUR, "--out", "a").code == 130
    assert not Path("a").exists()


def test_json_and_page(inside: Inside) -> None:
    found = json.loads(inside("fleet", *FOUR, "--models", "2", "--json", "--out", "a").out)
    assert found["folder"] == "a"
    assert [fleet["models"] for fleet in found["fleets"]] == [2]
    assert len(found["served"]) == 4
    page = Path("a/report.html").read_text(encoding="utf-8")
    assert "Fleet of 2" in page
    assert "plas fleet a" in page


def test_other_commands_say_what_such_a_folder_is(inside: Inside) -> None:
    assert inside("fleet", *FOUR, "--models", "1", "--no-plots", "--quiet", "--out", "a").code == 0
    assert "got a folder of plas fleet; list runs" in inside("select", "a").err
