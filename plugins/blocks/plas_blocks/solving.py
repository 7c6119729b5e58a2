"""Solves a problem exactly where labels stay few enough, else within a tolerance that is proved and printed."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nas.errors import InfeasibleError, UsageError
from plas_blocks.bracketing import TARGET, best_bound, bracketed
from plas_blocks.gap import sieve
from plas_blocks.labels import Exceeded, Pruner, tree
from plas_blocks.lines import Lines
from plas_blocks.problem import Problem
from plas_blocks.solution import Frontier, exact_frontier, nothing_within, united
from plas_blocks.units import in_units
from search_spaces.arrays import FloatArray, IntArray

SLICES = 20  # of a third objective whose labels are too many
SLICE_ROUNDS = 6
ROUNDING = 1e-9  # of a bound, relative; bounds are sums of floats

Doing = Callable[[str], None]


def solved(problem: Problem, say: Doing = lambda text: None) -> Frontier:
    """The frontier of a problem.

    Raises:
        InfeasibleError: no mixture is within the limits.
        UsageError: four objectives or more with more labels than can be held.
    """
    if problem.objectives == 1:
        return _single(problem)
    try:
        return exact_frontier(problem, tree(problem))
    except Exceeded:
        say("too many labels for an exact answer: bounding")
    if problem.objectives == 2:
        return _closed(problem, bracketed(problem))
    if problem.objectives == 3:
        return _sliced(problem, say)
    raise UsageError(
        f"objective: expected at most three of a library of this size, got {problem.objectives}; make one a --budget"
    )


def _closed(problem: Problem, found: Frontier) -> Frontier:
    """The exact frontier where the tolerance is wide and the mixtures found leave few enough labels; else what was found."""
    if found.tolerance <= TARGET:
        return found
    try:
        return exact_frontier(problem, tree(problem, sieve=sieve(problem, found)))
    except Exceeded:
        return found


def _single(problem: Problem) -> Frontier:
    """One objective: labels that its bound does not rule out."""
    if len(problem.dimensions) == 1:
        return exact_frontier(problem, tree(problem))
    told, sums, chosen = best_bound(problem)
    best = float(sums[0, 0]) if len(sums) else np.inf
    try:
        return exact_frontier(problem, tree(problem, _pruner(told, best)))
    except Exceeded:
        if not len(sums):
            raise InfeasibleError(nothing_within(problem).replace("none is", "none was found")) from None
    room = max(best - float(told.bounds[0]) + ROUNDING * abs(best), 1e-12)
    return Frontier(problem, chosen, sums[:, :1], np.full(1, np.nan), np.full(1, room), "one line")


def _pruner(told: Lines, best: float) -> Pruner:
    """Which sums can still be part of a mixture no worse than the best one known."""
    (taken_off,), (weights,) = told.taken_off, told.weights

    def prune(layer: int, sums: FloatArray) -> IntArray:
        bound = sums @ weights + told.prefixes[layer, 0] - taken_off
        room = ROUNDING * (np.abs(bound) + abs(taken_off) + abs(best))
        return np.flatnonzero(~(bound > best + room))

    return prune


def _sliced(problem: Problem, say: Doing) -> Frontier:
    """Three objectives: the first two under limits on the third, each a step above the last.

    A mixture whose third objective lies between two limits is no better than one found under the upper one, but for that
    slice's room and for the step.
    """
    third = problem.dimensions[2]
    low, high = problem.least[-1][2], min(problem.most[-1][2], third.limit)
    parts, step, below = list[Frontier](), 0.0, low
    for number in range(SLICES):
        say(f"slice {number + 1} of {SLICES} of {third.name}")
        limit = high if number == SLICES - 1 else float(np.floor(low + (high - low) * (number + 1) / SLICES))
        bounded = replace(third, limit=limit)
        slice_ = replace(problem, dimensions=(*problem.dimensions[:2], bounded, *problem.dimensions[3:]), objectives=2)
        try:
            found = bracketed(slice_, SLICE_ROUNDS)
        except InfeasibleError:  # none was found, which is no proof that there is none: the next step is so much higher
            continue
        step, below = max(step, limit - below), limit
        parts.append(_with_third(found, problem))
    if not parts or below < high:
        raise InfeasibleError(nothing_within(problem).replace("none is", "none was found"))
    whole = united(problem, parts, f"{SLICES} slices of {third.name}")
    return replace(whole, room=np.append(whole.room[:2], step))


def _with_third(found: Frontier, problem: Problem) -> Frontier:
    """A slice's mixtures with their own third objective."""
    third = problem.dimensions[2]
    values = third.sign * in_units(found.metric(third.name), third.places) - third.offset
    sums = np.concatenate([found.sums, values[:, None]], axis=1)
    return replace(found, problem=problem, sums=sums, room=np.append(found.room, 0.0))
