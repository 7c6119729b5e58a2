"""Bytes that a request needs at once as a share of the memory that a program may have on the device, (n,)."""

from objectives.assessment import Assessment
from objectives.parts import Composition
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray

UNIT = ""
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """resident_gb over what a program may have of the memory of the design's device, (n,)."""
    return assessment["resident_gb"] / assessment.scenario.device.program_gb


def composition(scenario: Scenario) -> Composition:
    """It rises with resident_gb."""
    return Composition({"resident_gb": 1}, lambda used: used / scenario.device.program_gb)
