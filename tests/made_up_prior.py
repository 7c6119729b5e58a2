"""A made-up population of laboratories: its law as a prior, and trainings whose losses follow the joint form."""

from collections.abc import Mapping

import numpy as np

from objectives.loss_law.coverage import DesignKind, Region
from objectives.loss_law.law import Law
from plas_fit.evidence.joint_form import FORM, NAMES, REFERENCE, Trainings, coefficients, excess, trainings
from plas_fit.evidence.posterior import Belief
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import FloatArray

CENTRE = np.array(
    [np.log(0.12), np.log(0.3), -0.2, np.log(0.15), np.log(0.33), np.log(2.0), 0.0, np.log(0.015), 0.0, -0.02]
)
SD = np.array([0.2598, 0.3231, 0.4272, 0.2598, 0.3231, 0.3354, 0.0418, 0.4386, 0.0313, 0.0219])
SHARED_SD = 0.15  # of what a factor of parameters and one of tokens are worth together
LEVEL, LEVEL_SD = 2.9, 0.25  # nats at the reference


def covariance() -> FloatArray:
    """How laboratories differ, (k, k)."""
    shared = np.zeros(len(NAMES))
    shared[[NAMES.index("ln S_N"), NAMES.index("ln S_D")]] = SHARED_SD
    return np.asarray(np.diag(SD**2 - shared**2) + np.outer(shared, shared))


def prior_law(covers: Mapping[DesignKind, Region]) -> Law:
    """The law of that population, with draws of new laboratories."""
    whole = np.zeros((len(NAMES) + 1, len(NAMES) + 1))
    whole[:-1, :-1], whole[-1, -1] = covariance(), LEVEL_SD**2
    drawn = Belief(np.append(CENTRE, LEVEL), whole, 0.01, whole).drawn()
    ends = {name: limits for region in covers.values() for name, limits in region.ranges.items()}
    rows = [list(_row(point[:-1], point[-1]).values()) for point in drawn]
    return Law.model_validate(
        {
            "name": "others",
            "form": FORM,
            "coefficients": _row(CENTRE, LEVEL),
            "fitted_on": {"parameters": ends["active_parameters"], **ends},
            "covers": {kind: region.model_dump() for kind, region in covers.items()},
            "tokens": 1e10,
            "residual_sd": 0.01,
            "draws": tuple(" ".join(f"{value:.9g}" for value in row) for row in rows),
        }
    )


def _row(theta: FloatArray, at_reference: float) -> dict[str, float]:
    """The form's coefficients, whose loss at the reference is the given one."""
    found = coefficients(theta, at_reference - float(excess(theta, REFERENCE)[0]))
    return {name: float(f"{found[name]:.9g}") for name in FORM.coefficients}


def made_up(seed: int, theta: FloatArray, noise: float = 0.003, rows: int = 40, laboratory: str = "") -> Trainings:
    """Trainings of designs taken at random, whose losses follow the form."""
    draw = np.random.default_rng(seed)
    experts = draw.choice([1.0, 8.0, 64.0], rows)
    numbers = {
        "depth": draw.choice([8.0, 16.0, 32.0], rows),
        "width": draw.choice([512.0, 1024.0, 2048.0], rows),
        "query_dim": draw.choice([512.0, 1024.0], rows),
        "kv_dim": draw.choice([64.0, 256.0], rows),
        "expert_ffn_ratio": draw.choice([0.5, 1.0, 4.0], rows),
        "n_experts": experts,
        "top_k": np.where(experts > 1, draw.choice([1.0, 2.0], rows), 1.0),
        "active_parameters": draw.uniform(5e7, 3e9, rows),
        "tokens": draw.choice([5e9, 2e10, 2e11], rows),
        "loss": np.zeros(rows),
    }
    numbers["parameters"] = numbers["active_parameters"] * np.where(experts > 1, experts / 2, 1.0)
    table = trainings(f"t{seed}", laboratory or f"lab {seed}", Table(numbers, np.arange(rows)), np.zeros(rows))
    loss = 1.7 + excess(theta, table.of) + noise * draw.normal(size=rows)
    whole = Table({**numbers, "loss": loss}, np.arange(rows))
    return trainings(table.name, table.laboratory, whole, np.zeros(rows))
