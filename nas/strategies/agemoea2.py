"""AGE-MOEA-II (Panichella 2022) on integer genes, new architectures only (pymoo)."""

from contextlib import suppress
from typing import Any

import numba  # noqa: F401  (pymoo hides which package it misses)
import numpy as np
from pydantic import Field
from pymoo.algorithms.moo.age import AGEMOEASurvival, find_corner_solutions, point_2_line_distance
from pymoo.algorithms.moo.age2 import AGEMOEA2, AGEMOEA2Survival, project_on_manifold

from nas.search.strategy import StrategyContext, Traits
from nas.strategies._pymoo import PymooStrategy, tournament
from nas.strategies._variation import Variation
from search_spaces.arrays import FloatArray, IntArray

TRAITS = Traits(seedable=True)
COMPILED = (
    point_2_line_distance,
    find_corner_solutions,
    project_on_manifold,
    AGEMOEA2Survival.pairwise_distances,
    AGEMOEASurvival.minkowski_distances,
)
with suppress(RuntimeError):  # no folder to keep machine code in: every process compiles again, which takes seconds
    for function in COMPILED:
        function.enable_caching()


class Parameters(Variation):
    """Parameters of the strategy."""

    population: int = Field(100, strict=True, ge=4, le=1000, description="Individuals kept and bred per generation")


class Survival(AGEMOEA2Survival):  # type: ignore[misc]
    """pymoo's, which divides by zero where a whole front is one point."""

    def survival_score(self, front: FloatArray, ideal_point: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        """Scores (k,) of a front (k, m), its curvature, and what normalises it (m,)."""
        if (np.round(front, 12) > ideal_point).any(axis=1).all():
            score, curvature, span = super().survival_score(front, ideal_point)
            return score, float(curvature), span
        return np.zeros(len(front)), 1.0, np.ones(front.shape[1])

    @staticmethod
    def compute_geometry(front: FloatArray, extreme: IntArray, n: int) -> float:
        """The curvature, always a float: compiled code exists once per type."""
        return float(AGEMOEA2Survival.compute_geometry(front, extreme, n))


def build(context: StrategyContext, parameters: Parameters) -> PymooStrategy:
    """The strategy from its context and parameters."""
    selection = tournament(lambda pop: pop.get("rank"), lambda pop: -pop.get("crowding").astype(np.float64))

    def make(**operators: Any) -> AGEMOEA2:
        algorithm = AGEMOEA2(selection=selection, **operators)
        algorithm.survival = Survival()
        return algorithm

    return PymooStrategy(context, parameters, make)
