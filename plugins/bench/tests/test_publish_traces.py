"""Traces of other tools: what is read, what is refused, and that our own runs score the same through them."""

from pathlib import Path

import numpy as np
import pytest
from plas_bench.publish.external_results import keys_by_value, objectives_of, read_runs, traces

from nas.compare.reference import exact_reference
from nas.errors import UsageError
from nas.problem.objective import Objective


def written(folder: Path, text: str) -> Path:
    """A CSV of the test's own."""
    path = folder / "tool.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_order_duplicates_and_what_is_not_finite(tmp_path: Path) -> None:
    path = written(tmp_path, "run,evaluation,a,b\n0,3,3,3\n0,1,1,9\n0,2,nan,2\n0,4,1,9\n0,5,inf,1\n0,6,,1\n1,1,5,5\n")
    objectives = objectives_of(path)
    assert [(o.name, o.log_scale) for o in objectives] == [("a", False), ("b", False)]
    first, second = traces(read_runs(path, ["a", "b"]), objectives, None, 10)
    assert (first.strategy, first.run, first.seed) == ("tool", "0", None)
    assert first.values[0].tolist() == [1, 9]
    assert first.feasible.tolist() == [True, False, True, True, False, False]
    assert first.ended == "stopped"
    assert second.values.tolist() == [[5, 5]]
    assert len(traces(read_runs(path, ["a", "b"]), objectives, None, 2)[0]) == 2


def test_known_metrics_have_our_scale_and_violations_count(tmp_path: Path) -> None:
    path = written(
        tmp_path, "strategy,run,loss,total_ms,violation\nx,0,3,10,-0.1\nx,0,2,10,0.5\nx,0,2,0,0\nx,0,2,7,0\n"
    )
    objectives = objectives_of(path)
    assert [o.log_scale for o in objectives] == [False, True]
    (trace,) = traces(read_runs(path, ["loss", "total_ms"]), objectives, None, 4)
    assert trace.feasible.tolist() == [True, False, False, True]
    assert (trace.strategy, trace.ended) == ("x", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a header"),
        ("run,a\n", "a row per evaluation"),
        ("a,b\n1,2\n", "a column run"),
        ("run,evaluation\n1,2\n", "one per objective"),
        ("run,a\n1,x\n", "tool.csv:2: a: expected a number"),
        ('run,a\n1,"3,5"\n', r"tool.csv:2: a: expected a number or nothing, got '3,5'; df\[.a.\] = "),
        ("run;a\n1;3,5\n", r"sep=.;., decimal=.,.\)"),
        ("run, a,b\n0,1\n0,1,2\n", "tool.csv:2: expected 3 cells, got 2"),
        ("run,a,a\n1,2,3\n", "tool.csv:1: expected each column once, got a twice"),
        ("run,a,b\n0,1,2\n0,1,2,3\n", "tool.csv:3: expected 3 cells, got 4"),
        ("run,evaluation,a\n0,1,2\n0,,1\n", "tool.csv:3: evaluation: expected a number, got nothing"),
        ("run,a\n0,2\n ,1\n", "tool.csv:3: run: expected it in every row or in none, got nothing"),
        ("strategy,run,a\n,0,2\nmine,0,1\n", "tool.csv:2: strategy: expected it in every row or in none"),
    ],
)
def test_mistakes_name_the_place(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError, match=said):
        read_runs(path, [objective.name for objective in objectives_of(path)])


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        objectives_of(tmp_path / "none.csv")


def test_values_stand_for_designs_where_there_are_no_keys() -> None:
    reference = exact_reference(
        (Objective("loss"), Objective("total_ms", "ms", True)), np.array([[3.0, 20.0], [2.5, 30.0]]), np.array([71, 72])
    )
    keys = keys_by_value(np.array([[3.0, 20.0 * (1 + 1e-15)], [9.0, 9.0], [np.nan, 1.0], [9.0, 9.0]]), reference)
    assert keys[0] == 71
    assert keys[1] == keys[3] < 0
    assert keys[2] != keys[1]
