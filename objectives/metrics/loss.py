"""Natural-log loss per token predicted by the law, nats, (n,)."""

from objectives.assessment import Assessment
from objectives.composition import composition_of
from objectives.parts import Composition, PartAssessment
from objectives.scenario import Scenario
from objectives.shares import Share
from search_spaces.arrays import FloatArray

UNIT = "nats"
LOG_SCALE = False


def evaluate(assessment: Assessment) -> FloatArray:
    """Natural-log loss per token predicted by the law, nats, (n,)."""
    return assessment.scenario.law.loss(assessment.architectures)


def parts(shares: PartAssessment) -> Share:
    """The law's terms, each in the part whose columns it depends on."""
    return shares.loss()


def composition(scenario: Scenario) -> Composition:
    """A sum where each of the law's terms belongs to one part and never turns, else a function of sums."""
    return composition_of(scenario.law)


def quantile(assessment: Assessment, level: float) -> FloatArray:
    """A quantile of the loss over the law's draws, nats, (n,); declares no parts."""
    return assessment.scenario.law.loss_quantile(assessment.architectures, level)
