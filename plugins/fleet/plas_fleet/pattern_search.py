"""Branch and bound over several cases at once: for every set of cases the designs of least loss, and cost, within all their limits.

A box of FFNs with a backbone may at best fit the cases that its sums do not rule out, at the least loss and cost of its sums. It
falls when a known design fits all of these and is no worse. So one search answers all sets of cases.
"""

import time
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
from plas_fleet.patterns import Lookup, Patterns, clipped, joined, patterns_of
from search_spaces.arrays import FloatArray, IntArray

BLOCK = AT_ONCE // 4
RENEWED = 200  # new designs after which what is known is looked up anew

Evaluate = Callable[[IntArray], Sequence[Evaluations]]


@dataclass(frozen=True, eq=False)
class Limited:
    """A metric in a case's scenario, and limits on it: each with the bits of the cases that have it."""

    case: int
    metric: str
    limits: tuple[tuple[float, int], ...]


@dataclass(frozen=True, eq=False)
class OpenPatterns:
    """What the search found, what it left open at best, (rows of no design), and its work."""

    known: Patterns
    unsettled: Patterns
    effort: Effort


@dataclass(eq=False)
class PatternSearch:
    """The search over one space: `problems` are the cases', each with all its limits as budgets; `cost` a metric, or none, with
    the `most` of it that counts.

    `places` are format and device of each: in equal ones metrics are equal, of equal formats those of no device. `evaluate`
    gives genotypes evaluated in every case.

    Raises:
        BrokenSum: parts that do not add up to the whole.
    """

    problems: Sequence[Problem]
    places: Sequence[tuple[object, object]]
    evaluate: Evaluate
    cost: str | None
    most: float
    deadline: float
    report: Callable[[int], None]
    effort: Effort = field(default_factory=Effort)
    known: Patterns = field(default_factory=Patterns.none)
    waiting: list[Patterns] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.base, space = self.problems[0], self.problems[0].space
        self.limited = _limited(self.problems, self.places)
        self.lookup = Lookup(self.known)
        self.all = (1 << len(self.problems)) - 1
        generator = np.random.default_rng(SEED)
        self.strides = STRIDES if space.size > WORTH_STRIDES else STRIDES[-1:]
        for sums in self._sums(Grid(space, self.strides[-1])).values():
            metrics = tuple(sums.compositions)
            self.effort.difference = max(self.effort.difference, largest_difference(sums, metrics, generator))
        sample = space.sample(min(FIRST, max(1, space.size // 50)), generator)
        self._add(self._evaluated(sample)[1])

    def solve(self) -> OpenPatterns:
        """All patterns; with what is left open where the deadline passed.

        Raises:
            BrokenSum: something was better than the bound that admitted it.
        """
        left: list[Patterns] = []
        for stride in self.strides:
            last = stride == self.strides[-1]
            self.effort.covered = 0
            self.sums = self._sums(Grid(self.base.space, stride))
            for block in Items.everything(self.sums[0].grid, self.sums[0].backbones, BLOCK):
                left += self._settle(block, last=last)
            self._renew()
        return OpenPatterns(self.known, joined(left).reduced() if left else Patterns.none(), self.effort)

    def _sums(self, grid: Grid) -> dict[int, AdditiveBounds]:
        """Per case that gives a metric its sums over a grid; the first case has loss and cost besides."""
        named: dict[int, list[str]] = {0: ["loss", *([self.cost] if self.cost else [])]}
        for each in self.limited:
            named.setdefault(each.case, []).append(each.metric)
        return {
            case: AdditiveBounds.for_metrics(self.problems[case], grid, tuple(dict.fromkeys(names)))
            for case, names in named.items()
        }

    def _settle(self, block: Items, *, last: bool) -> list[Patterns]:
        """Settle a block; what is left of it at best where time is over and the grid is the whole one."""
        stack, left = [block], list[Patterns]()
        while stack:
            items = stack.pop()
            if len(items) > AT_ONCE and len(pieces := items.pieces(AT_ONCE // 2)) > 1:
                stack += pieces
                continue
            over = time.monotonic() > self.deadline
            if over and not last:
                return []
            before = self.effort.covered
            rest = self._settled(items, left if over else None)
            stack += [] if rest is None else [rest]
            if last:
                self.report(self.effort.covered - before)
        return left

    def _settled(self, items: Items, left: list[Patterns] | None) -> Items | None:
        """Drop what cannot matter, evaluate single designs; the rest in halves, or, of no time left, noted at best."""
        self.effort.bounded += len(items)
        shares = {case: sums.ffn(items.boxes) for case, sums in self.sums.items()}
        if items.around is not None:
            self._refuse_better(shares, items.around)
        alive, best = self._alive(items, shares)
        if left is not None:
            left.append(best.reduced())
            return None
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

    def _alive(self, items: Items, shares: dict[int, FloatArray]) -> tuple[Items, Patterns]:
        """Items that no known design beats, and what they are at best."""
        starts = range(0, max(len(items), 1), CACHED)
        runs = [self._alive_of_run(items.kept(slice(start, start + CACHED)), shares) for start in starts]
        rows = np.concatenate([start + rows for start, (rows, _) in zip(starts, runs, strict=True)])
        return items.kept(rows), joined([best for _, best in runs])

    def _alive_of_run(self, items: Items, shares: dict[int, FloatArray]) -> tuple[IntArray, Patterns]:
        rows = np.arange(len(items))
        first = self.sums[0]
        loss = first.values("loss", shares[0], items.box, items.backbone)
        cost = np.zeros(len(items))
        if self.cost is not None:
            cost = clipped(first.values(self.cost, shares[0], items.box, items.backbone), self.most)
        best = Patterns(np.full(len(items), -1), np.full(len(items), self.all, dtype=np.uint64), loss, cost)
        for number, each in enumerate(self.limited):
            values = self.sums[each.case].values(each.metric, shares[each.case], items.box, items.backbone)
            for limit, bits in each.limits:
                best.masks[values > limit + SLACK * abs(limit)] &= ~np.uint64(bits)
            if number % 4 == 3 or number == len(self.limited) - 1:
                kept = np.flatnonzero((best.masks != 0) & ~self.lookup.beaten(best))
                items, rows, best = items.kept(kept), rows[kept], best[kept]
        if not self.limited:
            kept = np.flatnonzero(~self.lookup.beaten(best))
            rows, best = rows[kept], best[kept]
        return rows, best

    def _leaves(self, leaves: Items, shares: dict[int, FloatArray]) -> None:
        """Evaluate single designs in every case, and hold them against their sums."""
        for start in range(0, len(leaves), FIRST):
            part = leaves.kept(slice(start, start + FIRST))
            found, patterns = self._evaluated(part.genotypes(self.sums[0].grid, self.sums[0].backbones))
            for case, metric in [(0, "loss"), *((each.case, each.metric) for each in self.limited)]:
                sums = self.sums[case].values(metric, shares[case], part.box, part.backbone)
                self.effort.difference = max(self.effort.difference, agreement(metric, sums, found[case]))
            self.effort.evaluated += len(part)
            self._add(patterns)

    def _evaluated(self, genotypes: IntArray) -> tuple[Sequence[Evaluations], Patterns]:
        found = self.evaluate(genotypes)
        cost = None
        if self.cost is not None:
            cost = clipped(self.base.evaluate(genotypes, (self.cost,)).metrics[self.cost], self.most)
        return found, patterns_of(found, [problem.budgets for problem in self.problems], cost)

    def _add(self, patterns: Patterns) -> None:
        self.waiting.append(patterns.reduced())
        new = sum(map(len, self.waiting))
        if self.cost is None or new > max(RENEWED, len(self.known) // 20):
            self._renew()

    def _renew(self) -> None:
        if self.waiting:
            self.known = joined([self.known, *self.waiting]).reduced()
            self.waiting, self.lookup = [], Lookup(self.known)


def _limited(problems: Sequence[Problem], places: Sequence[tuple[object, object]]) -> list[Limited]:
    """Every distinct metric with all limits on it; metrics of no device are shared by the cases of a format."""
    found: dict[object, tuple[int, str, dict[float, int]]] = {}
    for case, (problem, place) in enumerate(zip(problems, places, strict=True)):
        for budget in problem.budgets:
            where = place[:1] if budget.metric in OF_NO_DEVICE else place
            _, _, limits = found.setdefault((budget.metric, where), (case, budget.metric, {}))
            limits[budget.limit] = limits.get(budget.limit, 0) | 1 << case
    return [Limited(case, metric, tuple(limits.items())) for case, metric, limits in found.values()]


def merged(parts: Sequence[OpenPatterns]) -> OpenPatterns:
    """Answers of several settings of one space as one."""
    effort = Effort()
    for part in parts:
        effort.add(part.effort)
    known, left = (joined([getattr(part, name) for part in parts]).reduced() for name in ("known", "unsettled"))
    return OpenPatterns(known, left, effort)
