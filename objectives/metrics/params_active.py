"""Parameters that one token uses, (n,)."""

from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share, active_share
from search_spaces.arrays import FloatArray

UNIT = "parameters"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Parameters that one token uses, (n,)."""
    return assessment.parameters.active


def parts(shares: PartAssessment) -> Share:
    """Attention, K experts and small tensors per layer; embeddings once."""
    return active_share(shares.architectures, shares.part)
