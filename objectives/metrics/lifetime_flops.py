"""FLOPs of a model's life: training, then every token that it serves, (n,)."""

from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share
from objectives.training import PASSES, forward_flops, forward_share
from search_spaces.arrays import FloatArray

UNIT = "FLOP"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """(3 D + served_tokens) · FLOPs of a token forward, (n,): 6 N D + 2 N D_inference and attention's.

    A token served attends to as many others as one trained on.

    Source: Sardana et al. 2024 (2401.00448), eq. 2.

    Raises:
        ValueError: nothing says the tokens trained on.
    """
    a, scenario = assessment.architectures, assessment.scenario
    training = scenario.training
    passes = PASSES * scenario.tokens(a) + training.served_tokens
    return passes * forward_flops(a, training.sequence_length)


def parts(shares: PartAssessment) -> Share:
    """Attention and FFN per layer, the head once."""
    training = shares.scenario.training
    forward = forward_share(shares.architectures, training.sequence_length, shares.part)
    return forward.times(PASSES * shares.scenario.stated_tokens + training.served_tokens)
