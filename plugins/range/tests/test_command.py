"""The command: its screen, its folder, its exit codes, and that it says the same again."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.files.yaml_source import dump, read
from objectives.published_models import model_ids

Inside = Callable[..., Any]
TABLES = ("cases.csv", "picks.csv", "frontiers.csv", "transfer.csv", "models.csv", "summary.json")
THREE = ("--devices", "raspberry_pi_5,rtx_4090,jetson_agx_thor")


def rows(path: str) -> list[dict[str, str]]:
    """A table's rows."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_bare_command_is_one_screen_about_twelve_devices(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    answer = inside("devices", "--no-plots")
    assert answer.code == 0
    warned = [line for line in answer.err.splitlines() if not line.endswith("…")]  # a stage is named after some seconds
    peaks, phones = "Warning: times are at datasheet peaks", "Warning: burst speed: after minutes of load typically"
    assert all(line.startswith((peaks, phones)) for line in warned), answer.err
    assert [line[line.rindex("(") :] for line in warned] == ["(a b e f j k l)", "(c)", "(d)"]
    lines = answer.out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert "4 distinct optima in 12 cases; exact" in answer.out
    assert sorted(path.name for path in Path("runs/devices-paper").iterdir()) == sorted(
        [*TABLES, "config.yaml", "manifest.json"]
    )
    assert inside("devices", "--no-plots", "--quiet").out == ""
    assert Path("runs/devices-paper-2").is_dir()


@pytest.mark.slow
def test_the_same_command_and_its_own_configuration_give_the_same_bytes(inside: Inside) -> None:
    asked = ("--precisions", "fp16,int8", "--applications", "smart home,private serving", "--no-plots", "--quiet")
    for out, words in (
        ("a", (*THREE, *asked)),
        ("b", (*THREE, *asked)),
        ("c", ("--config", "a", "--no-plots", "--quiet")),
    ):
        assert inside("devices", *words, "--out", out).code == 0
    for name in (*TABLES, "config.yaml"):
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes() == Path("c", name).read_bytes(), name


@pytest.mark.slow
def test_a_table_with_limits_and_a_board_repeats_from_its_configuration(inside: Inside) -> None:
    board = {"name": "B", "fp16": "6 TFLOP/s", "int8": "12 TOP/s", "bandwidth": "51.2 GB/s", "memory": "8 GB"}
    Path("board.yaml").write_text(dump({**board, "modes": {"eco": {"fp16": "3 TFLOP/s", "int8": "6 TOP/s"}}}))
    Path("cases.csv").write_text(
        "case,device,budget\none,board.yaml@eco,decode_ms=100\ntwo,l4,\nthree,board.yaml,memory_gb=none\n"
    )
    assert (
        inside(
            "devices",
            "--table",
            "cases.csv",
            "--as-fast-as",
            "smollm2_360m",
            "--preset",
            "device",
            "--no-plots",
            "--out",
            "a",
        ).code
        == 0
    )
    Path("board.yaml").unlink()
    Path("cases.csv").unlink()
    assert inside("devices", "--config", "a", "--no-plots", "--out", "b").code == 0
    for name in TABLES:
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes(), name
    assert set(read(Path("a/config.yaml"))[0]["devices"]) == {"board.yaml@eco", "l4", "board.yaml"}


@pytest.mark.slow
def test_what_no_profile_has_seen_is_said_once_with_its_cases(inside: Inside) -> None:
    boards = ("--devices", "jetson_agx_orin_64gb,jetson_agx_thor,rtx_4090", "--preset", "device")
    told = inside("devices", "--models-only", *boards, "--precisions", "int4,fp16").err.splitlines()
    (of_format,) = [line for line in told if "transferred from an int4 measurement" in line]
    assert of_format.endswith("decode 0.63 to 1.5 (b d)")
    (of_experts,) = [line for line in told if "measured without experts" in line]
    assert of_experts.endswith("decode 0.71 to 1.2 (a b)")


@pytest.mark.slow
def test_tables_agree_with_one_another(inside: Inside) -> None:
    assert inside("devices", *THREE, "--quiet", "--no-plots", "--out", "a").code == 0
    cases, picks, transfer = (rows(f"a/{name}.csv") for name in ("cases", "picks", "transfer"))
    assert (
        [row["case"] for row in cases]
        == [row["case"] for row in picks]
        == ["raspberry_pi_5", "rtx_4090", "jetson_agx_thor"]
    )
    assert [(row["from"], row["to"]) for row in transfer] == [(a["case"], b["case"]) for a in cases for b in cases]
    loss = {row["case"]: float(row["loss"]) for row in picks}
    for row in transfer:
        assert float(row["regret_nats"]) == pytest.approx(loss[row["from"]] - loss[row["to"]], abs=1e-12)
        assert (row["missed"] != "") == (float(row["violation_percent"]) > 0)
        assert (row["from"] == row["to"]) <= (row["same_design"] == "True")
    members = rows("a/frontiers.csv")
    assert [sum(m["case"] == row["case"] for m in members) for row in cases] == [int(row["frontier"]) for row in cases]
    summary = json.loads(Path("a/summary.json").read_text())
    assert summary["spread"]["optima"] == len({row["design"] for row in picks})
    assert summary["one_for_all"]["worst_regret_nats"] == pytest.approx(
        max(summary["one_for_all"]["regret_nats"].values())
    )


@pytest.mark.slow
def test_a_case_in_which_nothing_fits_is_a_row_that_says_why(inside: Inside) -> None:
    Path("cases.csv").write_text(
        "case,device,budget\nslow,raspberry_pi_5,decode_ms=1 memory_gb=1\nfine,l4,decode_ms=50\n"
    )
    answer = inside("devices", "--table", "cases.csv", "--no-plots", "--out", "a")
    assert answer.code == 0
    assert "decode_ms <= 1, the least is" in answer.out
    slow, fine = rows("a/cases.csv")
    assert (slow["state"], fine["state"], fine["reason"]) == ("infeasible", "ok", "")
    assert slow["reason"].startswith("decode_ms <= 1, the least is ")
    assert [row["case"] for row in rows("a/picks.csv")] == ["fine"]


@pytest.mark.slow
def test_nothing_at_all_is_exit_code_3_and_leaves_the_reasons(inside: Inside) -> None:
    answer = inside("devices", *THREE, "--budget", "total_ms=0.01", "--no-plots", "--out", "a")
    assert answer.code == 3
    assert "nothing fits in any case" in answer.err
    assert {row["state"] for row in rows("a/cases.csv")} == {"infeasible"}
    assert inside("devices", "--models-only", "--devices", "l4", "--budget", "resident_gb=0.01").code == 3


@pytest.mark.slow
def test_models_alone_leave_no_folder_unless_one_is_named(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    answer = inside("devices", "--models-only", "--devices", "raspberry_pi_5", "--precisions", "int4")
    assert answer.code == 0
    assert answer.err.startswith(
        "Warning: this device was not measured: times are typical of processors with any engine"
    )
    assert answer.err.count("\n") == 1
    lines = answer.out.splitlines()
    assert len(lines) <= len(model_ids()) + 15
    assert max(map(len, lines)) <= 80
    assert "Largest that fits: Mellum2-12B-A2.5B" in answer.out
    assert "typical of processors, of which 80 % take prefill" in " ".join(answer.out.split())
    assert list(Path().iterdir()) == []
    found = json.loads(inside("devices", "--models-only", "--devices", "raspberry_pi_5", "--json", "--out", "a").out)
    assert [row["model"] for row in found["models"]] == [row["model"] for row in rows("a/models.csv")]
    assert "optima" not in found


@pytest.mark.slow
def test_models_on_several_devices_are_columns(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    answer = inside("devices", "--models-only")
    lines = answer.out.splitlines()
    assert max(map(len, lines)) <= 80
    row = [cell for line in lines if line.strip().startswith("Qwen3-30B-A3B ") for cell in line.split()[1:]]
    assert len(row) == 12
    assert "-" in row


@pytest.mark.slow
def test_a_closed_form_study_prices_the_models_that_it_covers(inside: Inside) -> None:
    answer = inside("devices", *THREE, "--set", "latency=closed_form", "--no-plots", "--out", "a")
    assert answer.code == 0
    assert "the closed form does not cover" in answer.err
    assert "Qwen3-0.6B" in answer.err
    assert "qwen2.5_0.5b" in {row["model"] for row in rows("a/models.csv")}
    assert "qwen3_0.6b" not in {row["model"] for row in rows("a/models.csv")}
    refused = inside("devices", *THREE, "--set", "device=rpi5")
    assert (refused.code, "--set device: expected a key that this command reads" in refused.err) == (2, True)
    refused = inside("devices", *THREE, "--set", "latency=closed_form", "--models", "qwen3_0.6b", "--no-plots")
    assert refused.code == 2
    assert any(
        line.startswith("--models: expected one that the closed form covers") for line in refused.err.splitlines()
    )


@pytest.mark.slow
def test_objectives_and_metrics_of_ones_own(inside: Inside, user_module: Callable[[str], str]) -> None:
    name = (
        user_module("def mj(a, scenario):\n    return a.depth * a.width * 3e10 / scenario.device.bandwidth\n") + ":mj"
    )
    words = ("--objectives", f"loss,{name}", "--budget", f"{name}=2000", "--no-plots", "--out", "a")
    assert inside("devices", *THREE, *words).code == 0
    for row in rows("a/picks.csv"):
        assert float(row[name]) <= 2000
        assert name in row["binds"] or "memory_gb" in row["binds"]
    assert f"regret_at_equal_{name}" in rows("a/transfer.csv")[0]


def test_what_fails_leaves_no_empty_folder(inside: Inside, user_module: Callable[[str], str]) -> None:
    name = user_module("def mj(a):\n    raise KeyboardInterrupt\n") + ":mj"
    assert inside("devices", *THREE, "--objectives", f"loss,{name}", "--out", "a").code == 130
    assert not Path("a").exists()
    assert inside("devices", *THREE, "--table", "none.csv").code == 2
    assert not Path("runs").exists()


def test_a_folder_with_files_is_not_overwritten(inside: Inside) -> None:
    Path("a").mkdir()
    Path("a/mine.txt").write_text("mine")
    answer = inside("devices", *THREE, "--out", "a")
    assert (answer.code, "expected a new or empty folder" in answer.err) == (2, True)
    assert [path.name for path in Path("a").iterdir()] == ["mine.txt"]


@pytest.mark.slow
def test_json_has_the_study(inside: Inside) -> None:
    found = json.loads(inside("devices", *THREE, "--no-plots", "--json", "--out", "a").out)
    assert found["folder"] == "a"
    assert len(found["cases"]) == len(found["picks"]) == 3
    assert found["optima"][0]["cases"]


@pytest.mark.slow
def test_strange_labels_are_shown_not_run_and_what_a_terminal_obeys_is_refused(inside: Inside) -> None:
    Path("cases.csv").write_text("case,device\n=1+1<b>$x$</b>,l4\n@b,rtx_4090\n")
    answer = inside("devices", "--table", "cases.csv", "--out", "a")
    assert answer.code == 0
    assert [row["case"][:2] for row in rows("a/cases.csv")] == ["'=", "'@"]
    assert "1+1<b>" not in Path("a/report.html").read_text()
    Path("cases.csv").write_text("case,device\n\x1b[31m,l4\n")
    answer = inside("devices", "--table", "cases.csv", "--out", "b")
    assert answer.code == 2
    assert answer.err.startswith("cases.csv:2:1: case: expected a name of plain text, got the control character")


@pytest.mark.slow
def test_other_commands_say_where_such_a_study_belongs(inside: Inside) -> None:
    assert "plas devices --config devices_paper runs them" in inside("run", "--config", "devices_paper").err
    answer = inside("init", "mine.yaml", "--from", "devices_paper")
    assert "plas devices --config mine.yaml" in answer.err + answer.out
    assert inside("devices", "--config", "mine.yaml", "--no-plots", "--quiet").code == 0
    assert inside("devices", "--config", "compare_paper").code == 2
