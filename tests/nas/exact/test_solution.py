"""The exact frontier by blocks against brute force, and the model page's counts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.exact import solution
from nas.exact import solution as exact_solution
from nas.exact.solution import ExactSolution, quick_frontier, solve
from nas.problem.evaluations import Evaluations, frontier_rows, non_dominated, rounded
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.search.assembly import assemble

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
    monkeypatch.setattr(solution, "BLOCK", block)
    problem = problem_of(**study)
    whole, counted = evaluated(problem), []
    answer = solve(problem, tuple(PickRule(b) for b in BUDGETS), counted.append)
    assert set(answer.frontier.keys.tolist()) == undominated(whole)
    assert answer.frontier.keys.tolist() == whole.keys[frontier_rows(whole)].tolist()
    assert (answer.covered, sum(counted)) == (len(whole), len(whole))
    assert answer.way == "enumeration"
    same_picks(whole, answer)


def same_picks(whole: Evaluations, solution: ExactSolution) -> None:
    """The picks are those of the whole space, every metric to the last bit."""
    for budget, pick in zip(BUDGETS, solution.picks, strict=True):
        row = PickRule(budget).row(whole)
        assert (pick is None) == (row is None)
        if pick is not None and row is not None:
            assert pick.keys.tolist() == [whole.keys[row]]
            assert {n: c.tolist() for n, c in pick.metrics.items()} == {n: [c[row]] for n, c in whole.metrics.items()}


@pytest.mark.parametrize("study", STUDIES, ids=str)
def test_sums_of_parts_give_the_same_to_the_last_bit(
    study: dict[str, Any],
    problem_of: Callable[..., Problem],
    evaluated: Callable[[Problem], Evaluations],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = problem_of(**study)
    rules = tuple(PickRule(b) for b in BUDGETS)
    enumerated = solve(problem, rules)
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    solution = solve(problem, rules)
    assert solution.way == "parts"
    assert solution.frontier.keys.tolist() == enumerated.frontier.keys.tolist()
    assert all((solution.frontier.metrics[n] == enumerated.frontier.metrics[n]).all() for n in problem.metric_names)
    same_picks(evaluated(problem), solution)


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


def test_a_metric_without_parts_is_enumerated_and_beyond_that_refused_by_name(
    problem_of: Callable[..., Problem], user_module: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = user_module("def fn(a):\n    return a.depth / a.width\n")
    problem = problem_of(objectives=["loss", f"{name}:fn"])
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    solution = solve(problem)
    assert solution.way == "enumeration"
    assert f"since {name}:fn does not say how it adds up from parts" in solution.explanation
    monkeypatch.setattr(exact_solution, "LARGEST", 161)
    with pytest.raises(
        UsageError, match=f"at most 161 architectures where {name}:fn does not say.*got 162; declare its parts"
    ):
        solve(problem)
    assert solve(problem_of()).way == "parts"


TURNING: dict[str, Any] = {
    "form": {
        "terms": {
            "depth": {"scale": "kappa_l", "powers": {"depth": "-alpha_l"}},
            "width": {"scale": "kappa_d", "powers": {"width": "-beta"}},
            "experts": {"scale": "a", "powers": {"n_experts": "-gamma"}, "logs": {"n_experts": 30.0}, "sign": -1},
            "irreducible": {"scale": "l_inf"},
        }
    },
    "coefficients": {"kappa_l": 9.96, "alpha_l": 1.63, "kappa_d": 30, "beta": 0.6, "a": 860, "gamma": 2, "l_inf": 2.5},
}


def test_a_law_that_turns_inside_a_range_is_solved_by_parts() -> None:
    """Its best number of experts, 40, lies between ends that are both worse than 2,000."""

    def lowest(experts: list[Any], way: str) -> float:
        axes = {
            "depth": {"from": 2, "to": 33},
            "width": {"from": 512, "to": 4096, "step": 64},
            "n_experts": experts,
            "expert_size": [1024],
            "n_kv_heads": [1],
        }
        study = {
            "space": {"name": "some", "axes": axes},
            "law": TURNING,
            "latency": "closed_form",
            "objectives": ["loss"],
        }
        study |= {"default_budget": "none", "budgets": {"decode_ms": 150}, "applications": {}, "baselines": []}
        solution = solve(assemble(study, {}).problem, (PickRule(None),))
        assert (solution.way, solution.picks[0] is None) == (way, False)
        return float(solution.frontier.metrics["loss"].min())

    by_all = lowest([2, 40, 2000, 2002], "enumeration")
    assert by_all == pytest.approx(2.6174, abs=1e-4)
    assert lowest([2, 40, {"from": 2000, "to": 100_000, "step": 2}], "parts") == by_all


def test_a_law_whose_terms_cancel_is_enumerated_and_beyond_that_refused(
    problem_of: Callable[..., Problem], evaluated: Callable[[Problem], Evaluations], monkeypatch: pytest.MonkeyPatch
) -> None:
    """AdditiveBounds of terms of 10^9 nats agree to 10^-7 nats, which is no proof."""
    terms = {"a": {"scale": "a", "powers": {"depth": "x"}}, "b": {"scale": "b", "powers": {"expert_ffn_ratio": "y"}}}
    terms |= {"c": {"scale": "c", "sign": -1}}
    law = {"form": {"terms": terms}, "coefficients": {"a": 1e9, "x": 1.3e-9, "b": 3e9, "y": 0.3e-9, "c": 4e9 - 2.0}}
    problem = problem_of(law=law, default_budget="none")
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    counted: list[int] = []
    solution = solve(problem, (PickRule(None),), counted.append)
    whole = evaluated(problem)
    assert solution.frontier.keys.tolist() == whole.keys[frontier_rows(whole)].tolist()
    assert "evaluated, since loss differs from the sum of its parts" in solution.explanation
    assert sum(counted) == len(whole)
    monkeypatch.setattr(exact_solution, "LARGEST", 161)
    with pytest.raises(
        UsageError, match=r"where loss differs from the sum of its parts, got 162; take another law, a small"
    ):
        solve(problem)


def test_parts_that_turn_are_enumerated_and_beyond_that_refused(
    problem_of: Callable[..., Problem], user_module: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = user_module(
        "from objectives.shares import Share\n"
        "def fn(a):\n    return 1.0 + (a.expert_size / a.width - 1.0) ** 2\n"
        "def parts(shares):\n"
        "    a = shares.architectures\n"
        "    if shares.part != 'ffn':\n"
        "        return Share(once=(0.0 * a.width + (1.0 if shares.part == 'base' else 0.0),))\n"
        "    return Share(once=((a.expert_size / a.width - 1.0) ** 2,))\n"
        "fn.parts = parts\n"
    )
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    problem = problem_of(objectives=["loss", f"{name}:fn"])
    solution = solve(problem)
    assert (solution.way, f"since {name}:fn is better inside a range" in solution.explanation) == ("enumeration", True)
    monkeypatch.setattr(exact_solution, "LARGEST", 161)
    with pytest.raises(
        UsageError, match=f"where {name}:fn is better inside a range than its bound says, got 162; declare"
    ):
        solve(problem)


@pytest.mark.parametrize("form", [{}, {"of": "log_loss", "residuals": "log_loss"}])
@pytest.mark.parametrize("terms", [{}, {"tokens": {"scale": "b", "powers": {"tokens": "-beta"}}}])
def test_a_law_of_constants_is_solved_and_the_cheapest_wins(
    form: dict[str, Any], terms: dict[str, Any], problem_of: Callable[..., Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    coefficients = {"c": 1.0, **({"b": 2.0, "beta": 0.1} if terms else {})}
    law = {"form": {"terms": {"c": {"scale": "c"}, **terms}, **form}, "coefficients": coefficients, "tokens": 1e10}
    problem = problem_of(law=law, default_budget="none")
    rules = tuple(PickRule(b) for b in BUDGETS)
    enumerated = solve(problem, rules)
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    solution = solve(problem, rules)
    assert solution.way == "parts"
    assert solution.frontier.keys.tolist() == enumerated.frontier.keys.tolist()
    for mine, theirs in zip(solution.picks, enumerated.picks, strict=True):
        assert (None if mine is None else mine.keys.tolist()) == (None if theirs is None else theirs.keys.tolist())
    with pytest.raises(UsageError, match="one that differs between architectures, got loss and perplexity, the same"):
        solve(problem_of(law=law, objectives=["loss", "perplexity"], default_budget="none"))


def test_losses_without_a_finite_perplexity_fail_and_the_rest_is_solved(
    problem_of: Callable[..., Problem], evaluated: Callable[[Problem], Evaluations], monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = {"depth": {"scale": "a", "powers": {"depth": "-x"}}, "c": {"scale": "c"}}
    law = {"form": {"terms": terms}, "coefficients": {"a": 20.0, "x": 1.0, "c": 705.0}}
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    for objectives in (["perplexity", "total_ms"], ["memory_gb", "total_ms"]):
        problem = problem_of(law=law, objectives=objectives, default_budget="none")
        whole = evaluated(problem)
        assert set(whole.reasons or ()) == {"", "loss: 710, beyond 709 nats no perplexity is finite"}
        assert (problem.architectures(whole.genotypes).depth[~whole.ok] == 4).all()
        solution = solve(problem)
        assert solution.frontier.keys.tolist() == whole.keys[frontier_rows(whole)].tolist()
    hopeless = problem_of(law={**law, "coefficients": {"a": 20.0, "x": 1.0, "c": 7050.0}}, default_budget="none")
    assert len(solve(hopeless).frontier) == 0


def test_too_many_partners_are_enumerated(problem_of: Callable[..., Problem], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    monkeypatch.setattr(exact_solution, "MOST_BACKBONES", 5)
    assert "depth, width and KV heads alone have" in solve(problem_of()).explanation


def test_a_quick_frontier_is_had_in_seconds_or_not_at_all(
    problem_of: Callable[..., Problem], user_module: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = problem_of()
    quick = quick_frontier(problem)
    assert quick is not None
    assert quick.frontier.keys.tolist() == solve(problem).frontier.keys.tolist()
    name = user_module("def fn(a):\n    raise AssertionError('called')\n")
    assert quick_frontier(problem_of(objectives=["loss", f"{name}:fn"])) is None
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    monkeypatch.setattr(exact_solution, "SECONDS", 3)
    assert quick_frontier(problem) is None


@pytest.mark.parametrize(("space", "size"), [("paper", 13_120), ("fine", 1_268_202_600), ("huge", 1_502_920_036_352)])
def test_shipped_spaces_have_the_model_pages_sizes(space: str, size: int) -> None:
    assert assemble({"space": space}, {}).problem.space.size == size


@pytest.mark.slow
def test_the_frontier_of_the_fine_space_covers_it_and_is_better_everywhere() -> None:
    """Its members cannot be checked one by one; the paper's designs in it and its neighbours can."""
    problem = assemble({"space": "fine"}, {}).problem
    solution = solve(problem)
    values, space = solution.frontier.values, problem.space
    assert solution.covered == 1_268_202_600
    assert len(non_dominated(values)) == len(values)
    near = problem.evaluate(space.neighbours(solution.frontier.genotypes))
    far = problem.evaluate(space.sample(200_000, np.random.default_rng(0)))
    for rivals in (near, far):
        others = rivals.feasible & ~np.isin(rivals.keys, solution.frontier.keys)
        both = np.concatenate([values, rivals.values[others]])
        assert (non_dominated(both) < len(values)).all()
