"""At most k distinct kinds of block: the frontiers of all sets of k kinds that can hold an optimum, together."""

from itertools import combinations
from math import comb

import numpy as np

from nas.errors import InfeasibleError, UsageError
from plas_blocks.lines import lines
from plas_blocks.problem import Problem
from plas_blocks.solution import Frontier, united
from plas_blocks.solving import ROUNDING, Doing, solved
from search_spaces.arrays import FloatArray, IntArray

MOST_SETS = 30_000
SLOPES = np.logspace(-2.5, 2.5, 21)


def few_kinds(problem: Problem, most: int, say: Doing = lambda text: None) -> Frontier:
    """The frontier of mixtures with at most so many distinct kinds of block, of a problem that holds its dominated ones.

    A set of kinds is left out where lower bounds show that none of its mixtures reaches the frontier found so far.

    Raises:
        UsageError: more sets than can be looked at.
        InfeasibleError: no set covers every layer within the limits.
    """
    _, kinds = np.unique(problem.library.kinds, return_inverse=True)
    used = np.unique(kinds[np.concatenate([g.rows for groups in problem.groups for g in groups])])
    if len(used) <= most:
        return solved(problem.only(np.ones(len(kinds), dtype=bool)) or problem, say)
    if comb(len(used), most) > MOST_SETS:
        raise UsageError(
            f"--max-kinds: expected at most {MOST_SETS:,} sets of kinds, got {comb(len(used), most):,} "
            f"({most} of {len(used)}); allow fewer kinds, or leave blocks out"
        )
    sets = np.array(list(combinations(used.tolist(), most)), dtype=np.int64)
    directions = _directions(problem)
    bounds = _bounds(problem, kinds, sets, directions)
    best: Frontier | None = None
    looked = 0
    for number in np.argsort(bounds.sum(axis=1), kind="stable").tolist():
        if not np.isfinite(bounds[number]).all() or (best is not None and _ruled_out(best, directions, bounds[number])):
            continue
        looked += 1
        say(f"set of kinds {looked}, at most {len(sets):,}")
        smaller = problem.only(np.isin(kinds, sets[number]))
        try:
            found = [] if smaller is None else [solved(smaller, say)]
        except InfeasibleError:
            continue
        parts = [*([] if best is None else [best]), *found]
        best = united(problem, parts, "") if parts else None
    if best is None:
        raise InfeasibleError(f"--max-kinds: no {most} kinds of block cover every layer within the budgets; allow more")
    return united(problem, [best], f"{looked:,} of {len(sets):,} sets of kinds solved, the others ruled out")


def _directions(problem: Problem) -> FloatArray:
    """Weights of the objectives, (J, n), on the scale of what they range over."""
    span = np.maximum(problem.most[-1] - problem.least[-1], 1.0)[: problem.objectives]
    ones = (
        np.eye(problem.objectives)[:1] if problem.objectives != 2 else np.stack([SLOPES, np.ones_like(SLOPES)], axis=1)
    )
    result: FloatArray = ones / span
    return result


def _bounds(problem: Problem, kinds: IntArray, sets: IntArray, directions: FloatArray) -> FloatArray:
    """Lower bounds of the weighted objectives of each set's mixtures, (sets, J); infinite where a layer stays uncovered."""
    told = lines(problem, directions)
    found = {0: np.zeros((len(sets), len(directions)))}
    for layer, groups in enumerate(problem.groups):
        begun = found.pop(layer, None)
        for group in groups if begun is not None else ():
            best = np.full((kinds.max() + 1, len(directions)), np.inf)
            np.minimum.at(best, kinds[group.rows], group.values @ told.weights.T)
            cheapest = best[sets[:, 0]]
            for place in range(1, sets.shape[1]):
                cheapest = np.minimum(cheapest, best[sets[:, place]])
            end = layer + group.length
            reached = begun + cheapest
            found[end] = np.minimum(found[end], reached) if end in found else reached
    result: FloatArray = found[problem.layers] - told.taken_off
    return result


def _ruled_out(best: Frontier, directions: FloatArray, bound: FloatArray) -> bool:
    """Whether no place left open by the frontier lies above all lines of a set."""
    if best.problem.objectives > 2:
        return False
    sums = best.sums
    if sums.shape[1] == 2:
        far = best.problem.most[-1][:2]
        sums = np.stack([np.append(sums[:, 0], far[0]), np.append(far[1], sums[:, 1])], axis=1)
    weighted = sums @ directions.T
    room = ROUNDING * (np.abs(weighted) + np.abs(bound))
    return bool((weighted + room < bound).any(axis=1).all())
