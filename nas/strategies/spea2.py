"""SPEA2 (Zitzler, Laumanns and Thiele 2001) on integer genes, new architectures only (pymoo)."""

from typing import Any

import numpy as np
from pydantic import Field
from pymoo.algorithms.moo.nsga3 import HyperplaneNormalization
from pymoo.algorithms.moo.spea2 import SPEA2, SPEA2Survival

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
        description="Individuals kept and bred per generation; the time grows with its third power",
    )


class Normalization(HyperplaneNormalization):  # type: ignore[misc]
    """pymoo's, but an objective that is the same for all has a range of one instead of none."""

    def update(self, values: FloatArray, nds: Any = None) -> None:
        """Take in objective values (n, m)."""
        super().update(values, nds)
        self.nadir_point: FloatArray = np.where(
            self.nadir_point > self.ideal_point, self.nadir_point, self.ideal_point + 1
        )


def build(context: StrategyContext, parameters: Parameters) -> PymooStrategy:
    """The strategy from its context and parameters; its survival is its own, pymoo's default is shared by all."""
    survival = SPEA2Survival(normalize=True)
    survival.norm = Normalization(len(context.problem.objectives))
    return PymooStrategy(context, parameters, lambda **operators: SPEA2(survival=survival, **operators))
