"""Experts in slow memory: host memory of a discrete GPU, flash of a phone."""

from collections.abc import Iterator
from dataclasses import replace

from objectives.latency.operator import Operator, Phase
from objectives.scenario import Scenario


def placed(operator: Operator, phase: Phase, scenario: Scenario, *, last: bool = False) -> Iterator[Operator]:
    """An operator of experts: of the layers whose experts lie in slow memory at that memory's rates; `last` waits for it.

    Layers are taken as alike, a share of each operator's instances.
    """
    share = scenario.serving.slow_share
    if not share:
        yield operator
        return
    if share < 1.0:
        yield replace(operator, count=operator.count * (1.0 - share))
    wait = scenario.slow_memory.overhead_s + scenario.serving.hot.wait_ms * 1e-3 if last else 0.0
    rates = slow_rates(operator, phase, scenario)
    yield replace(
        operator, name=f"slow {operator.name}", count=operator.count * share, own_rates=rates, wait_seconds=wait
    )


def slow_rates(operator: Operator, phase: Phase, scenario: Scenario) -> tuple[float, float]:
    """Seconds a FLOP and a byte of experts in slow memory.

    A decode step computes them where they lie, if the device file states that memory's processor, and reads what the hot
    experts serve from fast memory, the one after the other: (1 - h) / (eta_s beta_s) + h / (eta_b beta). A prefill brings them over the
    link and computes on the device.
    """
    memory, hits = scenario.slow_memory, scenario.serving.hot.hits
    per_flop, fast = scenario.seconds_per_flop(operator.peak), scenario.seconds_per_byte(phase.name, routed=True)
    rate = memory.rate if phase.name == "decode" else memory.link or memory.rate
    slow = 1.0 / (scenario.slow_efficiency * rate)
    if phase.name == "decode" and memory.fp16 is not None:
        per_flop = 1.0 / memory.fp16
    return per_flop, (1.0 - hits) * slow + hits * fast
