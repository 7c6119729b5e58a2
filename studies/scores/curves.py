"""Curves of a family's score over bits per byte, with draws of a laboratory that nobody has seen, and what they predict.

score = chance + (top − chance) · σ(level − slope · (b − b₀)) plus a normal residual, b bits per byte; level and slope differ from draw to draw.
"""

from statistics import NormalDist
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from objectives.quantities import Name
from search_spaces.arrays import BoolArray, FloatArray, IntArray

Count = Annotated[int, Field(ge=1, le=10**9)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class FamilyCurve(BaseModel):
    """The curve of one family: the mean of its tasks, in their own unit.

    draws: level, slope per bit a byte and the sd of the residual, each of a laboratory. models: how many it was fitted to.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    tasks: Annotated[list[Name], Field(min_length=1, max_length=1000)]
    chance: Finite = 0.0
    top: Finite = 1.0
    models: Count
    draws: Annotated[list[tuple[Finite, Positive, Positive]], Field(min_length=1, max_length=10_000)]

    @model_validator(mode="after")
    def _ordered(self) -> "FamilyCurve":
        if not self.chance < self.top:
            raise ValueError(f"top: expected more than chance, {self.chance:g}, got {self.top:g}; correct one of them")
        return self

    @property
    def columns(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Levels, slopes and residual sds of the draws, (draws, 1) each."""
        level, slope, sd = np.array(self.draws).T[..., None]
        return level, slope, sd

    def scores(self, offset: FloatArray) -> FloatArray:
        """Expected scores under each draw, (draws, n), at bits per byte less b₀, (n,) or (draws, n)."""
        level, slope, _ = self.columns
        return self.chance + (self.top - self.chance) / (1.0 + np.exp(-(level - slope * offset)))

    def changes(self, expected: FloatArray) -> FloatArray:
        """How much each expected score, (draws, n), falls per bit a byte, (draws, n)."""
        share = (expected - self.chance) / (self.top - self.chance)
        return (self.top - self.chance) * self.columns[1] * share * (1.0 - share)


class Record(BaseModel):
    """How a family's scores of laboratories left out were predicted: RMSE by the curve, by the mean of the others, by the nearest of them in bits per byte.

    inside: share of the scores in the 90 % interval.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    rmse: Finite
    mean_rmse: Finite
    nearest_rmse: Finite
    inside: Finite

    @property
    def best(self) -> bool:
        """Whether the curve is better than both rules that need none."""
        return self.rmse < min(self.mean_rmse, self.nearest_rmse)


class Scores(BaseModel):
    """What a table of models says of scores.

    text: that the table's bits per byte are of, "" where it does not say. centre: b₀. fitted_on: its range of bits per byte.
    new_laboratory: whether the draws are of a laboratory that is not in the table; else of further models of the one that is.
    source: where the table is from. left_out: by family, how well laboratories left out were predicted; none of one laboratory.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Name
    text: str = ""
    centre: Finite
    fitted_on: tuple[Positive, Positive]
    models: Count
    laboratories: Annotated[list[Name], Field(min_length=1, max_length=10_000)]
    new_laboratory: bool
    families: Annotated[dict[Name, FamilyCurve], Field(min_length=1, max_length=1000)]
    source: dict[str, Any] = {}
    left_out: dict[Name, Record] = {}

    def outside(self, bits: FloatArray) -> BoolArray:
        """Which bits per byte lie outside of the table's range, (n,)."""
        low, high = self.fitted_on
        found: BoolArray = (bits < low) | (bits > high)
        return found

    def mapping(self) -> dict[str, Any]:
        """Plain content."""
        return self.model_dump(mode="json")


ENDS = (0.05, 0.95)
NODES = 20
NORMALS = np.array([NormalDist().inv_cdf((i + 0.5) / NODES) for i in range(NODES)])  # that stand for a normal residual
APART = 0.95  # probability from which on two designs are told apart
BLOCK = 500


def interval(curve: FamilyCurve, offset: FloatArray, misfit: FloatArray | None = None) -> tuple[FloatArray, ...]:
    """The median expected score, and where 5 % and 95 % of measured ones lie, (n,) each.

    offset: bits per byte less b₀, (n,) or (draws, n); misfit: sd of them that each design has for itself, (n,).
    """
    expected = curve.scores(offset)
    sd = spread(curve, expected, misfit)
    low, high = _quantiles(expected, sd)
    least = min(0.0, curve.chance)
    return np.median(expected, axis=0), np.clip(low, least, curve.top), np.clip(high, least, curve.top)


def spread(curve: FamilyCurve, expected: FloatArray, misfit: FloatArray | None) -> FloatArray:
    """The sd of measured scores about their expectations, (draws, n) both."""
    own = np.broadcast_to(curve.columns[2], expected.shape)
    return own if misfit is None else np.asarray(np.hypot(own, curve.changes(expected) * misfit))


def difference(
    curve: FamilyCurve, offset: FloatArray, misfit: FloatArray | None, of: int, other: int
) -> tuple[float, float, float] | None:
    """How much higher one design's measured score is than another's: median, 5 % and 95 %, in one laboratory; None where it is not told apart."""
    expected = curve.scores(offset)
    sd = spread(curve, expected, misfit)
    gap, both = (expected[:, of] - expected[:, other])[:, None], np.hypot(sd[:, of], sd[:, other])[:, None]
    if max(probability := float(_above(gap, both)[0]), 1.0 - probability) < APART:
        return None
    low, high = _quantiles(gap, both)
    return float(np.median(gap)), float(low[0]), float(high[0])


def steps(curve: FamilyCurve, offset: FloatArray, misfit: FloatArray | None) -> IntArray:
    """The step of each design, (n,), from the highest expected score: in a step the score tells no design from its first one."""
    expected = curve.scores(offset)
    sd = spread(curve, expected, misfit)
    left = np.argsort(-np.median(expected, axis=0), kind="stable")
    found, number = np.full(expected.shape[1], -1), 0
    while len(left):
        first = left[0]
        apart: BoolArray = (
            _above(expected[:, [first]] - expected[:, left], np.hypot(sd[:, [first]], sd[:, left])) >= APART
        )
        apart[0] = False
        found[left[~apart]], left, number = number, left[apart], number + 1
    return found


def _above(gaps: FloatArray, sd: FloatArray) -> FloatArray:
    """The probability that each difference is above 0, (n,); gaps and sd (draws, n)."""
    from scipy.special import ndtr

    found: FloatArray = ndtr(gaps / sd).mean(axis=0)
    return found


def _quantiles(expected: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """5 % and 95 % of expectation and residual together, (n,) each."""
    blocks = [slice(start, start + BLOCK) for start in range(0, expected.shape[1], BLOCK)]
    found = [
        np.quantile(
            (expected[:, at, None] + sd[:, at, None] * NORMALS)
            .transpose(0, 2, 1)
            .reshape(-1, expected[:, at].shape[1]),
            ENDS,
            axis=0,
        )
        for at in blocks
    ]
    low, high = np.concatenate(found, axis=1)
    return low, high
