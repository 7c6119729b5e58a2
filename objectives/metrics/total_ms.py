"""Prefill and decode together, ms, (n,)."""

from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share
from search_spaces.arrays import FloatArray

UNIT = "ms"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Prefill and decode together, ms, (n,)."""
    return assessment["prefill_ms"] + assessment["decode_ms"]


def parts(shares: PartAssessment) -> Share:
    """Those of prefill and decode."""
    return shares["prefill_ms"] + shares["decode_ms"]
