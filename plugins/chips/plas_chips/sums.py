"""Sums of parts on many chips: what depends on no chip once, times from operators that are built once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nas.exact.decomposition.additive_bounds import CORNERS, AdditiveBounds, Bound, BrokenSum, own_functions
from nas.exact.decomposition.grid import Boxes, Grid, one_layer
from nas.problem.problem import Problem
from objectives.parts import NotASum, PartAssessment
from objectives.scenario import Scenario
from plas_chips.part_times import PartTimes
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.columns import Part

#: Times that are sums of those of prefill and decode, with what of either they hold in a scenario.
TIMES: dict[str, Callable[[Scenario], tuple[float, float]]] = {
    "prefill_ms": lambda scenario: (1.0, 0.0),
    "ttft_ms": lambda scenario: (1.0, 0.0),
    "decode_ms": lambda scenario: (0.0, 1.0),
    "total_ms": lambda scenario: (1.0, 1.0),
    "tpot_ms": lambda scenario: (0.0, 1.0 / scenario.output_tokens),
}

MOST_KEPT = 1 << 25  # FFNs whose places fit into memory


class ChipSums:
    """Sums of parts of some metrics over a grid, for any device."""

    def __init__(self, problem: Problem, grid: Grid, metrics: tuple[str, ...]) -> None:
        self.problem, self.grid = problem, grid
        self.sums = AdditiveBounds.for_metrics(problem, grid, metrics)
        of_time = [quantity in TIMES for quantity, _ in self.sums.bounds]
        self.timed, self.free = np.flatnonzero(of_time), np.flatnonzero(np.logical_not(of_time))
        self.ffns = FfnTerms(problem, grid, tuple(self.sums.bounds[row] for row in self.free.tolist()))
        scenario = problem.scenario
        names = [str(self.sums.bounds[row][0]) for row in self.timed.tolist()]
        self.of_phases = np.array([TIMES[name](scenario) for name in names]).reshape(-1, 2)
        backbones, plans = self.sums.backbones, len(grid.layer_plans)
        pairs = backbones[:: 1 if problem.space.mixed else plans].architectures(problem.space)
        self._attention = self.times(pairs if problem.space.mixed else one_layer(pairs), "attention")
        own = np.searchsorted(backbones.width, backbones.width) + np.arange(len(backbones)) % plans
        rows, self._base_row = np.unique(own, return_inverse=True)
        self._base = self.times(backbones[rows].architectures(problem.space), "base")

    def times(self, architectures: Architectures, part: Part) -> PartTimes:
        """Operators of a part of architectures."""
        return PartTimes(self.problem.headed(architectures), self.problem.scenario, part)

    def at(self, scenario: Scenario) -> AdditiveBounds:
        """The sums on a device: `beside` of it, whose FFNs `FfnShares` has."""
        layer, base = self.of_phases @ self._attention.ms(scenario), self.of_phases @ self._base.ms(scenario)
        beside = self.sums.beside.copy()
        for row, of_layer, of_base in zip(self.timed.tolist(), layer, base, strict=True):
            beside[row] = of_base[self._base_row] + self.sums.depth * of_layer[self.sums.pair]
        return replace(self.sums, beside=beside)


@dataclass(frozen=True, eq=False)
class FfnShares:
    """Best shares of boxes of FFNs on any device; what depends on none is looked up, operators are built once.

    Times are least at the corner of fewest experts and least size, since FLOPs and bytes of every operator rise with both; that no half of a
    box is better than the box is checked wherever one is cut.
    """

    of: ChipSums
    boxes: Boxes

    @cached_property
    def _operators(self) -> PartTimes:
        boxes = self.boxes
        return self.of.times(self.of.grid.ffns(boxes.width, boxes.group, boxes.expert_low, boxes.size_low), "ffn")

    @cached_property
    def _free(self) -> FloatArray:
        """Shares that depend on no device, (free bounds, 2, boxes)."""
        best = np.zeros((len(self.of.free), 2, len(self.boxes)))
        terms = self.of.ffns.terms(self.boxes)
        for (place, half), term in zip(self.of.ffns.layout, terms, strict=True):
            best[place, half] += _best(term, self.of.sums.bounds[self.of.free[place]][1])
        return best

    def on(self, scenario: Scenario) -> FloatArray:
        """Best per-layer and one-off share per bound and box on a device, (bounds, 2, boxes)."""
        best = np.zeros((len(self.of.sums.bounds), 2, len(self.boxes)))
        best[self.of.free] = self._free
        best[self.of.timed, 0] = self.of.of_phases @ self._operators.ms(scenario)
        return best


class FfnTerms:
    """Terms of FFNs' shares that depend on no device, kept of every FFN that was asked for.

    layout: of each term the place among the free bounds, and 0 per layer or 1 once.
    """

    def __init__(self, problem: Problem, grid: Grid, bounds: tuple[Bound, ...]) -> None:
        self.problem, self.grid, self.bounds = problem, grid, bounds
        groups, sizes = grid.group_counts, np.zeros(len(problem.space.widths), dtype=np.int64)
        sizes[grid.widths] = grid.size_counts[grid.widths]
        counts = np.multiply.outer(sizes, groups)
        self._sizes, self._starts = sizes, (np.cumsum(counts) - counts.ravel()).reshape(counts.shape)
        self.known = int(counts.sum()) <= MOST_KEPT
        self._row = np.full(int(counts.sum()) if self.known else 0, -1, dtype=np.int32)
        self.layout, first = self._computed(*(corner[:1] for corner in Boxes.whole(grid).corners()))
        self._terms, self._used = np.empty((len(first), 1024)), 0

    def terms(self, boxes: Boxes) -> FloatArray:
        """Every term at the corners of boxes, (terms, 4 boxes)."""
        corners = boxes.corners()
        width, group, expert, size = corners
        place = self._starts[width, group] + expert * self._sizes[width] + size
        if not self.known:
            _, first, back = np.unique(place, return_index=True, return_inverse=True)
            return self._computed(*(corner[first] for corner in corners))[1][:, back]
        new = np.flatnonzero(self._row[place] < 0)
        if len(new):
            distinct, first = np.unique(place[new], return_index=True)
            self._keep(distinct, self._computed(*(corner[new[first]] for corner in corners))[1])
        return self._terms[:, self._row[place]]

    def _keep(self, places: IntArray, terms: FloatArray) -> None:
        end = self._used + len(places)
        if end > self._terms.shape[1]:
            larger = np.empty((len(terms), 2 * end))
            larger[:, : self._used] = self._terms[:, : self._used]
            self._terms = larger
        self._terms[:, self._used : end] = terms
        self._row[places] = np.arange(self._used, end)
        self._used = end

    def _computed(self, *corners: IntArray) -> tuple[list[tuple[int, int]], FloatArray]:
        """Layout and terms of FFNs, (terms, n)."""
        ffns = self.problem.headed(self.grid.ffns(*corners))
        shares = PartAssessment(ffns, self.problem.scenario, "ffn", own_functions(self.problem))
        layout, terms = list[tuple[int, int]](), [np.zeros((0, len(ffns)))]
        for place, (quantity, _) in enumerate(self.bounds):
            try:
                share = shares[quantity]
            except NotASum as error:
                raise BrokenSum(str(error), "is no sum of parts") from None
            for half, of_half in enumerate((share.per_layer, share.once)):
                layout += [(place, half)] * len(of_half)
                terms += [np.broadcast_to(term, (1, len(ffns))) for term in of_half]
        return layout, np.concatenate(terms)


def _best(at_corners: FloatArray, sign: int) -> FloatArray:
    """The least (+1) or the largest (-1) of a term at the corners of every box, (boxes,)."""
    found = at_corners.reshape(CORNERS, -1)
    best: FloatArray = found.min(axis=0) if sign > 0 else found.max(axis=0)
    return best
