"""The diagnosis of infeasibility, every figure verified by brute force."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nas.api.study import load_study
from nas.exact.infeasibility import diagnosed
from nas.problem.diagnosis import Relaxation, diagnose, lines
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from nas.problem.problem import Problem

Limits = dict[str, float]
EVERY = re.compile(r"^  Relaxing every budget by ([\d.]+) % opens the first design")
AT = re.compile(r"^  (\w+) <= \S+: binds; at (\S+) \(\+[\d.]+ %\) it opens ([\d,]+) design")


def fitting(found: Evaluations, limits: Limits) -> NDArray[np.bool_]:
    """Which rows satisfy every limit."""
    columns = {metric: found.metrics[metric].tolist() for metric in limits}
    return np.array([all(columns[m][i] <= limit for m, limit in limits.items()) for i in range(len(found))])


def relaxed(found: Evaluations, limits: Limits, metric: str) -> tuple[float | None, int]:
    """The smallest limit of one metric that lets something in, and how many it lets in: every value is tried."""
    others = fitting(found, {m: limit for m, limit in limits.items() if m != metric})
    for value in sorted(found.metrics[metric].tolist()):
        opens = int((others & (found.metrics[metric] <= value)).sum())
        if opens:
            return value, opens
    return None, 0


@pytest.fixture(scope="module")
def everything(problem_of: Callable[..., Problem], evaluated: Callable[[Problem], Evaluations]) -> Evaluations:
    """The tiny space, evaluated without budgets."""
    return evaluated(problem_of(default_budget="none"))


@pytest.fixture(scope="module")
def under(everything: Evaluations) -> Callable[[Limits], Evaluations]:
    """The tiny space under budgets."""
    return lambda limits: replace(everything, budgets=tuple(Budget(metric, limit) for metric, limit in limits.items()))


IMPOSSIBLE = st.sampled_from(
    [
        {"total_ms": 0.5},
        {"total_ms": 0.5, "memory_gb": 100.0},
        {"total_ms": 6.0, "loss": 4.0},
        {"total_ms": 1.0, "memory_gb": 0.001},
        {"decode_ms": 2.0, "loss": 3.5, "memory_gb": 0.05},
        {"loss": 3.6, "memory_gb": 0.1},
        {"params_total": 1e6, "loss": 5.0},
    ]
)


@given(IMPOSSIBLE, st.floats(0.5, 1.5))
def test_every_relaxation_is_the_smallest_that_opens_something(
    under: Callable[[Limits], Evaluations], everything: Evaluations, limits: Limits, factor: float
) -> None:
    limits = {metric: limit * factor for metric, limit in limits.items()}
    if fitting(everything, limits).any():
        return
    found = diagnose(under(limits))
    assert found.examined == len(everything)
    assert [r.budget.metric for r in found.relaxations] == list(limits)
    for r in found.relaxations:
        assert (r.limit, r.opens) == relaxed(everything, limits, r.budget.metric)
        assert r.met_by == int((everything.metrics[r.budget.metric] <= r.budget.limit).sum())


@given(IMPOSSIBLE)
def test_relaxing_as_said_makes_as_many_feasible_and_a_hair_less_none(
    under: Callable[[Limits], Evaluations], limits: Limits
) -> None:
    for r in diagnose(under(limits)).relaxations:
        if r.limit is not None:
            assert int(under({**limits, r.budget.metric: r.limit}).feasible.sum()) == r.opens
            assert not under({**limits, r.budget.metric: r.limit * (1 - 1e-9)}).feasible.any()


@given(IMPOSSIBLE)
def test_relaxing_every_budget_by_one_factor_opens_the_first(
    under: Callable[[Limits], Evaluations], limits: Limits
) -> None:
    factor = 1 + diagnose(under(limits)).together
    assert under({m: v * factor * (1 + 1e-12) for m, v in limits.items()}).feasible.any()
    assert not under({m: v * factor * (1 - 1e-9) for m, v in limits.items()}).feasible.any()


LIMITS = st.dictionaries(
    st.sampled_from(["total_ms", "decode_ms", "loss", "memory_gb", "params_total"]),
    st.floats(0.01, 1.3),
    min_size=2,
    max_size=4,
)


@given(LIMITS)
def test_the_printed_percentage_opens_a_design_and_a_tenth_less_does_not(
    under: Callable[[Limits], Evaluations], everything: Evaluations, shares: Limits
) -> None:
    limits = {metric: share * float(everything.metrics[metric].min()) for metric, share in shares.items()}
    found = diagnose(under(limits))
    assume(found.together > 0)
    (said,) = [match for text in lines(found, True) if (match := EVERY.match(text))]
    percent = float(said[1])
    assert under({m: v * (1 + percent / 100) for m, v in limits.items()}).feasible.any()
    assert not under({m: v * (1 + (percent - 0.1) / 100 - 1e-9) for m, v in limits.items()}).feasible.any()


@pytest.mark.parametrize("limit", [1e-300, 1e-306])
def test_budgets_out_of_all_reach_are_diagnosed_too(under: Callable[[Limits], Evaluations], limit: float) -> None:
    assert lines(diagnose(under({"total_ms": limit, "loss": limit})), True)[-1].startswith("  loss ")


@given(IMPOSSIBLE)
def test_the_closest_misses_have_the_smallest_largest_violation(
    under: Callable[[Limits], Evaluations], everything: Evaluations, limits: Limits
) -> None:
    worst = [max(everything.metrics[m][i] / limit - 1 for m, limit in limits.items()) for i in range(len(everything))]
    closest = diagnose(under(limits)).closest
    assert closest.violations.max(axis=1).tolist() == pytest.approx(sorted(worst)[:3])


@given(IMPOSSIBLE)
def test_a_limit_typed_as_it_is_printed_opens_what_it_says(
    under: Callable[[Limits], Evaluations], limits: Limits
) -> None:
    said = [match for text in lines(diagnose(under(limits)), True) if (match := AT.match(text))]
    for match in said:
        opened = under({**limits, match[1]: float(match[2].replace(",", ""))}).feasible.sum()
        assert opened >= int(match[3].replace(",", "")), match[0]


def test_a_single_budget_binds_and_the_sentence_says_how_far(
    under: Callable[[Limits], Evaluations], everything: Evaluations
) -> None:
    said = lines(diagnose(under({"total_ms": 0.5})), True)
    least = everything.metrics["total_ms"].min()
    assert said[0] == "No architecture satisfies the budgets, among all 162 architectures of the space."
    assert (
        f"total_ms <= 0.5: binds; at {least:.6g} ms ({least / 0.5:.3g} times) it opens 1 design (0 meet it alone)"
        in said[1]
    )
    assert len([text for text in said if text.startswith("  loss ")]) == 3


def test_a_budget_that_everything_meets_does_not_bind(under: Callable[[Limits], Evaluations]) -> None:
    said = lines(diagnose(under({"total_ms": 0.5, "memory_gb": 100})), False)
    assert "among the 162 architectures evaluated" in said[0]
    assert "memory_gb <= 100: relaxing it alone opens nothing (162 meet it alone)" in said[2]


def test_two_impossible_budgets_have_no_single_relaxation(under: Callable[[Limits], Evaluations]) -> None:
    found = diagnose(under({"total_ms": 0.5, "memory_gb": 1e-4}))
    assert [(r.limit, r.opens) for r in found.relaxations] == [(None, 0), (None, 0)]


def test_failed_rows_are_left_out(rows_of: Callable[..., Evaluations]) -> None:
    found = diagnose(
        rows_of(
            {"loss": [2.0, math.nan, 3.0], "total_ms": [9.0, math.nan, 7.0]},
            budgets={"total_ms": 5.0},
            reasons=["", "broken", ""],
        )
    )
    assert found.examined == 2
    assert found.relaxations == (Relaxation(found.closest.budgets[0], 7.0, 1, 0),)
    assert found.closest.keys.tolist() == [2, 0]


@pytest.mark.parametrize("budgets", [{}, {"total_ms": 5.0}])
def test_when_everything_failed_the_budgets_are_not_blamed(
    budgets: Limits, rows_of: Callable[..., Evaluations]
) -> None:
    nan = [math.nan] * 2
    said = "\n".join(
        lines(diagnose(rows_of({"loss": nan, "total_ms": nan}, budgets=budgets, reasons=["broken"] * 2)), False)
    )
    assert said == "None of the 2 designs evaluated has values; the reasons are in evaluations.csv."
    assert "No architecture satisfies the budgets" not in said


def test_a_memory_below_every_design_says_what_the_smallest_takes(
    under: Callable[[Limits], Evaluations], everything: Evaluations
) -> None:
    least = float(everything.metrics["memory_gb"].min())
    found = diagnose(under({"total_ms": 0.5, "memory_gb": 0.9 * least}))
    assert found.least == (("memory_gb", least),)
    assert f"No design of the space takes less than {least:.4g} GB (memory_gb)" in " ".join(lines(found, True))
    assert f"No design evaluated takes less than {least:.4g} GB (memory_gb)" in " ".join(lines(found, False))
    assert diagnose(under({"total_ms": 0.5, "memory_gb": least})).least == ()


@pytest.mark.parametrize(("limit", "fits"), [(0.0002, False), (0.002, True)])
def test_a_space_too_large_to_look_at_whole_says_the_smallest_too_and_what_the_search_missed(
    limit: float, fits: bool
) -> None:
    keys: Any = {
        "preset": "paper",
        "space": "fine",
        "precision": "int8",
        "budgets": {"memory_gb": limit},
        "objectives": ["loss", "total_ms"],
    }
    problem = load_study(**keys).problem
    few = problem.evaluate(problem.space.sample(5, np.random.default_rng(0)))
    found = diagnosed(problem, few)
    said = " ".join(lines(found, True))
    smallest = load_study(**{**keys, "objectives": ["memory_gb"], "budgets": {}}).solve().frame.memory_gb.min()
    assert found.least == (() if fits else (("memory_gb", pytest.approx(smallest, rel=1e-9)),))
    assert ("No architecture satisfies the budgets" in said) != fits
    assert ("the space holds designs that are" in said) == fits
