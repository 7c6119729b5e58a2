"""Hours of one training device, train_flops / (utilisation · its FP16 peak), h, (n,)."""

import numpy as np

from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share
from search_spaces.arrays import FloatArray

UNIT = "h"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """train_flops / (utilisation · FP16 peak), hours of one device, (n,).

    Raises:
        ValueError: no training device, or nothing says the tokens.
    """
    return assessment.scenario.training.hours(assessment["train_flops"])


def parts(shares: PartAssessment) -> Share:
    """Those of the FLOPs."""
    return shares["train_flops"].times(float(shares.scenario.training.hours(np.ones(1))[0]))
