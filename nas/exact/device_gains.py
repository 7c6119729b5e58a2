"""Gains from more of a device: the lowest loss within the same budgets with more of one resource."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from nas.exact.gains import DIFFERENT, Gain, best_within, covered, gain, margins_of
from nas.exact.setting_by_setting import SettingBySetting
from nas.exact.solution import Enumerated
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from nas.problem.quantiles import PHASES, time_ranges
from nas.problem.settings import in_setting, trained_on
from nas.problem.uncertainty import Difference, differences, has_doubt
from objectives.device import Device
from objectives.loss_law.law import Law
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures

STEP = 0.1  # of each resource
OF_MEMORY = ("memory_gb", "resident_gb")
Factors = Mapping[str, float]  # on limits, by metric
Losses = Sequence[float | None]
MOST_TOKENS = 1000.0  # times as many, beyond which no number of them is looked for


def _more_compute(device: Device, by: float) -> dict[str, Any]:
    more = {name: peak * by for name, peak in device.peaks.items()}
    return {name: more.pop(name, None) for name in ("fp16", "int8")} | {"other_peaks": more}


#: What more of a resource changes in a device.
RESOURCES: Mapping[str, Callable[[Device, float], dict[str, Any]]] = MappingProxyType(
    {
        "compute": _more_compute,
        "bandwidth": lambda device, by: {"bandwidth": device.bandwidth * by},
        "memory": lambda device, by: {"memory": device.memory * by},
        "cache": lambda device, by: {"cache": (device.cache or 0.0) * by},
    }
)


@dataclass(frozen=True)
class DeviceGain:
    """The gain from a given increase of a resource; `bought` is None if there is no gain.

    difference: from the pick, with how sure the law is, None of a law that does not say. by_range: nats where times are the least and
    the greatest that were measured of what is predicted, None where nothing was held out or no time is limited. tokens: the number of
    times as many training tokens that lower the pick's loss as far, None where the law says none.
    """

    resource: str
    step: float
    bought: Gain | None
    difference: Difference | None
    by_range: tuple[float, float] | None
    tokens: float | None

    @property
    def nats(self) -> float:
        """The reduction of the loss, nats."""
        return 0.0 if self.bought is None else self.bought.gain


def device_gains(problem: Problem, pick: Evaluations, step: float = STEP) -> tuple[DeviceGain, ...]:
    """Return the exact gain from more of each resource of the pick's device within the problem's budgets.

    A budget on memory grows with the memory, in the same proportion. On several devices that of the pick alone has more, and
    designs on it alone are asked for.

    Raises:
        UsageError: exact answers are impossible.
        Exceeded: they would take more than seconds.
    """
    problem, pick = on_its_device(problem, pick)
    factors = _at_ends(problem, pick)
    before = _lowest_within(covered(problem), problem, factors) if factors else []
    return tuple(_gain_of(problem, pick, name, step, factors, before) for name in _resources(problem.scenario))


def on_its_device(problem: Problem, pick: Evaluations) -> tuple[Problem, Evaluations]:
    """Return the problem for designs on the pick's device, and the pick in it."""
    if "device" not in problem.space.settings:
        return problem, pick
    design = problem.architectures(pick.genotypes)
    there = in_setting(problem, {"device": int(design.device[0])})
    return there, there.evaluate(there.space.genotypes(there.space.find(design)))


def _resources(scenario: Scenario) -> Iterator[str]:
    yield from ("compute", "bandwidth", "memory")
    if scenario.cached:
        yield "cache"


def _gain_of(
    problem: Problem, pick: Evaluations, resource: str, step: float, factors: Sequence[Factors], before: Losses
) -> DeviceGain:
    more = with_more(problem, resource, 1.0 + step)
    better = Budget("loss", float(pick.metrics["loss"][0]) * (1.0 - DIFFERENT))
    whole = covered(more)
    found = best_within(whole, (*more.budgets, *margins_of(pick), better))
    by_range = _by_range(before, _lowest_within(whole, more, factors))
    if found is None:
        return DeviceGain(resource, step, None, None, by_range, None)
    bought, law = gain(more, pick, found, resource, 1.0 + step), problem.scenario.law
    design, own = (problem.architectures(each.genotypes) for each in (found, pick))
    sure = differences(law, design, own)[0][0] if has_doubt(law) else None
    return DeviceGain(resource, step, bought, sure, by_range, tokens_for(law, own, bought.loss))


def with_more(problem: Problem, resource: str, by: float) -> Problem:
    """Return the problem on a device with so many times as much of a resource, within budgets that leave it."""

    def on(scenario: Scenario) -> Scenario:
        device = scenario.device.model_copy(update=RESOURCES[resource](scenario.device, by))
        return replace(scenario, device=device, formats=tuple(map(on, scenario.formats)))

    grown = resource == "memory"
    budgets = tuple(
        replace(budget, limit=budget.limit * by) if grown and budget.metric in OF_MEMORY else budget
        for budget in problem.budgets
    )
    return replace(problem, scenario=on(problem.scenario), budgets=budgets, queries=())


def _at_ends(problem: Problem, pick: Evaluations) -> tuple[Factors, ...]:
    """What limits on times are multiplied by where each time is the least, and the greatest, of its measured range; none where one has no range."""
    design = problem.architectures(pick.genotypes)
    limited = [budget.metric for budget in problem.budgets if budget.metric in PHASES]
    times = {name: float(pick.metrics[name][0]) for name in PHASES if name in pick.metrics}
    ranges = time_ranges(problem.pricing(design), design, times)
    if not limited or any(name not in ranges for name in limited):
        return ()
    return tuple({name: times[name] / ranges[name][end] for name in limited} for end in (0, 1))


def _lowest_within(whole: Enumerated | SettingBySetting, problem: Problem, factors: Sequence[Factors]) -> Losses:
    """The lowest loss where limits on times are multiplied so."""
    found = []
    for each in factors:
        budgets = tuple(replace(b, limit=b.limit * each.get(b.metric, 1.0)) for b in problem.budgets)
        best = best_within(whole, budgets)
        found.append(None if best is None else float(best.metrics["loss"][0]))
    return found


def _by_range(before: Losses, after: Losses) -> tuple[float, float] | None:
    """The least and the greatest that is bought at the ends; None where nothing fits at one, or there are none."""
    bought = [max(0.0, a - b) for a, b in zip(before, after, strict=True) if a is not None and b is not None]
    return (min(bought), max(bought)) if bought and len(bought) == len(before) else None


def tokens_for(law: Law, design: Architectures, loss: float) -> float | None:
    """Return the factor on training tokens that lowers a design's loss (n = 1) to this one; None if none does or the law has no tokens."""
    if not law.sees_tokens or (law.tokens is None and not design.tokens[0]):
        return None
    own = float(law.tokens_of(design)[0])

    def at(times: float) -> float:
        return float(trained_on(law, own * times).loss(design.with_tokens(0))[0])

    least, most = 1.0, MOST_TOKENS
    if at(most) > loss:
        return None
    while most / least > 1.0 + 1e-6:
        middle = float(np.sqrt(least * most))
        least, most = (middle, most) if at(middle) > loss else (least, middle)
    return most
