"""Offspring of genotypes, as arrays: crossover, mutation and repair, until enough are new.

Several hundred children are bred for 20 new architectures once much of a space is known, in calls of twenty: what is
slow there is the number of numpy's calls, not of genes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from moocore import pareto_rank
from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from nas.problem.evaluations import Evaluations, on_scale
from nas.problem.objective import Objective
from nas.search.archive import KeyIndex, draw_unseen
from nas.search.strategy import StrategyContext
from search_spaces.arrays import BoolArray, FloatArray, IntArray, frozen
from search_spaces.space import SearchSpace

MATINGS = 20
FAILED = 1e9  # violation of a row that could not be evaluated
EACH_GENE = 0.5  # chance of a gene that differs to be crossed, and of what comes out to be exchanged
SMALLEST, LARGEST = 16, 100  # individuals of a population that fits the evaluations
EACH, EACH_OF_MANY, MANY = 20, 50, 100_000  # evaluations for each of them, and in a space of more designs
FEW = 20  # individuals that find feasible designs sooner where these are rare
AWAY = np.array([[-1.0], [1.0]])  # the lower child goes down from the middle of its parents, the higher one up


class Bred(BaseModel):
    """Parameters of which those that are not given fit the evaluations, by a rule that `benchmarks/peers.py` says how it was chosen."""

    model_config = ConfigDict(extra="forbid")

    def following(self, evaluations: int, designs: int) -> dict[str, float]:
        """The population for so many distinct evaluations in a space of so many designs, unless it or divisions are given."""
        given = {"population", "divisions"} & self.model_fields_set
        fitting = evaluations // (EACH if designs <= MANY else EACH_OF_MANY)
        return {} if given else {"population": min(max(fitting, SMALLEST), LARGEST)}


class Variation(Bred):
    """Parameters of the whole family: how many individuals, and how their offspring vary: as pymoo's documentation varies integers, since small real steps round to nothing."""

    population: int = Field(100, strict=True, ge=4, le=100_000, description="Individuals kept and bred per generation")
    crossover_probability: float = Field(1.0, ge=0, le=1, description="Probability of crossing two parents")
    crossover_eta: float = Field(
        3.0, gt=0, le=1000, description="SBX distribution index; larger stays nearer the parents"
    )
    mutation_probability: float = Field(1.0, ge=0, le=1, description="Probability of mutating an offspring")
    mutation_eta: float = Field(3.0, gt=0, le=1000, description="Polynomial-mutation distribution index")
    rare: float = Field(  # left out where it is off, as the next one, and in runs of versions without it
        0.2,
        ge=0,
        le=1,
        description=f"While a smaller share is feasible, {FEW} individuals at most are kept, and steps are large",
    )

    as_results: bool = Field(True, description="Compare times and sizes by their logarithms, as results do")

    @model_validator(mode="before")
    @classmethod
    def _read(cls, given: Any) -> Any:
        """A record of all steps without it is of a version that compared objectives as they were."""
        return {"as_results": False, **given} if given.keys() >= STEPS else given

    @model_serializer(mode="wrap")
    def _recorded(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in written(self).items() if name not in ("rare", "as_results") or value}

    def compared(self, objectives: tuple[Objective, ...], values: FloatArray) -> FloatArray:
        """Values (n, m) on the scale on which they are compared."""
        return on_scale(objectives, values) if self.as_results else values

    def following(self, evaluations: int, designs: int) -> dict[str, float]:
        """The population; steps that are given hold throughout."""
        return super().following(evaluations, designs) | ({"rare": 0.0} if STEPS & self.model_fields_set else {})


STEPS = frozenset(("crossover_probability", "crossover_eta", "mutation_probability", "mutation_eta"))


@dataclass(frozen=True, eq=False)
class Brood:
    """Breeds architectures of a space that are not `seen` yet; what it breeds is seen from then on."""

    space: SearchSpace
    seen: KeyIndex
    variation: Variation

    def bred(
        self, parents: FloatArray, n: int, pairs: Callable[[int], IntArray], random_state: np.random.Generator
    ) -> IntArray:
        """Up to n new genotypes (k, g) of parents (rows, g); fewer where `MATINGS` matings breed no more.

        `pairs` selects so many pairs of rows, (pairs, 2). What would be surplus can still be proposed later.
        """
        found, short = [np.zeros((0, parents.shape[1]), dtype=np.int64)], n
        with np.errstate(all="ignore"):
            for _ in range(MATINGS):
                if short == 0:
                    break
                children = self.varied(parents[pairs((short + 1) // 2).T], random_state)
                rows, keys = self.space.canonical(np.rint(children).astype(np.int64))
                new = rows[self.seen.add(keys, short)]
                found.append(new)
                short -= len(new)
        return np.concatenate(found)

    @cached_property
    def _highest(self) -> FloatArray:
        """The greatest value of each gene, (g,)."""
        return (self.space.gene_sizes - 1).astype(np.float64)

    def varied(self, parents: FloatArray, random_state: np.random.Generator) -> FloatArray:
        """Both children of parents (2, n, g), not yet rounded, first children first, (2 n, g)."""
        v, highest = self.variation, self._highest
        crossing: BoolArray = random_state.random((parents.shape[1],)) < v.crossover_probability
        if crossing.any():
            crossed = simulated_binary(parents, highest, v.crossover_eta, random_state)
            parents = np.where(crossing[:, None], crossed, parents)
        children = parents.reshape(-1, parents.shape[-1])
        changed = polynomial(children, highest, v.mutation_eta, random_state)
        mutating = random_state.random(len(children)) <= v.mutation_probability
        return np.where(mutating[:, None], changed, children)


def simulated_binary(
    parents: FloatArray, highest: FloatArray, eta: float, random_state: np.random.Generator
) -> FloatArray:
    """Children of parents (2, n, genes) by simulated binary crossover within [0, highest], of the same shape.

    Source: Deb and Agrawal 1995; to the last bit what pymoo's SBX makes of the same random numbers.
    """
    n, genes = parents.shape[1:]
    random_state.random((n, 1))  # pymoo's coin of exchanging children at all, which is always so
    crossed = random_state.random((n, genes)) < EACH_GENE
    crossed &= parents[0] != parents[1]
    at = crossed.reshape(-1).nonzero()[0]
    pair, ceiling = parents.reshape(2, -1)[:, at], highest[at % genes]
    first, second = pair
    low, high = np.minimum(first, second), np.maximum(first, second)
    chance, exchanged = random_state.random(len(at)), random_state.random(len(at)) < EACH_GENE
    spread, power, root = high - low, alike(-(eta + 1.0), len(at)), alike(1.0 / (eta + 1.0), len(at))
    room = np.empty(pair.shape)
    room[0], room[1] = low, ceiling - high
    alpha = 2.0 - np.power(1.0 + 2.0 * room / spread, power)
    reach = chance * alpha
    reach = np.power(np.where(chance <= 1.0 / alpha, reach, 1.0 / (2.0 - reach)), root) * spread
    outer = np.minimum(np.maximum(0.5 * (low + high + AWAY * reach), 0.0), ceiling)
    children = parents.copy()
    children.reshape(2, -1)[:, at] = np.where(exchanged, outer[::-1], outer)
    return children


def polynomial(genes: FloatArray, highest: FloatArray, eta: float, random_state: np.random.Generator) -> FloatArray:
    """Genes (n, genes) after polynomial mutation within [0, highest], one gene of each on average, of the same shape.

    Source: Deb and Goyal 1996; to the last bit what pymoo's PM makes of the same random numbers.
    """
    each = genes.shape[1]
    changed = random_state.random(genes.shape) < min(0.5, 1 / each)
    changed &= highest > 0
    at = changed.reshape(-1).nonzero()[0]
    values, ceiling = genes.reshape(-1)[at], highest[at % each]
    chance, power, root = random_state.random(len(at)), alike(eta + 1.0, len(at)), alike(1.0 / (eta + 1.0), len(at))
    down = chance <= 0.5
    share = np.where(down, chance, 1.0 - chance)
    left = 1.0 - np.where(down, values, ceiling - values) / ceiling
    step = np.power(2.0 * share + (1.0 - 2.0 * share) * np.power(left, power), root) - 1.0
    mutated = genes.copy()
    mutated.reshape(-1)[at] = np.minimum(np.maximum(values + np.where(down, step, -step) * ceiling, 0.0), ceiling)
    return mutated


@lru_cache(maxsize=1024)
def alike(exponent: float, n: int) -> FloatArray:
    """One exponent for each of n, (n,): of a single one numpy takes roots in another way."""
    return frozen(np.full(n, exponent))


def first_generation(context: StrategyContext, population: int, generator: np.random.Generator) -> IntArray:
    """The given designs and the best known ones, filled up to the population with a random sample: distinct, never short but by the space."""
    space, used = context.problem.space, context.seen()
    used.add(space.keys(context.start))
    first = np.concatenate([context.start, best_known(context, population)])
    drawn = draw_unseen(space.size, used, max(population - len(first), 0), generator)
    return np.concatenate([first, space.genotypes(drawn)])


def best_known(context: StrategyContext, most: int) -> IntArray:
    """Genotypes of so many known designs, by fronts, the least violating after all that are feasible; asking for them costs nothing."""
    if context.known is None:
        return context.start[:0]
    values, excess = context.known.values, np.maximum(context.known.violations, 0.0).sum(axis=1)
    ranks = np.zeros(len(values), dtype=np.int64)
    feasible = excess == 0
    if feasible.any():
        ranks[feasible] = pareto_rank(values[feasible])
    return context.known.genotypes[np.lexsort((ranks, excess))[:most]].astype(np.int64)


def content(evaluations: Evaluations) -> bytes:
    """The bytes of what a strategy receives, row by row: genotype, values, violations."""
    columns = np.column_stack([evaluations.genotypes, evaluations.values, evaluations.violations])
    return np.where(np.isnan(columns), np.nan, columns).astype("<f8").tobytes()
