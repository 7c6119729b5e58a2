"""AGE-MOEA-II (Panichella 2022) on integer genes, new architectures only (pymoo)."""

from contextlib import suppress

import numba  # noqa: F401  (pymoo hides which package it misses)
import numpy as np
from pydantic import Field
from pymoo.algorithms.moo.age import AGEMOEASurvival, find_corner_solutions, point_2_line_distance
from pymoo.algorithms.moo.age2 import AGEMOEA2, AGEMOEA2Survival, project_on_manifold

from nas.strategies._pymoo import PymooStrategy, Variation
from nas.strategies._tournament import tournament
from nas.strategy import Brief, Traits

TRAITS = Traits(seedable=True)
COMPILED = (
    point_2_line_distance,
    find_corner_solutions,
    project_on_manifold,
    AGEMOEA2Survival.pairwise_distances,
    AGEMOEASurvival.minkowski_distances,
)
with suppress(RuntimeError):  # no folder to keep machine code in: every process compiles anew, which takes seconds
    for function in COMPILED:
        function.enable_caching()


class Parameters(Variation):
    """Parameters of the strategy."""

    population: int = Field(100, strict=True, ge=4, le=1000, description="Individuals kept and bred per generation")


def build(brief: Brief, parameters: Parameters) -> PymooStrategy:
    """The strategy from its brief and parameters."""
    by_rank = tournament(lambda pop: pop.get("rank"), lambda pop: -pop.get("crowding").astype(np.float64))
    return PymooStrategy(brief, parameters, lambda **operators: AGEMOEA2(selection=by_rank, **operators))
