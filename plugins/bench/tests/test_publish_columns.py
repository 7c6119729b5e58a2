"""Traces under their own column names, maximised columns, designs by key, hypervolumes as published."""

from pathlib import Path

import numpy as np
import pytest
from plas_bench.publish.external_results import columns_of, objectives_of, read_runs, traces
from plas_bench.publish.volume import volume_of

from nas.errors import UsageError
from nas.problem.objective import Objective

TEXT = "seed,Sub-network,Latency (ms),BLEU,note\n{}"
ROWS = "7,a,50,24.0,x\n7,b,40,23.0,y\n7,c,40,23.0,z\n7,a,50,24.0,x\n8,a,50,24.0,x\n8,d,30,22.0,w\n"
COLUMNS = ["run=seed", "minimize:Latency (ms)", "maximize:BLEU"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "dynas.csv"
    path.write_text(TEXT.format(ROWS), encoding="utf-8")
    return path


def test_columns_of_another_tool_are_named_and_maximised(trace: Path) -> None:
    columns = columns_of(COLUMNS)
    objectives = objectives_of(trace, columns)
    assert [o.name for o in objectives] == ["Latency (ms)", "-BLEU"]
    runs = read_runs(trace, [o.name for o in objectives], None, columns)
    assert [(run.strategy, run.run) for run in runs] == [("dynas", "7"), ("dynas", "8")]
    assert runs[0].values[0].tolist() == [50.0, -24.0]


def test_every_paid_row_counts_and_a_key_says_what_is_one_design(trace: Path) -> None:
    paid, keyed = (
        traces(read_runs(trace, ["Latency (ms)", "-BLEU"], None, columns), objectives_of(trace, columns), None, 10)
        for columns in (columns_of(COLUMNS), columns_of([*COLUMNS, "key=Sub-network"]))
    )
    assert [len(run) for run in paid] == [4, 2]
    assert [len(run) for run in keyed] == [3, 2]


def test_a_file_without_runs_is_one_run(trace: Path) -> None:
    columns = columns_of(["total_ms=Latency (ms)", "maximize:BLEU"])
    (run,) = read_runs(trace, ["total_ms", "-BLEU"], None, columns)
    assert (run.strategy, run.run, len(run.values)) == ("dynas", "dynas", 6)
    assert objectives_of(trace, columns)[0].log_scale


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["BLEU"], "--column: expected run=COLUMN"),
        (["maximise:"], "--column: expected run=COLUMN"),
        (["maximize:BLEU", "minimize:BLEU"], "expected each name once, got BLEU twice"),
        (["run=a", "run=b"], "expected each name once, got run twice"),
    ],
)
def test_a_wrong_column_is_a_clear_line(texts: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        columns_of(texts)


def test_a_column_that_is_not_there_is_named(trace: Path) -> None:
    with pytest.raises(UsageError, match="expected a column accuracy, got seed, Sub-network"):
        objectives_of(trace, columns_of(["maximize:accuracy"]))


def test_a_volume_is_that_of_the_definition() -> None:
    objectives = (Objective("ms"), Objective("-accuracy"))
    values = np.array([[10.0, -0.6], [20.0, -0.8]])
    raw = volume_of(objectives, {"ms": 30.0, "accuracy": 0.5}, {})
    assert raw is not None
    assert raw.hypervolume(values) == pytest.approx(20 * 0.1 + 10 * 0.2)
    normal = volume_of(objectives, {}, {"ms": [0.0, 40.0], "accuracy": [0.4, 0.9]})
    assert normal is not None
    assert normal.hypervolume(values) == pytest.approx(0.75 * 0.4 + 0.5 * 0.4)
    both = volume_of(objectives, {"ms": 44.0, "accuracy": 0.35}, {"ms": [0.0, 40.0], "accuracy": [0.4, 0.9]})
    assert both is not None
    assert both.hypervolume(values) == pytest.approx(0.85 * 0.5 + 0.6 * 0.4)
    assert raw.hypervolume(values[:0]) == 0.0
    assert volume_of(objectives, {}, {}) is None


@pytest.mark.parametrize(
    ("reference", "bounds", "said"),
    [
        ({"ms": 1.0}, {}, "--reference: expected one for each of ms, accuracy, got ms"),
        ({}, {"ms": [0.0, 1.0], "acc": [0.0, 1.0]}, "--bounds: expected one for each of ms, accuracy"),
        ({}, {"ms": [0.0, 1.0], "accuracy": [0.5, 0.5]}, "--bounds: expected two finite numbers that differ"),
    ],
)
def test_a_wrong_volume_is_a_clear_line(reference: dict[str, float], bounds: dict[str, list[float]], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        volume_of((Objective("ms"), Objective("-accuracy")), reference, bounds)
