"""Time of all output_tokens decode passes, ms, (n,)."""

from objectives.assessment import Assessment
from search_spaces.arrays import FloatArray

UNIT = "ms"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Time of all output_tokens decode passes, ms, (n,)."""
    return assessment.phase_ms("decode")
