"""Objectives and budgets: a metric, and a metric with a limit."""

import importlib
import inspect
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import inf, nextafter
from typing import Any, Self

import numpy as np

from objectives.assessment import stating
from objectives.device_columns import NONE, Figure
from objectives.plugins import importable
from objectives.profile_choice import energy_named, energy_unseen
from objectives.quantities import day_in_words
from objectives.scenario import Scenario, Workload
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, brief, python_value
from search_spaces.columns import SHAPE


@dataclass(frozen=True)
class Rate:
    """rate = amount / cost, both positive; `amount` is that of a workload."""

    name: str
    cost: str
    amount: float

    def at(self, cost: float) -> float:
        """The rate of a cost, in floating point as the metric's module divides."""
        return self.amount / cost

    def largest_cost(self, least: float) -> float:
        """The largest cost whose rate is at least `least`: cost <= it exactly where rate >= least.

        The quotient of floating-point numbers falls weakly with the cost, so that there is one; amount / least misses
        it by a few last digits at most.
        """
        cost = min(max(self.amount / least, 5e-324), sys.float_info.max)
        while self.at(cost) < least:
            cost = nextafter(cost, 0.0)
        while (further := nextafter(cost, inf)) < inf and self.at(further) >= least:
            cost = further
        return cost


def costs() -> dict[str, str]:
    """The cost of every shipped rate by the rate's name."""
    return stating("COST")


def is_rate(name: str) -> bool:
    """Whether a metric, or a quantile of it, is a rate."""
    return name.partition("@")[0] in costs()


def cost_of(name: str) -> str:
    """The cost of a rate, at its quantile: `tpot_ms@q90` of `tokens_per_second@q90`; any other metric is its own."""
    base, at, level = name.partition("@")
    return f"{costs().get(base, base)}{at}{level}"


def is_energy(name: str) -> bool:
    """Whether a shipped metric, or a quantile of it, is of energy."""
    return name.partition("@")[0] in stating("ENERGY")


def about_energy(scenario: Scenario, *, experts: bool) -> list[str]:
    """The source of the energy of a scenario's requests; empty where it is not known."""
    energy = scenario.energy
    if energy is None or scenario.calibration is None:
        return []
    tokens = scenario.input_tokens + scenario.output_tokens
    unseen = energy_unseen(energy, scenario.precision.name, scenario.batch, tokens, experts=experts)
    return [energy_named(energy), *([unseen] if unseen else [])]


def energies(scenario: Scenario) -> list[str]:
    """The metrics of energy that a scenario has, whatever its text; none where its energy is not known."""
    known = scenario.energy is not None and scenario.calibration is not None
    return [name for name in stating("ENERGY") if known and name not in stating("PER_BYTE")]


def rate_of(name: str, workload: Workload) -> Rate | None:
    """A rate of a workload by its name, at a quantile too; None of any other metric."""
    if not is_rate(name):
        return None
    module = importlib.import_module(f"objectives.metrics.{name.partition('@')[0]}")
    return Rate(name, cost_of(name), float(module.amount(workload)))


def rates_by_cost(names: Iterable[str], workload: Workload) -> dict[str, Rate]:
    """The rates among some metrics, each by its cost; of two over one cost the first."""
    rates: dict[str, Rate] = {}
    for name in names:
        if (rate := rate_of(name, workload)) is not None:
            rates.setdefault(rate.cost, rate)
    return rates


def as_costs(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Objectives with the cost in place of each rate, and what to say of them."""
    lines = [
        f"{name} is greatest where {cost_of(name)} is least, which is minimised: the frontier is the same"
        for name in names
        if is_rate(name)
    ]
    return list(dict.fromkeys(map(cost_of, names))), lines


def limits_of_costs(limits: Mapping[str, float], workload: Workload) -> tuple[dict[str, float], list[str]]:
    """The same limits with `cost <= limit` in place of each `rate >= limit`, and what to say of them.

    A quantile stays: `tokens_per_second@q90 >= 20` is `tpot_ms@q90 <= 50`. Of two limits on one cost the tighter holds.
    """
    found = {name: limit for name, limit in limits.items() if not is_rate(name)}
    lines = []
    for name, least in limits.items():
        rate = rate_of(name, workload)
        if rate is None:
            continue
        most = rate.largest_cost(least)
        lines.append(f"{name} >= {least:g} is {rate.cost} <= {most:.6g}")
        found[rate.cost] = min(most, found.get(rate.cost, inf))
    return found, lines


EXTRAPOLATION, INSIDE = (
    "extrapolation",
    1.0,
)  # the metric and the limit that keep designs inside of what the law's rows cover
KEEP = 1 / 3  # of the designs that end a fidelity step


@dataclass(frozen=True)
class Objective:
    """A metric to minimise: one of `objectives.metrics`, a user's `package.module:function`, or an installed package's.

    place: `package.module:function`, where a worker process imports the function, `package.module:function.column` of one that returns several by name; prior: the shipped metric that
    approximates the user's function ("" where none does), for strategies that learn from few evaluations; cost_s: seconds
    that one architecture takes, as the function says (0: it does not); settings: the study's for a function that ships, given
    to it by name (None: of a user's); fidelities: from the cheapest to the full one, given to the function by name (none: it has
    no steps), of which the best share `keep` goes from each to the next; fidelity: the one to evaluate at (None: the full one).
    """

    name: str
    unit: str = ""
    log_scale: bool = False
    function: Callable[..., Any] | None = None
    place: str = ""
    prior: str = ""
    cost_s: float = 0.0
    settings: Mapping[str, Any] | None = field(default=None, compare=False)
    fidelities: tuple[float, ...] = ()
    keep: float = KEEP
    fidelity: float | None = None

    def at(self, fidelity: float) -> Self:
        """The metric at a fidelity of its own."""
        return replace(self, fidelity=fidelity)

    @property
    def label(self) -> str:
        """Its name with its fidelity, which no other metric has."""
        return self.name if self.fidelity is None else f"{self.name}@{self.fidelity!r}"

    @cached_property
    def wants_scenario(self) -> bool:
        """Whether the user's function takes the scenario (device, precision, workload) besides the architectures."""
        return self.function is not None and takes_scenario(self.function)

    def values(self, architectures: Any, scenario: Any) -> Any:
        """Values of the user's function for architectures, given the scenario where it takes one, settings, and a fidelity.

        Args:
            architectures: (n,).
            scenario: what they are priced in.
        """
        assert self.function is not None
        given = (architectures, scenario) if self.wants_scenario else (architectures,)
        named: dict[str, Any] = {} if self.settings is None else {"settings": self.settings}
        if self.fidelities or self.fidelity is not None:
            named["fidelity"] = self.fidelities[-1] if self.fidelity is None else self.fidelity
        if not self.column:
            return self.function(*given, **named)
        columns = _returned(self.function, pickle.dumps((given, named)))
        return columns[self.column] if isinstance(columns, Mapping) and self.column in columns else columns

    @property
    def column(self) -> str:
        """What of a function that returns several columns is meant; "" of one that returns its values alone."""
        return self.place.rpartition(":")[2].partition(".")[2]

    def scaled(self, values: FloatArray) -> FloatArray:
        """Values on the scale that hypervolume and distances use (natural log or as they are)."""
        with np.errstate(divide="ignore"):
            return np.log(values) if self.log_scale else values


@dataclass(frozen=True)
class Budget:
    """`metric <= limit`; the violation is value/limit − 1, feasible at ≤ 0.

    rate: what the limit is shown as besides, where it was asked for as the least of a rate; unit: that of the limit where it
    decides how it is shown, a date.
    """

    metric: str
    limit: float
    rate: Rate | None = field(default=None, compare=False)
    unit: str = field(default="", compare=False)

    @property
    def of_evidence(self) -> bool:
        """Whether it is no limit on what a design takes, but keeps designs inside of what the law's rows cover."""
        return self.metric == EXTRAPOLATION

    def violation(self, values: FloatArray) -> FloatArray:
        """value/limit − 1, (n,); NaN values give NaN.

        Args:
            values: of the metric, in its unit, (n,).
        """
        return values / self.limit - 1.0

    def __str__(self) -> str:
        if self.of_evidence:
            return (
                "inside the law's evidence" if self.limit <= INSIDE else f"at most {self.limit:g} times outside of it"
            )
        least = "" if self.rate is None else f" ({self.rate.name} >= {self.rate.at(self.limit):.6g})"
        return f"{self.metric} <= {self.shown(self.limit, f'{self.limit:g}')}{least}"

    def shown(self, value: float, number: str) -> str:
        """A value of the metric as the number that it is shown as, of dates the day."""
        return day_in_words(value) if self.unit == "date" else number

    def with_unit(self, value: float, number: str) -> str:
        """A value of the metric as a number with its unit, of dates the day."""
        unit = self.unit or unit_of(self.metric)
        return self.shown(value, number) if unit == "date" else f"{number} {unit}".strip()

    def in_rates(self, cost: float) -> str:
        """` (tokens_per_second 20)` of a cost, "" without a rate."""
        return "" if self.rate is None else f" ({self.rate.name} {self.rate.at(cost):.4g})"


@lru_cache(maxsize=4)
def _returned(function: Callable[..., Any], given: bytes) -> Any:
    """What a function of several columns returns, for all of which it is called once."""
    positional, named = pickle.loads(given)
    return function(*positional, **named)


def takes_scenario(function: Callable[..., Any]) -> bool:
    """Whether a function has a second positional argument without a default, or one called `scenario`."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some built-in functions tell nothing of theirs
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) > 1 and (positional[1].name == "scenario" or positional[1].default is positional[1].empty)


def built_in(name: str, figures: Mapping[str, Figure] = NONE) -> Objective:
    """The objective of a module in `objectives.metrics`; `loss@q90` is a quantile of one; any other name is a device's figure, with its unit."""
    base = name.partition("@")[0]
    if base not in importable("objectives.metrics"):
        return Objective(name, figures[name].unit if name in figures else "")
    module = importlib.import_module(f"objectives.metrics.{base}")
    return Objective(name, module.UNIT, module.LOG_SCALE)


def limit_on_cost(metric: str, limit: float, workload: Workload) -> Budget:
    """A limit as a budget: at most, of a rate at least, which is a limit on its cost."""
    rate = rate_of(metric, workload)
    if rate is None:
        return Budget(metric, limit, unit=unit_of(metric, workload.figures))
    return Budget(rate.cost, rate.largest_cost(limit), rate)


def unit_of(metric: str, figures: Mapping[str, Figure] = NONE) -> str:
    """The unit of a shipped metric, or of a figure of the device; none of a user's."""
    return built_in(metric, figures).unit


OWN = "your budgets"


@dataclass(frozen=True)
class PickQuery:
    """Which feasible architecture of lowest loss, or of the `least` of another metric, also satisfies this budget, and those of `within`?

    No budget: the study's own are all that is asked. `vocabulary` is the one that both sides of a
    comparison are given (None: the study's own); `baseline` names the model whose figures are the
    limits, "" otherwise; `dense` asks for architectures without experts to choose from.
    """

    label: str
    budget: Budget | None
    vocabulary: int | None = None
    baseline: str = ""
    within: tuple[Budget, ...] = ()
    dense: bool = False
    least: str = "loss"

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """The budgets that it adds to the study's own."""
        return (*(() if self.budget is None else (self.budget,)), *self.within)


@brief
@dataclass(frozen=True, eq=False)
class Baseline:
    """A published model, or any architecture, to compare with."""

    label: str
    architecture: Architectures

    def mapping(self) -> dict[str, Any]:
        """The baseline as YAML content."""
        row = {name: getattr(self.architecture, name)[0].item() for name in SHAPE}
        further = {name: python_value(column[0]) for name, column in self.architecture.further_columns().items()}
        return {"name": self.label, **row, **further}
