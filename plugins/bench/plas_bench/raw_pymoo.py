"""pymoo's NSGA-II as its users run it (Deb et al. 2002): proposals are rounded and repaired, what it repeats is answered for nothing."""

from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.problem import Problem as PymooProblem
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM
from pymoo.operators.repair.rounding import RoundingRepair
from pymoo.operators.sampling.rnd import IntegerRandomSampling
from pymoo.problems.static import StaticProblem

from nas.problem.evaluations import Evaluations
from nas.search.strategy import StrategyContext, Traits
from nas.strategies._pymoo import contained
from nas.strategies._variation import FAILED
from search_spaces.arrays import IntArray

TRAITS = Traits()


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    recipe: Literal["defaults", "integers", "as_nsga2"] = Field(
        "defaults",
        description="`NSGA2()`; the recipe of its documentation for integers (population 20, eta 3); or our operators, population 100",
    )


def integers(population: int, crossover: tuple[float, float], mutation: tuple[float, float], **keys: Any) -> NSGA2:
    """NSGA-II on rounded integers, with probability and eta of both operators."""
    rounded = {"vtype": float, "repair": RoundingRepair()}
    return NSGA2(
        pop_size=population,
        sampling=IntegerRandomSampling(),
        crossover=SBX(prob=crossover[0], eta=crossover[1], **rounded),
        mutation=PM(prob=mutation[0], eta=mutation[1], **rounded),
        **keys,
    )


RECIPES = {
    "defaults": NSGA2,
    "integers": lambda: integers(20, (1.0, 3.0), (1.0, 3.0)),
    "as_nsga2": lambda: integers(100, (0.5, 15.0), (0.9, 5.0), n_offsprings=20),
}


class RawPymoo:
    """The algorithm, and the generation that it waits for."""

    def __init__(self, context: StrategyContext, algorithm: NSGA2) -> None:
        self.space, self.algorithm = context.problem.space, algorithm
        highest = (self.space.gene_sizes - 1).astype(np.float64)
        self.problem = PymooProblem(
            n_var=len(highest),
            n_obj=len(context.problem.objectives),
            n_ieq_constr=len(context.problem.budgets),
            xl=np.zeros(len(highest)),
            xu=highest,
            vtype=int,
        )
        algorithm.setup(self.problem, seed=context.seed, termination=("n_gen", 10**9))
        self.generation: Any = None

    def ask(self, at_most: int) -> IntArray:
        """A generation, with designs that were evaluated before; nothing where pymoo breeds nothing new for itself."""
        with contained():
            self.generation = self.algorithm.ask()
        if self.generation is None:
            return self.space.genotypes(np.zeros(0, dtype=np.int64))
        genes: IntArray = np.rint(self.generation.get("X").astype(np.float64)).astype(np.int64)
        return self.space.repair(genes)

    def tell(self, evaluations: Evaluations) -> None:
        """Objective values and violations of the generation; failed rows are the worst in both."""
        failed = ~evaluations.ok[:, None]
        values, violations = (np.where(failed, FAILED, of) for of in (evaluations.values, evaluations.violations))
        with contained():
            self.algorithm.evaluator.eval(StaticProblem(self.problem, F=values, G=violations), self.generation)
            self.algorithm.tell(infills=self.generation)


def build(context: StrategyContext, parameters: Parameters) -> RawPymoo:
    """The strategy from its context and parameters."""
    return RawPymoo(context, RECIPES[parameters.recipe]())
