"""Pictures of a comparison: drawn for every shape of result, the same bytes each time."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nas.compare.anytime import Trace, checkpoints, measured
from nas.compare.pictures import COLOURS, draw_all, first_decade, strokes
from nas.compare.reference import exact_reference, union
from nas.compare.result import Ranking, StudyResult
from nas.problem.objective import Objective

Made = Callable[..., StudyResult]


@pytest.fixture
def made() -> Made:
    """A result of made-up runs: strategies, runs of each, objectives, and whether the frontier is one point."""

    def build(names: tuple[str, ...], runs: int = 3, objectives: int = 2, one_point: bool = False) -> StudyResult:
        generator = np.random.default_rng(0)
        scales = (Objective("loss"), Objective("total_ms", "ms", True), Objective("memory_gb", "GB", True))[:objectives]
        traces = []
        for name in names:
            for run in range(runs):
                values = 1 + generator.random((40, objectives)) * (np.arange(objectives) * 30 + 1)
                values = np.ones((40, objectives)) + np.arange(40)[:, None] if one_point else values
                seconds = np.linspace(0.01, 2, 40)
                keys = generator.permutation(40)
                traces.append(Trace(name, f"s{run}", run, values, np.ones(40, bool), keys, "", seconds, 1.0))
        known = union(scales, [(t.values, np.arange(40) + 100 * i) for i, t in enumerate(traces)])
        assert known is not None
        reference = exact_reference(scales, known.values[:1], known.keys[:1]) if one_point else known
        counts = checkpoints(40)
        scores = tuple(measured(trace, reference, counts) for trace in traces)
        return StudyResult("made", "", "made up", scales, reference, counts, scores, {}, {})

    return build


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "objectives", "one_point"),
    [
        (("random", "nsga2", "lhs"), 2, False),
        (("nsga2",), 2, False),
        (("random", "nsga2"), 3, False),
        (("a", "b"), 2, True),
    ],
)
def test_every_shape_of_result_is_drawn(
    made: Made, tmp_path: Path, names: tuple[str, ...], objectives: int, one_point: bool
) -> None:
    result = made(names, objectives=objectives, one_point=one_point)
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        draw_all(tmp_path / folder / "plots", [result])
    drawn = {path.name for path in (tmp_path / "first").rglob("*.png")}
    assert drawn == {"made-anytime.png", "targets.png"}
    for path in (tmp_path / "first").rglob("*.svg"):
        assert path.read_bytes() == (tmp_path / "second" / path.relative_to(tmp_path / "first")).read_bytes()


def test_strokes_tell_strategies_apart() -> None:
    names = [f"s{i}" for i in range(2 * len(COLOURS))] + ["random", "lhs"]
    found = strokes(names)
    assert len({(stroke.colour, str(stroke.dashes)) for stroke in found.values()}) == len(names)


def test_the_first_decade_is_below_the_first_target() -> None:
    assert first_decade({"a": np.array([np.nan, 34.0]), "b": np.array([250.0])}) == 10.0
    assert first_decade({"a": np.array([np.nan])}) == 1.0


def test_ranks_are_given_from_ten_studies_on() -> None:
    generator = np.random.default_rng(1)
    names = ("a", "b", "c")
    gaps = generator.random((12, 3)) + np.arange(3)
    few = Ranking("", names, gaps[:9], (), 100, frozenset())
    assert "need at least 10 studies" in few.sentence()
    assert few.rows() == []
    enough = Ranking("", names, gaps, ("d",), 100, frozenset())
    assert enough.sentence().startswith("Best: a (1.00).")
    assert "Not ranked" in enough.sentence()
    assert [row["strategy"] for row in enough.rows()] == ["a", "b", "c"]
    assert (
        Ranking("", names, np.ones((12, 3)), (), 100, frozenset()).sentence() == "No difference shown over the studies."
    )
