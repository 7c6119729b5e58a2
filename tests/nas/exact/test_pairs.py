"""Frontiers over pairs of target and draft against every pair, priced whole."""

from dataclasses import replace

import numpy as np
import pytest

from nas.errors import PlasError
from nas.exact import pairs as pairs_module
from nas.exact.pair_metrics import OF_PAIRS, needed
from nas.exact.pairs import PairProblem, Pairs, solve_pairs
from nas.problem.dominance import non_dominated
from nas.problem.objective import Budget, built_in
from nas.problem.problem import Problem
from nas.search.serving import refuse_cache
from objectives.assessment import Assessment
from objectives.serving import AcceptanceOfDrafts, Serving
from search_spaces.arrays import FloatArray
from search_spaces.space import SearchSpace
from tests.nas.exact.test_random_problems import Chance, by_parts
from tests.nas.exact.test_random_problems import problem_of as random_problem

FAST = range(7000, 7012)  # seeds whose problems are not slow
SEEDS = [pytest.param(i, marks=() if i in FAST else pytest.mark.slow) for i in range(7000, 7120)]
DIGITS = 9
MEMORY, TIMES = ("memory_gb", "resident_gb"), ("prefill_ms", "decode_ms", "tpot_ms", "ttft_ms", "total_ms")


def small_space(chance: Chance, mapping: dict[str, object], most: int) -> SearchSpace:
    """A part of a space of at most so many architectures: every axis thinned until it is."""
    axes = dict(mapping["axes"])  # type: ignore[call-overload]
    while (space := SearchSpace.from_mapping({**mapping, "axes": axes})).size > most:
        longest = max((name for name in axes if isinstance(axes[name], list)), key=lambda name: len(axes[name]))
        keep = max(1, len(axes[longest]) // 2)
        if keep == len(axes[longest]):
            break
        axes[longest] = chance.few(axes[longest], keep, keep)
    return space


def drawn(seed: int) -> PairProblem:
    """Random targets, drafts, figures, acceptance, objectives and budgets; the latency model that serving has."""
    chance = Chance(seed)
    problem, _ = random_problem(chance)
    scenario = replace(problem.scenario, latency="operator")
    targets = small_space(chance, problem.space.mapping(), 150)
    names = ["loss", *chance.few([*TIMES, *MEMORY], 1, 2)]
    serving = Serving(
        position_cost=chance.one(None, 0.0, 0.2), position_bits=0.75, position_overlap=chance.one(0.0, 0.45)
    )
    other = small_space(chance, random_problem(Chance(seed + 50_000))[0].space.mapping(), 40)
    base = replace(problem, scenario=scenario, functions=(), columns=(), queries=(), objectives=(), budgets=())
    drafts, plain = replace(base, space=other), replace(base, space=targets)
    return PairProblem(
        replace(plain, objectives=tuple(map(built_in, names)), budgets=limits(chance, plain, drafts)),
        drafts,
        serving,
        acceptance(chance, drafts),
        tuple(chance.few([1, 2, 3, 5], 1, 2)),
    )


def acceptance(chance: Chance, drafts: Problem) -> AcceptanceOfDrafts:
    """One share, or a line through two or three perplexities among those of drafts."""
    perplexity = np.unique(_whole(drafts)["perplexity"])
    if len(perplexity) < 3 or chance.one(*range(4)) == 0:
        return AcceptanceOfDrafts(((1.0, chance.share(0.3, 0.95)),))
    x = chance.few(perplexity.tolist(), 2, 3)
    shares = np.sort([chance.share(0.05, 0.95) for _ in x])[::-1]
    return AcceptanceOfDrafts(tuple(zip(x, shares.tolist(), strict=True)))


def limits(chance: Chance, targets: Problem, drafts: Problem) -> tuple[Budget, ...]:
    """None to two budgets, each of which cuts."""
    found, own, other = [], _whole(targets), _whole(drafts)
    for name in chance.few(["loss", "perplexity", *TIMES, *MEMORY], 0, 2):
        both = 0.0 if name in ("loss", "perplexity") else float(np.median(other[name]))
        found.append(Budget(name, float(np.quantile(own[name], chance.share(0.2, 0.9))) + both))
    return tuple(found)


def _whole(problem: Problem) -> Assessment:
    return problem.assess(problem.architectures(problem.space.genotypes(np.arange(problem.space.size))))


def every_pair(problem: PairProblem) -> dict[str, FloatArray]:
    """Metrics of all pairs for all numbers of tokens, each priced whole as a study with that draft prices it."""
    targets, space = problem.targets, problem.drafts.space
    designs = targets.architectures(targets.space.genotypes(np.arange(targets.space.size)))
    drafts = problem.drafts.architectures(space.genotypes(np.arange(space.size)))
    first = problem.acceptance.first(_whole(problem.drafts)["perplexity"])
    found: dict[str, list[FloatArray]] = {name: [] for name in OF_PAIRS}
    for drafted in problem.drafted:
        for draft in range(len(drafts)):
            one = drafts[draft : draft + 1]
            whole = Assessment(designs, problem.whole(one, float(first[draft]), drafted))
            for name in OF_PAIRS:
                found[name].append(whole[name])
    return {name: np.concatenate(columns) for name, columns in found.items()}


def best(metrics: dict[str, FloatArray], problem: PairProblem) -> set[tuple[float, ...]]:
    """Feasible non-dominated values to some digits; limits are no value's neighbours."""
    values = np.stack([metrics[o.name] for o in problem.targets.objectives], axis=1)
    ok = np.ones(len(values), dtype=bool)
    for budget in problem.targets.budgets:
        ok &= budget.violation(metrics[budget.metric]) <= 1e-12
    table = np.unique([[float(f"{v:.{DIGITS}g}") for v in row] for row in values[ok].tolist()] or [[]], axis=0)
    return {tuple(row) for row in table[non_dominated(table, exact=True)].tolist()} if ok.any() else set()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_frontier_of_pairs_is_that_of_every_pair(seed: int) -> None:
    problem = drawn(seed)
    brute = every_pair(problem)
    with by_parts(small_steps=True):
        found = solve_pairs(problem)
    assert best(found.pairs.metrics, problem) == best(brute, problem)
    alone = _whole(problem.targets)
    single = {name: alone[name] for name in OF_PAIRS}
    assert best(found.alone.metrics, problem) == best(single, problem)
    together = {name: np.concatenate([brute[name], single[name]]) for name in OF_PAIRS}
    assert best(found.both.metrics, problem) == best(together, problem)
