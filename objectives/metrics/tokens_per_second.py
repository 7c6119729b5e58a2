"""Tokens generated per second, 1000 · batch / tpot_ms, of the whole batch, tokens/s, (n,); more is better."""

from objectives.assessment import Assessment
from objectives.scenario import Workload
from search_spaces.arrays import FloatArray

UNIT = "tokens/s"
LOG_SCALE = True
OF_TEXT = "ms_per_kilobyte"  # in its place where tokens of designs hold different text
COST = "tpot_ms"  # of which less is more of this


def amount(workload: Workload) -> float:
    """Tokens of a decode pass times ms per s, which the cost divides."""
    return 1e3 * workload.batch


def evaluate(assessment: Assessment) -> FloatArray:
    """1000 · batch / tpot_ms, tokens/s, (n,)."""
    return amount(assessment.scenario) / assessment[COST]
