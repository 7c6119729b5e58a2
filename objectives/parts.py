"""Metrics as sums over the parts of an architecture, so that a space can be searched part by part.

An architecture of width d has three parts: its base (depth and what width alone decides), its
attention (n_kv) and its FFN (E, K, m). A metric that declares `parts` is

    u = base(l, d) + l · (attention_l(d, n_kv) + ffn_l(d, E, K, m)) + attention(d, n_kv) + ffn(d, E, K, m)

where a term of the FFN part rises or falls (weakly) with E among E > 1, and with m, the rest fixed.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from objectives.counts import ParameterGroups, count
from objectives.dimensions import Dimensions
from objectives.latency import closed_form, roofline
from objectives.latency.operator import phases
from objectives.latency.roofline import hit_share, part_working_set
from objectives.loss_law.features import COUNTS, OWNERS, feature
from objectives.loss_law.form import LogProduct
from objectives.loss_law.layer_deltas import QUANTITIES, LayerCosts, share_of
from objectives.measured_bounds import MEASURED, as_composition, level_of
from objectives.scenario import Scenario
from objectives.shares import Share, count_share
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, derived
from search_spaces.columns import Part

OF_NO_DEVICE = (
    *("loss", "perplexity", "memory_gb", "resident_gb", "params_total", "params_active"),
    *("train_flops", "train_hours", "lifetime_flops", "extrapolation"),
)
#: What a metric would be if the cache held everything, and the bytes that decide how much it holds.
IN_CACHE, WORKING_SET = " in cache", " working set"


#: What adds up over parts: a metric with `parts`, a quantity of the loss law, what a term of it multiplies, as a logarithm, or costs of kinds of layers.
Quantity = str | LogProduct | LayerCosts


class NotASum(Exception):
    """Raised for a metric that has no parts in this scenario; holds its name."""


@dataclass(frozen=True, eq=False)
class PartAssessment:
    """The contribution of a part of each architecture to a metric: `shares["total_ms"]`.

    For attention and FFN the architectures have one layer, and only the columns that the part
    depends on mean anything; attention of several kinds has all its layers, and a share per layer is their mean.
    `own` maps the names of a user's metrics to their functions.
    """

    architectures: Architectures
    scenario: Scenario
    part: Part
    own: Mapping[str, Any] = field(default_factory=dict)
    _known: dict[Quantity, Share] = field(default_factory=dict)

    @derived
    def dimensions(self) -> Dimensions:
        """Columns of the architectures as floats, made once for all metrics."""
        return Dimensions(self.architectures)

    @derived
    def parameters(self) -> ParameterGroups:
        """Parameters of the architectures by group, counted once for all metrics."""
        return count(self.architectures, self.dimensions)

    def __getitem__(self, metric: Quantity) -> Share:
        if metric not in self._known:
            self._known[metric] = self._computed(metric)
        return self._known[metric]

    def _computed(self, metric: Quantity) -> Share:
        if isinstance(metric, LogProduct):
            logarithm = metric.of_part(self.architectures, self.part)
            return Share() if logarithm is None else Share(once=(logarithm,))
        if isinstance(metric, LayerCosts):
            return Share(once=(metric.of(self.architectures),)) if self.part == "attention" else Share()
        if metric in OWNERS:
            return self._feature(metric)
        if metric in QUANTITIES:
            if self.part != "attention":  # a kind of layer is the mixers', all of it
                return Share()
            return Share(once=(share_of(self.architectures, QUANTITIES[metric], self.scenario.law.layer_context),))
        if metric.endswith(WORKING_SET):
            return self._working_set()
        if metric.endswith(IN_CACHE):
            within = replace(self, scenario=self.scenario.in_cache(), _known={})
            return within[metric.removesuffix(IN_CACHE)]
        share: Share = declaring(metric, self.own).parts(self)
        return share

    def _working_set(self) -> Share:
        phase = phases(self.scenario)[1]
        moved = part_working_set(self.dimensions, phase, self.scenario, self.part)
        column = np.broadcast_to(moved, len(self.architectures))
        return Share(once=(column,)) if self.part == "base" else Share(per_layer=(column,))

    def phase_ms(self, phase: Literal["prefill", "decode"]) -> Share:
        """Return prefill or decode latency in the scenario's fidelity, ms."""
        if self.scenario.latency == "closed_form":
            seconds = closed_form.part_seconds(self.architectures, self.scenario, phase, self.part)
            return of_part(self, seconds * 1e3, seconds * 1e3)
        per_layer, once = roofline.part_seconds(self.dimensions, self.scenario, phase, self.part)
        return of_part(self, per_layer * 1e3, once * 1e3)

    def _feature(self, name: str) -> Share:
        """A part's share of a quantity of the loss law: counts add up, any other belongs to one part whole."""
        if name in COUNTS:
            return count_share(self.architectures, self.part, name)
        return Share(once=(feature(self.architectures, name),)) if OWNERS[name] == self.part else Share()

    def loss(self) -> Share:
        """Return the law's terms.

        Raises:
            NotASum: the law is none.
        """
        if not self.scenario.law.separable:
            raise NotASum("loss")
        return Share(once=self.scenario.law.part_terms(self.architectures, self.part))


def of_part(shares: PartAssessment, per_layer: FloatArray, once: FloatArray) -> Share:
    """Return the share of a part: the base's is `once`; another's is that of every layer, and `once` for one drafting layer."""
    if shares.part == "base":
        return Share(once=(once,))
    alone = (once,) if shares.scenario.serving.drafts_itself else ()
    return Share(per_layer=(per_layer,), once=alone)


@dataclass(frozen=True, eq=False)
class Composition:
    """metric = value(u_1, …, u_k), weakly rising (+1) or falling (−1) in each additive quantity u, or either (0).

    `quantities` maps the name of a metric with `parts`, or a quantity of the loss law, to that sign;
    `value` takes the u's in this order. The sign says on which side a range of FFNs and depths is bounded: where
    neither moves a quantity either is right. Of a quantity with sign 0, `value` takes the least and
    the greatest, and returns the least of the metric between them. Without quantities it is the metric's one value.
    `inside`, where there is one, takes less time: it returns the value where that is at most 1, and anything above 1 elsewhere.
    """

    quantities: Mapping[Quantity, int]
    value: Callable[..., FloatArray]
    inside: Callable[..., FloatArray] | None = None


def additive(metric: str) -> Composition:
    """Return the composition of a metric that is its own sum of parts."""
    return Composition(MappingProxyType({metric: 1}), lambda u: u)


def composition(metric: str, scenario: Scenario, own: Mapping[str, Any] = MappingProxyType({})) -> Composition | None:
    """Return how a metric follows from sums of parts; None if it declares nothing.

    `own` maps the names of a user's metrics to their functions, which declare with attributes
    `parts` or `composition` as a module of `objectives.metrics` does.
    """
    if (figure := scenario.device.columns.get(metric)) is not None:
        return Composition(MappingProxyType({}), lambda: np.array(figure.value))
    if "@" in metric:
        found = _at_quantile(metric, scenario)
        return found if found is None or not scenario.cached else _with_cache(found, scenario)
    declared = declaring(metric, own)
    found = additive(metric) if hasattr(declared, "parts") else None
    if hasattr(declared, "composition"):
        found = declared.composition(scenario)
    return found if found is None or not scenario.cached else _with_cache(found, scenario)


def _at_quantile(name: str, scenario: Scenario) -> Composition | None:
    """What is measured, at a quantile, as a function of sums of parts; None of a loss, whose draws are none."""
    metric, share = level_of(name)
    if metric not in MEASURED:
        return None
    terms, value = as_composition(metric, share, scenario)
    return Composition(MappingProxyType(dict[Quantity, int](terms.items())), value)


def _with_cache(known: Composition, scenario: Scenario) -> Composition:
    """The same where a share h of every decode pass is found in the cache: u = (1 − h) u_memory + h u_cache.

    It rises with both, and with the working set, as h falls and u_cache <= u_memory: every quantity that depends on
    times is linear in them, and takes three columns instead of one.
    """
    timed = [isinstance(name, str) and name not in {*OWNERS, *QUANTITIES, *OF_NO_DEVICE} for name in known.quantities]
    if not any(timed):
        return known
    quantities: dict[Quantity, int] = {}
    for (name, sign), apart in zip(known.quantities.items(), timed, strict=True):
        quantities |= dict.fromkeys((name, f"{name}{IN_CACHE}", f"{name}{WORKING_SET}") if apart else (name,), sign)

    def value(*columns: FloatArray) -> FloatArray:
        left, found = iter(columns), list[FloatArray]()
        for sign, apart in zip(known.quantities.values(), timed, strict=True):
            found += [_blended(next(left), next(left), next(left), scenario)] if apart else [next(left)]
            found += [] if sign else [next(left)]
        return known.value(*found)

    return Composition(MappingProxyType(quantities), value)


def _blended(memory: FloatArray, cache: FloatArray, working_set: FloatArray, scenario: Scenario) -> FloatArray:
    hits = hit_share(working_set, scenario.device.cache or 0.0)
    return (1.0 - hits) * memory + hits * cache


def declaring(metric: str, own: Mapping[str, Any]) -> Any:
    """Return the object that declares a metric's `parts`: its module, or the user's function."""
    return own[metric] if metric in own else importlib.import_module(f"objectives.metrics.{metric}")
