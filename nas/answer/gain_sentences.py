"""Gains of relaxing a budget, an axis or the device, in sentences and as plain content."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nas.answer import sureness
from nas.answer.design_words import describe, model_size
from nas.document.document import Section
from nas.exact.device_gains import DeviceGain, on_its_device, with_more
from nas.exact.gains import Gain, Gains
from nas.problem.diagnosis import at_least
from nas.problem.evaluations import Evaluations
from nas.problem.objective import OWN, PickQuery
from nas.problem.problem import Problem
from nas.problem.wording import in_words
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures, one
from search_spaces.columns import SHAPE
from search_spaces.layer_kinds import KIND_DEFAULTS
from search_spaces.specification import FURTHER_AXES

NOTHING = 1e-9  # nats, of what is solved by cuts
Told = Mapping[Gain, sureness.Witness]  # what `evidence` says of gains


def gains_told(problem: Problem, gains: Gains, loss: float) -> tuple[Section, dict[str, Any]]:
    """The pick within the budgets, then each budget and each axis that holds a better design back, beside each what `evidence` says; as JSON content too."""
    best, pick = float(gains.pick.metrics["loss"][0]), problem.architectures(gains.pick.genotypes)
    named = "This is" if math.isclose(loss, best, rel_tol=1e-11) else f"Not this one, but {describe(pick)} is"
    bought = [*gains.axes, *(gain.relaxed for gain in gains.budgets if gain.relaxed is not None)]
    told, budgets = _beside_pick(problem, gains.pick, bought), list[dict[str, Any]]()
    lines = [f"{named} the lowest loss within the budgets: {best:.4f} nats"]
    for gain in gains.budgets:
        budget, relaxed = gain.budget, gain.relaxed
        line = f"{budget}: costs nothing down to {budget.with_unit(gain.tightest, at_least(gain.tightest))}; "
        if relaxed is None:
            line += f"relaxing it alone {_nothing(problem)}"
        else:
            at = budget.with_unit(relaxed.at, at_least(relaxed.at))
            line += f"the next better design needs {at} (+{100 * (relaxed.at / budget.limit - 1):.2g} %): "
            line += _in_words(relaxed, told)
        lines.append(line)
        numbers = {"tightest": gain.tightest, "relaxed": _in_numbers(relaxed, told)}
        budgets.append({"metric": budget.metric, "limit": budget.limit, **numbers})
    lines += [f"{in_words(g.change)} {g.at:,g}, one step beyond its axis: {_in_words(g, told)}" for g in gains.axes]
    if not gains.axes:
        lines.append(f"no axis: one step beyond any of them {_nothing(problem)} within the budgets")
    lines += ["* extrapolates the law"] * any(gain.extrapolates for gain in bought)
    doubted = [(each, PickQuery(OWN, None)) for each in told.values() if not each.confirms][:1]
    for witness in sureness.with_own_picks(problem, doubted, gains.pick[:0]):
        if witness is not None and witness.own is not None:
            lines.append(f"The pick of {sureness.EVIDENCE} within the same budgets: {model_size(witness.own)}")
    content = {"loss": best, "budgets": budgets, "axes": [_in_numbers(gain, told) for gain in gains.axes]}
    return Section("What more would buy, solved exactly", tuple(lines)), content


def device_gains_told(
    problem: Problem, pick: Evaluations, gains: tuple[DeviceGain, ...], theory: Mapping[str, float]
) -> tuple[list[Section], list[dict[str, Any]]]:
    """Of each resource of the pick's device what a share more of it buys within the budgets, then what buys as much; as JSON content too.

    theory: what it buys in the continuous problem, nats, where that covers the study.
    """
    if not gains:
        return [], []
    there, own = on_its_device(problem, pick)
    told = _beside_pick(there, own, [each.bought for each in gains if each.bought is not None])
    lines = [_line(there, each, told) for each in gains]
    if theory:
        nats = ", ".join(f"{name} {nats if nats > NOTHING else 0:.2g} nats" for name, nats in theory.items())
        lines.append(f"In the continuous problem of plas theory, with its experts: {nats}")
    title = f"What more of {there.scenario.device.name} would buy within the same budgets, solved exactly"
    content = [
        {
            "resource": each.resource,
            "step": each.step,
            "nats": each.nats,
            "bought": _in_numbers(each.bought, told),
            "difference": None if each.difference is None else vars(each.difference),
            "by_range": each.by_range,
            "tokens": each.tokens,
            "theory": theory.get(each.resource),
        }
        for each in gains
    ]
    return [Section(title, (*lines, *_as_much(gains)), folded=True)], content


def _beside_pick(problem: Problem, pick: Evaluations, bought: Sequence[Gain]) -> dict[Gain, sureness.Witness]:
    """What `evidence` says of designs that were bought beside a pick of one row; none under a law that rests on it."""
    if not bought:
        return {}
    designs = Architectures.concatenate(map(_architecture, bought))
    own = problem.architectures(np.repeat(pick.genotypes, len(bought), axis=0))
    by_gain = zip(bought, sureness.witnesses(problem.scenario.law, designs, own), strict=True)
    return {gain: witness for gain, witness in by_gain if witness is not None}


def _nothing(problem: Problem) -> str:
    return "buys nothing inside of the evidence (beyond it: not known)" if problem.fenced else "buys nothing"


def _in_words(gain: Gain, told: Told) -> str:
    """`loss 2.8910 nats (−0.0074 nats) by 32 layers, …`, and what `evidence` says of it."""
    star = "*" if gain.extrapolates else ""
    by = f"loss {gain.loss:.4f}{star} nats (−{gain.gain:.2g} nats) by {describe(_architecture(gain).on(''))}"
    return by + sureness.beside_evidence(told.get(gain), brief=True)


def _in_numbers(gain: Gain | None, told: Told) -> dict[str, Any] | None:
    """What was bought as JSON content, with what `evidence` says of it; None of nothing."""
    if gain is None:
        return None
    return vars(gain) | ({"evidence": sureness.witness_in_numbers(told[gain])} if gain in told else {})


def _architecture(gain: Gain) -> Architectures:
    return one({name: gain.design[name] for name in (*SHAPE, *KIND_DEFAULTS, *FURTHER_AXES) if name in gain.design})


def _line(problem: Problem, gained: DeviceGain, told: Told) -> str:
    more = with_more(problem, gained.resource, 1.0 + gained.step).scenario
    line = f"{gained.resource} +{100 * gained.step:g} % ({_amount(more, gained.resource)}): "
    if gained.bought is None:
        return line + _nothing(problem)
    line += _in_words(gained.bought, told)
    line += "" if gained.difference is None else f"; {sureness.difference_in_words(gained.difference)}"
    if gained.by_range is None:
        return line
    return f"{line}; {gained.by_range[0]:.2g} to {gained.by_range[1]:.2g} over the measured range of times"


def _as_much(gains: tuple[DeviceGain, ...]) -> list[str]:
    """What buys as much as the resource that buys most: others in proportion to their own step, and training tokens."""
    largest = max(gains, key=lambda each: each.nats)
    if largest.bought is None:
        return ["Nothing of the device holds a lower loss back: the evidence, the space or the other budgets do"]
    others = [
        f"{100 * other.step * largest.nats / other.nats:.2g} % more {other.resource}"
        for other in gains
        if other is not largest and other.nats > 0
    ]
    if largest.tokens is not None:
        others.append(f"{100 * (largest.tokens - 1.0):.2g} % more training tokens of the same design")
    head = f"{100 * largest.step:g} % more {largest.resource} buys as much as"
    return [f"{head} {', or '.join(others)} (in proportion)"] if others else []


def _amount(scenario: Scenario, resource: str) -> str:
    """How much of a resource a device has, with its unit."""
    device, peak = scenario.device, scenario.precision.linear_peak
    if resource == "compute":
        return f"{device.peak(peak) / 1e12:.4g} {'TOP/s' if peak == 'int8' else 'TFLOP/s'} {peak}"
    figures = {"bandwidth": f"{device.bandwidth / 1e9:.4g} GB/s", "memory": f"{device.memory_gb:.4g} GB"}
    return figures.get(resource, f"{(device.cache or 0.0) / 1e6:.4g} MB")
