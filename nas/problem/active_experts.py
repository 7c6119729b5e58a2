"""The effect of more active experts at equal all else by a loss law, and by published trainings."""

from dataclasses import dataclass, replace

import numpy as np

from nas.problem.dominance import rounded
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray

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
    def no_lower(self) -> BoolArray:
        """Which designs are given no lower loss with 2K or with 4K, at 12 digits."""
        return np.asarray(self.not_lowered.any(axis=1))

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


def active_experts_lines(law: Law, architectures: Architectures, of: str, *, brief: bool = False) -> list[str]:
    """That few active experts are the law's own choice in these designs (`of`: which they are); nothing where they are not.

    brief: without the losses and the source.
    """
    found = more_active(law, architectures)
    rows = np.flatnonzero(found.no_lower)
    if len(rows) == 0:
        return []
    row = int(rows[0])
    place = int(np.argmax(found.not_lowered[row]))
    k, own, more = int(found.top_k[row]), found.own[row], found.more[row, place]
    many = "this design" if len(architectures) == 1 else f"{len(rows):,} of {len(architectures):,} {of}"
    text = f"Few active experts are the law's choice: {law.name} predicts no lower loss with more"
    if brief:
        return [f"Few active experts are the law's choice: {law.name} in {many}"]
    return [
        f"{text} of them for {many} "
        f"({k} active {own:.4f} nats, {FACTORS[place] * k} active {more:.4f} nats, as many experts of the same size); {MEASURED}."
    ]
