"""Energy of a whole request, base power · time + energy per FLOP and byte, J, (n,); on the rail that was metered."""

from objectives.assessment import Assessment
from objectives.latency.request_work import part_work, request_work
from objectives.parts import PartAssessment, of_part
from objectives.scenario import Scenario
from objectives.shares import Share
from search_spaces.arrays import FloatArray

UNIT = "J"
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """base_power · total_ms / 1000 + per_flop · FLOPs + per_byte · bytes, J, (n,).

    Raises:
        ValueError: no coefficients for the device in its power mode, or no calibrated times.
    """
    scenario = assessment.scenario
    base = scenario.coefficients().base_power * 1e-3
    return base * assessment["total_ms"] + _of_work(request_work(assessment.architectures, scenario), scenario)


def parts(shares: PartAssessment) -> Share:
    """Those of the total time, and the work of attention and FFN per layer; of the head once."""
    scenario = shares.scenario
    base = scenario.coefficients().base_power * 1e-3
    work = part_work(shares.architectures, scenario, shares.part)
    share = of_part(shares, *(_of_work(each, scenario) for each in work))
    return shares["total_ms"].times(base) + share


def _of_work(work: FloatArray, scenario: Scenario) -> FloatArray:
    coefficients = scenario.coefficients()
    joules: FloatArray = coefficients.per_flop * work[0] + coefficients.per_byte * work[1]
    return joules
