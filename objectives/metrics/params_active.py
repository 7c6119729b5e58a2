"""Parameters that one token uses, (n,)."""

from objectives import parameters
from objectives.assessment import Assessment
from objectives.parts import PartAssessment, Share
from search_spaces.arrays import FloatArray

UNIT = "parameters"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Parameters that one token uses, (n,)."""
    return parameters.active(assessment.architectures)


def parts(shares: PartAssessment) -> Share:
    """Attention, K experts and small tensors per layer; embeddings once."""
    return parameters.active_share(shares)
