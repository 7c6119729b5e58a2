"""Metrics of one batch of architectures in one scenario, each computed once, on demand."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import numpy as np

from objectives.counts import ParameterGroups, count
from objectives.dimensions import Dimensions
from objectives.latency import closed_form, roofline
from objectives.measured_bounds import MEASURED, at_quantile, factors_of, level_of
from objectives.parts import OF_NO_DEVICE
from objectives.plugins import importable
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray, brief, derived


@brief
@dataclass(frozen=True, eq=False)
class Assessment:
    """`assessment["total_ms"]` is that metric as (n,); modules of `objectives.metrics` define them.

    `elsewhere` assesses the same architectures on another device: what depends on no device is taken from there. `whole`
    assesses more architectures in the same scenario, of which these are the `rows`, (n,): everything is taken from there.
    `mixer` gives what is known already of the operator latency: seconds of a layer's mixer, (2, n).
    """

    architectures: Architectures
    scenario: Scenario
    _known: dict[str, FloatArray] = field(default_factory=dict)
    elsewhere: "Assessment | None" = None
    whole: "Assessment | None" = None
    rows: IntArray | None = None
    mixer: Callable[[], FloatArray] | None = None

    def __getitem__(self, metric: str) -> FloatArray:
        if self.elsewhere is not None and metric.partition("@")[0] in OF_NO_DEVICE:
            return self.elsewhere[metric]
        if metric not in self._known:
            if self.whole is not None:
                values: FloatArray = self.whole[metric][self.rows]
            else:
                values = self._together(metric) if self._by_design else self._computed(metric)
            values.flags.writeable = False
            self._known[metric] = values
        return self._known[metric]

    @derived
    def dimensions(self) -> Dimensions:
        """Columns of the architectures as floats, made once for all metrics."""
        return Dimensions(self.architectures)

    @derived
    def parameters(self) -> ParameterGroups:
        """Parameters of the architectures by group, counted once for all metrics."""
        return count(self.architectures, self.dimensions)

    @cached_property
    def _by_design(self) -> list[tuple[IntArray, "Assessment"]]:
        """Rows of each format, vocabulary and layout with their assessment there, where these are the architectures' own."""
        groups = self.scenario.by_design(self.architectures)
        groups = groups or [(rows, self.scenario) for rows in self.architectures.in_layouts()]
        return [(rows, Assessment(self.architectures[rows], scenario)) for rows, scenario in groups]

    def _together(self, metric: str) -> FloatArray:
        values = np.empty(len(self.architectures))
        for rows, part in self._by_design:
            values[rows] = part[metric]
        return values

    def _computed(self, metric: str) -> FloatArray:
        """The metric, or for `loss@q90` and `total_ms@q80` its quantile over the law's draws, over what was held out.

        A figure of the device is the same for every architecture.
        """
        if (figure := self.scenario.device.columns.get(metric)) is not None:
            return np.full(len(self.architectures), figure.value)
        found: FloatArray = self._at_quantile(metric) if "@" in metric else _defined(metric).evaluate(self)
        return found

    def _at_quantile(self, metric: str) -> FloatArray:
        """A metric's quantile; a rate's is that of its cost."""
        name, _, level = metric.partition("@q")
        module = _defined(name)
        if name in MEASURED:
            factors = factors_of(*level_of(metric), self.scenario)
            return at_quantile({term: self[term] for term in factors}, self.architectures.n_experts, factors)
        if hasattr(module, "COST"):
            return np.asarray(module.amount(self.scenario) / self[f"{module.COST}@q{level}"])
        return np.asarray(module.quantile(self, float(level) / 100))

    def phase_ms(self, phase: str) -> FloatArray:
        """Return prefill or decode latency in the scenario's fidelity, ms, (n,); both are cached."""
        if phase not in self._known:
            if self.scenario.latency == "closed_form":
                times = closed_form.latency_ms(self.architectures, self.scenario)
            else:
                mixer = None if self.mixer is None else self.mixer()
                times = roofline.latency_ms(self.dimensions, self.scenario, mixer)
            self._known["prefill"], self._known["decode"] = times
        return self._known[phase]


@cache
def _defined(metric: str) -> ModuleType:
    """The module that defines a metric.

    Raises:
        ValueError: none does, so that it is a figure that the device lacks.
    """
    if metric not in importable("objectives.metrics"):
        raise ValueError(
            f"{metric}: expected a figure of every device, got one without; give columns.{metric} in its file"
        )
    return importlib.import_module(f"objectives.metrics.{metric}")


@cache
def stating(attribute: str) -> dict[str, Any]:
    """Return the shipped metrics whose modules define an attribute, `COST` or `ENERGY`, each with its value."""
    modules = {name: _defined(name) for name in importable("objectives.metrics")}
    return {name: getattr(module, attribute) for name, module in modules.items() if hasattr(module, attribute)}


def on_devices(first: Assessment, scenarios: Sequence[Scenario]) -> Iterator[Assessment]:
    """Return the same architectures assessed in scenarios that differ only in device and calibration.

    Operators are built once for all of them, and what depends on no device is computed once.
    """
    if first.scenario.latency == "closed_form":
        times = [closed_form.latency_ms(first.architectures, scenario) for scenario in scenarios]
    else:
        times = roofline.latencies_ms(first.dimensions, scenarios)
    for scenario, (prefill, decode) in zip(scenarios, times, strict=True):
        yield Assessment(first.architectures, scenario, {"prefill": prefill, "decode": decode}, first)
