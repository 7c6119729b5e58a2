"""pymoo's mating bred as arrays: its selection and coins without an object for every child that is dropped."""

from typing import Any

import numpy as np
from pymoo.core.mating import Mating
from pymoo.core.population import Population

from nas.strategies._variation import MATINGS, Brood
from search_spaces.arrays import IntArray

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
