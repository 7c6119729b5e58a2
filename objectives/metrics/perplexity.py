"""exp(loss), (n,)."""

from typing import Any

import numpy as np

from objectives.assessment import Assessment
from objectives.metrics.loss import composition as composition_of_loss
from objectives.parts import Composition
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray

UNIT = ""
LOG_SCALE = False
LARGEST_LOSS = 709.0  # nats; exp of little more is no floating-point number


def evaluate(assessment: Assessment) -> FloatArray:
    """exp(loss), (n,); infinite where it is beyond floating point."""
    return of_losses(assessment["loss"])


def composition(scenario: Scenario) -> Composition:
    """It rises with the loss."""
    loss = composition_of_loss(scenario)
    return Composition(loss.quantities, lambda *u: of_losses(loss.value(*u)))


def of_losses(loss: FloatArray | float) -> FloatArray:
    """exp(loss), (n,) or of one loss; infinite where it is beyond floating point."""
    with np.errstate(over="ignore"):
        return np.exp(loss)


def perplexity_percent(nats: FloatArray | float) -> Any:
    """A difference of losses as the change of perplexity, %: 100·(exp(Δ) − 1); infinite where it is beyond floating point."""
    with np.errstate(over="ignore"):
        return 100.0 * np.expm1(nats)
