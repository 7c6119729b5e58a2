"""exp(loss), (n,)."""

import numpy as np

from objectives.assessment import Assessment
from search_spaces.arrays import FloatArray

UNIT = ""
LOG_SCALE = False


def evaluate(assessment: Assessment) -> FloatArray:
    """exp(loss), (n,)."""
    return np.exp(assessment["loss"])
