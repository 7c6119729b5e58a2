"""A correction as a file that every command reads, a law's or a device's, where it has that form; a line where it has not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from nas.problem.objective import Objective, unit_of
from nas.problem.quantiles import PHASES
from nas.problem.uncertainty import FROM_LOSS
from nas.strategies._corrected import Corrected, Model, size
from nas.strategies._prior_columns import Designs
from objectives.device import Calibration, Device
from objectives.loss_law.law import Law
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

COMPARED = 400  # designs of the corrected frontier at which a file is held against what was learned
WIDE = 1.0  # sd of the logarithm of a coefficient, where nothing tells it
FARTHEST = 3.0  # of that logarithm
UNIQUE = "unique_tokens"  # a coefficient that the study says
STARTS = {"compute_efficiency": 0.6, "bandwidth_efficiency": 0.7, "overhead": 5e-3}  # of a device without a profile
MOST = {"compute_efficiency": 2.0, "bandwidth_efficiency": 2.0, "overhead": 10.0, "expert_bandwidth": 50.0}

Predicted = Callable[[FloatArray, Architectures], FloatArray]


@dataclass(frozen=True, eq=False)
class Projection:
    """The coefficients of a form that come closest to what was learned: logarithms of factors (k,), how far they stay apart
    from it and how sure it is itself, a measurement's noise included (root mean squares on the metric's scale).
    """

    logs: FloatArray
    apart: float
    sure: float

    @property
    def holds(self) -> bool:
        """Whether the correction has this form, within its uncertainty."""
        return self.apart <= self.sure


def files_of(corrected: Corrected, best: Designs) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """Content by file name, and a line on every user's metric that corrects a shipped one."""
    files: dict[str, Mapping[str, Any]] = {}
    lines: list[str] = []
    own = {metric.name for metric in corrected.problem.functions}
    for name, model in corrected.models.items():
        metric = model.columns.metric
        if name not in own or not metric.prior:
            continue
        kind, refused = _kind(metric, corrected.problem.scenario)
        file = f"corrected_{kind}.yaml"
        if refused or file in files:
            lines.append(f"No file of the correction of {name}: {refused or f'{file} holds another one'}.")
            continue
        rows = _compared(corrected, model, best)
        content, found = (_law if kind == "law" else _device)(corrected, model, rows)
        files |= {file: content} if found.holds else {}
        lines.append(_sentence(metric, kind, file, found))
    return files, lines


def _kind(metric: Objective, scenario: Scenario) -> tuple[str, str]:
    """The kind of file that could hold a correction, and why none can ("" where one can)."""
    unit, of = metric.unit, unit_of(metric.prior)
    if metric.prior in FROM_LOSS:
        wrong = metric.prior != "loss" or metric.log_scale or unit not in ("", of)
        return "law", "a law's file holds losses in nats, not their exponentials or logarithms" if wrong else ""
    if metric.prior not in PHASES:
        return "", f"neither a law nor a device's profile holds one of {metric.prior}"
    if unit not in ("", of):
        return "device", f"it is in {unit}, {metric.prior} in {of}"
    if scenario.formats or scenario.own_vocabularies or scenario.latency != "operator":
        return "device", "a profile is of one format, of one vocabulary and of the operator model"
    return "device", ""


def _sentence(metric: Objective, kind: str, file: str, found: Projection) -> str:
    apart, sure = size(metric, found.apart), size(metric, found.sure)
    if found.holds:
        named = {"law": "--law", "device": "--device"}[kind]
        return f"{file} holds the correction of {metric.name} for {named}: {apart} from what was learned, which is sure to {sure}."
    form = {"law": "its law's form", "device": "the form of a profile"}[kind]
    return f"No file of the correction of {metric.name}: it has not {form}, {apart} off where it is sure to {sure}."


def _compared(corrected: Corrected, model: Model, best: Designs) -> Designs:
    """Designs of the corrected frontier, and those that taught."""
    some = np.unique(np.linspace(0, len(best) - 1, min(COMPARED, len(best))).astype(np.int64))
    return best[some].followed_by(corrected.told[model.rows])


def projected(
    corrected: Corrected, model: Model, rows: Designs, start: FloatArray, most: FloatArray, predicted: Predicted
) -> Projection:
    """The factors closest to what was learned, from those of a start, by least squares weighted by its certainty."""
    near = corrected.nearness(rows, corrected.told)
    mean, sd = model.mean(rows, near), model.sd(rows, near)

    def apart(logs: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            found = model.columns.metric.scaled(predicted(logs, rows.architectures))
        return np.nan_to_num(found - mean, nan=1e3, posinf=1e3, neginf=-1e3)

    def cost(logs: FloatArray) -> FloatArray:
        return np.concatenate([apart(logs) / sd, (logs - start) / WIDE])

    limits = (start - FARTHEST, np.minimum(start + FARTHEST, most))
    logs = least_squares(cost, start, bounds=limits, max_nfev=60).x
    return Projection(logs, _rms(apart(logs)), _rms(sd))


def _law(corrected: Corrected, model: Model, rows: Designs) -> tuple[Mapping[str, Any], Projection]:
    """The study's law with other coefficients."""
    law = corrected.problem.scenario.law
    names = [name for name in law.coefficients if name != UNIQUE]

    def law_at(logs: FloatArray) -> Law:
        changed = dict(zip(names, logs.tolist(), strict=True))
        values = {
            name: value * np.exp(changed[name]) if value else changed[name] for name, value in _coefficients(law, names)
        }
        return law.model_copy(update={"coefficients": law.coefficients | {n: float(v) for n, v in values.items()}})

    zero = np.zeros(len(names))
    found = projected(corrected, model, rows, zero, zero + FARTHEST, lambda logs, a: law_at(logs).loss(a))
    taught = corrected.told[model.rows].architectures
    ranges = {n: ends if n == "tokens" else _range(law.feature(taught, n)) for n, ends in law.fitted_on.items()}
    metric = model.columns.metric.name
    changed = {
        "name": f"{law.name}_corrected",
        "description": f"{law.name}, corrected by {len(model.values)} values of {metric}",
        "fitted_on": ranges,
        "runs": len(model.values),
        "residual_sd": _rms(law_at(found.logs).loss(taught) - model.values),
        "covariance": (),
        "draws": (),
        "rivals": (),
        "provenance": {},
    }
    return law_at(found.logs).model_copy(update=changed).mapping(), found


def _coefficients(law: Law, names: list[str]) -> list[tuple[str, float]]:
    return [(name, law.coefficients[name]) for name in names]


def _range(values: FloatArray) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _device(corrected: Corrected, model: Model, rows: Designs) -> tuple[Mapping[str, Any], Projection]:
    """The study's device with a profile whose efficiencies and overhead are others."""
    problem, scenario = corrected.problem, corrected.problem.scenario
    before = scenario.calibration or Calibration.model_validate(STARTS)
    sparse = bool((corrected.told[model.rows].architectures.n_experts > 1).any())
    names = [*STARTS, *(["expert_bandwidth"] if sparse else [])]
    start = np.log([max(getattr(before, name), 1e-4) for name in names])

    def profile_at(logs: FloatArray) -> Calibration:
        changed = dict(zip(names, np.exp(logs).tolist(), strict=True))
        return before.model_copy(update={**changed, "held_out_error": None, "held_out": {}, "held_out_models": None})

    def predicted(logs: FloatArray, architectures: Architectures) -> FloatArray:
        there = replace(problem, scenario=replace(scenario, calibration=profile_at(logs)))
        return there.assess(architectures)[model.columns.metric.prior]

    most = np.log([MOST[name] for name in names])
    found = projected(corrected, model, rows, np.minimum(start, most), most, predicted)
    key = {"mode": scenario.device.mode, "precision": scenario.precision.name, "batch": scenario.batch}
    text = f"corrected by {len(model.values)} values of {model.columns.metric.name}"
    profile = profile_at(found.logs).model_copy(update={**key, "source": text, "experts": sparse})
    return _with(scenario.device, profile).mapping(), found


def _with(device: Device, profile: Calibration) -> Device:
    """The device with a profile in the place of those of its mode, precision and batch."""
    key = (profile.mode, profile.precision, profile.batch)
    others = [p for p in device.profiles if (p.mode, p.precision, p.batch) != key]
    return device.model_copy(update={"profiles": [*others, profile]})


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.square(values).mean()))
