"""A library's problem in whole numbers: objectives to minimise, sums to keep within limits, what each layer may be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nas.errors import InfeasibleError
from nas.problem.evaluations import non_dominated
from plas_blocks.library import Library
from plas_blocks.units import from_units, in_units, limit_in_units, places_of
from search_spaces.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Limit:
    """The total of a metric is at most, or at least, a value."""

    metric: str
    value: float
    least: bool = False

    def __str__(self) -> str:
        return f"{self.metric} {'>=' if self.least else '<='} {self.value:g}"


@dataclass(frozen=True)
class Dimension:
    """A metric in whole numbers: total = sign · (offset + sum) · 10^-places; a sum above `limit` is out."""

    name: str
    sign: int
    places: int
    offset: float
    limit: float = np.inf

    def value(self, sums: FloatArray) -> FloatArray:
        """Totals in the metric's own unit, of sums."""
        return self.sign * from_units(sums + self.offset, self.places)


@dataclass(frozen=True, eq=False)
class Group:
    """Replacements that begin at one layer and take the place of as many: library rows and values, (k, D)."""

    length: int
    rows: IntArray
    values: FloatArray
    copies: FloatArray  # how many replacements have these very values
    changed: IntArray  # layers of the parent that are no longer its own


@dataclass(frozen=True, eq=False)
class Problem:
    """Groups by first layer; the first `objectives` dimensions are minimised, the others are kept within limits."""

    library: Library
    dimensions: tuple[Dimension, ...]
    objectives: int
    groups: tuple[tuple[Group, ...], ...]

    @property
    def layers(self) -> int:
        """How many layers are to be covered."""
        return len(self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """The objectives' names."""
        return tuple(d.name for d in self.dimensions[: self.objectives])

    @cached_property
    def limits(self) -> FloatArray:
        """Of every dimension, (D,); infinite without one."""
        return np.array([d.limit for d in self.dimensions])

    @cached_property
    def least(self) -> FloatArray:
        """The smallest sum of each dimension over the first i layers alone, (layers + 1, D)."""
        return self.prefixes(lambda group: group.values.min(axis=0))

    @cached_property
    def reached(self) -> BoolArray:
        """Whether the layers before each one can be covered without it, (layers + 1,)."""
        return np.asarray(np.isfinite(self.least).all(axis=1), dtype=bool)

    @cached_property
    def most(self) -> FloatArray:
        """The largest sum likewise."""
        return -self.prefixes(lambda group: -group.values.max(axis=0))

    def prefixes(self, cheapest: Callable[[Group], FloatArray]) -> FloatArray:
        """The least sums over the first i layers when a group costs `cheapest(group)`, (layers + 1, width)."""
        width = len(cheapest(next(group for groups in self.groups for group in groups)))
        found = np.full((self.layers + 1, width), np.inf)
        found[0] = 0.0
        for layer, groups in enumerate(self.groups):
            for group in groups:
                end = layer + group.length
                found[end] = np.minimum(found[end], found[layer] + cheapest(group))
        return found

    def only(self, kept: BoolArray) -> "Problem | None":
        """The problem with some rows of the library alone, without dominated ones; None where a layer is left without any."""
        masks = [[(group, kept[group.rows]) for group in groups] for groups in self.groups]
        groups = tuple(tuple(self._part(g, mask) for g, mask in each if mask.any()) for each in masks)
        smaller = replace(self, groups=groups)
        return smaller if groups[0] and smaller.reached[-1] else None

    def _part(self, group: Group, mask: BoolArray) -> Group:
        return _reduced(self.library, group.values[mask], group.rows[mask], group.length, self.objectives)


def posed(
    library: Library, objectives: Sequence[str], limits: Sequence[Limit], allowed: BoolArray, *, whole: bool = False
) -> Problem:
    """The problem of a library; `allowed`: rows that may be chosen; `whole` keeps dominated ones, for what `only` leaves.

    Raises:
        InfeasibleError: a layer that nothing may take the place of, or a limit below what any mixture has.
    """
    rows, limits = np.flatnonzero(allowed), _tightest(limits)
    dimensions = [_dimension(library, name, rows, limits) for name in objectives]
    further = [x for x in limits if x.metric not in objectives or x.least != (x.metric in library.larger)]
    dimensions += [_dimension(library, x.metric, rows, [x], -1 if x.least else 1) for x in further]
    values = np.stack([_units(library, d) for d in dimensions], axis=1)
    keep = _everything if whole else _reduced
    groups = tuple(
        tuple(_groups(library, values, layer, rows, len(objectives), keep)) for layer in range(library.layers)
    )
    problem = Problem(library, tuple(dimensions), len(objectives), groups)
    _refuse_impossible(problem)
    return problem


def _tightest(limits: Sequence[Limit]) -> list[Limit]:
    """Of limits on one side of a metric the one that matters."""
    found: dict[tuple[str, bool], Limit] = {}
    for limit in limits:
        other = found.setdefault((limit.metric, limit.least), limit)
        if (limit.value > other.value) == limit.least:
            found[limit.metric, limit.least] = limit
    return list(found.values())


def _dimension(
    library: Library, name: str, rows: IntArray, limits: Sequence[Limit], sign: int | None = None
) -> Dimension:
    """A metric as a dimension, with the limit of its own direction."""
    sign = sign or (-1 if name in library.larger else 1)
    column, own = library.metrics[name], library.baselines.get(name, 0.0)
    rest = library.rest.get(name, 0.0)
    told = np.array([*column[rows], own, rest])
    largest = np.zeros(library.layers)
    for row in rows:
        at = library.first[row]
        largest[at] = max(largest[at], abs(column[row] - own))
    places = places_of(told, float(largest.sum()) + abs(own) + abs(rest) + np.abs(told).max())
    offset = sign * float(in_units(np.array([own]), places)[0] + in_units(np.array([rest]), places)[0])
    within = [limit.value for limit in limits if limit.metric == name and limit.least == (sign < 0)]
    most = min((limit_in_units(sign * value, places) for value in within), default=np.inf) - offset
    return Dimension(name, sign, places, offset, most)


def _units(library: Library, dimension: Dimension) -> FloatArray:
    """The contribution of each replacement to the sum."""
    own = np.array([library.baselines.get(dimension.name, 0.0)])
    column = in_units(library.metrics[dimension.name], dimension.places)
    return dimension.sign * (column - in_units(own, dimension.places))


Keeping = Callable[[Library, FloatArray, IntArray, int, int], Group]


def _groups(
    library: Library, values: FloatArray, layer: int, rows: IntArray, objectives: int, keep: Keeping
) -> list[Group]:
    """The replacements that begin at a layer, by how many layers they take."""
    found = []
    for length in np.unique(library.length[rows[library.first[rows] == layer]]).tolist():
        here = rows[(library.first[rows] == layer) & (library.length[rows] == length)]
        found.append(keep(library, values[here], here, length, objectives))
    return found


def _everything(library: Library, values: FloatArray, rows: IntArray, length: int, objectives: int) -> Group:
    return Group(length, rows, values, np.ones(len(rows)), np.where(library.parent[rows], 0, length))


def _reduced(library: Library, values: FloatArray, rows: IntArray, length: int, objectives: int) -> Group:
    """One of equal replacements, the parent's own before others, with how many they are; none that is dominated.

    A replacement that is worse in a limited sum alone stays: it may be a tied optimum.
    """
    changed = np.where(library.parent[rows], 0, length)
    order = np.lexsort((rows, changed))
    distinct, first, which = np.unique(values[order], axis=0, return_index=True, return_inverse=True)
    copies = np.bincount(which.ravel(), minlength=len(distinct)).astype(np.float64)
    chosen = order[first]
    keep = undominated(distinct, objectives)
    keep = keep[np.argsort(chosen[keep])]
    picked = chosen[keep]
    return Group(length, rows[picked], values[picked], copies[keep], changed[picked])


def undominated(values: FloatArray, objectives: int) -> IntArray:
    """Rows of distinct vectors (n, D) that none is as good as everywhere and better than in an objective."""
    kept = non_dominated_exactly(values)
    if objectives == values.shape[1]:
        return kept
    _, where, sizes = np.unique(values[:, :objectives], axis=0, return_inverse=True, return_counts=True)
    doubtful = np.setdiff1d(np.flatnonzero(sizes[where.ravel()] > 1), kept)
    more = [row for row in doubtful.tolist() if not _beaten(values[row], values[kept], objectives)]
    return np.sort(np.concatenate([kept, np.array(more, dtype=np.int64)]))


def _beaten(one: FloatArray, others: FloatArray, objectives: int) -> bool:
    near = others[(others <= one).all(axis=1)]
    return bool((near[:, :objectives] < one[:objectives]).any())


def non_dominated_exactly(values: FloatArray) -> IntArray:
    """Rows of whole numbers that no other dominates: no rounding to digits, unlike metrics of architectures."""
    return non_dominated(values, exact=True)


def _refuse_impossible(problem: Problem) -> None:
    least = problem.least[-1]
    if not np.isfinite(least).all():
        raise InfeasibleError("blocks: nothing covers every layer with what may be chosen; allow more blocks")
    for dimension, sum_ in zip(problem.dimensions, least.tolist(), strict=True):
        if sum_ > dimension.limit:
            best = float(dimension.value(np.array([sum_]))[0])
            asked = float(dimension.value(np.array([dimension.limit]))[0])
            words = ("at least", "most") if dimension.sign < 0 else ("at most", "least")
            raise InfeasibleError(
                f"{dimension.name}: expected {words[0]} {asked:g}, but the {words[1]} that any mixture has is {best:.6g}; move the budget"
            )
