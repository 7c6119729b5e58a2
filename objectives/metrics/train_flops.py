"""FLOPs of training on the tokens of the study, 3 · tokens · those of a token forward, (n,)."""

from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.shares import Share
from objectives.training import PASSES, drafting_share, forward_share, training_flops
from search_spaces.arrays import FloatArray

UNIT = "FLOP"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """6 N D and attention's FLOPs, (n,); D are the tokens of each row, N what a token uses, without embeddings.

    Raises:
        ValueError: nothing says the tokens.
    """
    a, scenario = assessment.architectures, assessment.scenario
    return training_flops(
        a, scenario.tokens(a), scenario.training.sequence_length, drafting=scenario.serving.drafts_itself
    )


def parts(shares: PartAssessment) -> Share:
    """Attention and FFN per layer, the head once."""
    scenario = shares.scenario
    length, part = scenario.training.sequence_length, shares.part
    forward = forward_share(shares.architectures, length, part)
    forward += drafting_share(shares.architectures, length, part) if scenario.serving.drafts_itself else Share()
    return forward.times(PASSES * scenario.stated_tokens)
