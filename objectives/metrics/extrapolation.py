"""How many times beyond the rows of its loss law a design lies, (n,); 1 inside."""

from objectives.assessment import Assessment
from objectives.composition import extrapolation_of
from objectives.parts import Composition
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray

UNIT = ""
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """The product, over quantities and pairs of them, of the factor by which a design leaves what the law's rows cover, (n,); 1 inside."""
    return assessment.scenario.law.extrapolation(assessment.architectures)


def composition(scenario: Scenario) -> Composition:
    """A function of the quantities that the rows cover."""
    return extrapolation_of(scenario.law)
