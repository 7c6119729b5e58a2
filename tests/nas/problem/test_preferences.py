"""Choosing among evaluated architectures: knee, diverse, best and budget against their definitions."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nas.errors import UsageError
from nas.problem.evaluations import Evaluations, Scale, frontier_rows, non_dominated
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.study.metrics import check_form, diverse, knee, parse_budget, select
from objectives.scenario import Requests

Floats = NDArray[np.float64]
METRICS = ("loss", "decode_ms", "total_ms", "memory_gb", "params_total")
ONE = Requests(1, 16)


def below(points: Floats) -> Floats:
    """Distance of each point below the plane through the points that are best in each objective."""
    corners = np.array([points[np.argmin(points[:, i])] for i in range(points.shape[1])])
    normal = np.linalg.solve(corners, np.ones(len(corners)))
    return (1 - points @ normal) / float(np.linalg.norm(normal))


@st.composite
def unit_fronts(draw: st.DrawFn) -> Floats:
    """Non-dominated points of two objectives that span 0 to 1, as MODEL's scale makes them."""
    inner = draw(st.lists(st.tuples(st.floats(0.001, 0.999), st.floats(0.001, 0.999)), max_size=12, unique=True))
    points = np.array([(0.0, 1.0), *inner, (1.0, 0.0)])
    kept: Floats = points[non_dominated(points)]
    return kept


def test_the_knee_of_a_bent_front_is_its_bend() -> None:
    assert knee(np.array([[0.0, 1.0], [0.1, 0.6], [0.2, 0.2], [0.7, 0.15], [1.0, 0.0]])) == 2


@given(unit_fronts())
def test_the_knee_is_farthest_below_the_line(points: Floats) -> None:
    depths = below(points)
    assert depths[knee(points)] >= depths.max() - 1e-11


@given(st.lists(st.tuples(*[st.floats(0.01, 0.99)] * 3), max_size=12, unique=True))
def test_the_knee_of_three_objectives_is_farthest_below_the_plane(inner: list[tuple[float, float, float]]) -> None:
    points = np.array([(0.0, 0.6, 1.0), (1.0, 0.0, 0.7), (0.8, 1.0, 0.0), *inner])
    depths = below(points)
    assert depths[knee(points)] >= depths.max() - 1e-11


def test_where_two_objectives_have_one_best_point_the_knee_is_nearest_the_ideal(
    problem_of: Callable[..., Problem], evaluated: Callable[[Problem], Evaluations]
) -> None:
    problem = problem_of(objectives=["loss", "total_ms", "memory_gb"])
    found = evaluated(problem)
    rows = frontier_rows(found)
    scale = Scale.from_frontier(problem.objectives, found.values[rows])
    points = scale.normalise(found.values[rows])
    assert len({int(np.argmin(points[:, i])) for i in range(3)}) == 2
    assert select(found, "knee", scale, ONE).tolist() == [rows[int(np.argmin(points.sum(axis=1)))]]


def test_a_straight_front_has_the_knee_nearest_the_ideal_then_the_first() -> None:
    straight = np.array([[0.0, 1.0], [0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    assert knee(straight) == 0
    assert knee(straight[::-1].copy()) == 0


@pytest.mark.parametrize("points", [[[0.0, 0.0]], [[0.0]], [[0.0], [0.0]], [[0.0, 0.0, 0.0]]])
def test_a_front_without_a_plane_has_a_knee(points: list[list[float]]) -> None:
    assert knee(np.array(points)) == 0


@given(unit_fronts(), st.integers(1, 16))
def test_diverse_starts_with_the_ends_and_goes_on_with_the_farthest(points: Floats, k: int) -> None:
    before = points.copy()
    chosen = diverse(points, k).tolist()
    assert len(chosen) == len(set(chosen)) == min(k, len(points))
    ends = [int(np.argmin(points[:, 0])), int(np.argmin(points[:, 1]))]
    assert chosen[:2] == ends[: min(k, 2)]
    for i in range(2, len(chosen)):
        apart = np.linalg.norm(points[:, None] - points[chosen[:i]][None], axis=2).min(axis=1)
        assert apart[chosen[i]] >= apart.max() - 1e-12
    assert (points == before).all()


@pytest.mark.parametrize("k", [3, 4, 5, 6])
def test_diverse_takes_no_row_twice_where_designs_are_equal(k: int) -> None:
    points = np.array([[0.0, 1.0], [0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    rows = diverse(points, k).tolist()
    assert rows[:3] == [0, 3, 1]
    assert len(set(rows)) == len(rows) == min(k, len(points))


def chosen(found: Evaluations, how: str, problem: Problem) -> list[int]:
    """Rows chosen on the scale of the found frontier."""
    return select(found, how, Scale.from_frontier(problem.objectives, found.values[frontier_rows(found)]), ONE).tolist()


@pytest.fixture(scope="module")
def problem(problem_of: Callable[..., Problem]) -> Problem:
    """The tiny space under a budget."""
    return problem_of(budgets={"decode_ms": 12})


@pytest.fixture(scope="module")
def found(problem: Problem, evaluated: Callable[[Problem], Evaluations]) -> Evaluations:
    """Everything in it."""
    return evaluated(problem)


def lowest_loss(found: Evaluations, within: Sequence[bool]) -> float:
    """The lowest loss among some rows."""
    return float(found.metrics["loss"][np.asarray(within)].min())


def test_best_is_the_lowest_loss_within_budgets(found: Evaluations, problem: Problem) -> None:
    (row,) = chosen(found, "best", problem)
    assert found.metrics["loss"][row] == lowest_loss(found, found.metrics["decode_ms"] <= 12)


@pytest.mark.parametrize("text", ["total_ms=9", "total_ms<=9", " total_ms <= 9 ms "])
def test_budget_is_the_pick_within_one_budget_more(text: str, found: Evaluations, problem: Problem) -> None:
    (row,) = chosen(found, f"budget:{text}", problem)
    within = (found.metrics["decode_ms"] <= 12) & (found.metrics["total_ms"] <= 9)
    assert found.metrics["loss"][row] == lowest_loss(found, within)
    assert row == PickRule(parse_budget(text, METRICS, ONE)).row(found)


def test_a_budget_that_nothing_satisfies_chooses_nothing(found: Evaluations, problem: Problem) -> None:
    assert chosen(found, "budget:total_ms=0.001", problem) == []


@pytest.mark.parametrize("k", [1, 2, 5, 10_000])
def test_diverse_chooses_k_of_the_frontier_in_its_order(k: int, found: Evaluations, problem: Problem) -> None:
    frontier = frontier_rows(found).tolist()
    rows = chosen(found, f"diverse:{k}", problem)
    assert len(rows) == min(k, len(frontier))
    assert rows == [row for row in frontier if row in set(rows)]


def test_frontier_is_the_frontier(found: Evaluations, problem: Problem) -> None:
    assert chosen(found, "frontier", problem) == frontier_rows(found).tolist()


@pytest.mark.parametrize("how", ["frontier", "best", "knee", "diverse:3", "budget:total_ms=9"])
def test_nothing_feasible_chooses_nothing(how: str, rows_of: Callable[..., Evaluations], problem: Problem) -> None:
    nothing = rows_of({"loss": [3.0, 2.0], "total_ms": [5.0, 6.0]}, budgets={"total_ms": 1.0})
    assert select(nothing, how, Scale.from_frontier(problem.objectives, np.array([[1.0, 1.0]])), ONE).tolist() == []


@pytest.mark.parametrize(
    "how",
    [
        "",
        "Frontier",
        "diverse",
        "diverse:0",
        "diverse:-1",
        "diverse:x",
        "diverse:1.5",
        "diverse:²",
        "budget:",
        "knee:2",
        "all",
    ],
)
def test_other_forms_are_refused_with_the_known_ones(how: str) -> None:
    with pytest.raises(UsageError, match="expected frontier, best, knee, diverse:K or budget:metric=limit, got"):
        check_form(how)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "total_ms",
        "total_ms=",
        "=5",
        "speed=5",
        "total_ms=-1",
        "total_ms=0",
        "total_ms=1e",
        "total_ms>=5",
        "total_ms=5 GB",
    ],
)
def test_other_budgets_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="budget: expected"):
        parse_budget(text, METRICS, ONE)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("decode_ms=20", 20.0),
        ("decode_ms=0.02 s", 20.0),
        ("memory_gb=512 MB", 0.512),
        ("memory_gb=8 GB", 8.0),
        ("params_total=500M", 5e8),
    ],
)
def test_budgets_are_read_as_run_reads_them(text: str, limit: float) -> None:
    assert parse_budget(text, METRICS, ONE).limit == pytest.approx(limit)
