"""Parameters stored, with embeddings only if a vocabulary is given, (n,)."""

from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share, total_share
from search_spaces.arrays import FloatArray

UNIT = "parameters"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Parameters stored, with embeddings only if a vocabulary is given, (n,)."""
    return assessment.parameters.total


def parts(shares: PartAssessment) -> Share:
    """Attention, experts and small tensors per layer; embeddings once."""
    return total_share(shares.architectures, shares.part)
