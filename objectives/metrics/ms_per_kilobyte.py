"""Time to generate 1,000 bytes of text, tpot_ms · tokens of them, ms, (n,)."""

from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share
from search_spaces.arrays import FloatArray

UNIT = "ms"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """tpot_ms · 1000 / bytes per token of the design's vocabulary, ms, (n,).

    Raises:
        ValueError: no text, or a vocabulary that its curve does not count.
    """
    return assessment["tpot_ms"] * assessment.scenario.text_here.tokens_per_kilobyte(assessment.architectures)


def parts(shares: PartAssessment) -> Share:
    """Those of a token's time; all designs have one vocabulary."""
    return shares["tpot_ms"].times(shares.scenario.text_here.tokens_per_kilobyte_here)
