"""One design's numbers on every screen and in every file that the documented paths pass it through."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nas
from nas.answer.carried_study import beside, recorded_study
from nas.files import yaml_source
from plas_board.measure.command import predicted
from plas_board.measure.session import workload

Inside = Callable[..., Any]
STUDY = (
    "--preset",
    "device",
    "--device",
    "rtx_4090",
    "--precision",
    "int8",
    "--input-tokens",
    "300",
    "--set",
    "batch=2",
)
SAME = ("loss", "total_ms", "decode_ms", "memory_gb", "resident_gb")
TABLE = "depth,width,n_heads,n_kv_heads,expert_size,tokens,vocab_size,loss\n" + "".join(
    f"{depth},{width},{width // 64},{2 if width > 512 else 1},{4 * width},{tokens},32000,"
    f"{1.7 + 60 * (depth * width**2 * 12) ** -0.25 + 2000 * tokens**-0.33 + 0.002 * ((depth * 7 + width) % 5):.4f}\n"
    for depth in (6, 10, 16)
    for width in (384, 512, 768, 1024)
    for tokens in (5e9, 10e9)
)


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def explained(inside: Inside, *words: Any) -> dict[str, Any]:
    """The metrics that `explain` gives of one design."""
    result = inside("explain", *words, "--json")
    assert result.code == 0, result.err
    metrics: dict[str, Any] = json.loads(result.out)["metrics"]
    return metrics


def launched(inside: Inside, source: Path, out: str) -> dict[str, str]:
    """The first row of an export's launch list."""
    result = inside("export", source, "--to", "hf", "--out", out)
    assert result.code == 0, result.err
    return rows(source.parent / out / "candidates.csv")[0]


def alike(first: dict[str, Any], second: dict[str, Any], names: tuple[str, ...] = SAME) -> None:
    """The same numbers to the last digit."""
    assert {name: float(first[name]) for name in names} == {name: float(second[name]) for name in names}


@pytest.mark.slow
def test_a_design_of_a_run_keeps_its_numbers(inside: Inside, tmp_path: Path) -> None:
    assert inside("run", "--algo", "lhs", "--evaluations", "40", *STUDY, "--no-plots", "--out", "run").code == 0
    run = tmp_path / "run"
    assert inside("select", run, "--select", "diverse:2", "--out", "some.csv").code == 0
    assert inside("select", run, "--select", "diverse:2", "--out", "some.jsonl").code == 0
    chosen = rows(tmp_path / "some.csv")[0]
    index = int(chosen["id"].rpartition("-")[2])
    alike(chosen, rows(run / "evaluations.csv")[index])
    alike(chosen, explained(inside, run, "--index", index))
    for source in ("some.csv", "some.jsonl"):
        launch = launched(inside, tmp_path / source, f"out-{source[-4:]}")
        alike(chosen, launch, (*SAME, "params_total"))
        alike(chosen, explained(inside, tmp_path / source, "--index", 0))
    exported = tmp_path / "out-.csv"
    alike(chosen, explained(inside, exported, "--index", 0))
    model = exported / launch["folder"] / "hf" / "config.json"
    alike(chosen, explained(inside, "--model", model))
    alike(chosen, explained(inside, "--model", model.parent))
    for source in (exported, tmp_path / "some.csv"):
        names, metrics = predicted(source, "frontier")
        assert names[0] == chosen["id"]
        assert metrics["total_ms"][0] == float(chosen["total_ms"])
        assert workload(source, None, None, None) == {"batch": 2, "input_tokens": 300, "output_tokens": 16}
    assert rows(tmp_path / "out-.csv" / "candidates.csv")[0]["training_flops"] == launch["training_flops"]
    first = rows(run / "frontier.csv")[0]
    alike(first, explained(inside, run / "frontier.csv", "--index", 0))


@pytest.mark.slow
def test_what_a_fit_proposes_keeps_its_law_device_vocabulary_and_tokens(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(TABLE)
    words = ("fit", "table.csv", "--prior", "evidence", "--next", "3", "--candidates", "next.csv", "--out", "law.yaml")
    result = inside(*words)
    assert result.code == 0, result.err
    proposed, source = rows(tmp_path / "next.csv")[0], tmp_path / "next.csv"
    study = recorded_study(source)
    assert study is not None
    assert (study["law"]["name"], study["vocabulary"], study["preset"]) == ("law", 32_000, "device")
    launch = launched(inside, source, "out")
    assert float(launch["loss"]) == float(proposed["predicted_loss"])
    assert (launch["tokens"], launch["vocabulary"]) == (proposed["tokens"], "32000")
    assert float(launch["training_flops"]) == float(proposed["training_flops"])
    alike(launch, explained(inside, source, "--index", 0), (*SAME, "params_total", "params_active"))
    alike(launch, explained(inside, "--model", tmp_path / "out" / launch["folder"] / "hf" / "config.json"))
    under_law = explained(
        inside, "--architecture", _written(proposed), "--law", "law.yaml", "--preset", "device", "--set", "baselines=[]"
    )
    assert under_law["total_ms"] == float(launch["total_ms"])


def _written(row: dict[str, str]) -> str:
    names = ("depth", "width", "n_heads", "n_kv_heads", "n_experts", "top_k", "expert_size")
    return ",".join(f"{name}={row[name]}" for name in names)


def test_designs_of_the_theory_keep_their_numbers(inside: Inside, tmp_path: Path) -> None:
    assert inside("theory", "--device", "jetson_orin_nano_8gb_original", "--out", "theory.csv").code in (0, 3)
    launch = launched(inside, tmp_path / "theory.csv", "out")
    alike(rows(tmp_path / "theory.csv")[0], launch)
    assert "Orin Nano" in yaml_source.read(beside(tmp_path / "theory.csv"))[0]["device"]["name"]


def test_a_saved_frontier_carries_its_study(inside: Inside, tmp_path: Path) -> None:
    found = nas.load_study(device="rtx_4090", preset="device", vocabulary=64_000).solve()
    found.save(tmp_path / "frontier-of-mine.csv")
    alike(found.frame.iloc[0].to_dict(), explained(inside, tmp_path / "frontier-of-mine.csv", "--index", 0))


@pytest.mark.slow
def test_flags_win_over_the_carried_study_and_a_study_over_both(inside: Inside, tmp_path: Path) -> None:
    assert inside("run", "--algo", "lhs", "--evaluations", "20", *STUDY, "--no-plots", "--out", "run").code == 0
    assert inside("select", "run", "--select", "diverse:1", "--out", "some.csv").code == 0
    own = explained(inside, tmp_path / "some.csv", "--index", 0)
    longer = explained(inside, tmp_path / "some.csv", "--index", 0, "--output-tokens", "64")
    assert longer["loss"] == own["loss"]
    assert longer["decode_ms"] > 3 * own["decode_ms"]
    assert explained(inside, tmp_path / "some.csv", "--index", 0, "--config", "paper")["loss"] != own["loss"]


@pytest.mark.slow
def test_a_study_that_is_missing_stale_or_another_is_said(inside: Inside, tmp_path: Path) -> None:
    assert inside("run", "--algo", "lhs", "--evaluations", "20", *STUDY, "--no-plots", "--out", "run").code == 0
    assert inside("select", "run", "--select", "diverse:2", "--out", "some.csv").code == 0
    (tmp_path / "moved").mkdir()
    moved = Path(shutil.copy(tmp_path / "some.csv", tmp_path / "moved"))
    result = inside("explain", moved, "--index", "0")
    assert "no study beside it (some.study.yaml): taken are law hw_codesign" in result.err
    shutil.copy(beside(tmp_path / "some.csv"), tmp_path / "moved")
    assert "Warning: " not in inside("export", moved, "--out", "unchanged").err
    moved.write_text("\n".join(moved.read_text().splitlines()[:2]) + "\n")
    result = inside("explain", moved)
    assert "has changed since some.study.yaml was written: its study is taken all the same" in result.err
    beside(moved).write_text("law: hw_codesign\n")
    result = inside("explain", moved)
    assert result.code == 2
    assert "expected the study of some.csv, got another file" in result.err


@pytest.mark.slow
@pytest.mark.parametrize("preset", [(), ("--preset", "device")])
def test_experts_that_no_own_row_has_are_not_recommended(
    inside: Inside, tmp_path: Path, preset: tuple[str, ...]
) -> None:
    (tmp_path / "table.csv").write_text(TABLE)
    assert inside("fit", "table.csv", "--prior", "evidence", "--out", "law.yaml").code == 0
    words = ("run", "--algo", "exact", "--law", "law.yaml", *preset, "--no-plots", "--out", "run")
    assert inside(*words, "--set", "baselines=[]").code == 0
    assert {row["n_experts"] for row in rows(tmp_path / "run" / "picks.csv") if row.get("n_experts")} == {"1"}
