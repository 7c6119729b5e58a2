"""Natural-log loss per token predicted by the law, nats, (n,)."""

from objectives.assessment import Assessment
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
    """A sum where the law's form says to which part each term belongs."""
    return additive("loss") if scenario.law.separable else None
