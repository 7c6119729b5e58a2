"""Axes of a space that a loss law does not see, so that nothing but cost decides on them."""

import numpy as np

from nas.problem.dominance import rounded
from objectives.loss_law.law import Law
from search_spaces.arrays import BoolArray, IntArray
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
    searched = [(gene, name) for gene, name in enumerate(space.genes) if _searched(space, gene)]
    return tuple(name for gene, name in searched if _unseen(space, law, own, gene))


def _searched(space: SearchSpace, gene: int) -> bool:
    return bool(space.gene_sizes[gene] > 1) and space.genes[gene] not in OF_RUNNING


def _unseen(space: SearchSpace, law: Law, own: IntArray, gene: int) -> bool:
    pairs = [(own[alone], moved[alone]) for moved in _moved(space, own, gene) if (alone := _alone(own, moved)).any()]
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


def _alone(own: IntArray, moved: IntArray) -> BoolArray:
    """Which rows differ in one gene."""
    one: BoolArray = (own != moved).sum(axis=1) == 1
    return one


def blind_lines(law: Law, axes: tuple[str, ...], so: str = "on these axes the cheapest was taken") -> list[str]:
    """Lines on a law that does not see these axes; empty for one that sees all."""
    return [f"The law {law.name} does not see {', '.join(axes)}: {so}."] if axes else []
