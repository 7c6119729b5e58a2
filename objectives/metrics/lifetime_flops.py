"""FLOPs of a model's life: training, then every token that it serves, (n,)."""

from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share
from objectives.training import PASSES, drafting_flops, drafting_share, forward_flops, forward_share
from search_spaces.arrays import FloatArray

UNIT = "FLOP"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """(3 D + served_tokens) · FLOPs of a token forward, (n,): 6 N D + 2 N D_inference and attention's.

    A head that drafts is trained too; what it does while tokens are served is not counted.

    A token served attends to as many others as one trained on.

    Source: Sardana et al. 2024 (2401.00448), eq. 2.

    Raises:
        ValueError: nothing says the tokens trained on.
    """
    a, scenario = assessment.architectures, assessment.scenario
    training = scenario.training
    passes = PASSES * scenario.tokens(a) + training.served_tokens
    flops = passes * forward_flops(a, training.sequence_length)
    if not scenario.serving.drafts_itself:
        return flops
    return flops + PASSES * scenario.tokens(a) * drafting_flops(a, training.sequence_length)


def parts(shares: PartAssessment) -> Share:
    """Attention and FFN per layer, the head once."""
    training = shares.scenario.training
    forward = forward_share(shares.architectures, training.sequence_length, shares.part)
    whole = forward.times(PASSES * shares.scenario.stated_tokens + training.served_tokens)
    if not shares.scenario.serving.drafts_itself:
        return whole
    drafting = drafting_share(shares.architectures, training.sequence_length, shares.part)
    return whole + drafting.times(PASSES * shares.scenario.stated_tokens)
