"""Times of designs under preset `device`, and why they differ from the study's own."""

from collections.abc import Mapping, Sequence

import numpy as np

from nas.problem.objective import OWN, PickQuery
from nas.problem.picks import Pick
from nas.problem.problem import Problem
from nas.problem.quantiles import PHASES, phase_range, share_of, time_ranges
from objectives.device import CHIPS, Calibration
from objectives.profile_choice import doubts, far_off
from objectives.scenario import Scenario
from objectives.transfers import article, takes_as_measured
from search_spaces.architectures import Architectures

TIMES = ("prefill_ms", "decode_ms", "tpot_ms", "total_ms")
PREFIX = "device_"  # of a time's name: device_total_ms is total_ms under preset `device`
ALIKE = 1e-9  # relative
OWN_QUERY = PickQuery(OWN, None)  # what is asked within your budgets


def device_times(on_device: Problem, pick: Pick) -> dict[str, float]:
    """Every time of a pick under preset `device` by its name there, ms; empty without a pick."""
    if pick.answer is None:
        return {}
    found = on_device.evaluate(pick.answer.genotypes, TIMES).metrics
    return {f"{PREFIX}{name}": float(found[name][0]) for name in TIMES}


def limits(problem: Problem, question: PickQuery = OWN_QUERY) -> dict[str, float]:
    """The limits that a question is about: the study's own, or those that it adds to them."""
    return {b.metric: b.limit for b in (problem.limits if question.budget is None else question.budgets)}


def times_of(problem: Problem, question: PickQuery = OWN_QUERY) -> tuple[str, ...]:
    """The times that a question limits, at a quantile too; total_ms where it limits none."""
    limited = dict.fromkeys(name.partition("@")[0] for name in limits(problem, question))
    return tuple(name for name in limited if name in TIMES) or ("total_ms",)


def misses(limited: Mapping[str, float], there: Mapping[str, float]) -> bool | None:
    """Whether a design misses one of its limits on the device; None where none is on a time."""
    over = [there[f"{PREFIX}{name}"] > limit for name, limit in limited.items() if name in TIMES and there]
    return any(over) if over else None


def verdict(problem: Problem, on_device: Problem, missed: list[bool | None], column: str = f"{PREFIX}ms: ") -> str:
    """One sentence: what the `column` of times is, how many designs miss their limit there, and why."""
    judged = [miss for miss in missed if miss is not None]
    text = f"{column}the same time under preset device, which counts {', '.join(map(''.join, counted(problem, on_device).items()))}"
    if not judged:
        return f"{text}."
    if not any(judged):
        return f"{text}; every time limit is met there too."
    return (
        f"Every limit holds in this study's convention. {text}: {sum(judged)} of {len(judged)} time limits "
        "are missed there. --preset device searches within them."
    )


def counted(problem: Problem, on_device: Problem) -> dict[str, str]:
    """What preset `device` counts and the study does not, each with its details."""
    here, there, parts = problem.scenario, on_device.scenario, dict[str, str]()
    if on_device.vocabulary != problem.vocabulary:
        parts["an LM head"] = f" of {on_device.vocabulary:,} tokens"
    if there.complete and not here.complete:
        parts["residuals and rotary embedding"] = ""
    if any(there.on_device(name).calibration != here.on_device(name).calibration for name in here.by_device):
        named = "" if there.formats or there.devices else f"{there.precision.name}; "
        parts["achieved speeds"] = f" ({named}{speeds(there)})"
    return parts or {"other conventions": ""}


def speeds(scenario: Scenario) -> str:
    """How fast the device is taken to be, and in which format that was measured."""
    if scenario.devices:
        return "; ".join(f"{name}: {speeds(each)}" for name, each in scenario.by_device.items())
    if scenario.formats:
        return "; ".join(f"{each.precision.name}: {speeds(each)}" for each in scenario.formats)
    profile = scenario.calibration
    if profile is None:
        return "datasheet peaks"
    if profile.typical:
        return typical_in_words(profile, scenario)
    batch = "" if profile.batch == scenario.batch else f" at batch {profile.batch}"
    engine = profile.engine or "an unnamed engine"
    where = "; ".join([f"{batch} with {engine}", *far_off(profile)])
    if profile.between:
        return f"efficiencies between those measured in {profile.between}{where}"
    if takes_as_measured(profile, scenario.precision.name):
        measured = {(True, False): " in decode alone", (False, True): " in prefill alone"}
        phases = measured.get((profile.prompts is None, profile.contexts is None), "")
        return f"efficiencies{' and memory' * (profile.memory_factor is not None)} measured{phases}{where}"
    return f"efficiencies transferred from {article(profile.format or profile.precision)} measurement{where}"


def typical_in_words(profile: Calibration, scenario: Scenario) -> str:
    """Of what a profile is typical, and how far devices of the class lie from it."""
    engine = f" with {profile.engine}" if profile.engine else ""
    chips = CHIPS[profile.typical or "any"]
    ranges = {phase: phase_range(profile, phase, scenario) for phase in PHASES["total_ms"]}
    took = [f"{phase} {r.least:.2g} to {r.most:.2g}" for phase, r in ranges.items() if r is not None]
    return f"typical of {chips}{engine}, of which 80 % take {', '.join(took)} times as long as predicted"


def ranges_in_words(
    scenario: Scenario, chosen: Architectures, metrics: Mapping[str, float], names: Sequence[str], of: str = "%:"
) -> str:
    """`80 %: total 110 to 205 ms`: where measured times of one design lie, of those that are named; "" with nothing held out."""
    ranges = time_ranges(scenario, chosen, metrics)
    ends = {name: " to ".join(map(in_ms, ranges[name])) for name in names if name in ranges}
    named = ", ".join(f"{name.removesuffix('_ms')} {between} ms" for name, between in ends.items())
    return f"{share_of(scenario, chosen)} {of} {named}" if named else ""


def ranges_of_what(
    scenario: Scenario, chosen: Architectures, metrics: Mapping[str, float], names: Sequence[str]
) -> str:
    """The same with what it is 80 % of: `80 % of devices of its class: total 110 to 205 ms`."""
    typical = scenario.calibration is not None and scenario.calibration.by_device
    of = "% of devices of its class:" if typical else "% of what was held out:"
    return ranges_in_words(scenario, chosen, metrics, names, of)


def in_ms(value: float) -> str:
    """Three digits of a time."""
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def latency_certainty(scenario: Scenario) -> str:
    """How far the times are known to be off, in a sentence, one for each format that designs may have of their own."""
    if scenario.devices:
        return " ".join(f"{name}: {latency_certainty(each)}" for name, each in scenario.by_device.items())
    if scenario.formats:
        return " ".join(dict.fromkeys(latency_certainty(each) for each in scenario.formats))
    profile = scenario.calibration
    if profile is None:
        known = "".join(doubts(scenario.device, None)).removeprefix("times are at datasheet peaks")
        error = known or ": how far a real device is off is unknown here"
        return f"Times are roofline predictions at datasheet peaks{error}."
    if profile.typical:
        return f"Times are {speeds(scenario)}."
    off = [
        f"{phase} {100 * np.median([abs(1.0 / ratio - 1.0) for ratio in ratios]):.0f} %"
        for phase, ratios in profile.held_out.items()
        if ratios
    ]
    errors = f"off by a median of {', '.join(off)} on models held out from it" if off else "with no errors held out"
    return f"Times are predictions with {speeds(scenario)}, {errors}."


def alike(problem: Problem, picks: Sequence[tuple[Pick, Mapping[str, float]]]) -> bool:
    """Whether the times of picks on the device are the study's own, so that they need no column."""
    pairs = [
        (pick.answer.metrics[name][0], there[f"{PREFIX}{name}"])
        for pick, there in picks
        if pick.answer is not None
        for name in times_of(problem, pick.question)
    ]
    return all(np.isclose(ours, theirs, rtol=ALIKE, atol=0.0) for ours, theirs in pairs)
