"""exp(loss), (n,)."""

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
    return _exp(assessment["loss"])


def composition(scenario: Scenario) -> Composition:
    """It rises with the loss."""
    loss = composition_of_loss(scenario)
    return Composition(loss.quantities, lambda *u: _exp(loss.value(*u)))


def _exp(loss: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.exp(loss)
