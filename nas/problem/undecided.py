"""What a loss law leaves undecided of a design: the designs that it cannot tell from it, and cheaper ones along one axis."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nas.problem.breakdown import spans, step_names
from nas.problem.differences import Difference, differences, has_doubt, not_told_apart
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.problem.uncertainty import cost_among
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray

BLOCK = 512  # designs compared at once


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


@dataclass(frozen=True, eq=False)
class NotToldApart:
    """Evaluated designs within the budgets that the law cannot tell from the answer: how many, what of each gene they and it have, the one that costs least.

    genes: `4 to 16` of each in which they differ; metric and cost: what the cheapest takes.
    """

    number: int
    genes: dict[str, str]
    cheapest: Architectures
    metric: str
    cost: float


def not_told_apart_from(problem: Problem, answer: Evaluations, found: Evaluations) -> NotToldApart | None:
    """The evaluated designs that hold the budgets and cannot be told from an answer of one row; None where there is none.

    Taken in the order of their losses, up to the first block without such a design.
    """
    law = problem.scenario.law
    metric = _cost(problem)
    rows = np.flatnonzero(found.feasible & (found.keys != answer.keys[0]))
    rows = rows[np.argsort(found.metrics["loss"][rows], kind="stable")]
    own, tied = problem.architectures(answer.genotypes), list[IntArray]()
    for block in (rows[at : at + BLOCK] for at in range(0, len(rows), BLOCK)):
        same = not_told_apart(law, problem.architectures(found.genotypes[block]), own)
        if not same.any():
            break
        tied.append(block[same])
    if not tied:
        return None
    every = np.concatenate(tied)
    designs = problem.architectures(found.genotypes[every])
    cost = problem.evaluate(found.genotypes[every], (metric,)).metrics[metric]
    least = int(np.argmin(cost))
    genes = spans(problem.space, Architectures.concatenate([own, designs]))
    return NotToldApart(len(every), genes, designs[[least]], metric, float(cost[least]))


def undecided_axes(problem: Problem, genotype: IntArray) -> list[Undecided]:
    """Of each axis the cheapest design that differs from a genotype (g,) in it alone and that the law cannot tell from it.

    The law cannot where the difference's 90 % interval holds zero. It breaks no budget that the genotype keeps. Cost is the first
    objective that is no loss, of those that the study computes itself, else total_ms. Nothing of a law without uncertainty, or
    outside of its evidence.
    """
    law, metric = problem.scenario.law, _cost(problem)
    if not has_doubt(law):
        return []
    moved = list(_along_axes(problem, genotype))
    if not moved:
        return []
    genotypes = np.concatenate([genotype[None], *(rows for _, rows in moved)])
    cost, kept = _costs(problem, genotypes, metric)
    axes = ["", *(axis for axis, rows in moved for _ in rows)]
    designs, found = problem.architectures(genotypes), dict[str, Undecided]()
    cheaper = np.argsort(cost, kind="stable")[: int((cost < cost[0]).sum())]
    cheaper = cheaper[kept[cheaper]]
    for block in (cheaper[start : start + BLOCK] for start in range(0, len(cheaper), BLOCK)):
        for at, (apart,) in zip(block.tolist(), differences(law, designs[block], designs[[0]]), strict=True):
            if axes[at] not in found and apart.known and apart.low <= 0.0 <= apart.high:
                step = step_names(problem.space, genotypes[:1], genotypes[[at]])[0]
                found[axes[at]] = Undecided(axes[at], step, apart, metric, float(cost[0]), float(cost[at]))
    return [found[axis] for axis, _ in moved if axis in found]


def _cost(problem: Problem) -> str:
    own = {metric.name for metric in problem.functions}
    return cost_among(tuple(o.name for o in problem.objectives if o.name not in own))


def _costs(problem: Problem, genotypes: IntArray, metric: str) -> tuple[FloatArray, BoolArray]:
    """What designs take, and which break no budget more than the first one does and are on no device that costs more in a figure that is minimised, each (n,).

    A user's own metrics are left out.
    """
    own = {each.name for each in problem.functions}
    budgets = [b for b in problem.budgets if b.metric not in own]
    figures = [each.name for each in problem.objectives if each.name in problem.scenario.figures]
    names = (metric, *figures, *(b.metric for b in budgets))
    found = problem.evaluate(genotypes, tuple(dict.fromkeys(names))).metrics
    kept = np.ones(len(genotypes), dtype=bool)
    for figure in figures:
        kept &= found[figure] <= found[figure][0]
    for budget in budgets:
        values = found[budget.metric]
        kept &= values <= max(budget.limit, float(values[0]))
    return found[metric], kept


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
