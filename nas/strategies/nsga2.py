"""NSGA-II (Deb et al. 2002) on integer genes, new architectures only."""

from dataclasses import dataclass
from itertools import count

import numpy as np
from moocore import pareto_rank
from pydantic import Field

from nas.problem.evaluations import Evaluations, crowding_distance
from nas.search.archive import draw_unseen
from nas.search.strategy import StrategyContext, Traits
from nas.strategies._variation import FAILED, FEW, Brood, Variation, first_generation
from search_spaces.arrays import AnyArray, BoolArray, FloatArray, IntArray

TRAITS = Traits(seedable=True, asynchronous=True)

SHORT = 1000  # evaluations, below which small steps take too long


class Parameters(Variation):
    """Parameters of the strategy; the defaults suit axes of few values, where small real steps round to nothing."""

    population: int = Field(100, strict=True, ge=4, le=100_000, description="Individuals kept and bred from")
    offspring: int = Field(20, strict=True, ge=1, le=100_000, description="Individuals bred before the next selection")
    crossover_probability: float = Field(0.5, ge=0, le=1, description="Probability of crossing two parents")
    crossover_eta: float = Field(
        15.0, gt=0, le=1000, description="SBX distribution index; larger stays nearer the parents"
    )
    mutation_probability: float = Field(0.9, ge=0, le=1, description="Probability of mutating an offspring")
    mutation_eta: float = Field(5.0, gt=0, le=1000, description="Polynomial-mutation distribution index")

    def following(self, evaluations: int, designs: int) -> dict[str, float]:
        """The population, broods no larger than it, and below 1,000 evaluations larger mutation steps."""
        fitting = super().following(evaluations, designs)
        if "population" in fitting:
            fitting |= {"offspring": min(fitting["population"], self.offspring)}
            fitting |= {"mutation_eta": 3.0} if evaluations < SHORT else {}
        return fitting


@dataclass(frozen=True, eq=False)
class Individuals:
    """Genotypes (n, g), objective values (n, m), sums of violations (n,), and how far their neighbours are, (n,)."""

    genotypes: IntArray
    values: FloatArray
    violation: FloatArray
    crowding: FloatArray

    def __len__(self) -> int:
        return len(self.violation)

    def winners(self, pairs: IntArray, random_state: np.random.Generator) -> IntArray:
        """Of each pair of rows (n, 2) the less violating, the dominating, the less crowded, (n,); ties by a coin, in order."""
        first, second = rows = pairs.T
        values, crowding = self.values[rows], self.crowding[rows]
        better, worse = np.logical_or.reduce(values < values[::-1], axis=2)
        lead = sign(better, worse)
        lead = np.where(lead != 0, lead, compared(crowding[1], crowding[0]))
        if self.violation.any():
            sums, other_sums = self.violation[first], self.violation[second]
            lead = np.where((sums > 0) | (other_sums > 0), compared(sums, other_sums), lead)
        winner: IntArray = np.where(lead > 0, first, second)
        for tie in (lead == 0).nonzero()[0]:
            winner[tie] = pairs[tie, random_state.integers(2)]
        return winner


def compared(values: FloatArray, others: FloatArray) -> AnyArray:
    """1 where the first value is lower, −1 where the second is, 0 where neither, (n,); infinities too."""
    return sign(values < others, values > others)


def sign(yes: BoolArray, no: BoolArray) -> AnyArray:
    """1, −1 or, where both or neither hold, 0, (n,)."""
    found: AnyArray = yes.view(np.int8) - no.view(np.int8)
    return found


def survivors(
    values: FloatArray, violation: FloatArray, n: int, random_state: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Rows of the n best, (n,), and their crowding distances, of infeasible ones NaN, (n,).

    Feasible ones in the order of their fronts, of the front that does not fit the least crowded ones, ties in random
    order; then the least violating.
    """
    feasible, others = (violation <= 0).nonzero()[0], (violation > 0).nonzero()[0]
    ranks = pareto_rank(values[feasible]) if len(feasible) else feasible
    rows, distances, room = [others[:0]], [violation[:0]], min(n, len(feasible))
    for rank in count():
        if room == 0:
            break
        front = feasible[ranks == rank]
        crowding = crowding_distance(values[front])
        if len(front) > room:
            shuffled = random_state.permutation(len(front))
            chosen = shuffled[np.argsort(crowding[shuffled])][::-1][:room]
            front, crowding = front[chosen], crowding[chosen]
        rows.append(front)
        distances.append(crowding)
        room -= len(front)
    rest = others[np.argsort(violation[others])][: max(n - len(feasible), 0)]
    return np.concatenate([*rows, rest]), np.concatenate([*distances, np.full(len(rest), np.nan)])


class NSGA2:
    """A population, and its current offspring."""

    def __init__(self, context: StrategyContext, parameters: Parameters) -> None:
        self.space, self.seen, self.parameters = context.problem.space, context.seen(), parameters
        self.random_state, self.immigrants = context.generator, np.random.default_rng([context.seed, 1])
        self.brood = Brood(self.space, self.seen, parameters)
        self.far = Brood(self.space, self.seen, Variation())  # as the family varies, in larger steps
        self.evaluated = self.feasible = 0
        self.first = first_generation(context, parameters.population, self.immigrants)
        self.asynchronous, self.objectives = context.asynchronous, context.problem.objectives
        self.seen.add(self.space.keys(self.first))
        nothing = np.zeros(0)
        self.kept = Individuals(self.first[:0], np.zeros((0, len(context.problem.objectives))), nothing, nothing)

    def ask(self, at_most: int) -> IntArray:
        """The first generation, then broods; what mating cannot fill is drawn at random from what is left.

        Without waiting a brood is as large as there are idle workers (steady state).
        """
        first, self.first = self.first, self.first[:0]
        if len(first):
            return first
        size = min(self.parameters.offspring, at_most) if self.asynchronous else self.parameters.offspring
        bred = first
        if len(self.kept):
            brood = self.far if self._rare else self.brood
            bred = brood.bred(self.kept.genotypes.astype(np.float64), size, self._pairs, self.random_state)
        if len(bred) == size:
            return bred
        drawn = draw_unseen(self.space.size, self.seen, size - len(bred), self.immigrants)
        return np.concatenate([bred, self.space.genotypes(drawn)])

    @property
    def _rare(self) -> bool:
        """Whether few of the evaluated designs are feasible."""
        return self.feasible < self.parameters.rare * self.evaluated

    def _pairs(self, n: int) -> IntArray:
        """Rows of n pairs of parents, each the winner of a tournament of two, (n, 2)."""
        shuffled = [self.random_state.permutation(len(self.kept)) for _ in range(-(-4 * n // len(self.kept)))]
        contenders = (shuffled[0] if len(shuffled) == 1 else np.concatenate(shuffled))[: 4 * n].reshape(-1, 2)
        return self.kept.winners(contenders, self.random_state).reshape(-1, 2)

    def tell(self, evaluations: Evaluations) -> None:
        """Objective values, kept on the scale of the results, and violations; failed rows rank behind everything."""
        values, violations = evaluations.values, evaluations.violations
        excess = np.zeros((len(evaluations), violations.shape[1] + 1))
        excess[:, :-1] = np.maximum(violations, 0.0)
        if evaluations.reasons is not None:
            failed = ~evaluations.ok
            values[failed], excess[failed] = float(self.parameters.as_results), FAILED
        violation = excess.sum(axis=1)
        self.evaluated += len(violation)
        self.feasible += int((violation <= 0).sum())
        most = self.parameters.population if len(self.kept) else max(len(evaluations), self.parameters.population)
        most = min(most, FEW) if self._rare else most
        genotypes = np.concatenate([self.kept.genotypes, evaluations.genotypes])
        values = np.concatenate([self.kept.values, self.parameters.compared(self.objectives, values)])
        violation = np.concatenate([self.kept.violation, violation])
        rows, crowding = survivors(values, violation, most, self.random_state)
        self.kept = Individuals(genotypes[rows], values[rows], violation[rows], crowding)


def build(context: StrategyContext, parameters: Parameters) -> NSGA2:
    """The strategy from its context and parameters."""
    return NSGA2(context, parameters)
