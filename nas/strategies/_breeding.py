"""Offspring bred as arrays of genes: pymoo's operators and coins without an object for every child that is dropped."""

import math
from typing import Any

import numpy as np
from pymoo.core.mating import Mating
from pymoo.core.population import Population
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM

from search_spaces.arrays import FloatArray, IntArray

FIELDS = frozenset(("X", "F", "CV", "FEAS"))  # of every individual; pymoo asks each of them first whether it has them


class Steady(Population):  # type: ignore[misc]
    """A population that nothing changes while it is bred from or selected: each of its attributes is read once."""

    def get(self, *names: str, **_: Any) -> Any:
        """As pymoo's, in arrays."""
        columns: dict[str, Any] = self.__dict__.setdefault("columns", {})
        for name in names:
            if name not in columns:
                columns[name] = np.array([getattr(i, name) if name in FIELDS else i.get(name) for i in self])
        return columns[names[0]] if len(names) == 1 else tuple(columns[name] for name in names)


class Breeding(Mating):  # type: ignore[misc]
    """pymoo's mating, drawing the same random numbers in the same order; most children are known and never become individuals.

    A generation of 20 new architectures takes several hundred children once much of a space is known.
    """

    def do(
        self, problem: Any, pop: Any, n_offsprings: int, *, random_state: np.random.Generator, algorithm: Any
    ) -> Population:
        """Up to `n_offsprings` new individuals; fewer where `n_max_iterations` matings breed no more."""
        parents, bred = pop.view(Steady), [np.zeros((0, problem.n_var))]
        genes = parents.get("X")
        for _ in range(self.n_max_iterations):
            short = n_offsprings - sum(map(len, bred))
            if short == 0:
                break
            pairs = self._pairs(problem, parents, short, random_state=random_state, algorithm=algorithm)
            children = self._mutated(problem, self._crossed(problem, genes[pairs], random_state), random_state)
            children = self.repair._do(problem, children)
            bred.append(children[self.eliminate_duplicates.fresh(children, short)])
        return Population.new("X", np.concatenate(bred))

    def _pairs(self, problem: Any, parents: Steady, children: int, **how: Any) -> IntArray:
        """Rows of the parents of so many children, (n, 2)."""
        matings = math.ceil(children / self.crossover.n_offsprings)
        pairs: IntArray = self.selection._do(problem, parents, matings, self.crossover.n_parents, **how)
        return pairs

    def _crossed(self, problem: Any, pairs: FloatArray, random_state: np.random.Generator) -> FloatArray:
        """Both children of each pair (n, 2, genes), first children first, (2 n, genes)."""
        children = np.swapaxes(pairs, 0, 1).copy()
        crossing = random_state.random(len(pairs)) < self.crossover.prob.value
        if crossing.any():
            crossed = simulated_binary(children, problem.xl, problem.xu, self.crossover, random_state)
            children[:, crossing] = crossed[:, crossing]
        return children.reshape(-1, children.shape[-1])

    def _mutated(self, problem: Any, children: FloatArray, random_state: np.random.Generator) -> FloatArray:
        """Children (n, genes) after mutation."""
        changed = polynomial(children, problem.xl, problem.xu, self.mutation, random_state)
        mutating = random_state.random(len(children)) <= self.mutation.prob.value
        return np.where(mutating[:, None], changed, children)


def simulated_binary(
    parents: FloatArray, low: FloatArray, high: FloatArray, sbx: SBX, random_state: np.random.Generator
) -> FloatArray:
    """Children of parents (2, n, genes) by simulated binary crossover within bounds (genes,), of the same shape.

    Source: Deb and Agrawal 1995; to the last bit what pymoo's SBX makes of the same random numbers.
    """
    n, genes = parents.shape[1:]
    random_state.random((n, 1))  # pymoo's coin of exchanging children at all, which is always so
    crossed = (random_state.random((n, genes)) < sbx.prob_var.value) & (parents[0] != parents[1]) & (low != high)
    ends = np.sort(parents[:, crossed], axis=0)
    at = np.nonzero(crossed)[1]
    chance, exchanged = random_state.random(len(at)), random_state.random(len(at)) < sbx.prob_bin.value
    spread = ends[1] - ends[0]
    room = np.stack([ends[0] - low[at], high[at] - ends[1]])
    power = sbx.eta.value + 1.0
    alpha = 2.0 - np.power(1.0 + 2.0 * room / spread, -power)
    reach = chance * alpha
    reach = np.power(np.where(chance <= 1.0 / alpha, reach, 1.0 / (2.0 - reach)), 1.0 / power) * spread
    middle = ends[0] + ends[1]
    outer = np.clip(0.5 * np.stack([middle - reach[0], middle + reach[1]]), low[at], high[at])
    children = parents.copy()
    children[:, crossed] = np.where(exchanged, outer[::-1], outer)
    return children


def polynomial(
    genes: FloatArray, low: FloatArray, high: FloatArray, mutation: PM, random_state: np.random.Generator
) -> FloatArray:
    """Genes (n, genes) after polynomial mutation within bounds (genes,), one gene of each on average, of the same shape.

    Source: Deb and Goyal 1996; to the last bit what pymoo's PM makes of the same random numbers.
    """
    changed = (random_state.random(genes.shape) < min(0.5, 1 / genes.shape[1])) & (low != high)
    at = np.nonzero(changed)[1]
    values, span = genes[changed], (high - low)[at]
    chance, power = random_state.random(len(at)), mutation.eta.value + 1.0
    down = chance <= 0.5
    share = np.where(down, chance, 1.0 - chance)
    left = 1.0 - np.where(down, values - low[at], high[at] - values) / span
    step = np.power(2.0 * share + (1.0 - 2.0 * share) * np.power(left, power), 1.0 / power) - 1.0
    mutated = genes.copy()
    mutated[changed] = np.clip(values + np.where(down, step, -step) * span, low[at], high[at])
    return mutated
