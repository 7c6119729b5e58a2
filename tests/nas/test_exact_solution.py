"""The exact frontier by blocks against brute force, and the model page's counts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nas import exact_solution
from nas.assemble import assemble
from nas.dominance import frontier_rows, rounded
from nas.errors import UsageError
from nas.evaluations import Evaluations
from nas.exact_solution import solve
from nas.objective import Budget
from nas.picks import PickRule, best_row
from nas.problem import Problem

STUDIES: list[dict[str, Any]] = [
    {},
    {"objectives": ["loss"]},
    {"objectives": ["loss", "decode_ms", "memory_gb"], "budgets": {"total_ms": 30}},
    {"objectives": ["loss", "prefill_ms", "decode_ms", "resident_gb"]},
    {"budgets": {"total_ms": 0.001}},
]
BUDGETS = (None, Budget("decode_ms", 5.0), Budget("total_ms", 20.0), Budget("total_ms", 1e-3))


def undominated(found: Evaluations) -> set[int]:
    """Keys of feasible rows that no feasible row dominates, by comparing every pair."""
    values, feasible = rounded(found.values), np.flatnonzero(found.feasible)
    kept = set()
    for i in feasible:
        rivals = values[feasible]
        if not ((rivals <= values[i]).all(axis=1) & (rivals < values[i]).any(axis=1)).any():
            kept.add(int(found.keys[i]))
    return kept


@pytest.mark.parametrize("block", [1, 7, 50, 10_000])
@pytest.mark.parametrize("study", STUDIES, ids=str)
def test_blocks_give_the_frontier_and_picks_of_the_whole(
    block: int,
    study: dict[str, Any],
    problem_of: Callable[..., Problem],
    evaluated: Callable[[Problem], Evaluations],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact_solution, "BLOCK", block)
    problem = problem_of(**study)
    whole, counted = evaluated(problem), []
    solution = solve(problem, tuple(PickRule(b) for b in BUDGETS), counted.append)
    assert set(solution.frontier.keys.tolist()) == undominated(whole)
    assert solution.frontier.keys.tolist() == whole.keys[frontier_rows(whole)].tolist()
    assert (solution.covered, sum(counted)) == (len(whole), len(whole))
    assert solution.feasible == whole.feasible.sum()
    for budget, pick in zip(BUDGETS, solution.picks, strict=True):
        row = best_row(whole, budget)
        assert (pick is None) == (row is None)
        if pick is not None and row is not None:
            assert pick.keys.tolist() == [whole.keys[row]]
            assert {n: c.tolist() for n, c in pick.metrics.items()} == {n: [c[row]] for n, c in whole.metrics.items()}


@pytest.mark.parametrize(
    ("study", "size"),
    [
        ({}, 196),
        ({"default_budget": "none"}, 202),
        ({"default_budget": "none", "objectives": ["loss", "prefill_ms"]}, 268),
        ({"default_budget": "none", "objectives": ["loss", "decode_ms"]}, 181),
        (
            {"default_budget": "none", "objectives": ["loss", "prefill_ms"], "latency": "closed_form", "baselines": []},
            178,
        ),
        (
            {"default_budget": "none", "objectives": ["loss", "decode_ms"], "latency": "closed_form", "baselines": []},
            157,
        ),
        (
            {"default_budget": "none", "objectives": ["loss", "total_ms"], "latency": "closed_form", "baselines": []},
            160,
        ),
    ],
    ids=str,
)
def test_frontiers_of_the_papers_space_have_the_model_pages_sizes(study: dict[str, Any], size: int) -> None:
    solution = solve(assemble(study, {}).problem)
    assert (len(solution.frontier), solution.covered) == (size, 13_120)


def test_a_space_beyond_enumeration_is_refused_with_its_size(
    problem_of: Callable[..., Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_solution, "LARGEST", 161)
    with pytest.raises(UsageError, match="at most 161 architectures, got 162; choose a search strategy"):
        solve(problem_of())
