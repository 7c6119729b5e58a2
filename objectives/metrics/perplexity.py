"""exp(loss), (n,)."""

import numpy as np

from objectives.assessment import Assessment
from objectives.metrics.loss import composition as composition_of_loss
from objectives.parts import Composition
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray

UNIT = ""
LOG_SCALE = False


def evaluate(assessment: Assessment) -> FloatArray:
    """exp(loss), (n,)."""
    return np.exp(assessment["loss"])


def composition(scenario: Scenario) -> Composition | None:
    """It rises with the loss."""
    loss = composition_of_loss(scenario)
    return None if loss is None else Composition(loss.quantities, lambda *u: np.exp(loss.value(*u)))
