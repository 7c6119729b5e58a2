"""Draws of a law's coefficients as its file holds them, those of other forms with their form, and differences of losses under them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from objectives.loss_law.form import Coefficients, Form
from objectives.loss_law.layer_deltas import Kind
from search_spaces.arrays import FloatArray

AT_ONCE = 8_192  # losses of a term: larger ones are slower, for the memory that they touch


def _is_row(text: str) -> str:
    try:
        finite = all(math.isfinite(float(number)) for number in text.split())
    except ValueError:
        finite = False
    if not finite:
        raise ValueError(f"expected finite numbers with spaces between, got {text[:40]!r}; correct the row")
    return text


Row = Annotated[str, AfterValidator(_is_row)]


class Rival(BaseModel):
    """Another form that the same data allow: draws of its coefficients, as many as its share of the evidence."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    form: str | Form
    draws: tuple[Row, ...] = Field(min_length=1)


@dataclass(frozen=True)
class Draw:
    """A form with its coefficients and what kinds of layers cost beside it, nats."""

    form: Form
    coefficients: dict[str, float]
    layer_deltas: Mapping[Kind, float]


def mixed(
    sources: Sequence[tuple[Form, Sequence[Row]]], deltas: Mapping[Kind, float], drawn: Mapping[Kind, Row]
) -> tuple[Draw, ...]:
    """The draws of each form, mixed so that the first few hold each form by its share; `drawn` are deltas in the order of the rows."""
    places = [(i + 0.5) / len(rows) for _, rows in sources for i in range(len(rows))]
    every = [(form, found) for form, rows in sources for found in _coefficients(form, rows)]
    numbers = {kind: [float(number) for number in row.split()] for kind, row in drawn.items()}
    return tuple(
        Draw(*every[at], {**deltas, **{kind: each[at] for kind, each in numbers.items()}})
        for at in sorted(range(len(every)), key=places.__getitem__)
    )


def _coefficients(form: Form, rows: Sequence[Row]) -> list[dict[str, float]]:
    """The coefficients that the rows of a law's file hold, by name."""
    names = form.coefficients
    return [dict(zip(names, map(float, row.split()), strict=True)) for row in rows]


def losses_without_kinds(
    draws: Sequence[Draw], n: int, values: Callable[[Form, Coefficients], Mapping[str, Any]]
) -> FloatArray:
    """The loss of n designs under each draw, what kinds of layers cost aside, nats, (draws, n).

    `values` gives a form's terms at coefficients (draws, 1): many draws are computed at once.
    """
    places: dict[int, list[int]] = {}
    for at, draw in enumerate(draws):
        places.setdefault(id(draw.form), []).append(at)
    found, most = np.empty((len(draws), n)), max(1, AT_ONCE // max(1, n))
    for every in places.values():
        form = draws[every[0]].form
        for some in (every[start : start + most] for start in range(0, len(every), most)):
            rows = [draws[at].coefficients for at in some]
            columns = {name: np.array([[row[name]] for row in rows]) for name in form.coefficients}
            found[some] = form.loss(np.asarray(sum(values(form, columns).values(), np.zeros(n))))
    return found


def draw_faults(
    needed: Sequence[str],
    covariance: Sequence[str],
    draws: Sequence[str],
    rivals: Sequence[tuple[Form, Sequence[str]]],
    *,
    tokens: bool,
) -> list[str]:
    """What is wrong with a law's rows of coefficients and those of its rivals; `tokens` tells whether the law has them."""
    own = [("covariance", needed, covariance), ("draws", needed, draws)]
    others = [(f"rivals[{i}].draws", list(form.coefficients), rows) for i, (form, rows) in enumerate(rivals)]
    faults = [
        f"{name}: expected {len(names)} numbers a row, {', '.join(names)}; correct it"
        for name, names, rows in (*own, *others)
        if any(len(row.split()) != len(names) for row in rows)
    ]
    if rivals and not draws:
        faults.append("rivals: expected draws of the law's own form beside those of others, got none; add them")
    if any("tokens" in form.features for form, _ in rivals) and not tokens:
        faults.append("tokens: expected the training tokens to predict for, as a rival has them; add them")
    if covariance and len(covariance) != len(needed):
        faults.append(f"covariance: expected {len(needed)} rows, got {len(covariance)}; correct it")
    return faults


def delta_faults(deltas: Mapping[Kind, float], drawn: Mapping[Kind, Row], draws: int) -> list[str]:
    """What is wrong with the deltas of a law's draws: of kinds without a delta, or not one a draw."""
    faults = [
        f"layer_delta_draws.{kind}: expected a kind of layer_deltas; remove it" for kind in drawn if kind not in deltas
    ]
    return faults + [
        f"layer_delta_draws.{kind}: expected {draws} numbers, one a draw, got {len(row.split())}; correct it"
        for kind, row in drawn.items()
        if len(row.split()) != draws
    ]


TRIMMED = 0.05  # of the draws at each end


def trimmed_mean(values: FloatArray) -> float:
    """Return the mean of values (draws,) without those at both ends, so that no draw decides it."""
    cut = int(TRIMMED * len(values))
    return float(np.sort(values)[cut : len(values) - cut].mean())


def spread(values: FloatArray) -> float:
    """Return what the standard deviation of values (draws,) is where they are normal: half of what the middle 68 % span."""
    low, high = np.quantile(values, [0.16, 0.84])
    return float(high - low) / 2.0


HALVINGS = 24  # of the range: to 1e-7 of it
FEW = 4_000  # values of a distribution function that Python finds as soon as scipy is imported
DIFFERENCES_AT_ONCE = 4_000_000  # draws of differences


def probability_below(gaps: FloatArray, sd: float, at: FloatArray | float = 0.0) -> FloatArray:
    """Probability that each difference is below a value, (n,); `gaps` (draws, n), `sd` of one design's misfit, nats. Equal ones count half.

    A draw gives a difference Δ_i; what designs are worth beside any law is a normal of sd σ each, the law's residual sd. So the
    difference is a mixture of normals about the Δ_i with sd √2 σ.
    """
    if sd > 0.0:
        below: FloatArray = _normal((at - gaps) / (np.sqrt(2.0) * sd)).mean(axis=0)
        return below
    return np.asarray(((gaps < at) + 0.5 * (gaps == at)).mean(axis=0))


def _normal(z: FloatArray) -> FloatArray:
    """Φ(z), of the same shape; of few values without scipy, which takes longer to import than the whole answer of a run to find."""
    if z.size > FEW:
        from scipy.special import ndtr

        return np.asarray(ndtr(z))
    values = map(math.erfc, (z / -math.sqrt(2.0)).ravel().tolist())
    return 0.5 * np.fromiter(values, dtype=np.float64, count=z.size).reshape(z.shape)


def difference_quantiles(gaps: FloatArray, sd: float, levels: tuple[float, ...]) -> FloatArray:
    """Quantiles of each difference, (levels, n), nats; `gaps` (draws, n), `sd` of one design's misfit.

    Where there is a misfit by bisection between the ends of the draws, widened by eight sds.
    """
    if sd == 0.0:
        return np.asarray(np.quantile(gaps, levels, axis=0))
    size, found = max(1, DIFFERENCES_AT_ONCE // len(gaps)), np.empty((len(levels), gaps.shape[1]))
    for start in range(0, gaps.shape[1], size):
        block = gaps[:, start : start + size]
        for row, level in zip(found, levels, strict=True):
            row[start : start + size] = _bisected(block, sd, level)
    return found


def _bisected(gaps: FloatArray, sd: float, level: float) -> FloatArray:
    low, high = gaps.min(axis=0) - 8.0 * np.sqrt(2.0) * sd, gaps.max(axis=0) + 8.0 * np.sqrt(2.0) * sd
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        less = probability_below(gaps, sd, middle) < level
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return np.asarray(0.5 * (low + high))
