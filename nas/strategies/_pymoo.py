"""pymoo's algorithms on integer genotypes through ask and tell: full first generations, nothing proposed twice."""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from pydantic import Field
from pymoo.core.duplicate import DuplicateElimination
from pymoo.core.mating import Mating
from pymoo.core.population import Population
from pymoo.core.problem import Problem as PymooProblem
from pymoo.core.repair import Repair
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM
from pymoo.operators.selection.tournament import TournamentSelection
from pymoo.problems.static import StaticProblem

from nas.problem.evaluations import Evaluations
from nas.search.archive import KeyIndex, draw_unseen
from nas.search.strategy import StrategyContext
from nas.strategies._variation import FAILED, FEW, MATINGS, Brood, Variation, first_generation
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.space import SearchSpace

DIVISIONS: int | None = Field(
    None,
    strict=True,
    ge=1,
    le=5000,
    description="Divisions of an objective between reference directions; none is as many as the population can hold",
)


def operators(variation: Variation) -> dict[str, Any]:
    """pymoo's keyword arguments for the population size, crossover and mutation."""
    return {
        "pop_size": variation.population,
        "crossover": SBX(prob=variation.crossover_probability, eta=variation.crossover_eta),
        "mutation": PM(prob=variation.mutation_probability, eta=variation.mutation_eta),
    }


@contextmanager
def contained() -> Iterator[None]:
    """Keeps pymoo's numeric warnings, and what it does to the process's warning filters, inside."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


class SpaceRepair(Repair):  # type: ignore[misc]
    """Rounds real-coded offspring and makes them canonical, a whole generation at once."""

    def __init__(self, space: SearchSpace) -> None:
        super().__init__()
        self.space = space

    def _do(self, problem: Any, values: FloatArray, **_: Any) -> FloatArray:
        return self.space.repair(np.rint(values).astype(np.int64)).astype(np.float64)


class NewOnly(DuplicateElimination):  # type: ignore[misc]
    """Drops offspring equal to each other or to anything ever proposed, not only to the population.

    What would be cut off as surplus of a generation is no proposal: it can still be proposed later.
    """

    def __init__(self, space: SearchSpace, seen: KeyIndex) -> None:
        super().__init__()
        self.space, self.seen = space, seen

    def do(self, pop: Any, *_: Any, **__: Any) -> Any:
        """The new individuals."""
        return pop[self.fresh(pop.get("X"), len(pop))]

    def fresh(self, genes: FloatArray, room: int) -> IntArray:
        """Rows of the new genes (n, g) in order, at most `room`; they count as proposed from now on."""
        keys = self.space.keys(genes.astype(np.int64))
        return np.flatnonzero(self.seen.add(keys, room))


def _nothing() -> None:
    """Stands for pymoo's own optimum: a run reads everything it evaluated instead."""


class PymooStrategy:
    """An algorithm that pymoo breeds and our space repairs.

    `make` receives population size and operators as keyword arguments and returns the algorithm; it
    is deep-copied, since pymoo shares default arguments between instances.
    """

    def __init__(self, context: StrategyContext, variation: Variation, make: Callable[..., Any]) -> None:
        self.space, self.seen = context.problem.space, KeyIndex()
        self.generator = np.random.default_rng([context.seed, 1])
        first = first_generation(context, variation.population, self.generator)
        if context.known is not None:  # pymoo marks its first generation itself
            self.seen.add(np.setdiff1d(context.known.keys, self.space.keys(first)))
        algorithm = make(
            sampling=first.astype(np.float64),
            repair=SpaceRepair(self.space),
            eliminate_duplicates=NewOnly(self.space, self.seen),
            **operators(variation),
        )
        self.algorithm = copy.deepcopy(algorithm)
        self._breed_as_arrays(variation)
        self.problem = PymooProblem(
            n_var=first.shape[1],
            n_obj=len(context.problem.objectives),
            n_ieq_constr=len(context.problem.budgets) + 1,
            xl=np.zeros(first.shape[1]),
            xu=(self.space.gene_sizes - 1).astype(np.float64),
        )
        self.algorithm._set_optimum = _nothing
        self.algorithm.setup(self.problem, seed=context.seed, termination=("n_gen", 10**9))
        self.offspring: Any = None
        self.variation, self.objectives, self.evaluated, self.feasible = variation, context.problem.objectives, 0, 0

    def _breed_as_arrays(self, variation: Variation) -> None:
        """After the deep copy the algorithm's own duplicate filter and ours are one again."""
        self.algorithm.eliminate_duplicates.seen = self.seen
        self.algorithm.initialization.eliminate_duplicates = self.algorithm.eliminate_duplicates
        pymoos = self.algorithm.mating
        self.algorithm.mating = Breeding(
            Brood(self.space, self.seen, variation),
            pymoos.selection,
            pymoos.crossover,
            pymoos.mutation,
            repair=pymoos.repair,
            eliminate_duplicates=self.algorithm.eliminate_duplicates,
        )

    def ask(self, at_most: int) -> IntArray:
        """A whole generation; what mating cannot fill is drawn at random from what is left."""
        with contained():
            bred = self.algorithm.ask()
        short = self.algorithm.n_offsprings - (0 if bred is None else len(bred))
        if self.algorithm.is_initialized and short > 0:
            drawn = draw_unseen(self.space.size, self.seen, short, self.generator)
            immigrants = Population.new(X=self.space.genotypes(drawn).astype(np.float64))
            bred = immigrants if bred is None else Population.merge(bred, immigrants)
        self.offspring = bred
        return np.asarray(bred.get("X")).astype(np.int64).reshape(-1, self.problem.n_var)

    def tell(self, evaluations: Evaluations) -> None:
        """Objective values, on the scale of the results, and violations of the generation; failed rows rank behind everything."""
        failed = ~evaluations.ok
        values = np.where(failed[:, None], float(self.variation.as_results), evaluations.values)
        violations = np.where(failed[:, None], FAILED, evaluations.violations)
        constraints = np.column_stack([violations, np.where(failed, FAILED, -1.0)])
        self.evaluated += len(failed)
        self.feasible += int(evaluations.feasible.sum())
        rare = self.feasible < self.variation.rare * self.evaluated
        self.algorithm.pop_size = min(self.variation.population, FEW) if rare else self.variation.population
        known = StaticProblem(self.problem, F=self.variation.compared(self.objectives, values), G=constraints)
        with contained():
            self.algorithm.evaluator.eval(known, self.offspring)
            self.algorithm.tell(infills=self.offspring)


Criterion = Callable[[Any], Any]


def violation(pop: Any) -> Any:
    """Sum of positive constraint violations, (n,)."""
    return pop.get("CV")[:, 0]


def tournament(*criteria: Criterion) -> TournamentSelection:
    """Selection of the less violating of two, then of the lower by each criterion, (population) → (n,); else by a coin.

    pymoo's own ask a generator without a seed: NSGA-III's when both violate equally, AGE-MOEA's
    whenever ranks are compared. A criterion that one of the two lacks (None) decides nothing.
    """

    def winners(pop: Any, pairs: IntArray, *, random_state: np.random.Generator, **_: Any) -> IntArray:
        winner = random_state.integers(0, 2, size=len(pairs))
        for criterion in reversed((violation, *criteria)):
            first, second = np.asarray(criterion(pop), dtype=np.float64)[pairs].T
            winner = np.where(first < second, 0, np.where(second < first, 1, winner))
        return np.take_along_axis(pairs, winner[:, None], axis=1)

    return TournamentSelection(func_comp=winners)


FIELDS = frozenset(("X", "F", "CV", "FEAS"))  # of every individual; pymoo asks each of them first whether it has them


class Steady(Population):  # type: ignore[misc]
    """A population that nothing changes while it is bred from: each of its attributes is read once."""

    def get(self, *names: str, **_: Any) -> Any:
        """As pymoo's, in arrays."""
        columns: dict[str, Any] = self.__dict__.setdefault("columns", {})
        for name in names:
            if name not in columns:
                columns[name] = np.array([getattr(i, name) if name in FIELDS else i.get(name) for i in self])
        return columns[names[0]] if len(names) == 1 else tuple(columns[name] for name in names)


class Breeding(Mating):  # type: ignore[misc]
    """pymoo's mating, drawing the same random numbers in the same order; only children that are new become individuals."""

    def __init__(self, brood: Brood, *operators: Any, **options: Any) -> None:
        super().__init__(*operators, n_max_iterations=MATINGS, **options)
        self.brood = brood

    def do(
        self, problem: Any, pop: Any, n_offsprings: int, *, random_state: np.random.Generator, algorithm: Any
    ) -> Population:
        """Up to `n_offsprings` new individuals; fewer where `MATINGS` matings breed no more."""
        parents = pop.view(Steady)

        def pairs(n: int) -> IntArray:
            found: IntArray = self.selection._do(problem, parents, n, 2, random_state=random_state, algorithm=algorithm)
            return found

        bred = self.brood.bred(parents.get("X"), n_offsprings, pairs, random_state)
        return Population.new("X", bred.astype(np.float64))
