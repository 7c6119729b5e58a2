"""Sums of parts on many chips: what depends on no chip once, times from operators that are built once."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nas.exact.decomposition.additive_bounds import CORNERS, AdditiveBounds, BrokenSum, own_functions
from nas.exact.decomposition.boxes import Boxes
from nas.exact.decomposition.grid import Grid, one_layer
from nas.problem.problem import Problem
from objectives.latency.part_times import PartTimes
from objectives.parts import NotASum, PartAssessment
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

#: Times that are sums of those of prefill and decode, with what of either they hold in a scenario.
TIMES = {
    "prefill_ms": lambda scenario: (1.0, 0.0),
    "ttft_ms": lambda scenario: (1.0, 0.0),
    "decode_ms": lambda scenario: (0.0, 1.0),
    "total_ms": lambda scenario: (1.0, 1.0),
    "tpot_ms": lambda scenario: (0.0, 1.0 / scenario.output_tokens),
}


class ChipSums:
    """Sums of parts of some metrics over a grid, for any device."""

    def __init__(self, problem: Problem, grid: Grid, metrics: tuple[str, ...]) -> None:
        self.problem, self.grid = problem, grid
        self.sums = AdditiveBounds.for_metrics(problem, grid, metrics)
        of_time = [quantity in TIMES for quantity, _ in self.sums.bounds]
        self.timed, self.free = np.flatnonzero(of_time), np.flatnonzero(np.logical_not(of_time))
        scenario = problem.scenario
        names = [str(self.sums.bounds[row][0]) for row in self.timed.tolist()]
        self.of_phases = np.array([TIMES[name](scenario) for name in names]).reshape(-1, 2)
        backbones, plans = self.sums.backbones, len(grid.layer_plans)
        pairs = backbones[:: 1 if problem.space.mixed else plans].architectures(problem.space)
        self._attention = self.times(pairs if problem.space.mixed else one_layer(pairs), "attention")
        own = np.searchsorted(backbones.width, backbones.width) + np.arange(len(backbones)) % plans
        rows, self._base_row = np.unique(own, return_inverse=True)
        self._base = self.times(backbones[rows].architectures(problem.space), "base")

    def times(self, architectures: Architectures, part: str) -> PartTimes:
        """Operators of a part of architectures."""
        return PartTimes(self.problem.headed(architectures), self.problem.scenario, part)  # type: ignore[arg-type]

    def at(self, scenario: Scenario) -> AdditiveBounds:
        """The sums on a device: `beside` of it, whose FFNs `FfnShares` has."""
        layer, base = self.of_phases @ self._attention.ms(scenario), self.of_phases @ self._base.ms(scenario)
        beside = self.sums.beside.copy()
        for row, of_layer, of_base in zip(self.timed.tolist(), layer, base, strict=True):
            beside[row] = of_base[self._base_row] + self.sums.depth * of_layer[self.sums.pair]
        return replace(self.sums, beside=beside)


@dataclass(frozen=True, eq=False)
class FfnShares:
    """Best shares of boxes of FFNs on any device; what depends on none is computed once, as are operators."""

    of: ChipSums
    boxes: Boxes

    @cached_property
    def _corners(self) -> tuple[Architectures, IntArray]:
        """The distinct corners of all boxes, and which of them each corner is, (4 boxes,)."""
        corners = self.boxes.corners()
        code = np.ravel_multi_index(corners, [int(corner.max(initial=0)) + 1 for corner in corners])
        _, first, back = np.unique(code, return_index=True, return_inverse=True)
        return self.of.grid.ffns(*(corner[first] for corner in corners)), back

    @cached_property
    def _operators(self) -> PartTimes:
        return self.of.times(self._corners[0], "ffn")

    @cached_property
    def _free(self) -> FloatArray:
        """Shares that depend on no device, (free bounds, 2, boxes)."""
        problem, sums, (ffns, back) = self.of.problem, self.of.sums, self._corners
        shares = PartAssessment(problem.headed(ffns), problem.scenario, "ffn", own_functions(problem))
        best = np.zeros((len(self.of.free), 2, len(self.boxes)))
        for halves, row in zip(best, self.of.free.tolist(), strict=True):
            quantity, sign = sums.bounds[row]
            try:
                share = shares[quantity]
            except NotASum as error:
                raise BrokenSum(str(error), "is no sum of parts") from None
            for half, terms in zip(halves, (share.per_layer, share.once), strict=True):
                for term in terms:
                    half += _best(term[back], sign)
        return best

    def on(self, scenario: Scenario) -> FloatArray:
        """Best per-layer and one-off share per bound and box on a device, (bounds, 2, boxes)."""
        best = np.zeros((len(self.of.sums.bounds), 2, len(self.boxes)))
        best[self.of.free] = self._free
        back = self._corners[1]
        for row, times in zip(self.of.timed.tolist(), self.of.of_phases @ self._operators.ms(scenario), strict=True):
            best[row, 0] = _best(times[back], 1)
        return best


def _best(at_corners: FloatArray, sign: int) -> FloatArray:
    """The least (+1) or the largest (-1) of a term at the corners of every box, (boxes,)."""
    found = at_corners.reshape(CORNERS, -1)
    return found.min(axis=0) if sign > 0 else found.max(axis=0)
