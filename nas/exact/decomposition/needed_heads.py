"""Heads that others beside the same width beat, whatever the depth and the FFN: no frontier and no pick needs them.

Two attentions of one width differ by l · Δ_layer + Δ_once in every additive quantity, at each depth l and beside each
FFN alike. Where one is the same or less in all of them, and less in one that is an objective by itself, every
architecture with the other is dominated. "Less" is by more than sums and wholes can differ, and than a tie at 12
digits; "the same" is to the last bit, as in a loss that does not see the heads. A metric that is a function of
quantities must see no difference at all.
"""

import numpy as np

from nas.exact.decomposition.boxes import Boxes
from nas.exact.decomposition.sums import Bound, Sums
from search_spaces.arrays import BoolArray, FloatArray, IntArray

MARGIN = 1e-9  # relative to the largest value beside the width
AT_ONCE = 64


def without_beaten(sums: Sums, deciding: tuple[str, ...]) -> tuple[Sums, int]:
    """The sums without the heads that nobody needs who minimises the `deciding` metrics, and how many architectures have them."""
    kept, grid = needed(sums, deciding), sums.grid
    if kept.all():
        return sums, 0
    boxes, width = Boxes.whole(grid), sums.partners.width[:: len(grid.depths)]
    ffns = np.bincount(boxes.width, boxes.volumes, minlength=len(grid.space.widths)).astype(np.int64)
    return sums.kept(kept), len(grid.depths) * int(ffns[width[~kept]].sum())


def needed(sums: Sums, deciding: tuple[str, ...]) -> BoolArray:
    """Which pairs of heads and KV heads (of `sums.attention`) some architecture that no other dominates may have, (pairs,)."""
    space, kept = sums.grid.space, np.ones(sums.attention.shape[2], dtype=bool)
    alone = [metric for metric, known in sums.compositions.items() if set(known.quantities) == {metric}]
    shared = {q for metric, known in sums.compositions.items() if metric not in alone for q in known.quantities}
    decisive = np.array([_decides(bound, alone, shared, deciding) for bound in sums.bounds])
    if sums.problem.functions or not space.free_heads or not decisive.any():
        return kept
    frozen = np.array([quantity in shared for quantity, _ in sums.bounds])
    width, scale = sums.partners.width[:: len(sums.grid.depths)], _largest(sums)
    for each in sums.grid.widths:
        rows = np.flatnonzero(width == each)
        kept[rows] = ~_beaten(sums, sums.attention[..., rows], scale[:, each], frozen, decisive)
    return kept


def _decides(bound: Bound, alone: list[str], shared: set[str], deciding: tuple[str, ...]) -> bool:
    return bound[0] in alone and bound[0] in deciding and bound[0] not in shared


def _beaten(sums: Sums, attention: FloatArray, scale: FloatArray, frozen: BoolArray, decisive: BoolArray) -> BoolArray:
    """Which of some attentions, (bounds, 2, k), another beats; `scale` is that of the margin, (bounds,).

    Who beats another is less in the sum of the decisive quantities, and is beaten by nobody or by one who beats both: each
    is held against those before it in the order of that sum which nobody beats.
    """
    sign = np.array([sign for _, sign in sums.bounds], dtype=np.float64)[:, None, None]
    ends = sums.depth.min(), sums.depth.max()
    weight = np.where(decisive, sign[:, 0, 0] / np.maximum(scale, 1e-300), 0.0)
    order = np.argsort(weight @ (ends[1] * attention[:, 0] + attention[:, 1]), kind="stable")
    beaten = np.zeros(attention.shape[2], dtype=bool)
    unbeaten: IntArray = order[:0]
    for start in range(0, len(order), AT_ONCE):
        block = order[start : start + AT_ONCE]
        rivals = np.concatenate([unbeaten, block])
        apart = attention[:, :, None, block] - attention[:, :, rivals, None]
        same = (apart == 0.0).all(axis=1)
        gained = np.minimum(*(sign * (depth * apart[:, 0] + apart[:, 1]) for depth in ends))
        less = (gained > MARGIN * scale[:, None, None]) & ~frozen[:, None, None]
        beaten[block] = ((same | less).all(axis=0) & less[decisive].any(axis=0)).any(axis=0)
        unbeaten = np.concatenate([unbeaten, block[~beaten[block]]])
    return beaten


def _largest(sums: Sums) -> FloatArray:
    """The largest magnitude of every quantity beside each width, (bounds, widths of the space)."""
    boxes, depth = Boxes.whole(sums.grid), float(sums.depth.max())
    sides = np.abs([sums.ffn(boxes), sums.opposite().ffn(boxes)]).max(axis=0)
    found = np.zeros((len(sums.bounds), len(sums.grid.space.widths)))
    for row, beside, (per_layer, once) in zip(found, np.abs(sums.beside), sides, strict=True):
        ffn = np.zeros(len(row))
        np.maximum.at(ffn, boxes.width, depth * per_layer + once)
        np.maximum.at(row, sums.partners.width, beside)
        row += ffn
    return found
