"""Times of one part of many architectures on many devices: operators built once, timed on each device."""

import numpy as np

from objectives.dimensions import Dimensions
from objectives.latency.operator import CHUNK, passes
from objectives.latency.roofline import part_operators, timed_seconds
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import Part


class PartTimes:
    """The operators of attention or FFN, or of the head (`base`), of n architectures, in cache-sized blocks.

    Scenarios to be timed differ from the one given in peaks and bandwidth of the device alone; none finds anything in a cache or in slow memory.
    """

    def __init__(self, architectures: Architectures, scenario: Scenario, part: Part) -> None:
        self.n = len(architectures)
        self._blocks = [
            (rows, [list(part_operators(x, one, part)) for one in passes(scenario)])
            for rows, x in Dimensions(architectures).blocks(CHUNK)
        ]

    def ms(self, scenario: Scenario) -> FloatArray:
        """Prefill and decode of the part on a device, of one layer where it is attention or FFN, ms, (2, n)."""
        found, alike = np.zeros((2, self.n)), list(passes(scenario))
        for rows, block in self._blocks:
            for one, operators in zip(alike, block, strict=True):
                seconds = timed_seconds(operators, one.phase, one.scenario, None, {})
                found[int(one.phase.name == "decode"), rows] += one.time_share * seconds
        found *= 1e3
        return found
