"""Parameters that one token uses, (n,)."""

from objectives import parameters
from objectives.assessment import Assessment
from search_spaces.arrays import FloatArray

UNIT = "parameters"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Parameters that one token uses, (n,)."""
    return parameters.active(assessment.architectures)
