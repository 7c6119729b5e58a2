"""Measures over a run against their definitions, evaluated from scratch at every number of designs."""

from collections.abc import Callable
from typing import Any

import moocore
import numpy as np
import pytest

from nas.compare.anytime import MEASURES, TARGETS, Measured, Trace, checkpoints, measured, shown
from nas.compare.reference import Reference, exact_reference, union
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.objective import Objective
from nas.problem.problem import Problem

OBJECTIVES = (Objective("loss"), Objective("total_ms", "ms", True))


def trace_of(values: Any, feasible: Any = None, **further: Any) -> Trace:
    """A trace of made-up values, all feasible unless said."""
    array = np.array(values, dtype=np.float64).reshape(-1, 2)
    within = np.ones(len(array), dtype=bool) if feasible is None else np.array(feasible)
    return Trace("mine", "s0", 0, array, within, np.arange(len(array)), **further)


def score(trace: Trace, reference: Reference | None, counts: Any) -> Measured:
    """Measured at the given numbers of designs."""
    return measured(trace, reference, np.array(counts))


@pytest.fixture(scope="module")
def known(
    problem_of: Callable[..., Problem], evaluated: Callable[[Problem], Evaluations]
) -> tuple[Evaluations, Reference]:
    """Every design of the tiny space in a random order, and its exact frontier."""
    problem = problem_of(budgets={"total_ms": 60})
    whole = evaluated(problem)
    front = whole[frontier_rows(whole)]
    reference = exact_reference(problem.objectives, front.values, front.keys)
    assert reference is not None
    return whole[np.random.default_rng(5).permutation(len(whole))], reference


def test_every_measure_is_its_definition_at_every_number(known: tuple[Evaluations, Reference]) -> None:
    found, reference = known
    trace = Trace("mine", "s0", 0, found.values, found.feasible, found.keys)
    counts = [1, 2, 5, 17, 50, 120, 162]
    got = score(trace, reference, counts)
    exact = reference.scale.normalise(reference.values)
    for i, count in enumerate(counts):
        part = found[slice(0, count)]
        front = part[frontier_rows(part)]
        if len(front) == 0:
            assert got.values["gap"][i] == 1.0
            continue
        a = reference.scale.normalise(front.values)
        excess = np.maximum(a[None, :, :] - exact[:, None, :], 0.0)
        expected = {
            "gap": 1 - moocore.hypervolume(a, ref=[1.1, 1.1]) / moocore.hypervolume(exact, ref=[1.1, 1.1]),
            "share": len(set(front.keys) & set(reference.keys)) / len(reference.keys),
            "igd_plus": np.sqrt((excess**2).sum(axis=2)).min(axis=1).mean(),
            "epsilon": max((a[None, :, :] - exact[:, None, :]).max(axis=2).min(axis=1).max(), 0.0),
            "regret": regret(part, reference),
        }
        for name in MEASURES:
            assert got.values[name][i] == pytest.approx(expected[name], abs=1e-12), (name, count)
    assert got.values["gap"][-1] == pytest.approx(0.0, abs=1e-12)
    assert got.values["share"][-1] == 1.0


def regret(part: Evaluations, reference: Reference) -> float:
    """The worst excess of the pick's loss over budgets of the time, from all rows and not from frontiers."""
    loss, time = part.values.T
    best, fastest = reference.values.T
    low, high = np.log(fastest.min()), np.log(fastest.max())
    worst = 0.0
    for k in range(1, 21):
        budget = np.exp(low + (high - low) * k / 20) * (1 + 1e-12)
        within = loss[part.feasible & (time <= budget)]
        worst = max(worst, (within.min() if len(within) else np.inf) - best[fastest <= budget].min())
    return worst


@pytest.mark.parametrize(
    ("evaluations", "expected"),
    [(40, [40]), (60, [50, 60]), (1000, [50, 100, 200, 501, 1000]), (2000, [50, 100, 200, 501, 1000, 2000])],
)
def test_a_reader_sees_round_checkpoints_and_the_last(evaluations: int, expected: list[int]) -> None:
    counts = checkpoints(evaluations)
    assert [int(counts[i]) for i in shown(counts)] == pytest.approx(expected, abs=1)


def test_targets_are_reached_where_a_scan_says_so(known: tuple[Evaluations, Reference]) -> None:
    found, reference = known
    trace = Trace("mine", "s0", 0, found.values, found.feasible, found.keys)
    got = score(trace, reference, [10, 50, 162])
    gaps = score(trace, reference, range(1, 163)).values["gap"]
    assert (np.diff(gaps) <= 0).all()
    for target, reached in zip(TARGETS, got.reached, strict=True):
        assert reached == np.flatnonzero(gaps <= target)[0] + 1


def test_a_run_that_ends_is_carried_forward(known: tuple[Evaluations, Reference]) -> None:
    found, reference = known
    short = found[slice(0, 40)]
    trace = Trace("mine", "s0", 0, short.values, short.feasible, short.keys, "capped", np.linspace(0.1, 0.5, 40), 0.2)
    got = score(trace, reference, [20, 40, 100])
    assert got.values["gap"][2] == got.values["gap"][1] < got.values["gap"][0]
    assert (got.ended, got.evaluations) == ("capped", 40)
    assert np.isnan(got.reached[-1])
    assert (got.seconds, got.strategy_ms, got.objectives_ms) == pytest.approx((0.5, 5.0, 7.5))


def test_a_frontier_of_one_point() -> None:
    reference = exact_reference(OBJECTIVES, np.array([[3.0, 20.0]]), np.array([2]))
    got = score(trace_of([[4.0, 40.0], [3.0, 40.0], [3.0, 20.0]]), reference, [1, 2, 3])
    assert got.values["gap"][2] == 0.0
    assert (got.values["gap"][:2] > 0).all()
    assert got.values["share"].tolist() == [0, 0, 1]
    assert got.values["regret"].tolist() == [np.inf, np.inf, 0.0]


def test_nothing_feasible_is_the_whole_gap() -> None:
    reference = exact_reference(OBJECTIVES, np.array([[3.0, 20.0], [2.5, 30.0]]), np.array([1, 2]))
    got = score(trace_of([[3.0, 20.0], [2.0, 10.0]], [False, False]), reference, [1, 2])
    assert got.values["gap"].tolist() == [1.0, 1.0]
    assert got.values["share"].tolist() == [0.0, 0.0]
    assert np.isinf(got.values["regret"]).all()
    assert np.isnan(got.reached).all()
    assert len(got.front) == 0
    assert exact_reference(OBJECTIVES, np.zeros((0, 2)), np.zeros(0, dtype=np.int64)) is None
    assert np.isnan(score(trace_of([[3.0, 20.0]]), None, [1]).values["gap"]).all()


def test_magnitudes_do_not_matter_on_a_log_scale() -> None:
    """One objective multiplied by 10^9: gap, share, IGD+, epsilon and regret of the other stay what they were."""
    generator = np.random.default_rng(2)
    values = np.stack([generator.random(60), 10 ** generator.random(60)], axis=1)
    scores = []
    for factor in (1.0, 1e9):
        run = trace_of(values * [1.0, factor])
        reference = union(OBJECTIVES, [(run.values, run.keys)])
        scores.append(score(trace_of((values * [1.0, factor])[:20]), reference, [20]))
    for name in MEASURES:
        assert scores[0].values[name] == pytest.approx(scores[1].values[name], rel=1e-9), name


def test_the_union_counts_a_design_once_and_keeps_the_best() -> None:
    fronts = [
        (np.array([[1.0, 5.0], [2.0, 4.0]]), np.array([1, 2])),
        (np.array([[1.0, 5.0], [1.5, 3.0]]), np.array([1, 3])),
    ]
    reference = union(OBJECTIVES, fronts)
    assert reference is not None
    assert sorted(reference.keys) == [1, 3]
    assert union(OBJECTIVES, []) is None


@pytest.mark.parametrize("evaluations", [1, 9, 10, 11, 200, 1000, 5000])
def test_checkpoints_grow_and_are_shared(evaluations: int) -> None:
    points = checkpoints(evaluations)
    assert points[-1] == evaluations
    assert (np.diff(points) > 0).all()
    assert set(points[:-1]) <= set(checkpoints(10 * evaluations).tolist())


@pytest.mark.parametrize(("names", "picked"), [(("ms", "loss"), 1), (("ms", "loss@q90"), 1), (("ms", "gb"), 0)])
def test_picks_minimise_the_loss_or_a_quantile_of_it(names: tuple[str, str], picked: int) -> None:
    reference = exact_reference(
        tuple(Objective(name) for name in names), np.array([[1.0, 2.0], [2.0, 1.0]]), np.arange(2)
    )
    assert reference is not None
    assert reference.picked == picked
