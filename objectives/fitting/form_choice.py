"""Which forms the same rows allow: weights of evidence by BIC, and differences of their errors with standard errors."""

from collections.abc import Mapping

import numpy as np

from objectives.fitting.diagnostics import quality
from objectives.fitting.estimate import Fit
from objectives.fitting.validation import Validation
from search_spaces.arrays import AnyArray, FloatArray


def form_weights(fit: Fit, rivals: Mapping[str, Fit]) -> dict[str, float]:
    """Share of the evidence of each form, exp(−ΔBIC/2) scaled to 1. Source: Kass and Raftery 1995."""
    bics = {name: quality(each)["bic"] for name, each in {fit.form_name: fit, **rivals}.items()}
    return shares(bics)


def shares(bics: Mapping[str, float]) -> dict[str, float]:
    """exp(−ΔBIC/2) of each form, scaled to 1."""
    least = min(bics.values())
    raw = {name: float(np.exp(-0.5 * (bic - least))) for name, bic in bics.items()}
    return {name: value / sum(raw.values()) for name, value in raw.items()}


def excess(fit: Fit, own: Validation, other: Validation) -> tuple[float, float]:
    """Another form's RMSE on unseen rows minus the fit's own, and the standard error of the difference, nats.

    Of the mean difference of squared errors over families of rows, divided by the sum of both RMSEs.
    """
    total = max(own.folds.rmse + other.folds.rmse, 1e-300)
    return other.folds.rmse - own.folds.rmse, error_of_mean(other.squares - own.squares, fit.table.family) / total


def error_of_mean(values: FloatArray, family: AnyArray) -> float:
    """Standard error of the mean of values (n,) over families of rows; infinite of one family."""
    place = np.unique(family, return_inverse=True)[1]
    means = np.bincount(place, values) / np.bincount(place)
    return float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("inf")
