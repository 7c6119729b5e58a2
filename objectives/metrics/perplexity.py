"""exp(loss), (n,)."""

import numpy as np

from objectives.assessment import Assessment
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
    return Composition({"loss": 1}, np.exp) if scenario.law.separable else None
