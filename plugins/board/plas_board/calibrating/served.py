"""Coefficients of how models are served, fitted after a device's own: the rate of slow memory, and the cost of a further position.

Each is one number of an engine at a batch, with the profile that plain rows gave held fixed. Residuals are those of
`efficiencies`: log(predicted / measured) under a soft-L1 loss.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.optimize import minimize_scalar

from objectives.device import Calibration, Device
from objectives.dimensions import Dimensions
from objectives.latency.operator import passes
from objectives.latency.roofline import pass_seconds
from objectives.loss_law.law import Law
from objectives.scenario import Scenario
from objectives.serving import Acceptance, typical_serving
from plas_board.calibrating.efficiencies import penalty
from plas_board.calibrating.measurements import Fit, Measurement, rounded
from plas_board.calibrating.terms import scenario_of
from search_spaces.arrays import FloatArray, IntArray

Coefficient = Literal["slow_bandwidth_efficiency", "position_cost"]
#: Values from least to most at which rows are predicted; between them their times are interpolated.
GRID: dict[Coefficient, FloatArray] = {
    "slow_bandwidth_efficiency": np.geomspace(0.02, 2.0, 41),
    "position_cost": np.linspace(0.001, 4.0, 17),
}
NO_MEMORY = (
    "experts in slow memory: the device states no rate of it; write slow_memory: {bandwidth: 80 GB/s, capacity: 64 GB} with "
    "the datasheet's figures of the host into its file"
)
NO_PLAIN = (
    "{what}: no profile of {engine} at batch {batch}, to which rows that are served plainly are fitted first; add such rows, or name the "
    "device file that calibrate wrote of them"
)
PROMPT = "a prompt with experts in slow memory: no coefficient is of it, its time goes with the engine's micro batch"
DRAFTED_PROMPT = "a prompt of a request that drafts: what drafts reads it too"
SLOW, DRAFTING = "experts in slow memory", "tokens drafted ahead"


@dataclass(frozen=True, eq=False)
class ServedGroup(Fit):
    """One coefficient of an engine at a batch with milliseconds predicted, (n,): before it was fitted, in-sample, of models held out (NaN with one)."""

    coefficient: Coefficient
    value: float
    before: FloatArray
    in_sample: FloatArray

    @property
    def name(self) -> str:
        """The engine, the batch and what is served."""
        first = self.rows[0]
        return f"{first.engine or 'unnamed engine'}, batch {first.batch}, {SLOW if first.slow_share else DRAFTING}"

    def remarks(self) -> list[str]:
        """That the coefficient lies at the end of what is tried."""
        ends = GRID[self.coefficient][[0, -1]]
        off = np.isclose(self.value, ends, rtol=0.01).any()
        return [
            "the coefficient is at its bound: the rows are not served as they say, or the device's figures are wrong"
        ] * bool(off)


def refused(m: Measurement, device: Device, profiles: Sequence[Calibration]) -> str:
    """Why a row that is not served plainly says nothing of a coefficient; "" where it does."""
    what = SLOW if m.slow_share else DRAFTING
    if m.phase != "decode":
        return (
            f"{what}: a whole request, which no coefficient is fitted to"
            if m.phase == "request"
            else (PROMPT if m.slow_share else DRAFTED_PROMPT)
        )
    if m.slow_share and (device.slow_memory is None or device.slow_memory.bandwidth is None):
        return NO_MEMORY
    if base_of(m, profiles) is None:
        return NO_PLAIN.format(what=what, engine=m.engine or "an unnamed engine", batch=m.batch)
    return ""


def base_of(m: Measurement, profiles: Sequence[Calibration]) -> Calibration | None:
    """The profile of a row's engine and batch: of its own format, else the first; none with a cache tier, beside which nothing is served so."""
    alike = [p for p in profiles if (p.engine, p.batch) == (m.engine, m.batch) and p.cache_efficiency is None]
    own = [p for p in alike if m.format.family in (p.format, p.precision)]
    return next(iter([*own, *alike]), None)


def served_groups(
    measurements: Sequence[Measurement], device: Device, law: Law, profiles: Sequence[Calibration]
) -> list[ServedGroup]:
    """A coefficient for each engine, batch and way of serving among rows that `refused` does not name."""
    found: dict[tuple[str, int, bool], list[Measurement]] = {}
    for m in measurements:
        found.setdefault((m.engine, m.batch, bool(m.slow_share)), []).append(m)
    return [_fitted(rows, device, law, profiles) for rows in found.values()]


def _fitted(rows: list[Measurement], device: Device, law: Law, profiles: Sequence[Calibration]) -> ServedGroup:
    name: Coefficient = "slow_bandwidth_efficiency" if rows[0].slow_share else "position_cost"
    grid, measured = GRID[name], np.array([m.ms for m in rows])
    scenarios = [_scenario(m, device, law, base_of(m, profiles) or Calibration()) for m in rows]
    table = np.array([[_ms(m, each) for each in _at(s, name, grid)] for m, s in zip(rows, scenarios, strict=True)])
    predict = _interpolated(name, table)
    models, everything = np.array([m.model for m in rows]), np.arange(len(rows))
    held_out = np.full(len(rows), np.nan)
    for model in dict.fromkeys(models.tolist()) if len(set(models.tolist())) > 1 else ():
        here, others = everything[models == model], everything[models != model]
        held_out[here] = predict(_least(predict, others, measured, grid), here)
    value = rounded(_least(predict, everything, measured, grid))
    before = np.array([_ms(m, s) for m, s in zip(rows, scenarios, strict=True)])
    return ServedGroup(rows, held_out, name, value, before, predict(value, everything))


def _interpolated(name: Coefficient, table: FloatArray) -> Callable[[float, IntArray], FloatArray]:
    """Milliseconds of some rows at a value of the coefficient; time is a line in the cost, and in one over the rate where memory binds."""

    def place(value: FloatArray | float) -> FloatArray:
        return np.asarray(-1.0 / np.asarray(value) if name == "slow_bandwidth_efficiency" else value, dtype=float)

    at = place(GRID[name])
    return lambda value, rows: np.array([np.interp(place(value), at, table[row]) for row in rows])


def _least(
    predict: Callable[[float, IntArray], FloatArray], rows: IntArray, measured: FloatArray, grid: FloatArray
) -> float:
    """The value of least penalty: the best of the grid, then between its neighbours."""

    def missed(value: float) -> float:
        return float(penalty(np.log(predict(value, rows) / measured[rows])).sum())

    best = int(np.argmin([missed(value) for value in grid.tolist()]))
    bounds = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)])
    return float(minimize_scalar(missed, bounds=bounds, method="bounded", options={"xatol": 1e-5}).x)


def _scenario(m: Measurement, device: Device, law: Law, base: Calibration) -> Scenario:
    """The scenario of a row as it was served."""
    known = typical_serving()
    if m.slow_share:
        serving = replace(known, experts_in=f"slow:{100 * m.slow_share!r}%")
    else:
        shares = {m.drafted: m.accepted}
        serving = replace(known, speculation=f"mtp:{m.drafted}", acceptance={"mtp": Acceptance(shares=shares)})
    return scenario_of(m, device, law, base).served(serving)


def _at(scenario: Scenario, name: Coefficient, grid: FloatArray) -> Iterator[Scenario]:
    """The scenario at every value of the coefficient."""
    base = scenario.calibration or Calibration()
    for value in grid.tolist():
        yield replace(scenario, calibration=base.model_copy(update={name: value}))


def _ms(m: Measurement, scenario: Scenario) -> float:
    """Milliseconds of a decode step, or of a token where a step gives several."""
    x = Dimensions(m.architecture)
    times = [one.time_share * pass_seconds(x, [one])[0][0] for one in passes(scenario) if one.phase.name == "decode"]
    return 1e3 * float(sum(times)) / m.generated
