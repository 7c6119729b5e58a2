"""The law `evidence` of a population of laboratories, with draws of one that is not among them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, qmc

from objectives.evidence.joint_form import FORM, NAMES, REFERENCE, coefficients, excess
from objectives.evidence.population import Population
from objectives.evidence.trainings import Trainings
from objectives.loss_law.law import Law
from search_spaces.arrays import FloatArray

OF_TOKENS = np.array([name in ("ln S_D", "ln b", "ln kappa") for name in NAMES])
DRAWS, SEED = 256, 20_261_124
RANGED = ("parameters", "active_parameters", "tokens", "n_experts", "top_k", "depth", "aspect_ratio")


@dataclass(frozen=True)
class Widening:
    """How many times as far from the population's mean draws are taken as laboratories lie: in what designs of equal tokens differ by, in what tokens bring."""

    designs: float = 1.0
    tokens: float = 1.0


def law_of(
    found: Population,
    widening: Widening,
    fitted_on: Mapping[str, tuple[float, float]],
    tokens: float = 1e10,
    **said: object,
) -> Law:
    """A law of the population's mean, whose draws are of a new laboratory, as far from it as `widening` says; `said` are further fields of the law."""
    draws = [" ".join(f"{value:.9g}" for value in row.values()) for row in drawn_coefficients(found, widening)]
    return Law.model_validate(
        {
            "form": FORM,
            "coefficients": dict(zip(FORM.coefficients, _row(found.mean, found.at_reference[0]), strict=True)),
            "fitted_on": dict(fitted_on),
            "tokens": tokens,
            "residual_sd": float(f"{widening.designs * found.misfit:.4g}"),
            "draws": tuple(draws),
            **said,
        }
    )


def drawn_coordinates(found: Population, widening: Widening, count: int = DRAWS) -> tuple[FloatArray, FloatArray]:
    """Coordinates of new laboratories (count, k) and their losses at the reference (count,), from scrambled Sobol points."""
    normal = normal_points(len(NAMES) + 1, count)
    apart = normal[:, :-1] @ np.linalg.cholesky(found.new).T
    theta = found.mean + np.where(OF_TOKENS, widening.tokens, widening.designs) * apart
    return theta, found.at_reference[0] + found.at_reference[1] * normal[:, -1]


def normal_points(dimensions: int, count: int = DRAWS) -> FloatArray:
    """Standard normal numbers of scrambled Sobol points, (count, dimensions)."""
    points = qmc.Sobol(dimensions, rng=np.random.default_rng(SEED)).random(count)
    return np.asarray(norm.ppf(np.clip(points, 1e-9, 1 - 1e-9)))


def drawn_coefficients(found: Population, widening: Widening) -> list[dict[str, float]]:
    """The same as coefficients of the form, in its order."""
    theta, at = drawn_coordinates(found, widening)
    return [dict(zip(FORM.coefficients, _row(each, loss), strict=True)) for each, loss in zip(theta, at, strict=True)]


def ranges(tables: Sequence[Trainings], *, with_experts: bool = False) -> dict[str, tuple[float, float]]:
    """Ranges of what decides the loss over the rows that were fitted, or those of them with experts, of tables that say it."""
    rows = [each.table[np.flatnonzero(each.fitted)] for each in tables if each.fitted.any()]
    if with_experts:
        sparse = [(table, np.flatnonzero(table.feature("n_experts") > 1)) for table in rows if table.has("n_experts")]
        rows = [table[kept] for table, kept in sparse if len(kept)]
    found = {}
    for name in RANGED:
        every = [
            float(end)
            for table in rows
            if table.has(name)
            for end in (table.feature(name).min(), table.feature(name).max())
        ]
        if every:
            found[name] = (float(f"{min(every):.4g}"), float(f"{max(every):.4g}"))
    return found


def _row(theta: FloatArray, at_reference: float) -> list[float]:
    """The form's coefficients in its order; the level is such that the loss at the reference is the given one."""
    found = coefficients(theta, at_reference - float(excess(theta, REFERENCE)[0]))
    return [float(f"{found[name]:.9g}") for name in FORM.coefficients]
