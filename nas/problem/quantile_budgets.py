"""Budgets that hold with a probability: `total_ms@q90` takes the calibration's held-out errors into account."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from statistics import median

from nas.errors import UsageError
from nas.problem.time_ranges import PHASES, conformal_factor, in_quadrature
from objectives.device import Calibration, Energy, Phase, Sustained
from objectives.transfers import Conditions, error_factor
from objectives.typical.sustained import slower_than

_FORM = re.compile(r"^([\w.:]+)@q(\d{1,2}(?:\.\d+)?)$")
ENERGY = ("energy_j", "tokens_per_joule")


def metric_of(name: str) -> str:
    """The metric that a budget's name is about; the name itself when it has no quantile.

    Raises:
        ValueError: something else after the @, or a metric without measured errors.
    """
    if "@" not in name or name.startswith("loss@"):  # a loss at a quantile is a metric of its own
        return name
    form = _FORM.match(name)
    if form is None or form[1] not in (*PHASES, *ENERGY):
        known = ", ".join((*PHASES, *ENERGY))
        raise ValueError(f"expected METRIC@qNN with one of {known}, got {name!r}; write total_ms@q90")
    return form[1]


def plain_limits(
    budgets: Mapping[str, float],
    calibration: Calibration | None,
    note: str,
    asked: Conditions | None = None,
    energy: Energy | None = None,
    load: Sustained | None = None,
) -> tuple[dict[str, float], list[str]]:
    """The same budgets on predictions alone, and what to say of each that was at a quantile.

    measured <= limit for a share q of models where predicted <= limit / F, F by `conformal_factor`; where `asked` lies
    outside of what the profile was measured with, F is widened by the worst that this was seen to miss by; of energy
    no such change was ever metered. At sustained load F and the quantile of its share are taken in quadrature.

    Raises:
        UsageError: no held-out errors to take a quantile of, or of too few models; energy at a batch not metered.
    """
    limits, lines = {name: limit for name, limit in budgets.items() if metric_of(name) == name}, []
    for name, limit in budgets.items():
        metric = metric_of(name)
        if metric == name:
            continue
        written = name.partition("@q")[2]
        share = Fraction(written) / 100
        if metric in ENERGY:
            factor, models = _energy_factor(name, share, energy, 1 if asked is None else asked.batch)
            wider, what, further = 1.0, "model", ""
        else:
            factor, models = _factor(name, share, PHASES[metric], calibration, note)
            assert calibration is not None
            what = "device" if calibration.typical else "model"
            wider, further = _widened(metric, factor, share, calibration, asked, load)
        limits[metric] = min(limit / (factor * wider), limits.get(metric, math.inf))
        lines.append(
            f"{name} <= {limit:g} is {metric} <= {limit / (factor * wider):.4g}: of an unseen {what} measured / predicted is at "
            f"most {factor:.3g} with probability {written} %, from {models} {what}s held out{further}"
        )
    return limits, lines


def _widened(
    metric: str,
    factor: float,
    share: Fraction,
    calibration: Calibration,
    asked: Conditions | None,
    load: Sustained | None,
) -> tuple[float, str]:
    """How many times as large a factor on times is for what was not measured and at sustained load, and why."""
    wider = _wider(metric, calibration, asked)
    dense = _wider(metric, calibration, asked and replace(asked, experts=False))
    if load is None:
        return wider, _in_words(wider, dense)
    held_out = [ratio for phase in PHASES[metric] for ratio in calibration.held_out[phase]]
    of_load = in_quadrature(factor * wider, median(held_out), slower_than(load, float(share))) / (factor * wider)
    return wider * of_load, _in_words(wider, dense) + _load_in_words(load, of_load)


def _in_words(wider: float, dense: float) -> str:
    """The widening, and that of dense designs alone where it is less; "" of none."""
    if wider <= 1.0:
        return ""
    alone = f" (of every design, since the space has experts; in a space of dense designs alone times {dense:.3g})"
    return f", times {wider:.3g} for what was not measured{alone if dense < wider else ''}"


def _load_in_words(load: Sustained, of_load: float) -> str:
    """What sustained load adds to a factor."""
    if load.interval is None:
        return "; of the share at sustained load no interval is told"
    return f", times {of_load:.3g} for the share at sustained load (in quadrature, as if the two were independent)"


def _wider(metric: str, calibration: Calibration, asked: Conditions | None) -> float:
    """The largest widening among a metric's phases."""
    return max(1.0 if asked is None else error_factor(calibration, asked, phase) for phase in PHASES[metric])


def _energy_factor(name: str, share: Fraction, energy: Energy | None, batch: int) -> tuple[float, int]:
    """The factor of a budget on energy, from predicted times, and the models behind it."""
    if energy is None or not energy.held_out or (energy.batches and batch not in energy.batches):
        got = "none" if energy is None or not energy.held_out else f"batch {batch}, which was not metered"
        raise UsageError(
            f"budgets.{name}: expected energy coefficients with held-out errors, got {got}; drop the quantile, or see docs/energy.md"
        )
    models = energy.held_out_models or len(energy.held_out)
    return _claimed(name, energy.held_out, models, share, "of energy"), models


def _factor(
    name: str, share: Fraction, phases: Sequence[Phase], calibration: Calibration | None, note: str
) -> tuple[float, int]:
    """The factor of a budget on a time and the models behind it."""
    rows = [calibration.held_out.get(phase, []) if calibration else [] for phase in phases]
    models = min(map(len, rows))
    if calibration is not None and calibration.held_out_models:
        models = min(models, calibration.held_out_models)
    if not models:
        raise UsageError(
            f"budgets.{name}: expected a calibrated profile with held-out errors, got {note}; "
            "use --preset device with a device that has one (plas list devices), or plas calibrate"
        )
    if calibration is not None and calibration.typical:
        factors = [conformal_factor(ratios, models, share, rows=len(ratios)) for ratios in rows]
        factor = None if None in factors else max(f for f in factors if f is not None)
        return _possible(name, factor, models, share, note, "devices"), models
    return _claimed(name, [ratio for phase in rows for ratio in phase], models, share, note), models


def _claimed(name: str, ratios: Sequence[float], models: int, share: Fraction, note: str) -> float:
    """The conformal factor.

    Raises:
        UsageError: of so few models nothing so likely can be claimed.
    """
    return _possible(name, conformal_factor(ratios, models, share), models, share, note)


def _possible(name: str, factor: float | None, models: int, share: Fraction, note: str, what: str = "models") -> float:
    """The factor.

    Raises:
        UsageError: there is none.
    """
    if factor is None:
        largest = math.floor(1000 * Fraction(models, models + 1)) / 10
        raise UsageError(
            f"budgets.{name}: expected at most q{largest:g}, which is what {models} {what} held out can claim, got "
            f"q{float(100 * share):g}; write {name.partition('@')[0]}@q{largest:g}, or calibrate on more models ({note})"
        )
    return factor
