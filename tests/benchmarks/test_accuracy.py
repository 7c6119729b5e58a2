"""The page of public rows: what its medians are of, which rows it names, and that the shipped one follows from the tables."""

import csv
import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import typical
from benchmarks.accuracy import (
    BY_LENGTH,
    BY_MODEL,
    FITTED,
    RECORD,
    Row,
    cells,
    classes_csv,
    every_row,
    groups_csv,
    of_classes,
    page,
    unused,
)
from benchmarks.typical import Judged
from plas_board.calibrate.command import resolve
from plas_board.calibrating.measurements import read

PAGE = Path(__file__).resolve().parents[2] / "studies" / "accuracy" / "results.md"


@pytest.fixture
def rows() -> list[Row]:
    """Two models' prefills and decode steps, 10 ms measured each, predicted 5 to 40 % too slow."""
    lines = ["device,engine,model,precision,prompt_len,metric,value"]
    lines += [f"board,E,{m},int4,512,{kind},10" for m in ("Qwen3-0.6B", "Qwen3-4B") for kind in ("ttft_ms", "tpot_ms")]
    found, left = read(lines, "board", resolve)
    assert not left
    return [Row(m, 10.0 + off, 4.0, BY_MODEL) for m, off in zip(found, (0.5, 1.0, 4.0, 2.0), strict=True)]


def test_medians_are_of_what_was_held_out(rows: list[Row]) -> None:
    assert "| E | 1 | 22.5 % (36.5 %), n 2 | 15.0 % (19.0 %), n 2 | 60 % |" in page([rows], [], [])
    assert groups_csv([rows]).splitlines()[1] == "board,E,int4,1,2,other models,22.5,36.5,2,15.0,19.0,2,60"
    known = [replace(rows[0], seen=FITTED), replace(rows[1], seen=FITTED), replace(rows[2], seen=BY_LENGTH)]
    told = page([known], ["3 rows: why"], [])
    assert "| E | 1 | 40.0 % (40.0 %), n 1 | - | 60 % |" in told
    assert groups_csv([known]).splitlines()[1] == "board,E,int4,1,2,other lengths,40.0,40.0,1,,,0,60"
    assert "0 are predicted from other models of their group, 1, of more than 1,024 tokens" in told
    assert "- 3 rows: why" in told


def test_rows_far_off_are_named_and_all_are_in_the_table(rows: list[Row]) -> None:
    told = page([rows], [], [])
    assert "Off by more than 25 %, the worst first: 1 of 4." in told
    assert "| board | E | int4 | 1 | Qwen3-4B | prefill | 512 | 40 % too slow | other models |" in told
    assert cells(rows[2]) | {
        "measured_ms": "10",
        "predicted_ms": "14",
        "error": "+0.4000",
        "datasheet_ms": "4",
    } == cells(rows[2])


WORSE = 1.1  # times the least median that a class had, from which its predictions are a step back
LEAST = 60.0  # per cent of rows that ranges of 80 % hold in every class


def stored() -> list[dict[str, str]]:
    """The lines by class and device that ship."""
    return list(csv.DictReader(PAGE.with_name("accuracy-classes.csv").read_text(encoding="utf-8").splitlines()))


def test_classes_count_devices_and_the_rule_reads_active_weights() -> None:
    """Two devices of a kind whose rows are 10 % and 30 % too fast, twice that at datasheet peaks, 50 % by the rule."""
    off = [("a", 0.9), ("b", 0.7)]
    judged = [
        Judged(name, "gpu int8", "E", "decode", *map(math.log, (1 / by, 1.2, 1 / (2 * by - 1), 2))) for name, by in off
    ]
    judged += [Judged(f"{i}", "soc fp16", "E", "decode", 0.1 * i + 0.1, 1.0, 0.0, 0.0) for i in range(8)]
    (line,) = (line for line in of_classes(judged) if (line["class"], line["device"]) == ("gpu int8", ""))
    assert [line[name] for name in ("devices", "rows", "median", "datasheet", "llmfit")] == [
        "2",
        "2",
        "20.0",
        "40.0",
        "50.0",
    ]


def worse(lines: list[dict[str, str]], engine: str) -> list[str]:
    """The kinds whose median is above `WORSE` times the best that any release had, or one point, or that are in range in fewer than `LEAST` of it."""
    now = {(line["class"], line["phase"]): line for line in lines if not line["device"]}
    found = []
    for best in csv.DictReader(RECORD.read_text(encoding="utf-8").splitlines()):
        line, median = now.get((best["class"], best["phase"])), float(best["median"])
        if best["engine"] == engine and line:
            far = float(line["median"]) > max(WORSE * median, median + 1.0)
            rare = float(line["in range"]) < min(LEAST, float(best["in range"]) - 5.0)
            found += [f"{best}: now {line}"] if far or rare else []
    return found


def test_the_shipped_page_is_not_worse_than_the_best_release() -> None:
    """Without the public tables, which no clone has, this alone is held: what ships, of engines that are not stated."""
    assert not worse(stored(), "any")
    assert worse([line | {"median": "99"} for line in stored()], "any")
    assert worse([line | {"in range": "0"} for line in stored()], "any")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["any", "stated"])
def test_no_class_gets_worse_than_the_best_release(external_data: Path, engine: str) -> None:
    """Errors of devices left out, estimated again; skipped, saying so, without the public tables."""
    now = of_classes(typical.left_out(typical.public_groups(external_data), engines=engine == "stated"))
    assert not worse(now, engine)


@pytest.mark.slow
def test_the_shipped_page_follows_from_the_tables(external_data: Path) -> None:
    groups = list(every_row(external_data))
    classes = of_classes(typical.left_out(typical.public_groups(external_data), engines=False))
    assert page(groups, unused(external_data), classes) in PAGE.read_text(encoding="utf-8")
    assert classes_csv(classes) == PAGE.with_name("accuracy-classes.csv").read_text(encoding="utf-8")
    assert groups_csv(groups) == PAGE.with_name("accuracy-groups.csv").read_text(encoding="utf-8")
