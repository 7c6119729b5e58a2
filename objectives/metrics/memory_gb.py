"""Weights of the linear operators, the paper's memory, GB, (n,)."""

from objectives import parameters
from objectives.assessment import Assessment
from objectives.parts import PartAssessment, Share
from search_spaces.arrays import FloatArray

UNIT = "GB"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Weights of the linear operators, the paper's memory, GB, (n,)."""
    return parameters.weights_gb(assessment.architectures, assessment.scenario)


def parts(shares: PartAssessment) -> Share:
    """Attention projections and experts per layer."""
    return parameters.weights_share(shares)
