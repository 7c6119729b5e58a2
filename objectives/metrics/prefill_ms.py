"""Time to process the prompt, ms, (n,)."""

from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share
from search_spaces.arrays import FloatArray

UNIT = "ms"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Time to process the prompt, ms, (n,)."""
    return assessment.phase_ms("prefill")


def parts(shares: PartAssessment) -> Share:
    """Operators of attention and FFN per layer; the head once."""
    return shares.phase_ms("prefill")
