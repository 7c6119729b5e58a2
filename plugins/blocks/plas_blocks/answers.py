"""Answers from a frontier of blocks: the pick of each budget, what a little more buys, which layers leave the parent when."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from plas_blocks.library import Library
from plas_blocks.problem import Limit
from plas_blocks.query import BlocksQuery
from plas_blocks.solution import Frontier
from search_spaces.arrays import BoolArray, FloatArray, IntArray

SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)  # of the parent's cost, as Puzzletron's sweep of memory compression rates


@dataclass(frozen=True)
class Pick:
    """A limit and the frontier's row that answers it; None where nothing is within it."""

    limit: Limit
    row: int | None
    share: float | None = None  # of the parent's own cost, where the limit was made of it


@dataclass(frozen=True)
class Step:
    """The next better mixture: by how much more cost, and how much the first objective improves."""

    row: int
    cost: float
    gain: float


def within(frontier: Frontier, limit: Limit) -> BoolArray:
    """Which mixtures keep a limit, (n,); a value that meets it but for rounding counts."""
    values = frontier.metric(limit.metric)
    room = 1e-12 * np.maximum(np.abs(values), 1.0)
    result: BoolArray = values >= limit.value - room if limit.least else values <= limit.value + room
    return result


def best(frontier: Frontier, mask: BoolArray | None = None) -> int | None:
    """The mixture with the best first objective, then the others in order, among some; None of none."""
    rows = np.arange(len(frontier)) if mask is None else np.flatnonzero(mask)
    return int(rows[np.lexsort(frontier.sums[rows].T[::-1])[0]]) if len(rows) else None


def best_within(frontier: Frontier, limit: Limit) -> int | None:
    """The mixture within a limit on an objective that is best in the others, in their order; None of none."""
    rows = np.flatnonzero(within(frontier, limit))
    limited_last = sorted(range(len(frontier.problem.names)), key=lambda i: frontier.problem.names[i] == limit.metric)
    return int(rows[np.lexsort(frontier.sums[rows][:, limited_last].T[::-1])[0]]) if len(rows) else None


def picks(frontier: Frontier, asked: BlocksQuery) -> tuple[Pick, ...]:
    """The pick of every limit given; without any, those at shares of the parent's cost."""
    library = frontier.problem.library
    if asked.picks:
        limits = [asked.answerable(library, text) for text in asked.picks]
        return tuple(Pick(limit, best_within(frontier, limit)) for limit in limits)
    return tuple(_shared(frontier))


def cost_of(frontier: Frontier) -> str | None:
    """The first objective that is a cost; None without."""
    return next((name for name in frontier.problem.names if name not in frontier.problem.library.scores), None)


def _shared(frontier: Frontier) -> Iterator[Pick]:
    library, name = frontier.problem.library, cost_of(frontier)
    if name is None or library.parents is None:
        return
    whole = library.total(name, library.parents)
    for share in SHARES:
        limit = Limit(name, whole * share)
        yield Pick(limit, best_within(frontier, limit), share)


def step(frontier: Frontier, row: int, name: str) -> Step | None:
    """The cheapest mixture whose first objective is better: what more of a cost buys. None where there is none.

    The frontier is a staircase: between two steps more of the cost buys nothing.
    """
    better = np.flatnonzero(frontier.sums[:, 0] < frontier.sums[row, 0])
    if not len(better):
        return None
    values, first = frontier.metric(name), frontier.metric(frontier.problem.names[0])
    next_ = int(better[np.lexsort((frontier.sums[better, 0], values[better]))[0]])
    return Step(next_, float(values[next_] - values[row]), float(abs(first[next_] - first[row])))


@dataclass(frozen=True)
class LayerAnswer:
    """A layer along the frontier: how many blocks it takes on, and up to which cost it is the parent's."""

    layer: int
    blocks: int
    changes: int
    parent_share: float
    parent_from: float  # the lowest cost of a mixture that keeps the parent's block; NaN where none does
    usual: str


def along(frontier: Frontier) -> IntArray:
    """Rows of the frontier by ascending cost."""
    name = cost_of(frontier)
    return np.argsort(frontier.metric(name), kind="stable") if name else np.arange(len(frontier))


def layer_answers(frontier: Frontier) -> list[LayerAnswer]:
    """Which layers change along the frontier, and when."""
    library, order, name = frontier.problem.library, along(frontier), cost_of(frontier)
    chosen, cost = frontier.chosen[order], np.zeros(len(order)) if name is None else frontier.metric(name)[order]
    found = []
    for layer in range(frontier.problem.layers):
        column = chosen[:, layer]
        own = library.parent[column]
        rows, counts = np.unique(column, return_counts=True)
        found.append(
            LayerAnswer(
                layer,
                len(rows),
                int((column[1:] != column[:-1]).sum()),
                float(own.mean()),
                float(cost[own].min()) if own.any() and name else np.nan,
                library.blocks[rows[counts.argmax()]],
            )
        )
    return found


def changes(frontier: Frontier, rows: Sequence[int]) -> list[list[int]]:
    """Of each mixture the layers that are not as in the one before it."""
    found, before = list[list[int]](), None
    for row in rows:
        now = frontier.chosen[row]
        found.append([] if before is None else np.flatnonzero(now != before).tolist())
        before = now
    return found


def parent_totals(library: Library) -> dict[str, float]:
    """Totals of the parent itself; empty where its blocks are not marked."""
    rows = library.parents
    return {} if rows is None else {name: library.total(name, rows) for name in library.metrics}


def scaled(frontier: Frontier) -> FloatArray:
    """The objectives from 0, the frontier's best, to 1, its worst, (n, objectives)."""
    low, high = frontier.sums.min(axis=0), frontier.sums.max(axis=0)
    result: FloatArray = (frontier.sums - low) / np.maximum(high - low, 1.0)
    return result
