"""Optuna's samplers on integer genotypes through ask and tell: in memory, seeded, nothing proposed twice."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from nas.problem.evaluations import Evaluations
from nas.search.archive import KeyIndex, draw_unseen
from nas.search.strategy import StrategyContext
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from search_spaces.space import SearchSpace

Encoding = Literal["integers", "categories"]
Repeats = Literal["neighbour", "redraw"]
REPEATS = (
    "What becomes of a proposal that was evaluated before: an unseen neighbour of it, or another draw "
    "(a random unseen architecture when 8 draws are repeats)"
)
DRAWS: dict[Repeats, int] = {"neighbour": 1, "redraw": 8}


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

    A proposal outside the space is recorded as its repair; a repeat becomes an unseen neighbour or
    is drawn again, and a random unseen architecture when neither is left.
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
        """An unseen neighbour of a genotype (1, g) where wanted and left, else any unseen architecture."""
        generator = np.random.default_rng([self.seed, len(self.seen), 1])
        if self.repeats == "neighbour":
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
