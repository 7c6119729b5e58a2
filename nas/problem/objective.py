"""Objectives and budgets: a metric, and a metric with a limit."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from nas.problem.rates import Rate, rate_of
from objectives.device_columns import NONE, Figure
from objectives.plugins import importable
from objectives.quantities import day_in_words
from objectives.scenario import Workload
from search_spaces.arrays import FloatArray

EXTRAPOLATION, INSIDE = (
    "extrapolation",
    1.0,
)  # the metric and the limit that keep designs inside of what the law's rows cover
KEEP = 1 / 3  # of the designs that end a fidelity step


@dataclass(frozen=True)
class Objective:
    """A metric to minimise: one of `objectives.metrics`, a user's `package.module:function`, or an installed package's.

    place: `package.module:function`, where a worker process imports the function; prior: the shipped metric that
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
        """Values of the user's function for architectures, given the scenario where it takes one, settings, and a fidelity."""
        assert self.function is not None
        given = (architectures, scenario) if self.wants_scenario else (architectures,)
        named: dict[str, Any] = {} if self.settings is None else {"settings": self.settings}
        if self.fidelities or self.fidelity is not None:
            named["fidelity"] = self.fidelities[-1] if self.fidelity is None else self.fidelity
        return self.function(*given, **named)

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
        """value/limit − 1, (n,); NaN values give NaN."""
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
