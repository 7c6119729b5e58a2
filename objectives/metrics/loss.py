"""Natural-log loss per token predicted by the law, nats, (n,)."""

from objectives.assessment import Assessment
from objectives.law_composition import monotone
from objectives.parts import Composition, PartAssessment, Share, additive
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray

UNIT = "nats"
LOG_SCALE = False


def evaluate(assessment: Assessment) -> FloatArray:
    """Natural-log loss per token predicted by the law, nats, (n,)."""
    return assessment.scenario.law.loss(assessment.architectures)


def parts(shares: PartAssessment) -> Share:
    """The law's terms, each in the part whose columns it depends on."""
    return shares.loss()


def composition(scenario: Scenario) -> Composition | None:
    """A sum where each of the law's terms belongs to one part, else a function of quantities that are sums."""
    return additive("loss") if scenario.law.separable else monotone(scenario.law)


def quantile(assessment: Assessment, level: float) -> FloatArray:
    """A quantile of the loss over the law's draws, nats, (n,); declares no parts."""
    return assessment.scenario.law.loss_quantile(assessment.architectures, level)
