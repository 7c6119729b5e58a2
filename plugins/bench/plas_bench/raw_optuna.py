"""Optuna's samplers as its users run them: genes as integers, everything else at its default, what they repeat is answered for nothing."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import optuna
from optuna.samplers import BaseSampler, NSGAIISampler, TPESampler
from optuna.trial import Trial, TrialState
from pydantic import BaseModel, ConfigDict, Field

from nas.problem.evaluations import Evaluations
from nas.search.strategy import StrategyContext, Traits
from nas.strategies._optuna import gene_distributions, quiet, usable
from search_spaces.arrays import IntArray

TRAITS = Traits(evaluations=1000)


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    sampler: Literal["tpe", "tpe_multivariate", "nsga2"] = Field(
        "tpe", description="`TPESampler()`, `TPESampler(multivariate=True)` or `NSGAIISampler()`"
    )


SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "tpe": lambda seed: TPESampler(seed=seed),
    "tpe_multivariate": lambda seed: TPESampler(multivariate=True, seed=seed),
    "nsga2": lambda seed: NSGAIISampler(seed=seed),
}


class RawOptuna:
    """A study in memory, and the trial that it waits for."""

    def __init__(self, context: StrategyContext, sampler: Callable[[int], BaseSampler]) -> None:
        self.space, self.metrics = context.problem.space, [budget.metric for budget in context.problem.budgets]
        self.genes = gene_distributions(self.space, "integers")
        directions: list[Literal["minimize", "maximize"]] = ["minimize"] * len(context.problem.objectives)
        with quiet():
            self.study = optuna.create_study(directions=directions, sampler=sampler(context.seed))
        self.trial: Trial | None = None

    def ask(self, at_most: int) -> IntArray:
        """One design, which may have been evaluated before, (1, g)."""
        with quiet():
            self.trial = self.study.ask(self.genes)
        return self.space.repair(np.array([[self.trial.params[gene] for gene in self.space.genes]], dtype=np.int64))

    def tell(self, evaluations: Evaluations) -> None:
        """Objective values, and violations as constraints; what failed is a failed trial."""
        assert self.trial is not None
        with quiet():
            if not usable(evaluations)[0]:
                self.study.tell(self.trial, state=TrialState.FAIL)
                return
            for metric, violation in zip(self.metrics, evaluations.violations[0].tolist(), strict=True):
                self.trial.set_constraint(metric, violation)
            self.study.tell(self.trial, evaluations.values[0].tolist())


def build(context: StrategyContext, parameters: Parameters) -> RawOptuna:
    """The strategy from its context and parameters."""
    return RawOptuna(context, SAMPLERS[parameters.sampler])
