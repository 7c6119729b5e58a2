"""Axes of a space that a loss law does not see, so that nothing but cost decides on them."""

from dataclasses import dataclass, replace

import numpy as np

from nas.problem.evaluations import rounded
from nas.problem.wording import in_words
from objectives.loss_law.coverage import NEAR, ROWS, Region, logs_of
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from search_spaces.columns import OF_RUNNING
from search_spaces.space import SearchSpace

SAMPLE = 256  # architectures that every axis is stepped from
SEED = 20_260_102


def blind_axes(space: SearchSpace, law: Law) -> tuple[str, ...]:
    """Axes with more than one value along which no step changes the loss of any of a sample, at 12 digits.

    A step goes from an architecture of the space to another one that differs in this axis alone. The
    law's own values decide, so that coefficients of zero count as well as missing terms; designs that it says nothing of
    decide nothing. How designs are served, and on which device, is no property of theirs that a law could see.
    """
    own = space.sample(SAMPLE, np.random.default_rng(SEED))
    sizes = zip(space.genes, space.gene_sizes.tolist(), strict=True)
    searched = [(gene, name) for gene, (name, size) in enumerate(sizes) if size > 1 and name not in OF_RUNNING]
    return tuple(name for gene, name in searched if _unseen(space, law, own, gene))


def _unseen(space: SearchSpace, law: Law, own: IntArray, gene: int) -> bool:
    sides = [(moved, (own != moved).sum(axis=1) == 1) for moved in _moved(space, own, gene)]  # one gene differs
    pairs = [(own[alone], moved[alone]) for moved, alone in sides if alone.any()]
    if not pairs:
        return False
    before, after = (space.architectures(np.concatenate(side)) for side in zip(*pairs, strict=True))
    alone = before.n_kv_heads == after.n_kv_heads  # as many KV heads as heads move along with n_heads
    if space.genes[gene] == "n_heads" and alone.any():
        before, after = before[alone], after[alone]
    losses = np.stack([rounded(law.loss(before)), rounded(law.loss(after))])
    priced = losses[:, np.isfinite(losses).all(axis=0)]
    return priced.shape[1] > 0 and bool((priced[0] == priced[1]).all())


def _moved(space: SearchSpace, own: IntArray, gene: int) -> list[IntArray]:
    """The sample with the axis at its first, its middle and its last value, repaired."""
    found = []
    for value in {0, int(space.gene_sizes[gene]) // 2, int(space.gene_sizes[gene]) - 1}:
        moved = own.copy()
        moved[:, gene] = value
        found.append(space.repair(moved))
    return found


def blind_lines(law: Law, axes: tuple[str, ...], so: str = "the cheapest was taken") -> list[str]:
    """Lines on a law that does not see these axes; empty for one that sees all."""
    return [f"Law {law.name} does not see {', '.join(axes)}: {so}."] if axes else []


FACTORS = (2, 4)  # the published trainings have K 1, 2 and 4
MEASURED = (
    "all 12 published steps (1 to 2 to 4 active, all else equal) lower the measured loss, by 0.016 to 0.046 nats "
    "(Clark et al. 2022, arXiv 2202.01169)"
)


@dataclass(frozen=True, eq=False)
class MoreActive:
    """Losses of designs, nats, (n,), and with 2K and 4K active experts, (n, 2); NaN where there is no such design or price."""

    top_k: IntArray
    own: FloatArray
    more: FloatArray

    @property
    def priced(self) -> BoolArray:
        """Which designs can be compared with more active experts."""
        return np.asarray(np.isfinite(self.more - self.own[:, None]).any(axis=1))

    @property
    def not_lowered(self) -> BoolArray:
        """By which factor of K the loss is not lowered, (n, 2)."""
        found: BoolArray = rounded(self.more) >= rounded(self.own)[:, None]
        return found


def more_active(law: Law, architectures: Architectures) -> MoreActive:
    """Each design's loss, and with 2K and 4K experts of the same size in place of K, E and all else equal.

    NaN for dense designs, where that is not below E, and where the law does not price either of the two.
    """
    a, n = architectures, len(architectures)
    found = np.full((n, 1 + len(FACTORS)), np.nan)
    for place, factor in enumerate((1, *FACTORS)):
        rows = np.flatnonzero((a.n_experts > 1) & ((factor == 1) | (factor * a.top_k < a.n_experts)))
        if len(rows):
            found[rows, place] = law.loss(replace(a[rows], top_k=factor * a.top_k[rows]))
    known = np.where(np.isfinite(found), found, np.nan)
    return MoreActive(a.top_k, known[:, 0], known[:, 1:])


def active_experts_lines(law: Law, architectures: Architectures, of: str) -> list[str]:
    """That few active experts are the law's own choice in these designs (`of`: which they are); nothing where they are not."""
    found = more_active(law, architectures)
    rows = np.flatnonzero(found.not_lowered.any(axis=1))
    if len(rows) == 0:
        return []
    row = int(rows[0])
    place = int(np.argmax(found.not_lowered[row]))
    k, own, more = int(found.top_k[row]), found.own[row], found.more[row, place]
    many = "this design" if len(architectures) == 1 else f"{len(rows):,} of {len(architectures):,} {of}"
    text = f"Few active experts are the law's choice: {law.name} predicts no lower loss with more"
    return [
        f"{text} of them for {many} "
        f"({k} active {own:.4f} nats, {FACTORS[place] * k} active {more:.4f} nats, as many experts of the same size); {MEASURED}."
    ]


SHARE = "_share"  # ends the name of a share of layers


def leaves(law: Law, design: Architectures) -> list[str]:
    """By which quantities a design, one row, leaves what the law's rows cover: `FFN ratio 0.018 (trained: 2.67 to 10)`; [] of one inside."""
    left, region = list(law.excess(design)), law.region_of(design)
    own = [_axis(law, region, design, name) for name in left if name != ROWS]
    return [*own, *(_from_nearest(law, region, design) if ROWS in left else [])]


def _axis(law: Law, region: Region | None, design: Architectures, name: str) -> str:
    sparse = bool(design.n_experts[0] > 1)
    value = float(law.feature(design, name)[0])
    if region is None and name == "n_experts":
        return "experts, which no row has" if sparse else "no experts, which every row has"
    ranges = {} if region is None else {**region.ranges, **region.usual}
    least, most = {**ranges, **law.covered_vocabularies}[name]
    if name.endswith(SHARE):
        return f"{name.removesuffix(SHARE)} in {100 * value:.0f} % of the layers (trained: {_ends(100 * least, 100 * most)} %)"
    whose = "usual" if region is not None and name in region.usual else "trained"
    return f"{in_words(name)} {value:.3g} ({whose}{' with experts' * sparse}: {_ends(least, most)})"


def _from_nearest(law: Law, region: Region | None, design: Architectures) -> list[str]:
    """The axes on which a design is more than a factor 2 from the nearest row: `width 4,096 (nearest trained: 1,024)`."""
    assert region is not None
    own = np.log([law.feature(design, name)[0] for name in region.axes])
    apart = np.abs(logs_of(region.rows) - own)
    nearest = int(
        np.lexsort(np.sort(apart.round(9), axis=1).T)[0]
    )  # of those as far on one axis the nearest on the others
    pairs = zip(region.axes, np.exp(own).tolist(), np.exp(logs_of(region.rows)[nearest]).tolist(), strict=True)
    far = [each for each, by in zip(pairs, apart[nearest].tolist(), strict=True) if by > NEAR]
    return [f"{in_words(name)} {_number(value)} (nearest trained: {_number(row)})" for name, value, row in far]


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1e3 <= value < 1e6 else f"{value:.3g}"


def _ends(least: float, most: float) -> str:
    return f"{least:.3g}" if least == most else f"{least:.3g} to {most:.3g}"
