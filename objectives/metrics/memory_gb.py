"""Weights of the linear operators, the paper's memory, GB, (n,)."""

from objectives import memory
from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share
from search_spaces.arrays import FloatArray

UNIT = "GB"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Weights of the linear operators, the paper's memory, GB, (n,)."""
    return memory.weights_gb(assessment.dimensions, assessment.parameters, assessment.scenario)


def parts(shares: PartAssessment) -> Share:
    """Attention projections and experts per layer."""
    return memory.weights_share(shares)
