"""RVEA (Cheng, Jin, Olhofer and Sendhoff 2016) on integer genes, new architectures only (pymoo)."""

from typing import Any

import numpy as np
from pydantic import Field
from pymoo.algorithms.base.genetic import GeneticAlgorithm
from pymoo.algorithms.moo.rvea import RVEA
from pymoo.core.survival import Survival

from nas.search.strategy import StrategyContext, Traits
from nas.strategies._directions import directions
from nas.strategies._pymoo import DIVISIONS, PymooStrategy
from nas.strategies._variation import Variation
from search_spaces.arrays import FloatArray

TRAITS = Traits(seedable=True, horizon=True)


class Parameters(Variation):
    """Parameters of the strategy."""

    population: int = Field(100, strict=True, ge=4, le=5000, description="Individuals bred per generation")
    divisions: int | None = DIVISIONS
    alpha: float = Field(2.0, gt=0, le=100, description="How late convergence gives way to spread; larger is later")
    adaptation: float = Field(
        0.1,
        gt=0,
        le=1,
        description="Share of the evaluations after which reference vectors adapt to the ranges, again and again",
    )


def angles(cosines: FloatArray) -> FloatArray:
    """Angles of cosines that rounding may have pushed beyond one."""
    found: FloatArray = np.arccos(np.clip(cosines, -1.0, 1.0))
    return found


class AnglePenalised(Survival):  # type: ignore[misc]
    """For each reference vector the individual of least d · (1 + m · progress^alpha · angle/γ) among those nearest to it.

    where d = distance to the ideal point, γ = angle to the next reference vector. pymoo's own takes
    angles of cosines above one, and needs two reference vectors.
    """

    def __init__(self, towards: FloatArray, alpha: float) -> None:
        super().__init__(filter_infeasible=True)
        self.towards, self.alpha = towards / np.linalg.norm(towards, axis=1)[:, None], alpha
        self.ideal: FloatArray = np.full(towards.shape[1], np.inf)
        self.adapt(np.ones(towards.shape[1]))

    def adapt(self, span: FloatArray) -> None:
        """Stretch the reference vectors to the ranges of the objectives, (m,)."""
        stretched = self.towards * np.where(span > 0, span, 1.0)
        self.vectors = stretched / np.linalg.norm(stretched, axis=1)[:, None]
        cosines = self.vectors @ self.vectors.T
        np.fill_diagonal(cosines, -1.0)
        self.gamma = np.maximum(angles(cosines.max(axis=1)), 1e-12)

    def _do(self, problem: Any, pop: Any, *_: Any, algorithm: Any, **__: Any) -> Any:
        values = pop.get("F").astype(np.float64)
        self.ideal = np.minimum(self.ideal, values.min(axis=0))
        shifted = values - self.ideal
        distance = np.linalg.norm(shifted, axis=1)
        angle = angles(shifted @ self.vectors.T / np.maximum(distance, 1e-64)[:, None])
        niche = angle.argmin(axis=1)
        penalty = (
            len(self.ideal) * algorithm.progress**self.alpha * angle[np.arange(len(pop)), niche] / self.gamma[niche]
        )
        order = np.lexsort((distance * (1 + penalty), niche))
        return pop[order[np.unique(niche[order], return_index=True)[1]]]


class Scheduled(RVEA):  # type: ignore[misc]
    """pymoo's RVEA by the share of evaluations that are spent instead of generations."""

    def __init__(self, towards: FloatArray, horizon: int, alpha: float, adaptation: float, **operators: Any) -> None:
        super().__init__(towards, survival=AnglePenalised(towards, alpha), **operators)
        self.horizon, self.adaptation, self.adapted = horizon, adaptation, -1

    @property
    def progress(self) -> float:
        """Evaluations so far, as a share of the horizon."""
        return min(int(self.evaluator.n_eval) / self.horizon, 1.0)

    def _advance(self, infills: Any = None, **kwargs: Any) -> None:
        GeneticAlgorithm._advance(self, infills, **kwargs)
        values = self.pop[self.pop.get("FEAS")[:, 0]].get("F")
        if len(values) and (due := int(self.progress / self.adaptation)) > self.adapted:
            self.survival.adapt(values.max(axis=0) - self.survival.ideal)
            self.adapted = due


def build(context: StrategyContext, parameters: Parameters) -> PymooStrategy:
    """The strategy from its context and parameters; without a number of evaluations the schedule takes the default's."""
    towards = directions(len(context.problem.objectives), parameters.population, parameters.divisions)
    horizon = min(context.evaluations or TRAITS.evaluations or 1, context.problem.space.size)

    def make(**operators: Any) -> Scheduled:
        return Scheduled(towards, horizon, parameters.alpha, parameters.adaptation, **operators)

    return PymooStrategy(context, parameters, make)
