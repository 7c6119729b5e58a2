"""A few dozen expensive evaluations: Bayesian ridge over the analytic prior, whose corrected frontier is solved again each round."""

import hashlib
from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from nas.errors import UsageError
from nas.problem.dominance import non_dominated
from nas.problem.evaluations import Evaluations, joined
from nas.problem.problem import Problem
from nas.search.distinct_sampling import draw_unseen
from nas.search.key_index import KeyIndex
from nas.search.strategy import Lessons, StrategyContext, Traits
from nas.strategies._candidates import Candidates
from nas.strategies._corrected import LEAST, Corrected, Guess, Learner, as_known, stopped_of
from nas.strategies._improvement import most_improving
from nas.strategies._known import known_of, known_rows, refuse_without_values
from nas.strategies._learned_corrections import lessons_of
from nas.strategies._observed_bytes import content
from nas.strategies._prior_columns import OF_LAW, Designs, Wanted
from nas.strategies._space_filling import latin_hypercube
from nas.study.preferences import diverse
from objectives.loss_law.law import Law
from search_spaces.arrays import BoolArray, FloatArray, IntArray

TRAITS = Traits(evaluations=100, cap=300, seedable=True, informed=True, asynchronous=True)
COMPARED = 300  # designs whose gain is measured
DRAWN_NEAR = 250  # designs near the corrected frontier, and as many others, of which one state of affairs is drawn


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    initial: int = Field(
        9, strict=True, ge=0, le=1000, description="Designs of the analytic frontier to start from, spread along it"
    )
    drawn: int = Field(3, strict=True, ge=0, le=1000, description="Designs of a Latin hypercube to start from besides")
    batch: int = Field(5, strict=True, ge=1, le=1000, description="Architectures proposed between two fits")
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
    evidence_as: dict[str, str] = Field(
        {}, description="Which column of the evidence is a metric's value, by metric, where it is not called so"
    )
    evidence: list[dict[str, Any]] = Field(
        [],
        description="Results that only teach: a table, a run folder, a folder of trainings, a list of these, or rows",
    )

    @field_validator("evidence", mode="before")
    @classmethod
    def _read(cls, given: Any, info: ValidationInfo) -> list[dict[str, Any]]:
        """Rows in the place of files, so that a recorded study holds them."""
        return known_rows(given, info.data.get("evidence_as", {}).values())


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
        known = known_of(self.problem, parameters.evidence, parameters.evidence_as, wanted)
        self.learner = Learner(self.problem, self.candidates.reference, known, context.rivals, context.known_rows)
        self.held = np.zeros(0, dtype=np.int64) if known is None else known.complete(self.problem)

    def ask(self, at_most: int) -> IntArray:
        """First designs of the analytic frontier and a few drawn ones, then those that improve the corrected frontier most."""
        waiting = [len(self.pending)] if len(self.pending) else []
        generator, seen = np.random.default_rng([self.seed, len(self.told), *waiting]), KeyIndex()
        taken, enough = np.concatenate([self.told.keys, self.pending, self.held]), self.learner.enough(self.told)
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
            drawn = draw_unseen(self.space.size, seen, most - len(chosen), generator)
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
        pool = self.candidates.grown(self.candidates.reference, lambda designs: front(guess(designs)))
        known = guess(pool)
        rows = front(known) if wanted and known.values.shape[1] else np.zeros(0, dtype=np.int64)
        rows = rows[np.isfinite(known.values[rows]).all(axis=1)]  # a rival may say nothing of any
        picked = rows[diverse(normalised(known.values[rows], known.values[rows]), wanted)] if len(rows) else rows
        return pool.keys[picked]

    def _improving(self, taken: IntArray, most: int, generator: np.random.Generator) -> IntArray:
        """Keys of a batch, or of its part that improves anything; of pending designs the expected values count.

        What a fidelity step stopped has reached nothing: what is near it may still improve the frontier.
        """
        corrected = self.learned(self.told)
        pool = self._pool(taken, corrected)
        guess, stopped = corrected.guess(pool), stopped_of(self.told)
        if stopped.any():
            rows = np.flatnonzero(~np.isin(pool.keys, self.told.keys[stopped]))
            pool, guess = pool[rows], Guess(guess.values[rows], guess.holds[rows])
        known = np.isin(pool.keys, taken)
        chosen = self._best(guess, pool, known, most - min(self.parameters.explored, most), generator)
        for _ in range(most - len(chosen)):  # more than asked for where little improves what is expected
            rows = self._worth_a_draw(guess, known, chosen, generator)
            some = pool[rows]
            one = self._best(corrected.drawn(some, generator), some, known[rows], 1, generator)
            chosen = np.concatenate([chosen, rows[one]])
        return pool.keys[chosen]

    def learned(self, told: Evaluations) -> Corrected:
        """The problem as these evaluations let it appear."""
        return self.learner.learned(told, self.candidates.holding(told.keys))

    def lessons(self, told: Evaluations) -> Lessons | None:
        """Corrections of expensive metrics from these evaluations, and the frontier of the whole space that they predict."""
        if not self.learner.enough(told):
            return None
        corrected = self.learned(told)
        if not corrected.models:
            return None
        pool = self._pool(told.keys, corrected)
        rows = front(corrected.guess(pool), self.parameters.confidence)
        analytic = pool.keys[front(as_known(self.problem)(pool))]
        whole = told[~stopped_of(told)]  # a design that was stopped was not evaluated to the end
        return lessons_of(corrected, whole, pool, pool[rows], analytic, self.parameters.confidence)

    def _pool(self, taken: IntArray, corrected: Corrected) -> Designs:
        """Designs that may be proposed, and those that were."""
        liked = lambda designs: front(corrected.guess(designs), self.parameters.confidence)  # noqa: E731
        return self.candidates.grown(self.candidates.holding(taken), liked)

    def _worth_a_draw(
        self, guess: Guess, known: BoolArray, chosen: IntArray, generator: np.random.Generator
    ) -> IntArray:
        """Rows of the evaluated designs, of unseen ones near the corrected frontier, and of others, without those chosen."""
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


def wanted_of(context: StrategyContext) -> Wanted:
    """Columns that the search needs of every design: objectives, budgets and priors that are shipped, and predictions of alternative laws."""
    problem = context.problem
    own = {metric.name for metric in problem.functions}
    asked = (*(o.name for o in problem.objectives), *(b.metric for b in problem.budgets), *problem.priors)
    names = tuple(dict.fromkeys(name for name in asked if name not in own))
    return Wanted(names, context.rivals, tuple(name for name in problem.priors if name in OF_LAW))


def nothing(problem: Problem) -> Evaluations:
    """No evaluation."""
    none = {name: np.zeros(0) for name in problem.metric_names}
    genotypes = problem.space.genotypes(np.zeros(0, dtype=np.int64))
    names = tuple(objective.name for objective in problem.objectives)
    return Evaluations(genotypes, np.zeros(0, dtype=np.int64), none, None, names, problem.budgets)


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


def build(context: StrategyContext, parameters: Parameters) -> PriorGuided:
    """The strategy from its context and parameters.

    Raises:
        UsageError: evidence or laws that tell nothing of what is to be learned.
    """
    refuse_without_values(context.problem, parameters.evidence, parameters.evidence_as)
    if context.rivals and not set(context.problem.priors) & set(OF_LAW):
        raise UsageError(
            "laws: expected a metric of your own whose PRIOR is loss with several laws, got none; drop them, or add --algo exact"
        )
    return PriorGuided(context, parameters)
