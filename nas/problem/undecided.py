"""What a loss law leaves undecided of a design: axes along which it cannot tell cheaper designs from it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nas.problem.breakdown import step_names
from nas.problem.differences import Difference, differences, has_doubt
from nas.problem.problem import Problem
from nas.problem.uncertainty import cost_among
from search_spaces.arrays import IntArray


@dataclass(frozen=True)
class Undecided:
    """A cheaper design along one axis that the law cannot tell from a design.

    axis: the gene; step: `n_kv_heads 20 -> 1`; difference: of its loss from the design's; metric, before and after: what the two take.
    """

    axis: str
    step: str
    difference: Difference
    metric: str
    before: float
    after: float


def undecided_axes(problem: Problem, genotype: IntArray) -> list[Undecided]:
    """Of each axis the cheapest design that differs from a genotype (g,) in it alone and that the law cannot tell from it.

    The law cannot where the difference's 90 % interval holds zero. Cost is the first objective that is no loss, of those that
    the study computes itself, else total_ms. Nothing of a law without uncertainty, or outside of its evidence.
    """
    law, own = problem.scenario.law, {metric.name for metric in problem.functions}
    if not has_doubt(law):
        return []
    metric = cost_among(tuple(o.name for o in problem.objectives if o.name not in own))
    moved = list(_along_axes(problem, genotype))
    if not moved:
        return []
    genotypes = np.concatenate([genotype[None], *(rows for _, rows in moved)])
    cost = problem.evaluate(genotypes, (metric,)).metrics[metric]
    axes, cheaper = np.repeat([axis for axis, _ in moved], [len(rows) for _, rows in moved]), cost[1:] < cost[0]
    designs, found = problem.architectures(genotypes), dict[str, Undecided]()
    for at in 1 + np.flatnonzero(cheaper)[np.argsort(cost[1:][cheaper], kind="stable")]:
        axis = str(axes[at - 1])
        apart = differences(law, designs[[at]], designs[[0]])[0][0]
        if axis not in found and apart.known and apart.low <= 0.0 <= apart.high:
            step = step_names(problem.space, genotypes[:1], genotypes[[at]])[0]
            found[axis] = Undecided(axis, step, apart, metric, float(cost[0]), float(cost[at]))
    return [found[axis] for axis, _ in moved if axis in found]


def _along_axes(problem: Problem, genotype: IntArray) -> Iterator[tuple[str, IntArray]]:
    """Each gene with the designs that differ in it alone, (n, g)."""
    space = problem.space
    for gene, axis in enumerate(space.genes):
        moved = np.repeat(genotype[None], space.gene_sizes[gene], axis=0)
        moved[:, gene] = np.arange(space.gene_sizes[gene])
        moved = space.repair(moved)
        alone = ((moved != genotype).sum(axis=1) == 1) & (moved[:, gene] != genotype[gene])
        if alone.any():
            yield axis, np.unique(moved[alone], axis=0)
