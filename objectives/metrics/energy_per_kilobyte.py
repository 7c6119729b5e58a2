"""Energy of a request for each 1,000 bytes of text that it generates, J, (n,)."""

from objectives.assessment import Assessment
from objectives.parts import PartAssessment
from objectives.scenario import Scenario
from objectives.shares import Share
from search_spaces.arrays import FloatArray

UNIT = "J"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """energy_j / (batch · output_tokens) · 1000 / bytes per token of the design's vocabulary, J, (n,).

    Raises:
        ValueError: no energy, no text, or a vocabulary that its curve does not count.
    """
    scenario = assessment.scenario
    tokens = scenario.text_here.tokens_per_kilobyte(assessment.architectures)
    return assessment["energy_j"] * (tokens / _generated(scenario))


def parts(shares: PartAssessment) -> Share:
    """Those of a request's energy; all designs have one vocabulary."""
    scenario = shares.scenario
    return shares["energy_j"].times(scenario.text_here.tokens_per_kilobyte_here / _generated(scenario))


def _generated(scenario: Scenario) -> float:
    return float(scenario.batch * scenario.output_tokens)
