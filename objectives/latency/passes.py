"""The passes of a request as it is served: through all layers, and through the one layer that drafts tokens ahead."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from objectives.latency.operator import Phase, phases
from objectives.scenario import Scenario


@dataclass(frozen=True, eq=False)
class Pass:
    """The passes of a phase through all layers or through one, and how many of them a request takes of each.

    scenario: the chip that they run on. share: of the phase's passes; factor: on the time that their operators take. head:
    whether they end in the LM head.
    """

    phase: Phase
    scenario: Scenario
    share: float = 1.0
    factor: float = 1.0
    one_layer: bool = False
    head: bool = True

    @property
    def time_share(self) -> float:
        """Share of the passes' time that a request takes."""
        return self.share * self.factor


def passes(scenario: Scenario) -> Iterator[Pass]:
    """Prefill and decode; where tokens are drafted, decode steps of n + 1 positions, 1 / (1 + accepted) for each token.

    A head for multi-token prediction reads the prompt too, and takes n passes through its layer and the LM head a step; its own
    experts lie in fast memory.
    """
    (prefill, decode), serving = phases(scenario), scenario.serving
    reader = scenario if serving.prompts is None else serving.prompts
    yield Pass(prefill, reader)
    if not serving.drafted:
        yield Pass(decode, scenario)
        return
    steps, factor = 1.0 / (1.0 + serving.accepted), serving.step_factor
    yield Pass(replace(decode, queries=serving.drafted + 1), scenario, steps, factor)
    if serving.drafter == "mtp":
        fast = replace(scenario, serving=replace(serving, experts_in="fast"))
        yield Pass(prefill, fast if serving.prompts is None else reader, one_layer=True, head=False)
        yield Pass(decode, fast, serving.drafted * steps, factor, one_layer=True)
