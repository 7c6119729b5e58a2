"""Time to first token: the whole prefill, with its LM head and a server's constant per request, ms, (n,)."""

from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share
from search_spaces.arrays import FloatArray

UNIT = "ms"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Time to first token, prefill_ms: an idle device starts at once, ms, (n,)."""
    return assessment["prefill_ms"]


def parts(shares: PartAssessment) -> Share:
    """Those of the prefill."""
    return shares["prefill_ms"]
