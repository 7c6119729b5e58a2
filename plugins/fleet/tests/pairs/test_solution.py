"""Frontiers over pairs of target and draft against every pair, priced whole, of the random problems of the core's own tests."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from core_tests import loaded
from plas_fleet.pairs import solution as pairs_module
from plas_fleet.pairs.acceptance import AcceptanceOfDrafts
from plas_fleet.pairs.metrics import OF_PAIRS, Shares
from plas_fleet.pairs.rows import groups_of
from plas_fleet.pairs.solution import PairProblem, solve_pairs

from nas.errors import PlasError
from nas.problem.evaluations import non_dominated
from nas.problem.objective import Budget, built_in
from nas.problem.problem import Problem
from nas.study.catalogue import load_law
from objectives.assessment import Assessment
from objectives.serving import Serving
from search_spaces.arrays import FloatArray
from search_spaces.space import SearchSpace

FAST = range(7000, 7012)  # seeds whose problems are not slow
SEEDS = [pytest.param(i, marks=() if i in FAST else pytest.mark.slow) for i in range(7000, 7120)]
DIGITS = 9
MEMORY, TIMES = ("memory_gb", "resident_gb"), ("prefill_ms", "decode_ms", "tpot_ms", "ttft_ms", "total_ms")


RANDOM = loaded("nas/exact/test_random_problems.py")


def small_space(chance: Any, mapping: dict[str, object], most: int) -> SearchSpace:
    """A part of a space of at most so many architectures: every axis thinned until it is."""
    axes = dict(mapping["axes"])  # type: ignore[call-overload]
    while (space := SearchSpace.from_mapping({**mapping, "axes": axes})).size > most:
        longest = max((name for name in axes if isinstance(axes[name], list)), key=lambda name: len(axes[name]))
        keep = max(1, len(axes[longest]) // 2)
        if keep == len(axes[longest]):
            break
        first, *others = axes[longest]  # with it every top_k has its experts
        axes[longest] = [first, *chance.few(others, keep - 1, keep - 1)]
    return space


def drawn(seed: int) -> PairProblem:
    """Random targets, drafts, figures, acceptance, objectives and budgets; the latency model that serving has."""
    chance = RANDOM.Chance(seed)
    problem, _ = RANDOM.problem_of(chance)
    scenario = replace(problem.scenario, latency="operator", output_tokens=chance.one(16, 100))
    scenario = replace(scenario, law=load_law("hw_codesign")) if seed % 3 else scenario
    targets = small_space(chance, problem.space.mapping(), 150)
    names = ["loss", *chance.few([*TIMES, *MEMORY], 1, 2)]
    serving = Serving(
        position_cost=chance.one(None, 0.0, 0.2), position_bits=0.75, position_overlap=chance.one(0.0, 0.45)
    )
    shallow = RANDOM.problem_of(RANDOM.Chance(seed + 50_000))[0].space.mapping()
    shallow["axes"]["depth"] = chance.few(range(1, 13), 3, 6)
    other = small_space(chance, shallow, 40)
    base = replace(problem, scenario=scenario, functions=(), columns=(), queries=(), objectives=(), budgets=())
    drafts, plain = replace(base, space=other), replace(base, space=targets)
    return PairProblem(
        replace(plain, objectives=tuple(map(built_in, names)), budgets=limits(chance, plain, drafts)),
        drafts,
        serving,
        acceptance(chance, drafts),
        tuple(chance.few([1, 2, 3, 5], 1, 2)),
    )


def acceptance(chance: Any, drafts: Problem) -> AcceptanceOfDrafts:
    """One share, or a line through two or three perplexities among those of drafts."""
    every = _whole(drafts)["perplexity"]
    perplexity = np.unique(every[np.isfinite(every)])
    if len(perplexity) < 4 or chance.one(*range(6)) == 0:
        return AcceptanceOfDrafts(((1.0, chance.share(0.3, 0.95)),))
    x = [perplexity[0], *chance.few(perplexity[1:-1].tolist(), 0, 2), perplexity[-1]]
    shares = [chance.share(0.7, 0.97), *(chance.share(0.3, 0.7) for _ in x[2:]), chance.share(0.02, 0.3)]
    return AcceptanceOfDrafts(tuple(zip(x, sorted(shares, reverse=True), strict=True)))


def limits(chance: Any, targets: Problem, drafts: Problem) -> tuple[Budget, ...]:
    """None to two budgets, each of which cuts."""
    found, own, other = [], _whole(targets), _whole(drafts)
    for name in chance.few(["loss", "perplexity", *TIMES, *MEMORY], 0, 2):
        values = own[name][np.isfinite(own[name])]
        both = 0.0 if name in ("loss", "perplexity") else float(np.median(other[name]))
        found.append(Budget(name, float(np.quantile(values, chance.share(0.2, 0.9))) + both))
    return tuple(found)


def _whole(problem: Problem) -> Assessment:
    return problem.assess(problem.architectures(problem.space.genotypes(np.arange(problem.space.size))))


def every_pair(problem: PairProblem) -> dict[str, FloatArray]:
    """Metrics of all pairs for all numbers of tokens, each priced whole as a study with that draft prices it."""
    targets, space = problem.targets, problem.drafts.space
    designs = targets.architectures(targets.space.genotypes(np.arange(targets.space.size)))
    drafts = problem.drafts.architectures(space.genotypes(np.arange(space.size)))
    perplexity = _whole(problem.drafts)["perplexity"]
    first = problem.acceptance.first(perplexity)
    found: dict[str, list[FloatArray]] = {name: [] for name in OF_PAIRS}
    for drafted in problem.drafted:
        for draft in np.flatnonzero(np.isfinite(perplexity)).tolist():
            one = drafts[draft : draft + 1]
            whole = Assessment(designs, problem.whole(one, float(first[draft]), drafted))
            for name in OF_PAIRS:
                found[name].append(whole[name])
    return {name: np.concatenate([np.zeros(0), *columns]) for name, columns in found.items()}


def best(metrics: dict[str, FloatArray], problem: PairProblem) -> FloatArray:
    """Feasible non-dominated values to some digits, (k, m), sorted."""
    values = np.stack([metrics[o.name] for o in problem.targets.objectives], axis=1)
    ok = np.isfinite(metrics["perplexity"])  # others are failed designs
    for budget in problem.targets.budgets:
        ok &= budget.violation(metrics[budget.metric]) <= 1e-12
    table = np.array([[float(f"{v:.{DIGITS}g}") for v in row] for row in values[ok].tolist()])
    return np.unique(table[non_dominated(table, exact=True)], axis=0) if ok.any() else np.zeros((0, values.shape[1]))


def agree(metrics: dict[str, FloatArray], others: dict[str, FloatArray], problem: PairProblem) -> bool:
    """Whether both hold the same frontier but for the last of the digits."""
    found, expected = best(metrics, problem), best(others, problem)
    return found.shape == expected.shape and bool(np.allclose(found, expected, rtol=10.0 ** (2 - DIGITS), atol=0.0))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_frontier_of_pairs_is_that_of_every_pair(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_module, "BLOCK", 97)
    problem = drawn(seed)
    brute = every_pair(problem)
    with RANDOM.by_parts(small_steps=True):
        found = solve_pairs(problem)
    assert agree(found.pairs.metrics, brute, problem)
    alone = _whole(problem.targets)
    single = {name: alone[name] for name in OF_PAIRS}
    assert agree(found.alone.metrics, single, problem)
    together = {name: np.concatenate([brute[name], single[name]]) for name in OF_PAIRS}
    assert agree(found.both.metrics, together, problem)


def test_sums_that_are_not_those_of_whole_pairs_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Shares.of

    def wrong(*given: Any) -> Shares:
        shares = whole(*given)
        return replace(shares, decode_ms=1.001 * shares.decode_ms + 1.0)

    monkeypatch.setattr(Shares, "of", staticmethod(wrong))
    with pytest.raises(PlasError, match="nothing is proved"):
        solve_pairs(replace(drawn(FAST[0]), acceptance=AcceptanceOfDrafts(((1.0, 0.7),))))


def test_pairs_of_one_draft_and_number_share_a_scenario() -> None:
    found = solve_pairs(drawn(FAST[1])).pairs
    groups = list(groups_of(found))
    assert np.array_equal(np.sort(np.concatenate(groups)), np.arange(len(found)))
    for rows in groups:
        assert len(np.unique(found.drafts[rows], axis=0)) == 1
        assert len(np.unique(found.drafted[rows])) == 1


def test_acceptance_of_drafts_is_affine_between_flat_before_and_falls_to_nothing_beyond() -> None:
    line = AcceptanceOfDrafts(((20.0, 0.8), (40.0, 0.6), (50.0, 0.3)))
    assert line.first(np.array([5.0, 20.0, 30.0, 45.0, 55.0, 90.0])) == pytest.approx([0.8, 0.8, 0.7, 0.45, 0.15, 0.0])
    assert line.measured(np.array([19.0, 20.0, 50.0, 51.0])).tolist() == [False, True, True, False]
    one = AcceptanceOfDrafts(((1.0, 0.7),))
    assert one.constant
    assert one.first(np.array([2.0, 1e9])) == pytest.approx([0.7, 0.7])
