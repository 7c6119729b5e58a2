"""Metrics at a quantile by name, `total_ms@q80`: which there are, what is said of them, and where nothing can be claimed."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median
from typing import Any

from nas.errors import UsageError
from nas.problem.evaluations import Evaluations
from nas.problem.objective import cost_of, costs
from nas.problem.picks import MARGIN
from nas.problem.problem import Problem
from objectives.device import Calibration, Phase, Sustained
from objectives.engines import beside_attention
from objectives.measured_bounds import MEASURED, Factor, beyond, factors_of, in_quadrature, level_of
from objectives.plugins import importable
from objectives.scenario import Scenario
from objectives.transfers import error_factor
from objectives.typical.efficiencies import held_out_of
from objectives.typical.sustained import COVERED, slower_than
from search_spaces.architectures import Architectures

_FORM = re.compile(r"^([\w.:]+)@q(\d{1,2}(?:\.\d+)?)$")
_OF_LOSS = re.compile(r"^loss@q(?=.*[1-9])\d{1,2}(\.\d+)?$")


def at_a_quantile(name: str) -> bool:
    """Whether a name is that of a metric at a quantile.

    Raises:
        UsageError: something else after the @, or a metric without measured errors.
    """
    if "@" not in name or _OF_LOSS.match(name):
        return "@" in name
    form, known = _FORM.match(name), (*MEASURED, *costs())
    if form is None or form[1] not in known:
        raise UsageError(f"expected METRIC@qNN with one of {', '.join(known)}, got {name!r}; write total_ms@q90")
    return True


def ships(name: str, figures: Collection[str] = ()) -> bool:
    """Whether a metric is a shipped formula, one of what is measured, at a quantile, or a figure of the device; a loss at a quantile is not."""
    base, at, _ = name.partition("@")
    shipped = base in importable("objectives.metrics") and (not at or base in MEASURED or base in costs())
    return shipped or name in figures


def measured_at(names: Iterable[str]) -> list[str]:
    """Those that are of what is measured, at a quantile."""
    return [name for name in names if "@" in name and name.partition("@")[0] in MEASURED]


def named_in(limits: Iterable[str]) -> list[str]:
    """The metrics that limits as they are typed need, a rate's cost: `total_ms@q80` of `total_ms@q80<=100`."""
    return list(dict.fromkeys(cost_of(re.split("[<>=]", text)[0].strip()) for text in limits))


def knowing(problem: Problem, limits: Iterable[str]) -> Problem:
    """The problem with the metrics at a quantile that limits as they are typed need, and their times as picks keep them.

    Raises:
        UsageError: a quantile that what was held out cannot claim.
    """
    columns = dict.fromkeys([*problem.columns, *measured_at(named_in(limits))])
    problem = replace(problem, columns=tuple(columns))
    refuse_unclaimed(problem)
    return with_margins(problem, named_in(limits))


def with_margins(problem: Problem, limited: Iterable[str] = ()) -> Problem:
    """The problem with the times that it limits, and others, at the quantile that picks keep, where every format and device claims it."""
    times = [name for name, errors in MEASURED.items() if "energy" not in errors.values()]
    named = [*limited, *(budget.metric for budget in problem.budgets)]
    margins = {name + MARGIN for name in times}
    names = dict.fromkeys([*problem.columns, *(name + MARGIN for name in times if name in named)])
    kept = (name for name in names if name not in margins or not any(_unclaimed(problem, name)))
    return replace(problem, columns=tuple(kept))


def with_metrics(problem: Problem, found: Evaluations, names: tuple[str, ...]) -> Evaluations:
    """Evaluations with further shipped metrics of theirs."""
    more = problem.metrics(problem.architectures(found.genotypes), names)[0]
    return replace(found, metrics={**found.metrics, **more})


def refuse_unclaimed(problem: Problem) -> None:
    """Refuse a quantile that what was held out cannot claim in a format that designs may have.

    Raises:
        UsageError: naming the metric, and the format where there are several.
    """
    for name in _measured(problem):
        for place, error in _unclaimed(problem, name):
            where = f"precision {place}: " if problem.scenario.formats else ""
            where = f"{place}: " if problem.scenario.devices else where
            raise UsageError(f"{where}{error}")


def _unclaimed(problem: Problem, name: str) -> Iterator[tuple[str, str]]:
    """Formats or devices in which what was held out does not claim a metric at a quantile, and why."""
    for place, scenario in problem.scenario.each.items():
        try:
            factors_of(*level_of(name), scenario)
        except ValueError as error:
            yield place, str(error)


def about_quantiles(problem: Problem) -> Iterator[str]:
    """Say of each metric at a quantile what its factors are, in every format, and how many models (or devices) stand behind them."""
    experts = problem.space.experts > 1
    kinds = [word for word, some in (("dense", (~experts).any()), ("sparse", experts.any())) if some]
    for name in _measured(problem):
        said: dict[str, list[str]] = {}
        for place, scenario in problem.scenario.each.items():
            said.setdefault(in_words(name, scenario, kinds), []).append(place)
        for words, formats in said.items():
            yield words if len(said) == 1 else f"{' and '.join(formats)}: {words}"


def _measured(problem: Problem) -> list[str]:
    """What a problem's metrics at a quantile are made of, a rate's cost for the rate."""
    return list(dict.fromkeys(measured_at(map(cost_of, problem.asked_besides))))


def in_words(name: str, scenario: Scenario, kinds: list[str]) -> str:
    """`total_ms@q80 is 1.2 x prefill_ms + 1.1 x decode_ms, …`: the factors of dense designs, of sparse ones, or of both where they differ."""
    metric, share = level_of(name)
    factors = factors_of(metric, share, scenario)
    sums = {kind: _sum(factors, kind) for kind in kinds}
    alike = len(set(sums.values())) == 1
    formula = (
        next(iter(sums.values())) if alike else " and ".join(f"{text} of {_designs(k)}" for k, text in sums.items())
    )
    least = min(factors.values(), key=lambda f: f.count)
    return (
        f"{name} is {formula}: what of an unseen {least.what} is measured stays within with probability "
        f"{float(100 * share):g} %, from {least.count} {least.what}s held out{_widened(factors, kinds[-1], alone=not alike)}"
    )


def own_in_words(name: str, scenario: Scenario, chosen: Architectures) -> str:
    """`1.2 x prefill_ms + 1.1 x decode_ms, from 4 models held out`: the factors of one design, in the scenario that prices it."""
    factors = factors_of(*level_of(name), scenario)
    least = min(factors.values(), key=lambda f: f.count)
    return f"{_sum(factors, kind_of(chosen))}, from {least.count} {least.what}s held out"


def own_factors(name: str, scenario: Scenario, chosen: Architectures) -> dict[str, Any]:
    """The same as content: the factor of each term, and how many models (or devices) it is from."""
    factors = factors_of(*level_of(name), scenario)
    least = min(factors.values(), key=lambda f: f.count)
    of_terms = {term: getattr(f, kind_of(chosen)) for term, f in factors.items()}
    return {"factors": of_terms, "held_out": least.count, "of": f"{least.what}s"}


def kind_of(chosen: Architectures) -> str:
    """Whether one architecture has experts."""
    return "sparse" if chosen.n_experts[0] > 1 else "dense"


def _designs(kind: str) -> str:
    return "dense designs" if kind == "dense" else "designs with experts"


def _sum(factors: dict[str, Factor], kind: str) -> str:
    return " + ".join(f"{getattr(f, kind):.3g} x {term}" for term, f in factors.items())


def _widened(factors: dict[str, Factor], kind: str, *, alone: bool) -> str:
    """What of the factors of a kind of designs, perhaps of it alone, is for what was not measured; "" of none."""
    more = {term.removesuffix("_ms"): getattr(f, kind) / f.held_out for term, f in factors.items()}
    wider = [f"{term} {by:.3g}" for term, by in more.items() if by > 1.0]
    whose = f" of {_designs(kind)}" if alone else ""
    return f"; times {', '.join(wider)} of it for what was not measured{whose}" if wider else ""


PHASES: dict[str, tuple[Phase, ...]] = {
    "prefill_ms": ("prefill",),
    "ttft_ms": ("prefill",),
    "decode_ms": ("decode",),
    "tpot_ms": ("decode",),
    "tokens_per_second": ("decode",),
    "total_ms": ("prefill", "decode"),
}
SHARE = Fraction(8, 10)


@dataclass(frozen=True)
class Range:
    """Measured / predicted of a phase, least and largest, and the share of unseen models (or devices) that it claims to hold."""

    least: float
    most: float
    share: Fraction

    def of(self, value: float) -> tuple[float, float]:
        """That of a predicted time."""
        return value * self.least, value * self.most


def phase_range(calibration: Calibration, phase: Phase, scenario: Scenario | None = None) -> Range | None:
    """The range of a phase of which 80 % of what was not seen lie inside, or as many as so few can claim; None with nothing held out.

    Of n models the rank (n + 1)·q from either end; of devices the same quantile of their ratios, as many of each.
    """
    place = (scenario.device, scenario.conditions(experts=False)) if scenario else ()
    seen = held_out_of(calibration, phase, *place)
    if not seen.ratios:
        return None
    ratios, tail = sorted(seen.ratios), max((1 - SHARE) / 2, Fraction(1, seen.count + 1))
    outside = beyond(seen.ranks, seen.count, tail)
    return Range(ratios[outside], ratios[-1 - outside], 1 - 2 * tail)


def time_ranges(
    scenario: Scenario, chosen: Architectures, metrics: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    """The range of each time and rate of one architecture (n = 1) by its name; those of a phase with nothing held out are missing.

    Of its own conditions: it has experts or has none. Both phases of a total are at the same ends of theirs. `metrics` are what is
    predicted, `prefill_ms` among them.
    """
    known = _ranges(scenario, chosen)
    return {
        name: _range_of(name, metrics, known)
        for name in metrics
        if name in PHASES and set(PHASES[name]) <= known.keys()
    }


def share_of(scenario: Scenario, chosen: Architectures) -> int:
    """The per cent of unseen models (or devices) that `time_ranges` claim to hold; 0 where there are none."""
    return round(100 * float(min((r.share for r in _ranges(scenario, chosen).values()), default=Fraction(0))))


def _ranges(scenario: Scenario, chosen: Architectures) -> dict[Phase, Range]:
    """Those of the phases that have one; the upper end is as much later as conditions outside of the measured ones were seen to be.

    At sustained load both ends are wider by what its share is not known to.
    """
    experts, layers, found = bool(chosen.n_experts[0] > 1), beside_attention(chosen), dict[Phase, Range]()
    for phase in PHASES["total_ms"]:
        own = scenario.of_phase(phase)
        known = None if own.calibration is None else phase_range(own.calibration, phase, own)
        if own.calibration is not None and known is not None:
            asked = own.conditions(experts=experts, layers=layers)
            further = error_factor(own.calibration, asked, phase, (1 + known.share) / 2)
            wider = replace(known, most=known.most * further)
            load, ratios = own.sustained, own.calibration.held_out.get(phase) or [1.0]
            found[phase] = wider if load is None else _at_load(wider, median(ratios), load)
    return found


def _at_load(known: Range, middle: float, load: Sustained) -> Range:
    """A range of the first seconds at sustained load: each end and that of the share in quadrature."""
    tail = (1.0 - COVERED) / 2.0
    least, most = (
        in_quadrature(end, middle, slower_than(load, share))
        for end, share in ((known.least, tail), (known.most, 1.0 - tail))
    )
    return replace(known, least=least, most=most)


def _range_of(name: str, times: Mapping[str, float], known: Mapping[Phase, Range]) -> tuple[float, float]:
    """The range of one time or rate."""
    if name == "total_ms":
        prefill, decode = times["prefill_ms"], times[name] - times["prefill_ms"]
        ends = known["prefill"].of(prefill), known["decode"].of(decode)
        return ends[0][0] + ends[1][0], ends[0][1] + ends[1][1]
    only = known[PHASES[name][0]]
    if name == "tokens_per_second":
        return times[name] / only.most, times[name] / only.least
    return only.of(times[name])
