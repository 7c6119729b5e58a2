"""Branch and bound over pairs of a chip and an architecture: cells of chips, and in each boxes of FFNs with their backbones."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nas.errors import PlasError
from nas.exact.decomposition.additive_bounds import AdditiveBounds
from nas.exact.decomposition.branch_and_bound import AT_ONCE, CACHED
from nas.exact.decomposition.dominance_lookup import SLACK
from nas.exact.decomposition.grid import Boxes, Items
from plas_chips.cells import Cell, ChipTable
from plas_chips.leaves import Leaves
from plas_chips.points import Known, LevelTable
from plas_chips.sums import ChipSums, FfnShares
from search_spaces.arrays import FloatArray, IntArray

READY = 1_000_000  # items that go to the halves of a cell together
COARSE = 1.5  # boxes are cut until they are as fine, in logarithms, as so many times their cell of chips


@dataclass(frozen=True, eq=False)
class Pending:
    """Items with the shares of their boxes."""

    items: Items
    shares: FfnShares


class ChipSearch:
    """Finds every pair that the known ones lack and that may be on the frontier, over a grid of architectures."""

    def __init__(self, chips: ChipTable, sums: ChipSums, leaves: Leaves, known: Known) -> None:
        self.chips, self.sums, self.leaves, self.known = chips, sums, leaves, known
        self.bounded = self.covered = 0

    def settle(self, root: Cell, report: Callable[[int], None] = lambda covered: None) -> None:
        """Settle every architecture on every chip of a cell.

        Raises:
            BrokenSum: a bound was not one.
        """
        backbones = self.sums.sums.backbones
        for items in Items.everything(self.sums.grid, backbones, AT_ONCE):
            self._descend(root, Pending(items, FfnShares(self.sums, items.boxes)))
            report(self.covered)

    def _descend(self, cell: Cell, pending: Pending) -> None:
        """Settle items on the chips of a cell: on its best imaginable chip first, what is left on its halves."""
        scenario, levels = self.chips.best_devices(cell.classes), self.chips.levels(cell.classes)
        sums, table = self.sums.at(scenario), self.known.table(levels)
        stack, ready, waiting = [pending], list[tuple[Boxes, Items, FloatArray]](), 0
        while stack:
            top = stack.pop()
            items = top.items
            if len(items) > AT_ONCE and len(pieces := items.pieces(AT_ONCE // 2)) > 1:
                stack += [Pending(piece, FfnShares(self.sums, piece.boxes)) for piece in pieces]
                continue
            ffn = top.shares.on(scenario)
            if items.around is not None:
                sums.refuse_better(ffn, items.around)
            left, best = self._alive(items, ffn, sums, table)
            self._count(items, left, cell)
            fine = _range(items.boxes) <= COARSE * cell.span
            here = fine[left.box]
            if here.any():
                if cell.children:
                    ready.append((items.boxes, left.kept(here), ffn))
                    waiting += int(here.sum())
                else:
                    chosen = left.kept(here)
                    self._count(chosen, None, cell)
                    self.known.add(
                        self.leaves.found(int(cell.classes[0]), chosen, self.sums, [c[here] for c in best], table)
                    )
            rest = left.kept(~here)
            if len(rest):
                split = rest.split(ffn)
                stack.append(Pending(split, FfnShares(self.sums, split.boxes)))
            if ready and (waiting > READY or not stack):
                merged = _merged(ready, self.sums)
                ready, waiting = [], 0
                for child in cell.children:
                    self._descend(child, merged)

    def _count(self, items: Items, left: Items | None, cell: Cell) -> None:
        """Count architectures that are settled on all chips of a cell."""
        volumes = items.boxes.volumes
        remaining = 0 if left is None else int(volumes[left.box].sum())
        self.covered += (int(volumes[items.box].sum()) - remaining) * len(cell.classes)

    def _alive(
        self, items: Items, ffn: FloatArray, sums: AdditiveBounds, table: LevelTable
    ) -> tuple[Items, list[FloatArray]]:
        """Items whose best imaginable point no known pair beats, with that point."""
        self.bounded += len(items)
        starts = range(0, max(len(items), 1), CACHED)
        runs = [self._alive_of_run(items.kept(slice(start, start + CACHED)), ffn, sums, table) for start in starts]
        left = np.concatenate([start + rows for start, (rows, _) in zip(starts, runs, strict=True)])
        return items.kept(left), [np.concatenate(column) for column in zip(*(best for _, best in runs), strict=True)]

    def _alive_of_run(
        self, items: Items, ffn: FloatArray, sums: AdditiveBounds, table: LevelTable
    ) -> tuple[IntArray, list[FloatArray]]:
        """The same of so few items that their columns stay in the cache, as rows; most are behind what the cheapest chips reach."""
        asked, rows, best = self.leaves, np.arange(len(items)), dict[str, FloatArray]()
        for name in asked.objectives:
            best[name] = sums.values(name, ffn, items.box, items.backbone)
        alive = np.flatnonzero(~table.behind(list(best.values()), 0))
        items, rows, best = items.kept(alive), rows[alive], {name: column[alive] for name, column in best.items()}
        for name in asked.metrics:
            if name not in best:
                best[name] = sums.values(name, ffn, items.box, items.backbone)
        within = np.ones(len(rows), dtype=bool)
        for name, limit in asked.limits.items():
            within &= ~(best[name] > limit + SLACK * abs(limit))
        level = table.levels.of_need(asked.need(best, len(rows)))
        within &= level < len(table.least)
        level = np.minimum(level, len(table.least) - 1)
        within &= ~table.behind([best[name] for name in asked.objectives], level)
        left = np.flatnonzero(within)
        return rows[left], [best[name][left] for name in asked.metrics]


def _range(boxes: Boxes) -> FloatArray:
    """The longer range of each box in logarithms; 0 of one FFN."""
    experts = np.log((boxes.expert_high + 1.0) / (boxes.expert_low + 1.0))
    sizes = np.log((boxes.size_high + 1.0) / (boxes.size_low + 1.0))
    longer: FloatArray = np.maximum(experts, sizes)
    return longer


def _merged(ready: list[tuple[Boxes, Items, FloatArray]], sums: ChipSums) -> Pending:
    """Items of several sets of boxes as items of one, of the boxes that are still needed, with the shares that bound them."""
    boxes, box, backbone, around, offset = list[Boxes](), list[IntArray](), list[IntArray](), list[FloatArray](), 0
    for own, items, ffn in ready:
        used, place = np.unique(items.box, return_inverse=True)
        boxes.append(own[used])
        box.append(offset + place.ravel())
        backbone.append(items.backbone)
        around.append(ffn[..., used])
        offset += len(used)
    columns = zip(*(each._columns for each in boxes), strict=True)
    together = Boxes(*(np.concatenate(column) for column in columns))
    items = Items(together, np.concatenate(box), np.concatenate(backbone), np.concatenate(around, axis=-1))
    return Pending(items, FfnShares(sums, together))


def refuse_uncovered(covered: int, expected: int) -> None:
    """Every architecture must have been settled on every class of chips.

    Raises:
        PlasError: some were not, which is a fault of this program.
    """
    if covered != expected:
        raise PlasError(f"chips: expected {expected:,} pairs to be settled, got {covered:,}; please report this")
