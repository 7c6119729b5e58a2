"""Weights, embeddings, KV cache and activations held at once, GB, (n,)."""

from objectives import memory
from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share
from search_spaces.arrays import FloatArray

UNIT = "GB"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """Weights, embeddings, KV cache and activations held at once, GB, (n,)."""
    return memory.resident_gb(assessment.dimensions, assessment.parameters, assessment.scenario)


def parts(shares: PartAssessment) -> Share:
    """Weights and KV cache per layer; embeddings and activations once."""
    return memory.resident_share(shares)
