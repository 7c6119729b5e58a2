"""Prefill and decode together, ms, (n,)."""

from objectives.assessment import Assessment
from search_spaces.arrays import FloatArray

UNIT = "ms"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Prefill and decode together, ms, (n,)."""
    return assessment["prefill_ms"] + assessment["decode_ms"]
