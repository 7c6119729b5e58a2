"""Metrics at a quantile, `total_ms@q80`: the value that a measurement of an unseen model or device stays below with a probability."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from statistics import median
from typing import Literal

import numpy as np

from objectives.device import Calibration, Energy, Phase
from objectives.scenario import Scenario
from objectives.transfers import error_factor
from objectives.typical.efficiencies import held_out_of
from objectives.typical.sustained import slower_than
from search_spaces.arrays import AnyArray, FloatArray

Errors = Literal["prefill", "decode", "energy"]
#: What is measured: each metric as a sum of others, each with the errors that were held out of its kind.
MEASURED: Mapping[str, Mapping[str, Errors]] = {
    "prefill_ms": {"prefill_ms": "prefill"},
    "ttft_ms": {"ttft_ms": "prefill"},
    "decode_ms": {"decode_ms": "decode"},
    "tpot_ms": {"tpot_ms": "decode"},
    "ms_per_kilobyte": {"ms_per_kilobyte": "decode"},
    "total_ms": {"prefill_ms": "prefill", "decode_ms": "decode"},
    "energy_j": {"energy_j": "energy"},
    "energy_per_kilobyte": {"energy_per_kilobyte": "energy"},
}


@dataclass(frozen=True)
class Factor:
    """Bound on measured / predicted: `held_out` from held-out errors, times the factors for unmeasured conditions.

    dense, sparse: the whole factor of designs without experts and with; count: distinct models (or devices) held out; what: which.
    """

    held_out: float
    dense: float
    sparse: float
    count: int
    what: Literal["model", "device"]


def conformal_factor(ratios: Sequence[float], models: int, share: Fraction, *, rows: int | None = None) -> float | None:
    """Return the bound on measured / predicted of an unseen model with probability `share`; None for too few models.

    Of n models the rank k = ceil((n + 1) share) covers a further one with probability k/(n + 1) >= share [Vovk et al.
    2005]. A model may have several rows: the largest ratio that at most n - k rows exceed is one that at most n - k models
    exceed, whichever rows are whose.

    Args:
        ratios: measured / predicted of every row that was held out.
        models: distinct models that the rows are of.
        share: q, exactly, from 0 to 1.
        rows: ratios that stand for the models, as many of each: the quantile is theirs; left out, one of each model.
    """
    tail = 1 - share
    if tail < Fraction(1, models + 1):
        return None
    return sorted(ratios)[-1 - beyond(rows or models, models, tail)]


def beyond(rows: int, models: int, tail: Fraction) -> int:
    """Return how many ratios lie outside on one side, so that at most `tail` of further models do."""
    return min(rows - 1, max(0, math.floor(rows * ((models + 1) * tail - 1) / models)))


def in_quadrature(ratio: float, middle: float, slower: float) -> float:
    """Return the combined quantile of two independent factors on measured / predicted, one of median `middle`, one of median 1.

    middle · exp(±sqrt(ln²(ratio/middle) + ln² slower)), exact where both are normal in the logarithm and independent; away
    from the middle on the side of `slower`.
    """
    apart = math.hypot(math.log(ratio / middle), math.log(slower))
    return middle * math.exp(math.copysign(apart, math.log(slower) or math.log(ratio / middle)))


def level_of(name: str) -> tuple[str, Fraction]:
    """Return the metric and the exact share of `total_ms@q80`."""
    metric, _, level = name.partition("@q")
    return metric, Fraction(level) / 100


def factors_of(metric: str, share: Fraction, scenario: Scenario) -> dict[str, Factor]:
    """Return the factor of each term of a metric in a scenario of one format, by the term's name.

    Raises:
        ValueError: nothing was held out, or of so few models that nothing so likely can be claimed; energy at a batch not metered.
    """
    try:
        return {term: _factor(scenario, errors, share) for term, errors in MEASURED[metric].items()}
    except ValueError as error:
        raise ValueError(f"{metric}@q{float(100 * share):g}: {error}") from None


def at_quantile(terms: Mapping[str, FloatArray], experts: AnyArray, factors: Mapping[str, Factor]) -> FloatArray:
    """Return Σ factor · term over the terms of a metric, (n,), with separate factors for dense and sparse designs."""
    sparse = np.asarray(experts) > 1
    return reduce(np.add, [np.where(sparse, f.sparse, f.dense) * terms[name] for name, f in factors.items()])


def as_composition(
    metric: str, share: Fraction, scenario: Scenario
) -> tuple[Mapping[str, int], Callable[..., FloatArray]]:
    """Return a metric at a quantile as a function of sums of parts: its terms, and E if the factor depends on it.

    It rises weakly with each, and with E from none to some; ranges never hold designs with experts and without.
    """
    factors = factors_of(metric, share, scenario)
    apart = any(f.sparse != f.dense for f in factors.values())

    def value(*columns: FloatArray) -> FloatArray:
        experts = columns[-1] if apart else np.ones(1)
        return at_quantile(dict(zip(factors, columns, strict=False)), experts, factors)

    return dict.fromkeys([*factors, *(["n_experts"] if apart else [])], 1), value


def _factor(scenario: Scenario, errors: Errors, share: Fraction) -> Factor:
    """The factor of one kind of error."""
    if errors == "energy":
        return _of_energy(scenario.energy, scenario.batch, share)
    scenario = scenario.of_phase(errors)
    profile = scenario.calibration
    asked = scenario.conditions(experts=False)
    seen = None if profile is None else held_out_of(profile, errors, scenario.device, asked)
    if profile is None or seen is None or not seen.ratios:
        raise ValueError(
            f"expected a calibrated profile with held-out errors of {errors}, got {_named(scenario, profile)}; "
            "use --preset device with a device that has one (plas list devices), or plas calibrate"
        )
    ratios = profile.picked.get(errors) or seen.ratios
    held_out = _claimed(ratios, seen.count, share, seen.what, rows=len(ratios) if profile.picked else seen.ranks)
    dense, sparse = (
        _at_load(held_out * _wider(profile, scenario, errors, share, experts=with_them), seen.ratios, scenario, share)
        for with_them in (False, True)
    )
    return Factor(held_out, dense, sparse, seen.count, seen.what)


def _at_load(factor: float, ratios: Sequence[float], scenario: Scenario, share: Fraction) -> float:
    """A factor at sustained load: it and that of the load's share in quadrature."""
    if scenario.sustained is None:
        return factor
    return in_quadrature(factor, median(ratios), slower_than(scenario.sustained, float(share)))


def _named(scenario: Scenario, profile: Calibration | None) -> str:
    """How times are had where nothing was held out."""
    if profile is None:
        return "datasheet peaks"
    return f"{scenario.precision.name} calibrated with {profile.engine or 'an unnamed engine'} and none"


def _wider(profile: Calibration, scenario: Scenario, phase: Phase, share: Fraction, *, experts: bool) -> float:
    """By how much more designs are off where they lie outside of what was measured."""
    return error_factor(profile, scenario.conditions(experts=experts), phase, share)


def _of_energy(energy: Energy | None, batch: int, share: Fraction) -> Factor:
    """The factor on energy, from predicted times, the same with experts: no such step was ever metered."""
    if energy is None or not energy.held_out or (energy.batches and batch not in energy.batches):
        got = "none" if energy is None or not energy.held_out else f"batch {batch}, which was not metered"
        raise ValueError(
            f"expected energy coefficients with held-out errors, got {got}; drop the quantile, or see docs/energy.md"
        )
    models = energy.held_out_models or len(energy.held_out)
    found = _claimed(energy.held_out, models, share, "model")
    return Factor(found, found, found, models, "model")


def _claimed(ratios: Sequence[float], models: int, share: Fraction, what: str, *, rows: int | None = None) -> float:
    """The conformal factor.

    Raises:
        ValueError: of so few models nothing so likely can be claimed.
    """
    factor = conformal_factor(ratios, models, share, rows=rows)
    if factor is None:
        largest = math.floor(1000 * Fraction(models, models + 1)) / 10
        raise ValueError(
            f"expected at most q{largest:g}, which is what {models} {what}s held out can claim, got "
            f"q{float(100 * share):g}; write @q{largest:g}, or calibrate on more models"
        )
    return factor
