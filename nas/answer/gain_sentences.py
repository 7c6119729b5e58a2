"""Gains of relaxing a budget or an axis, in sentences and as plain content."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nas.answer.design_words import describe, model_size
from nas.answer.sureness import EVIDENCE, Witness, beside_evidence, with_own_picks, witness_in_numbers, witnesses
from nas.document.document import Section
from nas.exact.device_gains import DeviceGain, on_its_device, with_more
from nas.exact.gains import BudgetGain, Gain, Gains
from nas.problem.diagnosis import at_least
from nas.problem.evaluations import Evaluations
from nas.problem.objective import OWN, PickQuery
from nas.problem.problem import Problem
from nas.problem.uncertainty import Difference
from nas.problem.wording import in_words
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures, one
from search_spaces.columns import SHAPE
from search_spaces.layer_kinds import KIND_DEFAULTS
from search_spaces.specification import FURTHER_AXES


def gain_section(problem: Problem, gains: Gains, loss: float) -> Section:
    """The pick within the budgets, then each budget and each axis that holds a better design back; beside each what `evidence` says of it."""
    best, pick = float(gains.pick.metrics["loss"][0]), problem.architectures(gains.pick.genotypes)
    named = "This is" if math.isclose(loss, best, rel_tol=1e-11) else f"Not this one, but {describe(pick)} is"
    by_gain = gain_witnesses(problem, gains)
    lines = [
        f"{named} the lowest loss within the budgets: {best:.4f} nats",
        *(_budget(problem, gain, by_gain) for gain in gains.budgets),
        *(
            f"{in_words(gain.change)} {gain.at:,g}, one step beyond its axis: {bought_in_words(gain, by_gain.get(gain))}"
            for gain in gains.axes
        ),
    ]
    if not gains.axes:
        lines.append(f"no axis: one step beyond any of them {_nothing(problem)} within the budgets")
    lines += ["* extrapolates the law"] * any(gain.extrapolates for gain in _bought(gains))
    lines += own_pick_lines(problem, gains.pick, list(by_gain.values()))
    return Section("What more would buy, solved exactly", tuple(lines))


def gain_witnesses(problem: Problem, gains: Gains) -> dict[Gain, Witness]:
    """What `evidence` says of every gain beside the pick; none under a law that rests on it."""
    return beside_pick(problem, gains.pick, _bought(gains))


def beside_pick(problem: Problem, pick: Evaluations, bought: Sequence[Gain]) -> dict[Gain, Witness]:
    """What `evidence` says of designs that were bought beside a pick of one row; none under a law that rests on it."""
    if not bought:
        return {}
    designs = Architectures.concatenate(map(_architecture, bought))
    own = problem.architectures(np.repeat(pick.genotypes, len(bought), axis=0))
    of_bought = zip(bought, witnesses(problem.scenario.law, designs, own), strict=True)
    return {gain: witness for gain, witness in of_bought if witness is not None}


def own_pick_lines(problem: Problem, pick: Evaluations, of_gains: Sequence[Witness]) -> list[str]:
    """The pick of `evidence` within the budgets, where it does not confirm every gain; nothing of a space that is not solved in no time."""
    doubted = [witness for witness in of_gains if not witness.confirms][:1]
    with_picks = with_own_picks(problem, [(each, PickQuery(OWN, None)) for each in doubted], pick[:0])
    named = [each.own for each in with_picks if each is not None and each.own is not None]
    return [f"The pick of {EVIDENCE} within the same budgets: {model_size(own)}" for own in named]


def _bought(gains: Gains) -> list[Gain]:
    return [*gains.axes, *(gain.relaxed for gain in gains.budgets if gain.relaxed is not None)]


def _nothing(problem: Problem) -> str:
    return "buys nothing inside of the evidence (beyond it: not known)" if problem.fenced else "buys nothing"


def _budget(problem: Problem, gain: BudgetGain, told: Mapping[Gain, Witness]) -> str:
    budget = gain.budget
    free = f"costs nothing down to {budget.with_unit(gain.tightest, at_least(gain.tightest))}"
    if gain.relaxed is None:
        return f"{budget}: {free}; relaxing it alone {_nothing(problem)}"
    more = 100 * (gain.relaxed.at / budget.limit - 1)
    at = budget.with_unit(gain.relaxed.at, at_least(gain.relaxed.at))
    needed = f"the next better design needs {at} (+{more:.2g} %)"
    return f"{budget}: {free}; {needed}: {bought_in_words(gain.relaxed, told.get(gain.relaxed))}"


def bought_in_words(gain: Gain, witness: Witness | None) -> str:
    """`loss 2.8910 nats (−0.0074 nats) by 32 layers, …`, and what `evidence` says of it."""
    star = "*" if gain.extrapolates else ""
    by = f"loss {gain.loss:.4f}{star} nats (−{gain.gain:.2g} nats) by {describe(_architecture(gain).on(''))}"
    return by + beside_evidence(witness, brief=True)


def _architecture(gain: Gain) -> Architectures:
    return one({name: gain.design[name] for name in (*SHAPE, *KIND_DEFAULTS, *FURTHER_AXES) if name in gain.design})


def in_numbers(gain: Gain | None, told: Mapping[Gain, Witness]) -> dict[str, Any] | None:
    """What was bought as JSON content, with what `evidence` says of it; None of nothing."""
    if gain is None:
        return None
    return vars(gain) | ({"evidence": witness_in_numbers(told[gain])} if gain in told else {})


def described(problem: Problem, gains: Gains) -> dict[str, Any]:
    """Gains as JSON content."""
    told = gain_witnesses(problem, gains)
    return {
        "loss": float(gains.pick.metrics["loss"][0]),
        "budgets": [
            {
                "metric": gain.budget.metric,
                "limit": gain.budget.limit,
                "tightest": gain.tightest,
                "relaxed": in_numbers(gain.relaxed, told),
            }
            for gain in gains.budgets
        ],
        "axes": [in_numbers(gain, told) for gain in gains.axes],
    }


NOTHING = 1e-9  # nats, of what is solved by cuts


def device_gain_section(
    problem: Problem, pick: Evaluations, gains: tuple[DeviceGain, ...], theory: Mapping[str, float]
) -> Section:
    """Of each resource of the pick's device what a share more of it buys within the budgets, then what buys as much.

    theory: what it buys in the continuous problem, nats, where that covers the study.
    """
    there, own = on_its_device(problem, pick)
    by_gain = beside_pick(there, own, [gained.bought for gained in gains if gained.bought is not None])
    lines = [_line(there, gained, by_gain) for gained in gains]
    if theory:
        nats = ", ".join(f"{name} {nats if nats > NOTHING else 0:.2g} nats" for name, nats in theory.items())
        lines.append(f"In the continuous problem of plas theory, with its experts: {nats}")
    title = f"What more of {there.scenario.device.name} would buy within the same budgets, solved exactly"
    return Section(title, (*lines, *_as_much(gains)))


def _line(problem: Problem, gained: DeviceGain, told: Mapping[Gain, Witness]) -> str:
    more = with_more(problem, gained.resource, 1.0 + gained.step).scenario
    head = f"{gained.resource} +{100 * gained.step:g} % ({amount(more, gained.resource)})"
    if gained.bought is None:
        return f"{head}: {_nothing(problem)}"
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


def device_described(
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
