"""Hypervolume, gap, IGD+ and epsilon against direct definitions on small fronts."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nas.problem import evaluations
from nas.problem.evaluations import REFERENCE, Scale, distance, too_many
from nas.problem.objective import Objective

Floats = NDArray[np.float64]
LINEAR = Objective("loss")
LOG = Objective("total_ms", "ms", log_scale=True)

NOTABLE = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5000001, 0.9, 1.0, 1.05, 1.1, 1.2])


def unit(m: int) -> Scale:
    """A linear scale whose ends are 0 and 1."""
    return Scale(tuple(Objective(f"o{i}") for i in range(m)), np.zeros(m), np.ones(m))


def cells_dominated(points: Floats) -> float:
    """Volume of the union of the boxes between points and the reference, cell by cell."""
    m = points.shape[1]
    inside = points[(points < REFERENCE).all(axis=1)]
    edges = [sorted({*inside[:, i].tolist(), REFERENCE}) for i in range(m)]
    total = 0.0
    for cell in itertools.product(*(range(len(e) - 1) for e in edges)):
        low = np.array([edges[i][c] for i, c in enumerate(cell)])
        if (inside <= low).all(axis=1).any():
            total += math.prod(edges[i][c + 1] - edges[i][c] for i, c in enumerate(cell))
    return total


@st.composite
def fronts(draw: st.DrawFn, coordinates: st.SearchStrategy[float] = NOTABLE) -> Floats:
    """Up to seven points of one to four objectives, some beyond the reference."""
    m = draw(st.integers(1, 4))
    return np.array(draw(st.lists(st.tuples(*[coordinates] * m), min_size=1, max_size=7)), dtype=np.float64)


@given(fronts())
def test_hypervolume_is_the_volume_of_the_union(points: Floats) -> None:
    before = points.copy()
    assert unit(points.shape[1]).hypervolume(points) == pytest.approx(cells_dominated(points), abs=1e-12)
    assert (points == before).all()


@given(fronts(st.floats(-0.5, 1.3)))
def test_hypervolume_never_falls_when_a_point_is_added(points: Floats) -> None:
    scale = unit(points.shape[1])
    assert scale.hypervolume(points) >= scale.hypervolume(points[:-1]) - 1e-12


def test_nothing_dominates_no_volume() -> None:
    assert unit(2).hypervolume(np.zeros((0, 2))) == 0.0


def test_points_beyond_the_reference_count_nothing() -> None:
    assert unit(2).hypervolume(np.array([[1.1, 0.0], [0.2, 1.3]])) == 0.0


def test_the_scale_puts_the_frontiers_best_at_0_and_its_worst_at_1() -> None:
    values = np.array([[3.0, 10.0], [2.5, 100.0], [2.0, 1000.0]])
    scale = Scale.from_frontier((LINEAR, LOG), values)
    assert scale.normalise(values) == pytest.approx(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), abs=1e-12)


def test_equal_ends_scale_by_1() -> None:
    scale = Scale.from_frontier((LINEAR, LINEAR), np.array([[2.0, 5.0]]))
    assert scale.normalise(np.array([[2.0, 5.0], [2.5, 5.25]])).tolist() == [[0.0, 0.0], [0.5, 0.25]]
    assert scale.hypervolume(np.array([[2.0, 5.0]])) == pytest.approx(1.1**2)


def test_the_unit_of_a_log_objective_does_not_matter() -> None:
    values = np.array([[3.0, 10.0], [2.5, 40.0], [2.0, 1000.0]])
    other = values * np.array([1.0, 1e-3])
    first, second = (Scale.from_frontier((LINEAR, LOG), v).normalise(v) for v in (values, other))
    assert first == pytest.approx(second, abs=1e-12)


def test_the_scale_is_described_in_the_objectives_own_units() -> None:
    described = Scale.from_frontier((LINEAR, LOG), np.array([[3.0, 10.0], [2.0, 1000.0]])).described()
    assert described["loss"] == {"scale": "linear", "best": 2.0, "worst": 3.0, "reference": 1.1}
    assert described["total_ms"] == pytest.approx({"scale": "log", "best": 10.0, "worst": 1000.0, "reference": 1.1})


@given(fronts(st.floats(0.0, 1.0)))
def test_the_exact_frontier_is_at_no_distance(points: Floats) -> None:
    d = distance(unit(points.shape[1]), points, points, len(points))
    assert (d.gap, d.share, d.found, d.exact) == (0.0, 1.0, len(points), len(points))
    assert d.igd_plus == pytest.approx(0.0, abs=1e-15)
    assert d.epsilon == pytest.approx(0.0, abs=1e-15)


def test_nothing_found_is_as_far_as_can_be() -> None:
    d = distance(unit(2), np.zeros((0, 2)), np.array([[0.0, 1.0], [1.0, 0.0]]), 0)
    assert (d.gap, d.share, d.found, d.exact) == (1.0, 0.0, 0, 2)


@given(fronts(st.floats(0.0, 1.0)), st.data())
def test_distance_is_its_definition(exact: Floats, data: st.DataObject) -> None:
    m = exact.shape[1]
    found = np.array(data.draw(st.lists(st.tuples(*[st.floats(0.0, 1.05)] * m), min_size=1, max_size=6)))
    d = distance(unit(m), found, exact, 0)
    worse = found[:, None, :] - exact[None, :, :]
    plus = np.sqrt((np.maximum(worse, 0) ** 2).sum(axis=2)).min(axis=0).mean()
    epsilon = worse.max(axis=2).min(axis=0).max()
    assert d.gap == pytest.approx(max(0.0, 1 - cells_dominated(found) / cells_dominated(exact)), abs=1e-12)
    assert d.igd_plus == pytest.approx(plus, abs=1e-12)
    assert d.epsilon == pytest.approx(max(epsilon, 0.0), abs=1e-12)


def test_many_points_of_four_objectives_are_approximated_and_all_others_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """On either side alone; both volumes are then of one kind, so that equal frontiers stay at no distance."""
    monkeypatch.setattr(evaluations, "EXACT_POINTS", {4: 3})
    four, three = np.random.default_rng(0).uniform(size=(4, 4)), np.random.default_rng(0).uniform(size=(4, 3))
    assert [too_many(points) for points in (four, four[:3], three)] == [True, False, False]
    for found, exact in ((four, four[:2] / 2), (four[:2], four)):
        ratio = unit(4).hypervolume(found, approximate=True) / unit(4).hypervolume(exact, approximate=True)
        assert distance(unit(4), found, exact, 0).gap == 1.0 - ratio > 0.0
        assert ratio != unit(4).hypervolume(found) / unit(4).hypervolume(exact)
        assert ratio == pytest.approx(unit(4).hypervolume(found) / unit(4).hypervolume(exact), rel=0.02)
    exactly = 1.0 - unit(3).hypervolume(three[:2]) / unit(3).hypervolume(three)
    assert distance(unit(3), three[:2], three, 0).gap == exactly
