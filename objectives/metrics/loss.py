"""Natural-log loss per token predicted by the law, nats, (n,)."""

from objectives.assessment import Assessment
from search_spaces.arrays import FloatArray

UNIT = "nats"
LOG_SCALE = False


def evaluate(assessment: Assessment) -> FloatArray:
    """Natural-log loss per token predicted by the law, nats, (n,)."""
    return assessment.scenario.law.loss(assessment.architectures)
