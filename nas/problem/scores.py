"""Scores of designs by curves over bits per byte, from the losses that a law predicts, its draws and its misfit."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nas.problem.objective import Baseline
from nas.problem.problem import Problem
from nas.problem.uncertainty import has_doubt, misfit
from objectives.scores import FamilyCurve, Scores, difference, interval, steps
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class FamilyScore:
    """One design's score of a family: median, 5 % and 95 % of what may be measured."""

    predicted: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class DesignScores:
    """Designs under curves: bits per byte (n,), infinite where the law says nothing of one.

    offset: bits per byte less b₀ under each draw, (draws, n); misfit: what a design is worth beside the law, in bits a byte, (n,).
    known: which lie within the evidence of a law that says how sure it is, (n,); of others no difference is claimed.
    """

    scores: Scores
    bits: FloatArray
    offset: FloatArray
    misfit: FloatArray
    known: BoolArray

    @property
    def outside(self) -> BoolArray:
        """Which lie outside of the table's bits per byte, (n,)."""
        return self.scores.outside(self.bits)

    def of(self, row: int) -> dict[str, FamilyScore]:
        """One design's scores by family; none where the law says nothing of it."""
        if not np.isfinite(self.bits[row]):
            return {}
        columns = {name: self.intervals(name, np.array([row])) for name in self.scores.families}
        return {name: FamilyScore(*(float(each[0]) for each in found)) for name, found in columns.items()}

    def intervals(self, family: str, rows: AnyArray) -> tuple[FloatArray, ...]:
        """Median, 5 % and 95 % of chosen designs, (rows,) each."""
        return interval(self._curve(family), self._draws(family)[:, rows], self.misfit[rows])

    def difference(self, family: str, of: int, other: int) -> FamilyScore | None:
        """How much higher one design's score is than another's; None where the score does not tell them apart, or nothing is claimed."""
        if not self.comparable(of, other):
            return None
        both = [of, other]
        found = difference(self._curve(family), self._draws(family)[:, both], self.misfit[both], 0, 1)
        return None if found is None else FamilyScore(*found)

    def comparable(self, of: int, other: int) -> bool:
        """Whether a difference of two designs may be claimed."""
        both = [of, other]
        return bool(self.known[both].all() and np.isfinite(self.bits[both]).all())

    def steps(self, family: str, rows: AnyArray) -> IntArray:
        """The step of each chosen design, (rows,): in one the score tells no design from its best one; -1 where none is claimed."""
        found, priced = np.full(len(rows), -1), np.isfinite(self.bits[rows]) & self.known[rows]
        kept = rows[priced]
        found[priced] = steps(self._curve(family), self._draws(family)[:, kept], self.misfit[kept])
        return found

    def _curve(self, family: str) -> FamilyCurve:
        return self.scores.families[family]

    def _draws(self, family: str) -> FloatArray:
        """Bits per byte less b₀, a row for each draw of the family's curve."""
        return self.offset[np.arange(len(self._curve(family).draws)) % len(self.offset)]


def design_scores(problem: Problem, scores: Scores, designs: Architectures) -> DesignScores:
    """Scores of any designs in the study's scenario.

    Raises:
        ValueError: a vocabulary of which bytes per token are not counted.
    """
    law, found = problem.scenario.law, problem.assess(designs)
    bits, loss = found["bits_per_byte"], found["loss"]
    with np.errstate(invalid="ignore"):
        held = np.where(np.isfinite(loss), bits / loss, np.nan)
    possible = law.spread_losses(designs) if law.draws else loss[None]
    known = ~law.extrapolates(designs) if has_doubt(law) else np.ones(len(designs), dtype=bool)
    with np.errstate(invalid="ignore"):
        return DesignScores(scores, bits, possible * held - scores.centre, misfit(law) * held, known)


def with_models(
    problem: Problem, scores: Scores, designs: Architectures, models: Sequence[Baseline]
) -> tuple[DesignScores, dict[str, int]]:
    """Scores of designs and of published models after them, and the place of each model; those that cannot be priced are left out.

    Raises:
        ValueError: a vocabulary of which bytes per token are not counted.
    """
    places, every = dict[str, int](), [designs]
    for known in models:
        design = problem.headed(known.architecture)
        try:
            bits = problem.assess(design)["bits_per_byte"]
        except ValueError:
            continue
        if np.isfinite(bits[0]):
            places[known.label] = len(designs) + len(places)
            every.append(design)
    return design_scores(problem, scores, Architectures.concatenate(every)), places
