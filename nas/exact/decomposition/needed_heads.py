"""Heads and layer mixes that others of the same width beat for any FFN, and that no frontier or pick needs.

Two attentions of one width differ by l · Δ_layer + Δ_once in every additive quantity, at each depth l and beside each
FFN alike. Where one is the same or less in all of them, and less in one that is an objective by itself, every
architecture with the other is dominated. "Less" is by more than sums and wholes can differ, and than a tie at 12
digits; "the same" is to the last bit, as in a loss that does not see the heads. A metric that is a function of
quantities must see no difference at all. Heads are held against each other at all depths together, mixes of layers at
one depth and beside the same heads and KV heads.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from nas.exact.decomposition.additive_bounds import AdditiveBounds, Bound
from nas.exact.decomposition.grid import Boxes
from objectives.parts import Quantity
from search_spaces.arrays import BoolArray, FloatArray, IntArray

MARGIN = 1e-9  # relative to the largest value beside the width
AT_ONCE = 64
CELLS = 1_000_000  # pairs of mixes that are held against each other at once


def with_needed(sums: AdditiveBounds, kept: BoolArray) -> tuple[AdditiveBounds, int]:
    """Return the sums with only the heads and mixes of `needed_pairs`, and the number of architectures left out."""
    grid = sums.grid
    if kept.all():
        return sums, 0
    boxes, (first, backbones) = Boxes.whole(grid), np.unique(sums.pair, return_index=True, return_counts=True)[1:]
    ffns = np.bincount(boxes.width, boxes.volumes, minlength=len(grid.space.widths)).astype(np.int64)
    left = backbones * ffns[sums.backbones.width[first]]
    return sums.kept(kept), int(left[~kept].sum())


def needed_pairs(sums: AdditiveBounds, deciding: frozenset[str]) -> BoolArray:
    """Return which pairs (of `sums.attention`) a non-dominated architecture may have, (pairs,)."""
    space, kept = sums.grid.space, np.ones(sums.attention.shape[2], dtype=bool)
    alone = [metric for metric, known in sums.compositions.items() if set(known.quantities) == {metric}]
    shared = {q for metric, known in sums.compositions.items() if metric not in alone for q in known.quantities}
    decisive = np.array([_decides(bound, alone, shared, deciding) for bound in sums.bounds])
    own = any(function.name in alone for function in sums.problem.functions)
    if own or not (space.free_heads or space.mixed) or not decisive.any():
        return kept
    frozen = np.array([quantity in shared for quantity, _ in sums.bounds])
    contest = Contest(np.array([sign for _, sign in sums.bounds], dtype=np.float64), _largest(sums), frozen, decisive)
    return _needed_mixes(sums, contest) if space.mixed else _needed_heads(sums, contest)


@dataclass(frozen=True, eq=False)
class Contest:
    """Comparison of attentions: sign and largest magnitude beside each width of every bound, and the metrics that may decide."""

    sign: FloatArray
    scale: FloatArray
    frozen: BoolArray
    decisive: BoolArray

    def beats(self, here: FloatArray, there: FloatArray, width: IntArray, depths: tuple[float, ...]) -> BoolArray:
        """Return which attentions beat others, both (bounds, 2, *shape) that broadcast, at every depth; `width` genes broadcast to shape."""
        never: BoolArray = np.zeros(np.broadcast_shapes(here.shape, there.shape)[2:], dtype=bool)
        beaten, decided = ~never, never
        for sign, scale, frozen, decisive, a, b in zip(
            self.sign, self.scale, self.frozen, self.decisive, here, there, strict=True
        ):
            per_layer, once = b[0] - a[0], b[1] - a[1]
            no_worse = (per_layer == 0.0) & (once == 0.0)
            if not frozen:
                gained = reduce(np.minimum, [sign * (depth * per_layer + once) for depth in depths])
                less = gained > MARGIN * scale[width]
                no_worse |= less
                decided = decided | less if decisive else decided
            beaten &= no_worse
        return beaten & decided


def _needed_heads(sums: AdditiveBounds, contest: Contest) -> BoolArray:
    """Which heads others beside the same width do not beat at all depths, (pairs,)."""
    kept = np.ones(sums.attention.shape[2], dtype=bool)
    width = sums.backbones.width[:: len(sums.grid.layer_plans)]
    ends = float(sums.depth.min()), float(sums.depth.max())
    for each in sums.grid.widths:
        rows = np.flatnonzero(width == each)
        kept[rows] = ~_beaten(contest, sums.attention[..., rows], np.full((1, 1), each), ends)
    return kept


def _beaten(contest: Contest, attention: FloatArray, width: IntArray, ends: tuple[float, float]) -> BoolArray:
    """Which of some attentions beside a width, (bounds, 2, k), another beats at all depths.

    Who beats another is less in the sum of the decisive quantities, and is beaten by nobody or by one who beats both: each
    is held against those before it in the order of that sum which nobody beats.
    """
    scale = np.maximum(contest.scale[:, width[0, 0]], 1e-300)
    weight = np.where(contest.decisive, contest.sign / scale, 0.0)
    order = np.argsort(weight @ (ends[1] * attention[:, 0] + attention[:, 1]), kind="stable")
    beaten = np.zeros(attention.shape[2], dtype=bool)
    unbeaten: IntArray = order[:0]
    for start in range(0, len(order), AT_ONCE):
        block = order[start : start + AT_ONCE]
        rivals = np.concatenate([unbeaten, block])
        beaten[block] = contest.beats(attention[:, :, rivals, None], attention[:, :, None, block], width, ends).any(
            axis=0
        )
        unbeaten = np.concatenate([unbeaten, block[~beaten[block]]])
    return beaten


def _needed_mixes(sums: AdditiveBounds, contest: Contest) -> BoolArray:
    """Which mixes others of the same depth, heads and KV heads do not beat, (backbones,)."""
    kept, layer_plans = np.ones(len(sums.backbones), dtype=bool), sums.grid.layer_plans
    every = np.arange(len(kept)).reshape(-1, len(layer_plans))
    for depth in sums.grid.depths:
        of_depth = every[:, layer_plans[:, 0] == depth]
        step = max(1, CELLS // of_depth.shape[1] ** 2)
        for start in range(0, len(of_depth), step):
            rows = of_depth[start : start + step]
            attention, width = sums.attention[..., rows], sums.backbones.width[rows[:, :1, None]]
            beaten = contest.beats(
                attention[..., :, None], attention[..., None, :], width, (float(sums.depth[rows[0, 0]]),)
            )
            kept[rows] = ~beaten.any(axis=1)
    return kept


def _decides(bound: Bound, alone: list[str], shared: set[Quantity], deciding: frozenset[str]) -> bool:
    return bound[0] in alone and bound[0] in deciding and bound[0] not in shared


def _largest(sums: AdditiveBounds) -> FloatArray:
    """The largest magnitude of every quantity beside each width, (bounds, widths of the space)."""
    boxes, depth = Boxes.whole(sums.grid), float(sums.depth.max())
    sides = np.abs([sums.ffn(boxes), sums.opposite().ffn(boxes)]).max(axis=0)
    found = np.zeros((len(sums.bounds), len(sums.grid.space.widths)))
    for row, beside, (per_layer, once) in zip(found, np.abs(sums.beside), sides, strict=True):
        ffn = np.zeros(len(row))
        np.maximum.at(ffn, boxes.width, depth * per_layer + once)
        np.maximum.at(row, sums.backbones.width, beside)
        row += ffn
    return found
