"""A few dozen expensive evaluations: Bayesian ridge over the analytic prior, whose corrected frontier is solved anew each round."""

import hashlib
from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from nas.frontier.dominance import non_dominated
from nas.frontier.preferences import diverse
from nas.problem.evaluations import Evaluations, joined
from nas.search.key_index import KeyIndex
from nas.search.strategy import Brief, Lessons, Traits
from nas.search.unseen import draw_unseen
from nas.strategies._candidates import Candidates
from nas.strategies._corrected import Corrected, Guess, Learner, as_known
from nas.strategies._improvement import most_improving
from nas.strategies._lessons import lessons_of
from nas.strategies._prior_columns import Designs
from nas.strategies._space_filling import latin_hypercube
from nas.strategies._told import content
from search_spaces.arrays import BoolArray, FloatArray, IntArray

TRAITS = Traits(evaluations=100, cap=300, seedable=True, informed=True)
LEAST = 4  # evaluations that did not fail, below which nothing is learned
COMPARED = 300  # designs whose gain is measured
DRAWN_NEAR = 250  # designs near the corrected frontier, and as many others, of which one state of affairs is drawn


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    initial: int = Field(
        9, strict=True, ge=0, le=1000, description="Designs of the analytic frontier to start from, spread along it"
    )
    drawn: int = Field(3, strict=True, ge=0, le=1000, description="Designs of a Latin hypercube to start from besides")
    batch: int = Field(5, strict=True, ge=1, le=1000, description="Architectures asked for between two fits")
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
    """What it asks follows from the seed and everything told alone: the log is its only state."""

    def __init__(self, brief: Brief, parameters: Parameters) -> None:
        self.problem, self.seed, self.start, self.parameters = brief.problem, brief.seed, brief.start, parameters
        self.space = brief.problem.space
        self.told, self.known = brief.known, brief.known_rows
        self.candidates = Candidates(self.problem, self.seed, shipped(brief))
        self.learner = Learner(self.problem, self.candidates.reference)

    def ask(self, at_most: int) -> IntArray:
        """First designs of the analytic frontier and a few drawn ones, then those that improve the corrected frontier most."""
        generator, seen = np.random.default_rng([self.seed, self._count]), KeyIndex()
        if self.told is not None:
            seen.add(self.told.keys)
        if self.told is None or self._count == self.known < LEAST:
            return self._first(generator, seen)
        if len(
            given := self.start[seen.rows(self.space.keys(self.start)) < 0]
        ):  # known results took the first batch's place
            return given
        chosen = self._improving(self.told, generator) if self.told.ok.sum() >= LEAST else self.told.keys[:0]
        seen.add(chosen)
        short = self.parameters.batch - len(chosen)
        drawn = draw_unseen(self.space.size, seen, short, generator)
        return self.space.genotypes(np.concatenate([chosen, drawn]))

    @property
    def _count(self) -> int:
        return 0 if self.told is None else len(self.told)

    def tell(self, evaluations: Evaluations) -> None:
        """Keep what was found."""
        self.told = evaluations if self.told is None else joined(self.told, evaluations)

    def state(self) -> dict[str, Any]:
        """How many rows were told, and their hash."""
        digest = "" if self.told is None else hashlib.blake2b(content(self.told), digest_size=16).hexdigest()
        return {"told": self._count, "digest": digest}

    def restore(self, state: Mapping[str, Any], evaluations: Evaluations) -> bool:
        """Know these rows, if they are those that the state was taken after."""
        digest = hashlib.blake2b(content(evaluations), digest_size=16).hexdigest()
        if state != {"told": len(evaluations), "digest": digest}:
            return False
        self.told = evaluations
        return True

    def _first(self, generator: np.random.Generator, seen: KeyIndex) -> IntArray:
        """Given designs, some of the analytic frontier, and a Latin hypercube."""
        seen.add(self.space.keys(self.start))
        wanted = max(self.parameters.initial - len(self.start), 0)
        guess = as_known(self.problem)
        pool = self.candidates.grown(self.candidates.reference, lambda designs: front(guess(designs)))
        known = guess(pool)
        rows = front(known) if wanted and known.values.shape[1] else np.zeros(0, dtype=np.int64)
        picked = rows[diverse(normalised(known.values[rows], known.values[rows]), wanted)] if len(rows) else rows
        keys = pool.keys[picked]
        keys = keys[seen.add(keys)]
        short = wanted + self.parameters.drawn - len(keys) + (len(self.start) == 0 and wanted == 0)
        cube = latin_hypercube(self.space, seen, short, generator)
        return np.concatenate([self.start, self.space.genotypes(keys), cube])

    def _improving(self, told: Evaluations, generator: np.random.Generator) -> IntArray:
        """Keys of a batch, or of what of it improves anything."""
        corrected = self.learned(told)
        pool = self._pool(told, corrected)
        explored = min(self.parameters.explored, self.parameters.batch)
        guess, known = corrected.guess(pool), np.isin(pool.keys, told.keys)
        chosen = self._best(guess, pool, known, self.parameters.batch - explored, generator)
        for _ in range(
            self.parameters.batch - len(chosen)
        ):  # more than asked for where little improves what is expected
            rows = self._worth_a_draw(guess, known, chosen, generator)
            some = pool[rows]
            one = self._best(corrected.drawn(some, generator), some, known[rows], 1, generator)
            chosen = np.concatenate([chosen, rows[one]])
        return pool.keys[chosen]

    def learned(self, told: Evaluations) -> Corrected:
        """The problem as these evaluations let it appear."""
        return self.learner.learned(told, self.candidates.holding(told.keys))

    def lessons(self, told: Evaluations) -> Lessons | None:
        """What these evaluations teach of expensive metrics, and the frontier of the whole space as it is then expected to be."""
        if told.ok.sum() < LEAST:
            return None
        corrected = self.learned(told)
        if not corrected.models:
            return None
        pool = self._pool(told, corrected)
        rows = front(corrected.guess(pool), self.parameters.confidence)
        return lessons_of(corrected, told, pool[rows], pool.keys[front(as_known(self.problem)(pool))])

    def _pool(self, told: Evaluations, corrected: Corrected) -> Designs:
        """Designs that may be asked for, and those told."""
        liked = lambda designs: front(corrected.guess(designs), self.parameters.confidence)  # noqa: E731
        return self.candidates.grown(self.candidates.holding(told.keys), liked)

    def _worth_a_draw(
        self, guess: Guess, known: BoolArray, chosen: IntArray, generator: np.random.Generator
    ) -> IntArray:
        """Rows of what was told, of unseen designs near the corrected frontier, and of others, without those chosen."""
        unseen = np.setdiff1d(np.flatnonzero(~known & (guess.holds > 0)), chosen)
        best = guess.values[front(guess, self.parameters.confidence)]
        best = best if len(best) <= COMPARED else generator.choice(best, COMPARED, replace=False)
        points, ends = normalised(guess.values[unseen], best), normalised(best, best)
        behind = np.full(len(unseen), np.inf)
        for end in ends:
            behind = np.minimum(behind, reduce(np.maximum, (points - end).T))
        nearest = np.argsort(behind, kind="stable")[:DRAWN_NEAR]
        others = generator.permutation(np.delete(np.arange(len(unseen)), nearest))[:DRAWN_NEAR]
        return np.concatenate([np.flatnonzero(known), unseen[nearest], unseen[others]])

    def _best(
        self, guess: Guess, pool: Designs, known: BoolArray, count: int, generator: np.random.Generator
    ) -> IntArray:
        """Rows of unseen designs that improve most on what is known, likely within the budgets; else the likeliest."""
        likely = guess.holds >= self.parameters.confidence
        rows = np.flatnonzero(~known & likely)
        if not len(rows):
            rows = np.flatnonzero(~known & pool.ok)
            return rows[np.argsort(-guess.holds[rows], kind="stable")[:count]]
        rows = rows[non_dominated(guess.values[rows])]
        reached = np.flatnonzero(known & likely)
        ends = guess.values[np.concatenate([rows, reached])]
        ends = ends[non_dominated(ends)]
        if len(rows) > COMPARED:
            rows = np.sort(generator.choice(rows, COMPARED, replace=False))
        points, before = normalised(guess.values[rows], ends), normalised(guess.values[reached], ends)
        return rows[most_improving(points, before, count)]


def shipped(brief: Brief) -> tuple[str, ...]:
    """The shipped metrics that the search needs of every design: objectives, budgets, priors."""
    problem = brief.problem
    own = {metric.name for metric in problem.functions}
    asked = (*(o.name for o in problem.objectives), *(b.metric for b in problem.budgets), *problem.priors)
    return tuple(dict.fromkeys(name for name in asked if name not in own))


def front(guess: Guess, confidence: float = 0.5) -> IntArray:
    """Rows that are likely within the budgets and that no other such row dominates; else those likeliest within."""
    rows = np.flatnonzero(guess.holds >= confidence)
    if not len(rows):
        return np.argsort(-guess.holds, kind="stable")[:LEAST]
    return rows[non_dominated(guess.values[rows])]


def normalised(values: FloatArray, ends: FloatArray) -> FloatArray:
    """Values (n, m) with the best of some others at 0 and the worst at 1."""
    low, high = ends.min(axis=0), ends.max(axis=0)
    found: FloatArray = (values - low) / np.where(high > low, high - low, 1.0)
    return found


def build(brief: Brief, parameters: Parameters) -> PriorGuided:
    """The strategy from its brief and parameters."""
    return PriorGuided(brief, parameters)
