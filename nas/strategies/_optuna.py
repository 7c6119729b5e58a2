"""Optuna's samplers on integer genotypes through ask and tell: in memory, seeded, nothing proposed twice."""

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseGASampler, BaseSampler
from optuna.storages import InMemoryStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from nas.problem.evaluations import Evaluations
from nas.record.folder import versions
from nas.search.archive import KeyIndex, draw_unseen
from nas.search.strategy import StrategyContext
from nas.strategies._variation import best_known, content
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from search_spaces.space import SearchSpace

Encoding = Literal["integers", "categories"]
Repeats = Literal["neighbour", "redraw"]
DRAWS: dict[Repeats, int] = {"neighbour": 1, "redraw": 8}
REPEATS = (
    "A proposal that was evaluated before is replaced by an unseen neighbour, "
    f"or drawn again until {DRAWS['redraw']} draws are repeats"
)


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna without log lines, experimental and deprecation warnings; its verbosity is put back."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def gene_distributions(space: SearchSpace, encoding: Encoding) -> dict[str, BaseDistribution]:
    """Genes as Optuna sees them: indices into ascending axes, ordered or not."""
    sizes = zip(space.genes, space.gene_sizes.tolist(), strict=True)
    if encoding == "integers":
        return {gene: IntDistribution(0, size - 1) for gene, size in sizes}
    return {gene: CategoricalDistribution(range(size)) for gene, size in sizes}


def usable(evaluations: Evaluations) -> BoolArray:
    """Rows that Optuna can take as complete: evaluated, every number finite, (n,)."""
    finite = np.isfinite(evaluations.values).all(axis=1) & np.isfinite(evaluations.violations).all(axis=1)
    found: BoolArray = evaluations.ok & finite
    return found


class OptunaStrategy(ABC):
    """A study in memory that holds exactly what was evaluated.

    A proposal outside the space is recorded as its repair. A repeat is drawn again or becomes an unseen
    neighbour, and a random unseen architecture when it has none.
    """

    def __init__(self, context: StrategyContext, encoding: Encoding, repeats: Repeats) -> None:
        self.space, self.seed, self.repeats = context.problem.space, context.seed, repeats
        self.distributions = gene_distributions(self.space, encoding)
        self.constraints = [budget.metric for budget in context.problem.budgets]
        self.start, self.seen = list(context.start), KeyIndex()
        self.pending: dict[int, Trial] = {}  # by the key of what was asked and is not told
        self.storage = InMemoryStorage()
        with quiet():
            directions = [StudyDirection.MINIMIZE] * len(context.problem.objectives)
            self.study = optuna.create_study(storage=self.storage, study_name="search", directions=directions)
        self.study_id = self.storage.get_study_id_from_name("search")

    def ask(self, at_most: int) -> IntArray:
        """New architectures, given designs first; fewer than wanted only when the space has no more."""
        genotypes = [self.space.genotypes(np.zeros(0, dtype=np.int64))]
        with quiet():
            for _ in range(self._wanted(at_most)):
                if len(proposed := self._propose()) == 0:
                    break
                genotypes.append(proposed)
        return np.concatenate(genotypes)

    def tell(self, evaluations: Evaluations) -> None:
        """Objective values and violations as constraints; failed rows fail their trials."""
        rows = zip(
            [self.pending.pop(key) for key in evaluations.keys.tolist()],
            usable(evaluations).tolist(),
            self._values(evaluations).tolist(),
            evaluations.violations.tolist(),
            strict=True,
        )
        with quiet():
            told = [self._finish(*row) for row in rows]
        self._learn(told)

    def _propose(self) -> IntArray:
        """One new architecture (1, g), its trial pending; none when the space has no more."""
        if len(self.seen) == self.space.size:
            return self.space.genotypes(np.zeros(0, dtype=np.int64))
        if self.start:
            self.study.enqueue_trial(self._parameters(self.start.pop(0)))
        for draw in range(DRAWS[self.repeats]):
            self.study.sampler = self._sampler(draw)
            trial = self.study.ask(self.distributions)
            values = trial.params
            drawn = np.array([[values[gene] for gene in self.space.genes]], dtype=np.int64)
            genotype = self.space.repair(drawn)
            if self.seen.add(self.space.keys(genotype))[0]:
                break
            if draw + 1 == DRAWS[self.repeats]:
                genotype = self._unseen(genotype)
            else:
                self.study.tell(trial, state=TrialState.FAIL)
        if len(genotype):
            self._record(trial, drawn[0], genotype[0])
            self.pending[int(self.space.keys(genotype)[0])] = trial
        return genotype

    def _unseen(self, genotype: IntArray) -> IntArray:
        """An unseen neighbour of a genotype (1, g) where one is left, else any unseen architecture."""
        generator = np.random.default_rng([self.seed, len(self.seen), 1])
        near = self.space.keys(self.space.neighbours(genotype))
        near = near[self.seen.rows(near) < 0]
        if len(near):
            key = generator.choice(near, size=1)
            self.seen.add(key)
            return self.space.genotypes(key)
        return self.space.genotypes(draw_unseen(self.space.size, self.seen, 1, generator))

    def _record(self, trial: Trial, drawn: IntArray, genotype: IntArray) -> None:
        """Make the trial say what will be evaluated instead of what was drawn."""
        trial_id = self.storage.get_trial_id_from_study_id_trial_number(self.study_id, trial.number)
        for i in np.flatnonzero(drawn != genotype):
            gene = self.space.genes[i]
            distribution = self.distributions[gene]
            value = distribution.to_internal_repr(int(genotype[i]))
            self.storage.set_trial_param(trial_id, gene, value, distribution)

    def _finish(self, trial: Trial, fit: bool, values: list[float], violations: list[float]) -> FrozenTrial:
        if not fit:
            return self.study.tell(trial, state=TrialState.FAIL)
        for name, violation in zip(self.constraints, violations, strict=True):
            trial.set_constraint(name, violation)
        return self.study.tell(trial, values)

    def _values(self, evaluations: Evaluations) -> FloatArray:
        """Objective values as the sampler sees them, (n, m)."""
        return evaluations.values

    def _parameters(self, genotype: IntArray) -> dict[str, int]:
        return dict(zip(self.space.genes, genotype.tolist(), strict=True))

    def _seeded(self, *parts: int) -> int:
        """A seed for Optuna from the run's seed and what distinguishes this draw."""
        return int(np.random.SeedSequence([self.seed, *parts]).generate_state(1)[0])

    @abstractmethod
    def _wanted(self, at_most: int) -> int:
        """How many architectures the next ask holds."""

    @abstractmethod
    def _sampler(self, draw: int) -> BaseSampler:
        """The sampler of the next draw."""

    def _learn(self, told: list[FrozenTrial]) -> None:  # noqa: B027  (most samplers keep nothing)
        """State that a batch leaves besides its trials."""


class GivenGenes(BaseSampler):
    """A sampler that is given its search space, which Optuna's own looks for among all trials at every draw."""

    genes: dict[str, BaseDistribution]

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The genes that it was given."""
        return self.genes


def with_choice(genes: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    """Every gene with a choice, sorted as Optuna sorts them."""
    return {name: genes[name] for name in sorted(genes) if not genes[name].single()}


class Lineage(GivenGenes, BaseGASampler):
    """A genetic sampler that breeds from the parents it is handed.

    Optuna's own looks for its generation and its parents among all trials at every draw, which costs
    the more the longer the study is.
    """

    born: list[FrozenTrial]
    families: dict[int, list[FrozenTrial]]

    def descend(
        self, study: Study, genes: dict[str, BaseDistribution], born: list[FrozenTrial], parents: list[FrozenTrial]
    ) -> list[FrozenTrial]:
        """The parents of the next generation, from the last one and its own parents; fewer than two breed nothing."""
        self.genes = with_choice(genes)
        self.born, self.families = born, {0: parents}
        chosen = self.select_parent(study, 1)
        self.families[1] = chosen if len(chosen) > 1 else []
        return chosen

    def get_trial_generation(self, study: Study, trial: FrozenTrial) -> int:
        """Always the one being bred."""
        return 1

    def get_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        """The generation before."""
        return self.born

    def get_parent_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        """The parents of the generation before (0) or of the one being bred (1)."""
        return self.families[generation]


class ByGeneration(OptunaStrategy):
    """A genetic sampler asked for a whole generation at a time; failed rows leave it smaller, not open.

    `make(seed)` builds the sampler.
    """

    def __init__(
        self, context: StrategyContext, repeats: Repeats, population: int, make: Callable[[int], Lineage]
    ) -> None:
        super().__init__(context, "integers", repeats)
        self.population, self.make = population, make
        chosen = best_known(context, population)
        self.start += list(chosen)
        if context.known is not None:
            self.seen.add(np.setdiff1d(context.known.keys, self.space.keys(chosen)))
        self.first = max(population, len(self.start))
        self.generation = 0
        self.parents: list[FrozenTrial] = []
        self._breed([])

    def _wanted(self, at_most: int) -> int:
        return self.first if self.generation == 0 else self.population

    def _sampler(self, draw: int) -> BaseSampler:
        return self.lineage

    def _breed(self, born: list[FrozenTrial]) -> None:
        """Select the parents of the next generation and seed its sampler."""
        with quiet():
            self.lineage = self.make(self._seeded(self.generation))
            self.parents = self.lineage.descend(self.study, self.distributions, born, self.parents)

    def _learn(self, told: list[FrozenTrial]) -> None:
        self.generation += 1
        self._breed([trial for trial in told if trial.state == TrialState.COMPLETE])


DECISIVE = ("numpy", "scipy", "optuna", "torch")


class OneByOne(OptunaStrategy):
    """A sampler that proposes one architecture at a time from all evaluations; `make(seed)` builds it.

    It is built again from the seed and the number of architectures so far, so that what is asked
    next follows from the seed and the log alone: `restore` needs no generator state and samples
    nothing.
    """

    def __init__(
        self,
        context: StrategyContext,
        encoding: Encoding,
        repeats: Repeats,
        batch: int,
        make: Callable[[int], BaseSampler],
    ) -> None:
        super().__init__(context, encoding, repeats)
        self.batch, self.make = batch, make
        self.told, self.digest = 0, hashlib.blake2b(digest_size=16)
        self.versions, self.known = versions(DECISIVE), context.known_rows
        if context.known is not None:
            self._take_over(context.known, 0)

    def _take_over(self, evaluations: Evaluations, known: int) -> None:
        """Evaluations become finished trials, but for the first, which are known; all of them reach the sampler."""
        self.told, self.digest = len(evaluations), hashlib.blake2b(content(evaluations), digest_size=16)
        self.seen.add(evaluations.keys)
        with quiet():
            self.study.add_trials(self._trials(evaluations[slice(known, None)]))

    def tell(self, evaluations: Evaluations) -> None:
        """Objective values and violations, kept count of."""
        super().tell(evaluations)
        self.told += len(evaluations)
        self.digest.update(content(evaluations))

    def state(self) -> dict[str, Any]:
        """The number of evaluations, their hash, and the versions of what decides the next proposal."""
        return {"told": self.told, "digest": self.digest.hexdigest(), "versions": self.versions}

    def restore(self, state: Mapping[str, Any], evaluations: Evaluations) -> bool:
        """The rows become the study's trials, if they are those that the state was taken after."""
        digest = hashlib.blake2b(content(evaluations), digest_size=16).hexdigest()
        if state != {"told": len(evaluations), "digest": digest, "versions": self.versions}:
            return False
        self._take_over(evaluations, self.known)
        self.start = [row for row in self.start if self.seen.rows(self.space.keys(row[None]))[0] < 0]
        return True

    def _trials(self, evaluations: Evaluations) -> list[FrozenTrial]:
        """Rows as the finished trials that asking and telling would have left."""
        violations = [dict(zip(self.constraints, row, strict=True)) for row in evaluations.violations.tolist()]
        parameters = [self._parameters(genotype) for genotype in evaluations.genotypes]
        values = self._values(evaluations).tolist()
        rows = zip(parameters, violations, values, usable(evaluations).tolist(), strict=True)
        return [
            create_trial(
                state=TrialState.COMPLETE if fit else TrialState.FAIL,
                params=params,
                distributions=self.distributions,
                values=values if fit else None,
                constraints=excess if fit else None,
            )
            for params, excess, values, fit in rows
        ]

    def _wanted(self, at_most: int) -> int:
        """A batch, or all given designs at once."""
        return min(max(self.batch, len(self.start)), at_most)

    def _sampler(self, draw: int) -> BaseSampler:
        return self.make(self._seeded(len(self.seen), draw))
