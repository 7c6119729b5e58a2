"""Tokens generated per second, 1000 · batch / tpot_ms, of the whole batch, tokens/s, (n,); more is better."""

from objectives.assessment import Assessment
from objectives.scenario import Workload
from search_spaces.arrays import FloatArray

UNIT = "tokens/s"
LOG_SCALE = True
COST = "tpot_ms"  # of which less is more of this


def amount(workload: Workload) -> float:
    """What the cost divides: tokens of a decode pass, times ms per s."""
    return 1e3 * workload.batch


def evaluate(assessment: Assessment) -> FloatArray:
    """1000 · batch / tpot_ms, tokens/s, (n,)."""
    return amount(assessment.scenario) / assessment[COST]
