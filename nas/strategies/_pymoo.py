"""pymoo's algorithms on integer genotypes through ask and tell: full first generations, nothing proposed twice."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from pymoo.config import Config
from pymoo.core.mating import Mating
from pymoo.core.population import Population
from pymoo.core.problem import Problem as PymooProblem
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM

from nas.evaluations import Evaluations
from nas.key_index import KeyIndex
from nas.strategy import Brief
from nas.unseen import draw_unseen
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.space import SearchSpace

import os
FAILED = 1e9
ROUNDS = int(os.environ.get("ROUNDS","4"))
LEAST_RATE = float(os.environ.get("LEAST","0.05"))
FILL = os.environ.get("FILL","near")
LOG = os.environ.get("LOG","1")=="1"
NEARSHARE = float(os.environ.get("NEARSHARE","0"))

Config.warnings["not_compiled"] = False

Parents = Callable[[Any, int, np.random.Generator], IntArray]


def first_generation(brief: Brief, population: int, generator: np.random.Generator) -> IntArray:
    """The given designs, filled up to the population with a random sample: distinct, never short but by the space."""
    space = brief.problem.space
    used = KeyIndex()
    used.add(space.keys(brief.start))
    drawn = draw_unseen(space.size, used, max(population - len(brief.start), 0), generator)
    return np.concatenate([brief.start, space.genotypes(drawn)])


def shuffled(size, n, generator):
    rows = np.tile(np.arange(size), (math.ceil(n / size), 1))
    return generator.permuted(rows, axis=1).ravel()[:n]


def tournament(*smaller: str, larger: str = "") -> Parents:
    """Binary tournaments by violation, then by attributes that the survival set; a draw is decided at random."""

    def parents(population: Any, n: int, generator: np.random.Generator) -> IntArray:
        place = places(population, smaller, larger)
        pairs = shuffled(len(population), 4 * n, generator).reshape(-1, 2)
        pairs = np.where(generator.random(len(pairs))[:, None] < 0.5, pairs, pairs[:, ::-1])
        better = np.argmin(place[pairs], axis=1)
        return pairs[np.arange(len(pairs)), better].reshape(n, 2)

    return parents


def places(population: Any, smaller, larger) -> IntArray:
    violation = population.get("CV")[:, 0]
    columns = [violation, *(population.get(n).astype(float) for n in smaller)]
    if larger:
        columns.append(-population.get(larger).astype(float))
    columns = np.where(violation > 0, 0.0, np.array(columns)).T
    columns[:, 0] = violation
    return np.unique(columns, axis=0, return_inverse=True)[1].ravel()


class Breeding(Mating):  # type: ignore[misc]

    def __init__(self, space: SearchSpace, parents: Parents, crossover: Any, mutation: Any) -> None:
        super().__init__(None, crossover, mutation)
        self.space, self.parents, self.seen = space, parents, KeyIndex()
        self.rate = 1.0

    def do(self, problem: Any, pop: Any, n_offsprings: int, random_state: Any = None, **_: Any) -> Any:
        """New individuals, fewer only when the space has no more."""
        left = min(n_offsprings, self.space.size - len(self.seen))
        genotypes = pop.get("X")
        found: list[IntArray] = [genotypes[:0]]
        if NEARSHARE:
            found.append(self._near(genotypes, min(left,round(NEARSHARE*n_offsprings)), random_state)); left -= len(found[-1])
        for _ in range(ROUNDS):
            if left <= 0:
                break
            tried = math.ceil(1.2*left / self.rate)
            children = self._children(problem, pop, genotypes, tried, random_state)
            new = self._new(children, left)
            found.append(new)
            if len(new)<left: self.rate = max(0.5*self.rate+0.5*len(new) / tried, LEAST_RATE)
            else: self.rate=min(1,1.2*self.rate)
            left -= len(new)
        if left > 0 and FILL=="near":
            found.append(self._near(genotypes, left, random_state))
            left -= len(found[-1])
        if left > 0:
            found.append(self.space.genotypes(draw_unseen(self.space.size, self.seen, left, random_state)))
        return Population.new(X=np.concatenate(found))

    def _children(self, problem, pop, genotypes, n, random_state):
        pairs = self.parents(pop, (n + 1) // 2, random_state)
        both = genotypes[pairs.T].astype(float)
        crossed = self.crossover._do(problem, both, random_state=random_state)
        cross = random_state.random(len(pairs)) < self.crossover.prob.value
        children = np.where(cross[:, None], crossed, both).reshape(-1, problem.n_var)
        mutated = self.mutation._do(problem, children, random_state=random_state)
        mutate = random_state.random(len(children)) < self.mutation.prob.value
        children = np.where(mutate[:, None], mutated, children)
        return self.space.repair(np.rint(children).astype(np.int64))

    def _new(self, genotypes, most):
        keys = self.space.keys(genotypes)
        first = np.zeros(len(keys), bool)
        first[np.unique(keys, return_index=True)[1]] = True
        rows = np.flatnonzero(first & (self.seen.rows(keys) < 0))[:most]
        self.seen.add(keys[rows])
        return genotypes[rows]

    def _near(self, genotypes, most, random_state):
        near = self.space.neighbours(genotypes)
        return self._new(near[random_state.permutation(len(near))], most)


class PymooStrategy:
    def __init__(self, brief, make, population, breeding) -> None:
        self.objectives = brief.problem.objectives
        generator = np.random.default_rng([brief.seed, 1])
        first = first_generation(brief, population, generator)
        breeding.seen.add(brief.problem.space.keys(first))
        genes = len(brief.problem.space.gene_sizes)
        self.problem = PymooProblem(
            n_var=genes, n_obj=len(self.objectives), n_ieq_constr=1,
            xl=np.zeros(genes), xu=(brief.problem.space.gene_sizes - 1).astype(np.float64),
        )
        self.algorithm = make(sampling=Population.new(X=first), mating=breeding, output=None, eliminate_duplicates=False)
        self.algorithm.setup(self.problem, seed=brief.seed, termination=("n_gen", 10**9))
        self.offspring: Any = None

    def ask(self, at_most: int) -> IntArray:
        self.offspring = self.algorithm.ask()
        if self.offspring is None:
            return np.zeros((0, self.problem.n_var), dtype=np.int64)
        return self.offspring.get("X")

    def tell(self, evaluations: Evaluations) -> None:
        ok = evaluations.ok
        if LOG:
            v = np.stack([o.scaled(c) for o,c in zip(self.objectives, evaluations.values.T)],axis=1)
        else: v=evaluations.values
        values = np.where(ok[:, None], v, 0.0)
        excess = np.maximum(evaluations.violations, 0.0).sum(axis=1)
        self.offspring.set(F=values, CV=np.where(ok, excess, FAILED)[:, None])
        self.algorithm.evaluator.n_eval += len(ok)
        with warnings.catch_warnings():
            self.algorithm.tell(infills=self.offspring)
