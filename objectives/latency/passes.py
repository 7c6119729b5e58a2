"""The passes of a request as it is served: through all layers, and through the one layer that drafts tokens ahead."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from objectives.dimensions import Dimensions
from objectives.latency.operator import Phase, phases
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Pass:
    """The passes of a phase through all layers or through one, and how many of them a request takes of each.

    scenario: the chip that they run on. share: of the phase's passes, of their FLOPs and bytes; time_share: of their time. head:
    whether they end in the LM head. name: what they are for, "" where a model reads and writes.
    """

    phase: Phase
    scenario: Scenario
    share: float = 1.0
    time_share: float = 1.0
    one_layer: bool = False
    head: bool = True
    name: str = ""

    def depth(self, x: Dimensions) -> FloatArray:
        """Layers that it goes through, (n,)."""
        return np.ones_like(x.depth) if self.one_layer else x.depth


def passes(scenario: Scenario) -> Iterator[Pass]:
    """Prefill and decode; where tokens are drafted, decode steps of n + 1 positions, 1 / (1 + accepted) for each token.

    Each further position takes a share kappa of a plain step besides what its operators do: engines' kernels for few positions are
    slower than the roofline of one.
    A head for multi-token prediction reads the prompt too, and takes n passes through its layer and the LM head a step; its own
    experts lie in fast memory.
    """
    (prefill, decode), serving = phases(scenario), scenario.serving
    yield Pass(prefill, scenario.of_phase("prefill"))
    if not serving.drafted:
        yield Pass(decode, scenario)
        return
    steps, n = 1.0 / (1.0 + serving.accepted), serving.drafted
    yield Pass(replace(decode, queries=n + 1), scenario, steps, steps)
    if cost := scenario.position_cost:
        yield Pass(decode, scenario, 0.0, n * cost * steps, name="further positions")
    if serving.drafts_itself:
        fast = replace(scenario, serving=replace(serving, experts_in="fast"))
        yield Pass(prefill, fast.of_phase("prefill"), one_layer=True, head=False, name="drafting")
        yield Pass(decode, fast, n * steps, n * steps, one_layer=True, name="drafting")
