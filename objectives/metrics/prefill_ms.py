"""Time to process the prompt, ms, (n,)."""

from objectives.assessment import Assessment
from search_spaces.arrays import FloatArray

UNIT = "ms"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Time to process the prompt, ms, (n,)."""
    return assessment.phase_ms("prefill")
