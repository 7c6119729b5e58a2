"""Branch and bound over several cases at once: for every set of cases the designs of least loss within all their limits.

A box of FFNs with a backbone may at best fit the cases that its sums do not rule out, at the least loss of its sums. It
falls when a known design fits all of these and is no worse. So one search answers all sets of cases.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from nas.exact.decomposition.additive_bounds import AdditiveBounds, agreement, largest_difference
from nas.exact.decomposition.branch_and_bound import AT_ONCE, CACHED, Effort
from nas.exact.decomposition.dominance_lookup import SLACK
from nas.exact.decomposition.frontier import FIRST, SEED, STRIDES, WORTH_STRIDES
from nas.exact.decomposition.grid import Grid, Items
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from objectives.parts import OF_NO_DEVICE
from plas_fleet.patterns import Masks, Patterns, joined, patterns_of
from search_spaces.arrays import FloatArray, IntArray

BLOCK = AT_ONCE // 4

Evaluate = Callable[[IntArray], Sequence[Evaluations]]


@dataclass(frozen=True, eq=False)
class Limited:
    """A metric in a case's scenario, and limits on it: each with the bits of the cases that have it."""

    case: int
    metric: str
    limits: tuple[tuple[float, int], ...]


@dataclass(eq=False)
class PatternSearch:
    """The search over one space: `problems` are the cases', each with all its limits as budgets.

    `places` are format and device of each: in equal ones metrics are equal, of equal formats those of no device. `evaluate`
    gives genotypes evaluated in every case.

    Raises:
        BrokenSum: parts that do not add up to the whole.
    """

    problems: Sequence[Problem]
    places: Sequence[tuple[object, object]]
    evaluate: Evaluate
    report: Callable[[int], None]
    effort: Effort = field(default_factory=Effort)
    known: Patterns = field(default_factory=Patterns.none)

    def __post_init__(self) -> None:
        space = self.problems[0].space
        self.limited = _limited(self.problems, self.places)
        generator = np.random.default_rng(SEED)
        self.strides = STRIDES if space.size > WORTH_STRIDES else STRIDES[-1:]
        for sums in self._sums(Grid(space, self.strides[-1])).values():
            metrics = tuple(sums.compositions)
            self.effort.difference = max(self.effort.difference, largest_difference(sums, metrics, generator))
        sample = space.sample(min(FIRST, max(1, space.size // 50)), generator)
        self.known = self._evaluated(sample)[1].reduced()

    def solve(self) -> Patterns:
        """All patterns.

        Raises:
            BrokenSum: something was better than the bound that admitted it.
        """
        for stride in self.strides:
            self.effort.covered = 0
            self.sums = self._sums(Grid(self.problems[0].space, stride))
            for block in Items.everything(self.sums[0].grid, self.sums[0].backbones, BLOCK):
                self._settle(block, last=stride == self.strides[-1])
        return self.known

    def _sums(self, grid: Grid) -> dict[int, AdditiveBounds]:
        """Per case that gives a metric its sums over a grid; the first case has the loss besides."""
        named: dict[int, list[str]] = {0: ["loss"]}
        for each in self.limited:
            named.setdefault(each.case, []).append(each.metric)
        return {
            case: AdditiveBounds.for_metrics(self.problems[case], grid, tuple(dict.fromkeys(names)))
            for case, names in named.items()
        }

    def _settle(self, block: Items, *, last: bool) -> None:
        """Settle a block; `last`: of the whole grid, which is reported."""
        stack = [block]
        while stack:
            items = stack.pop()
            if len(items) > AT_ONCE and len(pieces := items.pieces(AT_ONCE // 2)) > 1:
                stack += pieces
                continue
            before = self.effort.covered
            rest = self._settled(items)
            stack += [] if rest is None else [rest]
            if last:
                self.report(self.effort.covered - before)

    def _settled(self, items: Items) -> Items | None:
        """Drop what cannot matter, evaluate single designs; the rest in halves."""
        self.effort.bounded += len(items)
        shares = {case: sums.ffn(items.boxes) for case, sums in self.sums.items()}
        if items.around is not None:
            self._refuse_better(shares, items.around)
        starts = range(0, max(len(items), 1), CACHED)
        runs = [start + self._alive(items.kept(slice(start, start + CACHED)), shares) for start in starts]
        alive = items.kept(np.concatenate(runs))
        volumes, single = items.boxes.volumes, items.boxes.single[alive.box]
        if single.any():
            self._leaves(alive.kept(single), shares)
        rest = alive.kept(~single)
        self.effort.covered += int(volumes[items.box].sum() - volumes[rest.box].sum())
        return rest.split(np.concatenate(list(shares.values()))) if len(rest) else None

    def _refuse_better(self, shares: dict[int, FloatArray], around: FloatArray) -> None:
        start = 0
        for case, sums in self.sums.items():
            end = start + len(sums.bounds)
            sums.refuse_better(shares[case], around[start:end])
            start = end

    def _alive(self, items: Items, shares: dict[int, FloatArray]) -> IntArray:
        """Rows of the items that no known design beats."""
        rows, loss = np.arange(len(items)), self.sums[0].values("loss", shares[0], items.box, items.backbone)
        masks = np.full(len(items), (1 << len(self.problems)) - 1, dtype=np.uint64)
        for number, each in enumerate(self.limited):
            values = self.sums[each.case].values(each.metric, shares[each.case], items.box, items.backbone)
            for limit, bits in each.limits:
                masks[values > limit + SLACK * abs(limit)] &= ~np.uint64(bits)
            if number % 4 == 3 and number < len(self.limited) - 1:
                kept = self._useful(masks, loss)
                items, rows, masks, loss = items.kept(kept), rows[kept], masks[kept], loss[kept]
        return rows[self._useful(masks, loss)]

    def _useful(self, masks: Masks, loss: FloatArray) -> IntArray:
        """Rows that fit a case and have less loss than every known design that fits as many."""
        return np.flatnonzero((masks != 0) & (self.known.least(masks) > loss))

    def _leaves(self, leaves: Items, shares: dict[int, FloatArray]) -> None:
        """Evaluate single designs in every case, and hold them against their sums."""
        for start in range(0, len(leaves), FIRST):
            part = leaves.kept(slice(start, start + FIRST))
            found, patterns = self._evaluated(part.genotypes(self.sums[0].grid, self.sums[0].backbones))
            for case, metric in [(0, "loss"), *((each.case, each.metric) for each in self.limited)]:
                sums = self.sums[case].values(metric, shares[case], part.box, part.backbone)
                self.effort.difference = max(self.effort.difference, agreement(metric, sums, found[case]))
            self.effort.evaluated += len(part)
            self.known = joined([self.known, patterns]).reduced()

    def _evaluated(self, genotypes: IntArray) -> tuple[Sequence[Evaluations], Patterns]:
        found = self.evaluate(genotypes)
        return found, patterns_of(found, [problem.budgets for problem in self.problems])


def _limited(problems: Sequence[Problem], places: Sequence[tuple[object, object]]) -> list[Limited]:
    """Every distinct metric with all limits on it; metrics of no device are shared by the cases of a format."""
    found: dict[object, tuple[int, str, dict[float, int]]] = {}
    for case, (problem, place) in enumerate(zip(problems, places, strict=True)):
        for budget in problem.budgets:
            where = place[:1] if budget.metric in OF_NO_DEVICE else place
            _, _, limits = found.setdefault((budget.metric, where), (case, budget.metric, {}))
            limits[budget.limit] = limits.get(budget.limit, 0) | 1 << case
    return [Limited(case, metric, tuple(limits.items())) for case, metric, limits in found.values()]
