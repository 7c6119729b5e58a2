"""A few dozen expensive evaluations: Bayesian ridge over the analytic prior, whose corrected frontier is solved again each round."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from nas.errors import UsageError
from nas.exact.solution import SMALL
from nas.problem.evaluations import Evaluations, joined
from nas.problem.problem import Problem
from nas.problem.uncertainty import FROM_LOSS
from nas.search.archive import KeyIndex, draw_unseen
from nas.search.strategy import ReportSection, StrategyContext, Traits
from nas.strategies._front import latin_hypercube
from nas.strategies._variation import content
from nas.study.metrics import diverse
from objectives.loss_law.law import Law
from plas_prior.corrected import LEAST, Corrected, Guess, Learner, as_known, enough_of, stopped_of
from plas_prior.learned_corrections import Lessons, lessons_of, section_of
from plas_prior.prior_columns import Designs, Wanted, described
from plas_prior.proposals import Proposals, front, normalised, promising
from search_spaces.arrays import IntArray

DRAWN = 20_000  # designs of a large space that a pool begins with
STEPS = (1 / 8, 1 / 16, 1 / 32, 0.0, 0.0, 0.0)  # of an axis, round by round; 0 is one value
PARENTS = 200  # of which the neighbours join the pool in a round


class Candidates:
    """Designs of a space with their shipped metrics; the same for the same seed and the same model."""

    def __init__(self, problem: Problem, seed: int, wanted: Wanted) -> None:
        self.problem, self.wanted = problem, wanted
        self.whole = problem.space.size <= SMALL
        size, draw = problem.space.size, np.random.default_rng([seed, problem.space.size])
        keys = np.arange(size) if self.whole else np.sort(draw_unseen(size, KeyIndex(), DRAWN, draw))
        self.reference = described(problem, keys, wanted)

    def holding(self, keys: IntArray) -> Designs:
        """Designs that some keys are of, in ascending order: the whole space, of a large one these alone."""
        return self.reference if self.whole else described(self.problem, np.unique(keys), self.wanted)

    def grown(
        self, keys: IntArray, guess: Callable[[Designs], Guess], confidence: float = 0.5
    ) -> tuple[Designs, Guess]:
        """The whole space and what is guessed of it; of a large one what was drawn of it, the designs of some keys, and their neighbours.

        The neighbours are those of what is on the guessed frontier, in ever smaller steps; every design is guessed once.
        """
        pool, known = self.reference, guess(self.reference)
        if self.whole:
            return pool, known
        pool, known = self._joined(pool, known, np.setdiff1d(keys, pool.keys), guess)
        for step in STEPS:
            best = pool.genotypes[front(known, confidence)[:PARENTS]]
            near = self.problem.space.keys(self.problem.space.neighbours(best, step))
            pool, known = self._joined(pool, known, np.setdiff1d(near, pool.keys), guess)
        order = np.argsort(pool.keys)
        return pool[order], Guess(known.values[order], known.holds[order])

    def _joined(
        self, pool: Designs, known: Guess, keys: IntArray, guess: Callable[[Designs], Guess]
    ) -> tuple[Designs, Guess]:
        """A pool followed by the designs of some keys, and what is guessed of both."""
        more = described(self.problem, keys, self.wanted)
        of = guess(more)
        values, holds = np.concatenate([known.values, of.values]), np.concatenate([known.holds, of.holds])
        return pool.followed_by(more), Guess(values, holds)


TRAITS = Traits(evaluations=100, cap=300, seedable=True, informed=True, asynchronous=True)


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    initial: int = Field(
        9, strict=True, ge=0, le=1000, description="Designs of the analytic frontier to start from, spread along it"
    )
    drawn: int = Field(3, strict=True, ge=0, le=1000, description="Designs of a Latin hypercube to start from besides")
    batch: int = Field(5, strict=True, ge=1, le=1000, description="Architectures proposed between two fits")
    few: int = Field(
        2,
        strict=True,
        ge=1,
        le=1000,
        description="Architectures proposed between two fits while designs left out are predicted badly, at most `batch`",
    )
    explored: int = Field(
        1,
        strict=True,
        ge=0,
        le=1000,
        description="Of a batch, at least so many are chosen by a draw from what the data allow",
    )
    confidence: float = Field(
        0.8, gt=0, lt=1, description="Least probability of holding the budgets, of designs not chosen by a draw"
    )


class PriorGuided:
    """Proposals follow from the seed and the evaluations alone: the log is its only state."""

    def __init__(self, context: StrategyContext, parameters: Parameters) -> None:
        self.problem, self.seed, self.start, self.parameters = context.problem, context.seed, context.start, parameters
        self.space = context.problem.space
        self.told = nothing(context.problem) if context.known is None else context.known
        self.pending = np.zeros(0, dtype=np.int64)
        self.rivals = context.rivals
        wanted = wanted_of(context)
        self.candidates = Candidates(self.problem, self.seed, wanted)
        self.learner = Learner(self.problem, self.candidates.reference, context.rivals, context.known_rows)

    def ask(self, at_most: int) -> IntArray:
        """First designs of the analytic frontier and a few drawn ones, then those that improve the corrected frontier most."""
        waiting = [len(self.pending)] if len(self.pending) else []
        generator, seen = np.random.default_rng([self.seed, len(self.told), *waiting]), KeyIndex()
        taken, enough = np.concatenate([self.told.keys, self.pending]), enough_of(self.told)
        seen.add(taken)
        if len(self.told) + len(self.pending) < LEAST and not enough:
            asked = self._first(generator, seen)
        elif len(
            given := self.start[seen.rows(self.space.keys(self.start)) < 0]
        ):  # evidence took the first batch's place
            asked = given
        else:
            most = min(self.parameters.batch, at_most) if waiting else self.parameters.batch
            chosen = self._improving(taken, most, generator) if enough else taken[:0]
            seen.add(chosen)
            drawn = draw_unseen(self.space.size, seen, 0 if len(chosen) else most, generator)
            asked = self.space.genotypes(np.concatenate([chosen, drawn]))
        self.pending = np.concatenate([self.pending, self.space.keys(asked)])
        return asked

    def tell(self, evaluations: Evaluations) -> None:
        """Keep what was found, in whichever order it comes."""
        self.pending = self.pending[~np.isin(self.pending, evaluations.keys)]
        self.told = joined(self.told, evaluations) if len(self.told) else evaluations

    def state(self) -> dict[str, Any]:
        """The number of evaluations, and their hash."""
        digest = hashlib.blake2b(content(self.told), digest_size=16).hexdigest() if len(self.told) else ""
        return {"told": len(self.told), "digest": digest}

    def restore(self, state: Mapping[str, Any], evaluations: Evaluations) -> bool:
        """Know these rows, if they are those that the state was taken after."""
        digest = hashlib.blake2b(content(evaluations), digest_size=16).hexdigest()
        if state != {"told": len(evaluations), "digest": digest}:
            return False
        self.told, self.pending = evaluations, self.pending[:0]
        return True

    def _first(self, generator: np.random.Generator, seen: KeyIndex) -> IntArray:
        """Given designs, some of the analytic frontier of each law, and a Latin hypercube; none that was seen."""
        start = self.start[seen.add(self.space.keys(self.start))]
        wanted = max(self.parameters.initial - len(start), 0)
        laws = (None, *self.rivals)
        shares = np.array_split(np.arange(wanted), len(laws))
        found = np.concatenate([self._analytic(len(some), law) for some, law in zip(shares, laws, strict=True)])
        found = found[seen.add(found)]
        short = wanted + self.parameters.drawn - len(found) + (len(start) == 0 and wanted == 0)
        cube = latin_hypercube(self.space, seen, short, generator)
        return np.concatenate([start, self.space.genotypes(found), cube])

    def _analytic(self, wanted: int, rival: Law | None) -> IntArray:
        """Keys of designs spread along the frontier before any evaluation, under a law of several (None: the study's own)."""
        guess = as_known(self.problem, rival)
        pool, known = self.candidates.grown(np.zeros(0, dtype=np.int64), guess)
        rows = front(known) if wanted and known.values.shape[1] else np.zeros(0, dtype=np.int64)
        rows = rows[np.isfinite(known.values[rows]).all(axis=1)]  # a rival may say nothing of any
        picked = rows[diverse(normalised(known.values[rows], known.values[rows]), wanted)] if len(rows) else rows
        return pool.keys[picked]

    def _improving(self, taken: IntArray, most: int, generator: np.random.Generator) -> IntArray:
        """Keys of a batch, or of its part that improves anything; of pending designs the expected values count.

        What a fidelity step stopped has reached nothing: what is near it may still improve the frontier.
        """
        corrected = self.learned(self.told)
        pool, guess = self.candidates.grown(taken, corrected.guess, self.parameters.confidence)
        stopped = stopped_of(self.told)
        if not self.candidates.whole:
            rows = promising(pool, guess, taken, self.parameters.confidence)
            pool, guess = pool[rows], Guess(guess.values[rows], guess.holds[rows])
        if stopped.any():
            rows = np.flatnonzero(~np.isin(pool.keys, self.told.keys[stopped]))
            pool, guess = pool[rows], Guess(guess.values[rows], guess.holds[rows])
        chances = self.parameters.confidence, self.parameters.explored
        proposals = Proposals(corrected, pool, guess, np.isin(pool.keys, taken), *chances, generator)
        return pool.keys[proposals.batch(most, self.parameters.few)]

    def learned(self, told: Evaluations) -> Corrected:
        """The problem as these evaluations let it appear."""
        return self.learner.learned(told, self.candidates.holding(told.keys))

    def lessons(self, told: Evaluations) -> Lessons | None:
        """Corrections of expensive metrics from these evaluations, and the frontier of the whole space that they predict."""
        if not enough_of(told):
            return None
        corrected = self.learned(told)
        if not corrected.models:
            return None
        pool, guess = self.candidates.grown(told.keys, corrected.guess, self.parameters.confidence)
        rows = front(guess, self.parameters.confidence)
        analytic = pool.keys[front(as_known(self.problem)(pool))]
        whole = told[~stopped_of(told)]  # a design that was stopped was not evaluated to the end
        return lessons_of(corrected, whole, pool[rows], analytic)

    def sections(self, told: Evaluations) -> tuple[ReportSection, ...]:
        """What was learned, for the answer."""
        lessons = self.lessons(told)
        return () if lessons is None else (section_of(self.problem, lessons),)


def wanted_of(context: StrategyContext) -> Wanted:
    """Columns that the search needs of every design: objectives, budgets and priors that are shipped, and predictions of alternative laws."""
    problem = context.problem
    own = {metric.name for metric in problem.functions}
    names = tuple(dict.fromkeys(name for name in (*problem.asked, *problem.priors) if name not in own))
    return Wanted(names, context.rivals, tuple(name for name in problem.priors if name in FROM_LOSS))


def nothing(problem: Problem) -> Evaluations:
    """No evaluation."""
    none = {name: np.zeros(0) for name in problem.metric_names}
    genotypes = problem.space.genotypes(np.zeros(0, dtype=np.int64))
    names = tuple(objective.name for objective in problem.objectives)
    return Evaluations(genotypes, np.zeros(0, dtype=np.int64), none, None, names, problem.budgets)


def build(context: StrategyContext, parameters: Parameters) -> PriorGuided:
    """The strategy from its context and parameters.

    Raises:
        UsageError: laws that tell nothing of what is to be learned.
    """
    if context.rivals and not set(context.problem.priors) & set(FROM_LOSS):
        raise UsageError(
            "laws: expected a metric of your own whose PRIOR is loss with several laws, got none; drop them, or add --algo exact"
        )
    return PriorGuided(context, parameters)
