"""Experts in slow memory, GB, (n,); 0 where all lie in the device's own."""

from objectives import memory
from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share
from search_spaces.arrays import FloatArray

UNIT = "GB"
LOG_SCALE = False  # 0 where nothing is slow


def evaluate(assessment: Assessment) -> FloatArray:
    """Share of layers in slow memory times the bytes of their experts, GB, (n,)."""
    return memory.slow_gb(assessment.dimensions, assessment.parameters, assessment.scenario)


def parts(shares: PartAssessment) -> Share:
    """Experts per layer."""
    if shares.part != "ffn":
        return Share()
    return Share(per_layer=(memory.slow_gb(shares.dimensions, shares.parameters, shares.scenario),))
