"""Time per output token, decode / output_tokens, ms, (n,)."""

from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share
from search_spaces.arrays import FloatArray

UNIT = "ms"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Time per output token, decode / output_tokens, ms, (n,)."""
    return assessment["decode_ms"] / assessment.scenario.output_tokens


def parts(shares: PartAssessment) -> Share:
    """Those of decode, per token."""
    return shares["decode_ms"].times(1.0 / shares.scenario.output_tokens)
