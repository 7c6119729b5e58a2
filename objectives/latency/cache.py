"""The cache tier: which share of what a decode pass reads the last-level cache still holds from the pass before."""

from dataclasses import replace

import numpy as np

from objectives.dimensions import Dimensions
from objectives.latency.operator import Phase, Values
from objectives.latency.operators import OF_PART
from objectives.latency.work import total_work
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray
from search_spaces.columns import Part

#: How fast hits fall beyond capacity: (C/W)^FALL is within 0.03 of h = exp(-(1 - h) W/C), the hits of a pass over W bytes
#: again and again in a cache of C bytes that replaces at random.
FALL = 2.25


def hit_share(working_set: Values, capacity: float) -> Values:
    """h = min(1, C/W)^2.25: the share of a working set W that a cache of C bytes serves, (n,)."""
    found: Values = np.minimum(1.0, capacity / working_set) ** FALL
    return found


def hits_of(x: Dimensions, phase: Phase, scenario: Scenario) -> FloatArray | None:
    """The share of each operator that a decode pass finds in the cache, (n,); None where none is known to matter."""
    if phase.name == "prefill" or not scenario.cached:
        return None
    return np.asarray(hit_share(working_set(x, phase, scenario), scenario.device.cache or 0.0))


def working_set(x: Dimensions, phase: Phase, scenario: Scenario) -> FloatArray:
    """W: bytes that decode passes come back to, (n,): l layers and the head, under uniform routing."""
    layer = part_working_set(x, phase, scenario, "attention") + part_working_set(x, phase, scenario, "ffn")
    found: FloatArray = x.depth * layer + part_working_set(x, phase, scenario, "base")
    return found


def part_working_set(x: Dimensions, phase: Phase, scenario: Scenario, part: Part) -> Values:
    """The working set of a layer's attention or FFN, or of the head: bytes of a mean pass; experts that it leaves out count half.

    They come back, after E/K passes on average, and find less than what every pass reads.
    """
    plain = replace(scenario, calibration=None)
    moved = total_work(OF_PART[part](x, phase, plain), phase)[1] / phase.passes
    if part != "ffn":
        return moved
    left = x.kinds.experts * (x.n_experts - x.touched_experts(phase.tokens)) * x.expert_size * x.width
    up, down = plain.precision.bytes_of_ffn(x.sparse)
    return moved + 0.5 * left * (2.0 * up + down)
