"""SMS-EMOA (Beume, Naujoks and Emmerich 2007) in generations on integer genes, new architectures only (pymoo)."""

from typing import Any

import numpy as np
from moocore import hv_contributions
from pydantic import Field
from pymoo.algorithms.moo.sms import SMSEMOA
from pymoo.core.survival import Survival
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from nas.problem.evaluations import REFERENCE
from nas.search.strategy import StrategyContext, Traits
from nas.strategies._pymoo import PymooStrategy
from nas.strategies._variation import Variation
from search_spaces.arrays import FloatArray

TRAITS = Traits(seedable=True)


class Parameters(Variation):
    """Parameters of the strategy."""

    population: int = Field(
        100,
        strict=True,
        ge=4,
        le=1000,
        description="Individuals kept and bred per generation; with four objectives keep it at 100 or below",
    )


class LeastContribution(Survival):  # type: ignore[misc]
    """Fronts in order; of the one that does not fit, the least contribution to its hypervolume goes, again and again.

    pymoo's own measures infeasible and failed rows into its range, and cannot cut ties of one objective.
    """

    reference = REFERENCE

    def _do(self, problem: Any, pop: Any, *_: Any, n_survive: int, **__: Any) -> Any:
        values, kept = pop.get("F").astype(np.float64), list[int]()
        for rank, front in enumerate(NonDominatedSorting().do(values, n_stop_if_ranked=n_survive)):
            pop[front].set("rank", rank)
            kept.extend(front[least_removed(values[front], n_survive - len(kept), self.reference)])
        return pop[kept]


def least_removed(values: FloatArray, n: int, reference: float) -> Any:
    """Rows that stay when the least contributor to the hypervolume of (k, m) is removed until n are left.

    Values are normalised by the front's own range; the reference point is `reference` in every objective.
    """
    span = np.ptp(values, axis=0)
    scaled = (values - values.min(axis=0)) / np.where(span > 0, span, 1.0)
    if scaled.shape[1] == 1:
        scaled = np.pad(scaled, ((0, 0), (0, 1)))
    left = np.arange(len(values))
    while len(left) > n:
        left = np.delete(left, hv_contributions(scaled[left], ref=np.full(scaled.shape[1], reference)).argmin())
    return left


def build(context: StrategyContext, parameters: Parameters) -> PymooStrategy:
    """The strategy from its context and parameters."""
    survival = LeastContribution()
    survival.reference = REFERENCE if parameters.as_results else 11.0
    return PymooStrategy(
        context, parameters, lambda **operators: SMSEMOA(survival=survival, normalize=False, **operators)
    )
