"""Parameters stored, with embeddings only if a vocabulary is given, (n,)."""

from objectives import parameters
from objectives.assessment import Assessment
from objectives.parts import PartAssessment, Share
from search_spaces.arrays import FloatArray

UNIT = "parameters"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Parameters stored, with embeddings only if a vocabulary is given, (n,)."""
    return parameters.total(assessment.architectures)


def parts(shares: PartAssessment) -> Share:
    """Attention, experts and small tensors per layer; embeddings once."""
    return parameters.total_share(shares)
