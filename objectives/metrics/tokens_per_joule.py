"""Tokens generated per joule, batch · output_tokens / energy_j, tokens/J, (n,); more is better."""

from objectives.assessment import Assessment
from objectives.scenario import Workload
from search_spaces.arrays import FloatArray

UNIT = "tokens/J"
LOG_SCALE = True
OF_TEXT = "energy_per_kilobyte"  # in its place where tokens of designs hold different text
ENERGY = True
COST = "energy_j"  # of which less is more of this


def amount(workload: Workload) -> float:
    """Tokens of a request, which the cost divides."""
    return float(workload.batch * workload.output_tokens)


def evaluate(assessment: Assessment) -> FloatArray:
    """batch · output_tokens / energy_j, tokens/J, (n,)."""
    return amount(assessment.scenario) / assessment[COST]
