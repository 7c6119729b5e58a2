"""Optuna's genetic samplers, asked for a whole generation at a time."""

from collections.abc import Callable

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseGASampler, BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from nas.search.strategy import StrategyContext
from nas.strategies._optuna import OptunaStrategy, Repeats, quiet
from nas.strategies._variation import best_known


class Lineage(BaseGASampler):
    """A genetic sampler that breeds from the parents it is handed.

    Optuna's own looks for its generation, its parents and its search space among all trials at
    every draw, which costs the more the longer the study is.
    """

    genes: dict[str, BaseDistribution]
    born: list[FrozenTrial]
    families: dict[int, list[FrozenTrial]]

    def descend(
        self, study: Study, genes: dict[str, BaseDistribution], born: list[FrozenTrial], parents: list[FrozenTrial]
    ) -> list[FrozenTrial]:
        """The parents of the next generation, from the last one and its own parents; fewer than two breed nothing."""
        self.genes = {name: genes[name] for name in sorted(genes) if not genes[name].single()}
        self.born, self.families = born, {0: parents}
        chosen = self.select_parent(study, 1)
        self.families[1] = chosen if len(chosen) > 1 else []
        return chosen

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Every gene with a choice."""
        return self.genes

    def get_trial_generation(self, study: Study, trial: FrozenTrial) -> int:
        """Always the one being bred."""
        return 1

    def get_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        """The generation before."""
        return self.born

    def get_parent_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        """The parents of the generation before (0) or of the one being bred (1)."""
        return self.families[generation]


class ByGeneration(OptunaStrategy):
    """A genetic sampler asked for a whole generation at a time; failed rows leave it smaller, not open.

    `make(seed)` builds the sampler.
    """

    def __init__(
        self, context: StrategyContext, repeats: Repeats, population: int, make: Callable[[int], Lineage]
    ) -> None:
        super().__init__(context, "integers", repeats)
        self.population, self.make = population, make
        chosen = best_known(context, population)
        self.start += list(chosen)
        if context.known is not None:
            self.seen.add(np.setdiff1d(context.known.keys, self.space.keys(chosen)))
        self.first = max(population, len(self.start))
        self.generation = 0
        self.parents: list[FrozenTrial] = []
        self._breed([])

    def _wanted(self, at_most: int) -> int:
        return self.first if self.generation == 0 else self.population

    def _sampler(self, draw: int) -> BaseSampler:
        return self.lineage

    def _breed(self, born: list[FrozenTrial]) -> None:
        """Select the parents of the next generation and seed its sampler."""
        with quiet():
            self.lineage = self.make(self._seeded(self.generation))
            self.parents = self.lineage.descend(self.study, self.distributions, born, self.parents)

    def _learn(self, told: list[FrozenTrial]) -> None:
        self.generation += 1
        self._breed([trial for trial in told if trial.state == TrialState.COMPLETE])
