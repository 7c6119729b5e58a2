"""Weights of the linear operators, the paper's memory, as a share of the device's memory, (n,)."""

from objectives.assessment import Assessment
from objectives.parts import Composition
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray

UNIT = ""
LOG_SCALE = True


def evaluate(assessment: Assessment) -> FloatArray:
    """memory_gb over the memory of the design's device, (n,)."""
    return assessment["memory_gb"] / assessment.scenario.device.memory_gb


def composition(scenario: Scenario) -> Composition:
    """It rises with memory_gb."""
    return Composition({"memory_gb": 1}, lambda used: used / scenario.device.memory_gb)
