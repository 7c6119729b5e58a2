"""Dominance against its definition, and the tie rule against decimal formatting."""

import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nas.problem import evaluations
from nas.problem.evaluations import Evaluations, frontier_rows, non_dominated, rounded
from nas.problem.problem import Problem

Floats = NDArray[np.float64]
TINIEST = 1e-250  # below, see test_rounded_at_the_ends_of_float64
SLIGHT = 1e-13  # a relative change that 12 digits of a number from 1 to 9 do not show


def numbers(largest: float) -> st.SearchStrategy[float]:
    """Floats of both signs and zero, without the ends of float64."""
    return st.floats(-largest, largest).map(lambda v: v if abs(v) > TINIEST else 0.0)


def formatted(value: float) -> float:
    """Twelve significant digits by decimal formatting."""
    return float(f"{value:.11e}")


def by_definition(values: Floats) -> list[int]:
    """Rows that no other row dominates, by comparing every pair."""
    rows = [[formatted(v) for v in row] for row in values.tolist()]

    def dominates(a: list[float], b: list[float]) -> bool:
        return all(x <= y for x, y in zip(a, b, strict=True)) and any(x < y for x, y in zip(a, b, strict=True))

    return [i for i, row in enumerate(rows) if not any(dominates(other, row) for other in rows)]


@st.composite
def tied_values(draw: st.DrawFn) -> Floats:
    """(n, m) of small integers with changes beyond the twelfth digit: many equal rows, many ties."""
    n, m = draw(st.integers(1, 24)), draw(st.integers(1, 4))
    digits = draw(st.lists(st.integers(1, 4), min_size=n * m, max_size=n * m))
    slight = draw(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=n * m, max_size=n * m))
    return (np.array(digits, dtype=np.float64) * (1 + SLIGHT * np.array(slight))).reshape(n, m)


def near_half(value: float) -> bool:
    """Whether a value lies so near the middle of two 12-digit numbers that either is right."""
    scaled = abs(Decimal(value)).scaleb(11 - Decimal(value).adjusted())
    return abs(scaled % 1 - Decimal("0.5")) < Decimal("0.001")


@given(st.floats(1e-250, 1e250) | st.floats(1e-3, 1e6) | st.integers(-(10**15), 10**15).map(float))
@example(999.9999999999999)
@example(1e23)
@example(0.1 + 0.2)
def test_rounded_keeps_twelve_significant_digits(value: float) -> None:
    got = float(rounded(np.array([value]))[0])
    assert near_half(value) or math.isclose(got, formatted(value), rel_tol=1e-14)


@pytest.mark.parametrize("value", [5e-324, 2.2250738585072014e-308, 1e-300, 3.3e-298, 1.7976931348623157e308])
def test_rounded_at_the_ends_of_float64(value: float) -> None:
    assert math.isclose(float(rounded(np.array([value]))[0]), value, rel_tol=1e-11, abs_tol=5e-324)


@given(st.lists(numbers(1e9), min_size=1, max_size=20))
def test_rounding_is_idempotent_keeps_order_and_leaves_its_input(values: list[float]) -> None:
    array = np.sort(np.array(values))
    before = array.copy()
    once = rounded(array)
    assert (np.diff(once) >= 0).all()
    assert (rounded(once) == once).all()
    assert (array == before).all()


def test_equal_quantities_in_another_order_become_equal() -> None:
    one, other = (0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3)
    assert one != other
    assert len(set(rounded(np.array([one, other])).tolist())) == 1


def test_the_thirteenth_digit_ties_and_the_twelfth_does_not() -> None:
    assert non_dominated(np.array([[1.0], [1.0 + 1e-13]])).tolist() == [0, 1]
    assert non_dominated(np.array([[1.0], [1.0 + 2e-11]])).tolist() == [0]


@given(tied_values())
def test_non_dominated_is_the_definition(values: Floats) -> None:
    before = values.copy()
    assert non_dominated(values).tolist() == by_definition(values)
    assert (values == before).all()


@given(st.integers(1, 4).flatmap(lambda m: st.lists(st.tuples(*[numbers(1e3)] * m), min_size=1, max_size=15)))
def test_non_dominated_is_the_definition_for_any_numbers(rows: list[tuple[float, ...]]) -> None:
    values = np.array([[formatted(v) for v in row] for row in rows])
    assert non_dominated(values).tolist() == by_definition(values)


@given(tied_values(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(values: Floats, random: "np.random.Generator") -> None:
    order = list(range(len(values)))
    random.shuffle(order)  # type: ignore[arg-type]
    kept = {order[i] for i in non_dominated(values[order]).tolist()}
    assert kept == set(non_dominated(values).tolist())


def test_duplicates_are_all_kept() -> None:
    values = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [2.0, 2.0], [1.0, 2.0]])
    assert non_dominated(values).tolist() == [0, 1, 2, 4]


def test_one_objective_keeps_every_minimum() -> None:
    assert non_dominated(np.array([[3.0], [1.0], [2.0], [1.0]])).tolist() == [1, 3]


def test_nothing_has_an_empty_frontier() -> None:
    assert non_dominated(np.zeros((0, 2))).tolist() == []


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="expected finite objectives"):
        non_dominated(np.array([[1.0, 2.0], [bad, 1.0]]))


def test_only_feasible_rows_compete(rows_of: Callable[..., Evaluations]) -> None:
    found = rows_of(
        {"loss": [1.0, 2.0, 3.0, math.nan], "total_ms": [9.0, 5.0, 4.0, math.nan]},
        budgets={"total_ms": 5.0},
        reasons=["", "", "", "failed"],
    )
    assert sorted(frontier_rows(found).tolist()) == [1, 2]


def test_the_frontier_is_sorted_by_objectives_then_by_genotype(rows_of: Callable[..., Evaluations]) -> None:
    metrics = {"loss": [2.0, 1.0, 1.0 + 1e-14, 3.0], "total_ms": [2.0, 3.0, 3.0, 1.0]}
    found = rows_of(metrics, keys=[4, 9, 7, 1])
    assert found.keys[frontier_rows(found)].tolist() == [7, 9, 4, 1]


def test_a_frontier_within_budgets_is_the_definition(
    problem_of: Callable[..., Problem], evaluated: Callable[[Problem], Evaluations]
) -> None:
    found = evaluated(problem_of(objectives=["loss", "decode_ms", "memory_gb"], budgets={"total_ms": 30}))
    feasible = np.flatnonzero(found.metrics["total_ms"] <= 30)
    assert 0 < len(feasible) < len(found)
    expected = feasible[by_definition(found.values[feasible])]
    assert sorted(frontier_rows(found).tolist()) == sorted(expected.tolist())


@pytest.mark.parametrize("block", [1, 7, 100])
def test_blocks_change_nothing(
    block: int,
    problem_of: Callable[..., Problem],
    evaluated: Callable[[Problem], Evaluations],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = problem_of(objectives=["loss", "decode_ms", "memory_gb"], budgets={"total_ms": 30})
    found = evaluated(problem)[np.random.default_rng(block).permutation(problem.space.size)]
    whole = frontier_rows(found).tolist()
    monkeypatch.setattr(evaluations, "BLOCK", block)
    assert frontier_rows(found).tolist() == whole
    assert frontier_rows(problem_of(budgets={"total_ms": 1e-3}).evaluate(found.genotypes)).tolist() == []
