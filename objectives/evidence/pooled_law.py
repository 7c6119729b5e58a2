"""The law `evidence` of a population of laboratories, with draws of one that is not among them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, qmc

from objectives.evidence.joint_form import FORM, NAMES, REFERENCE, coefficients, excess
from objectives.evidence.population import Population
from objectives.evidence.trainings import Trainings
from objectives.fitting.law_file import covered, fitted_ranges
from objectives.loss_law.coverage import DesignKind, Region
from objectives.loss_law.law import Law
from search_spaces.arrays import FloatArray

#: The coordinates that answer each question.
QUESTIONS = {
    "size": ("ln S_N", "ln a"),
    "experts": ("logit s", "h_split"),
    "shape": ("p", "ln q", "h_kv", "h_query"),
    "tokens": ("ln S_D", "ln b", "ln kappa"),
}
DRAWS, SEED = 256, 20_261_124


@dataclass(frozen=True)
class Widening:
    """How many times as far from the population's mean draws are taken as laboratories lie, by question; the misfit by that of `shape`."""

    size: float = 1.0
    experts: float = 1.0
    shape: float = 1.0
    tokens: float = 1.0

    @property
    def factors(self) -> FloatArray:
        """The factor of each coordinate, (k,)."""
        of = {name: getattr(self, question) for question, names in QUESTIONS.items() for name in names}
        return np.array([of[name] for name in NAMES])


def law_of(
    found: Population,
    widening: Widening,
    rows: Mapping[DesignKind, Region],
    tokens: float = 1e10,
    **said: object,
) -> Law:
    """A law of the population's mean, whose draws are of a new laboratory, as far from it as `widening` says; `said` are further fields of the law."""
    draws = [" ".join(f"{value:.9g}" for value in row.values()) for row in drawn_coefficients(found, widening)]
    return Law.model_validate(
        {
            "form": FORM,
            "coefficients": dict(zip(FORM.coefficients, _row(found.mean, found.at_reference[0]), strict=True)),
            "fitted_on": fitted_ranges(rows),
            "covers": {kind: region.model_dump() for kind, region in rows.items()},
            "tokens": tokens,
            "residual_sd": float(f"{widening.shape * found.misfit:.4g}"),
            "draws": tuple(draws),
            **said,
        }
    )


def drawn_coordinates(found: Population, widening: Widening, count: int = DRAWS) -> tuple[FloatArray, FloatArray]:
    """Coordinates of new laboratories (count, k) and their losses at the reference (count,), from scrambled Sobol points."""
    normal = normal_points(len(NAMES) + 1, count)
    apart = normal[:, :-1] @ np.linalg.cholesky(found.new).T
    theta = found.mean + widening.factors * apart
    return theta, found.at_reference[0] + found.at_reference[1] * normal[:, -1]


def normal_points(dimensions: int, count: int = DRAWS) -> FloatArray:
    """Standard normal numbers of scrambled Sobol points, (count, dimensions)."""
    points = qmc.Sobol(dimensions, rng=np.random.default_rng(SEED)).random(count)
    return np.asarray(norm.ppf(np.clip(points, 1e-9, 1 - 1e-9)))


def drawn_coefficients(found: Population, widening: Widening) -> list[dict[str, float]]:
    """The same as coefficients of the form, in its order."""
    theta, at = drawn_coordinates(found, widening)
    return [dict(zip(FORM.coefficients, _row(each, loss), strict=True)) for each, loss in zip(theta, at, strict=True)]


def covers(tables: Sequence[Trainings]) -> dict[DesignKind, Region]:
    """What the rows that were fitted cover, of dense designs and of those with experts."""
    return covered([each.table[np.flatnonzero(each.fitted)] for each in tables if each.fitted.any()])


def _row(theta: FloatArray, at_reference: float) -> list[float]:
    """The form's coefficients in its order; the level is such that the loss at the reference is the given one."""
    found = coefficients(theta, at_reference - float(excess(theta, REFERENCE)[0]))
    return [float(f"{found[name]:.9g}") for name in FORM.coefficients]
