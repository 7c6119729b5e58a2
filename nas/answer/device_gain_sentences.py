"""What more of a device's resources buys, in sentences and as plain content."""

from collections.abc import Mapping
from typing import Any

from nas.answer.gain_sentences import beside_pick, bought_in_words, in_numbers
from nas.answer.witness import Witness
from nas.exact.device_gains import DeviceGain, on_its_device, with_more
from nas.exact.gains import Gain
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.problem.uncertainty import Difference
from objectives.scenario import Scenario

NOTHING = 1e-9  # nats, of what is solved by cuts


def device_gain_lines(
    problem: Problem, pick: Evaluations, gains: tuple[DeviceGain, ...], theory: Mapping[str, float]
) -> list[str]:
    """Of each resource of the pick's device what a share more of it buys within the budgets, then what buys as much.

    theory: what it buys in the continuous problem, nats, where that covers the study.
    """
    if not gains:
        return []
    there, own = on_its_device(problem, pick)
    scenario = there.scenario
    lines = ["", f"What more of {scenario.device.name} would buy within the same budgets, solved exactly"]
    told = beside_pick(there, own, [each.bought for each in gains if each.bought is not None])
    lines += [f"  {_line(there, each, told)}" for each in gains]
    if theory:
        said = ", ".join(f"{name} {nats if nats > NOTHING else 0:.2g} nats" for name, nats in theory.items())
        lines.append(f"  In the continuous problem of plas theory, with its experts: {said}")
    return [*lines, *(f"  {text}" for text in _as_much(gains))]


def _line(problem: Problem, gained: DeviceGain, told: Mapping[Gain, Witness]) -> str:
    more = with_more(problem, gained.resource, 1.0 + gained.step).scenario
    head = f"{gained.resource} +{100 * gained.step:g} % ({amount(more, gained.resource)})"
    if gained.bought is None:
        return f"{head}: buys nothing"
    by = bought_in_words(gained.bought, told.get(gained.bought))
    sure = _interval(gained.difference)
    ranges = (
        ""
        if gained.by_range is None
        else f"; {gained.by_range[0]:.2g} to {gained.by_range[1]:.2g} over the measured range of times"
    )
    return f"{head}: {by}{sure}{ranges}"


def _interval(found: Difference | None) -> str:
    """How sure the law is of the difference; "" of one that does not say."""
    if found is None:
        return ""
    if not found.known:
        return "; outside of the law's evidence"
    return f"; {found.nats:+.4f} nats ({found.low:+.3f} to {found.high:+.3f})"


def _as_much(gains: tuple[DeviceGain, ...]) -> list[str]:
    """What buys as much as the resource that buys most: others in proportion to their own step, and training tokens."""
    largest = max(gains, key=lambda each: each.nats)
    if largest.bought is None:
        return ["Nothing of the device holds a lower loss back: the space or the other budgets do"]
    others = [
        f"{100 * other.step * largest.nats / other.nats:.2g} % more {other.resource}"
        for other in gains
        if other is not largest and other.nats > 0
    ]
    if largest.tokens is not None:
        others.append(f"{100 * (largest.tokens - 1.0):.2g} % more training tokens of the same design")
    head = f"{100 * largest.step:g} % more {largest.resource} buys as much as"
    return [f"{head} {', or '.join(others)} (in proportion)"] if others else []


def amount(scenario: Scenario, resource: str) -> str:
    """How much of a resource a device has, with its unit."""
    device = scenario.device
    if resource == "compute":
        peak = scenario.precision.linear_peak
        return f"{device.peak(peak) / 1e12:.4g} {'TOP/s' if peak == 'int8' else 'TFLOP/s'} {peak}"
    figures = {
        "bandwidth": (device.bandwidth / 1e9, "GB/s"),
        "memory": (device.memory_gb, "GB"),
        "cache": ((device.cache or 0.0) / 1e6, "MB"),
    }
    value, unit = figures[resource]
    return f"{value:.4g} {unit}"


def described(
    problem: Problem, pick: Evaluations | None, gains: tuple[DeviceGain, ...], theory: Mapping[str, float]
) -> list[dict[str, Any]]:
    """The same as JSON content; without a pick there are no gains."""
    there, own = (problem, pick) if pick is None else on_its_device(problem, pick)
    bought = [each.bought for each in gains if each.bought is not None]
    told = {} if own is None else beside_pick(there, own, bought)
    return [
        {
            "resource": each.resource,
            "step": each.step,
            "nats": each.nats,
            "bought": in_numbers(each.bought, told),
            "difference": None if each.difference is None else vars(each.difference),
            "by_range": each.by_range,
            "tokens": each.tokens,
            "theory": theory.get(each.resource),
        }
        for each in gains
    ]
