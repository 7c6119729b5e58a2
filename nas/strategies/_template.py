"""Mutates members of the frontier at random, and starts again elsewhere where that finds nothing new."""

# A strategy is a module with TRAITS, Parameters and build(context, parameters). Change this one, then:
#
#   plas run --algo strategy --evaluations 1000        the file is strategy.py in the working folder
#   plas compare --algos strategy,nsga2 --seeds 5      against others, at equal evaluations
#   plas list --schema strategy                               its parameters
#   python -c "from nas.testing import check_strategy; check_strategy('strategy')"
#
# The first line of the module is what 'plas list strategies' shows. All rules: docs/strategies.md.

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from nas.problem.evaluations import Evaluations, non_dominated
from nas.search.archive import KeyIndex, draw_unseen
from nas.search.strategy import StrategyContext, Traits
from search_spaces.arrays import FloatArray, IntArray

# What the study must know. seedable: build uses context.start, so that seed_from works; constraints=False
# would turn budgets into a penalty; objectives=2 would refuse more; see nas/search/strategy.py for all.
TRAITS = Traits(evaluations=2000, seedable=True)


class Parameters(BaseModel):
    """What --param NAME=VALUE sets; every parameter with a default, its limits and a description."""

    model_config = ConfigDict(extra="forbid")  # a misspelt parameter is refused
    batch: int = Field(20, strict=True, ge=1, le=100_000, description="Architectures proposed at once")
    genes: int = Field(1, strict=True, ge=1, le=6, description="Genes of a parent that are drawn again")


class FrontierMutation:
    """One search: asked for genotypes, told what they are worth, until the study's limit is reached.

    It never proposes an architecture twice. The same seed and the same answers must give the same
    questions, so every random number comes from the context's generator: a resumed run is replayed.
    """

    def __init__(self, context: StrategyContext, parameters: Parameters) -> None:
        self.space, self.parameters = context.problem.space, parameters
        self.generator = context.generator  # numpy's, of the study's seed
        self.start: IntArray = context.start  # designs of seed_from, (k, g), none without it
        self.seen = KeyIndex()  # keys of all that was ever proposed
        self.genotypes: IntArray = np.zeros((0, len(self.space.gene_sizes)), dtype=np.int64)
        self.values: FloatArray = np.zeros((0, len(context.problem.objectives)))
        self.excess: FloatArray = np.zeros(0)
        if context.known is not None:  # of known: evaluated before this search, and answered for nothing if asked again
            self.seen.add(context.known.keys)
            self.tell(context.known)

    def ask(self, at_most: int) -> IntArray:
        """Genotypes (k, g), an index into each axis per gene; no rows would mean that nothing more will come.

        `at_most` is how many evaluations are left; a whole batch may exceed it.
        """
        first, self.start = self.start, self.start[:0]
        self.seen.add(self.space.keys(first))
        children = self._children() if len(self.genotypes) else first[:0]
        children = children[self.seen.add(self.space.keys(children))]  # those that are new
        missing = max(self.parameters.batch - len(first) - len(children), 0)
        elsewhere = draw_unseen(self.space.size, self.seen, missing, self.generator)
        return np.concatenate([first, children, self.space.genotypes(elsewhere)])

    def _children(self) -> IntArray:
        """A batch of frontier members, each with some genes drawn again, made valid by the space's own rule."""
        rows = self.generator.integers(0, len(self.genotypes), size=self.parameters.batch)
        children = self.genotypes[rows]
        for _ in range(self.parameters.genes):
            gene = self.generator.integers(0, len(self.space.gene_sizes), size=len(children))
            children[np.arange(len(children)), gene] = self.generator.integers(0, self.space.gene_sizes[gene])
        return self.space.repair(children)

    def tell(self, evaluations: Evaluations) -> None:
        """Rows of the last ask, in order; `ok` is false where an objective failed and its value is NaN.

        values (n, objectives) are minimised; violations (n, budgets) are value/limit - 1, met at 0 and below.
        """
        rows = evaluations.ok
        self.genotypes = np.concatenate([self.genotypes, evaluations.genotypes[rows]])
        self.values = np.concatenate([self.values, evaluations.values[rows]])
        excess = np.maximum(evaluations.violations[rows], 0).sum(axis=1)
        self.excess = np.concatenate([self.excess, excess])
        self._keep(np.flatnonzero(self.excess == self.excess.min(initial=np.inf)))  # feasible, or least violating
        self._keep(non_dominated(self.values))

    def _keep(self, rows: IntArray) -> None:
        self.genotypes, self.values, self.excess = self.genotypes[rows], self.values[rows], self.excess[rows]


def build(context: StrategyContext, parameters: Parameters) -> FrontierMutation:
    """A fresh search; called for every run."""
    return FrontierMutation(context, parameters)
