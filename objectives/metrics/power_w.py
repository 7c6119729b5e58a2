"""Mean power over a request, 1000 · energy_j / total_ms, W, (n,)."""

from types import MappingProxyType

from objectives.assessment import Assessment
from objectives.parts import Composition
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray

UNIT = "W"
LOG_SCALE = True
ENERGY = True


def evaluate(assessment: Assessment) -> FloatArray:
    """1000 · energy_j / total_ms, W, (n,)."""
    return _power(assessment["energy_j"], assessment["total_ms"])


def composition(scenario: Scenario) -> Composition:
    """It rises with the energy and falls with the time, each a sum of parts."""
    return Composition(MappingProxyType({"energy_j": 1, "total_ms": -1}), _power)


def _power(joules: FloatArray, ms: FloatArray) -> FloatArray:
    return 1e3 * joules / ms
