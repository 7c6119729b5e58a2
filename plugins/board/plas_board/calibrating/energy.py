"""Energy: base power and joules per FLOP and byte fitted to metered rows, and how wrong they are on other models.

Residuals are relative errors under a soft-L1 loss; no coefficient is negative. Joules per byte are kept only where they
lower the error on models held out: reading and waiting for it can hardly be told apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.optimize import least_squares, nnls

from objectives.counts import total
from objectives.device import Calibration, Device, Energy
from objectives.dimensions import Dimensions
from objectives.latency.operator import Pass, Phase, phases
from objectives.latency.request_work import pass_work
from objectives.loss_law.law import Law
from plas_board.calibrating.efficiencies import TAIL
from plas_board.calibrating.held_out import Group, choose
from plas_board.calibrating.measurements import Fit, Measurement, rounded
from plas_board.calibrating.terms import predict, scenario_of, terms
from search_spaces.arrays import BoolArray, FloatArray

NOTHING = 1e-6  # share of a row's energy below which a part has none
BASE, FLOP, BYTE = range(3)  # columns of what a joule is made of


@dataclass(frozen=True, eq=False)
class EnergyGroup(Fit):
    """Metered rows of one engine with their coefficients; joules predicted, (n,).

    in_sample; held_out: from the other models' rows, given the measured time; from_times: the same with the time
    predicted from the other models' times (NaN where it cannot be).
    """

    energy: Energy
    in_sample: FloatArray
    from_times: FloatArray
    HIGH: ClassVar[float] = 1.0
    NONE_HELD_OUT: ClassVar[str] = "{models} models are too few to hold one out"

    @property
    def measured(self) -> FloatArray:
        """Joules, (n,)."""
        return _joules(self.rows)

    @property
    def name(self) -> str:
        """The engine."""
        return f"{self.energy.engine or 'unnamed engine'}, energy"

    def remarks(self) -> list[str]:
        """Notes on coefficients that the rows do not determine."""
        lines = [] if self.energy.rail else ["no row says which rail was metered (column rail): the wall takes more"]
        busy = sum(m.contended for m in self.rows)
        return lines + (
            [f"{busy} of {len(self.rows)} rows were measured while others had the processor"] if busy else []
        )


def metered(measurements: Sequence[Measurement]) -> dict[str, list[Measurement]]:
    """Plain rows whose energy is known by engine, in their order."""
    found: dict[str, list[Measurement]] = {}
    for m in (m for m in measurements if m.joules is not None and m.plain):
        found.setdefault(m.engine, []).append(m)
    return found


def calibrate_energy(
    rows: list[Measurement], times: Sequence[Measurement], device: Device, law: Law, source: str
) -> EnergyGroup:
    """The coefficients of one engine's metered rows; `times` are the same engine's phases, to predict times from.

    Raises:
        ValueError: a format whose peak the device lacks.
    """
    made_of, models = _made_of(rows, device, law), np.array([m.model for m in rows])
    measured = _joules(rows)
    candidates = ([BASE, FLOP], [BASE, FLOP, BYTE])
    held_out = [_leave_one_out(made_of, measured, models, columns) for columns in candidates]
    best = _worth(held_out, measured)
    columns = candidates[best]
    weights = fit_energy(made_of, measured, columns)
    predicted = _seconds_held_out(rows, times, device, law)
    from_times = _leave_one_out(made_of, measured, models, columns, predicted)
    energy = _profile(weights, rows, device, source, held_out[best], from_times)
    return EnergyGroup(rows, held_out[best], energy, made_of @ weights, from_times)


def fit_energy(made_of: FloatArray, measured: FloatArray, columns: Sequence[int]) -> FloatArray:
    """Weights of seconds, FLOPs and bytes, (3,), none negative, those of other columns 0."""
    relative = made_of[:, columns] / measured[:, None]
    scale = relative.max(axis=0)
    first, _ = nnls(relative / scale, np.ones(len(measured)))

    def residuals(weights: FloatArray) -> FloatArray:
        found: FloatArray = (relative / scale) @ weights - 1.0
        return found

    solution = least_squares(residuals, np.maximum(first, 1e-6), bounds=(0, np.inf), loss="soft_l1", f_scale=TAIL)
    weights = np.zeros(made_of.shape[1])
    weights[list(columns)] = np.where(solution.x < NOTHING, 0.0, solution.x) / scale
    return weights


def _leave_one_out(
    made_of: FloatArray,
    measured: FloatArray,
    models: "np.ndarray[tuple[int], np.dtype[np.str_]]",
    columns: Sequence[int],
    seconds: FloatArray | None = None,
) -> FloatArray:
    """Joules of every row from the other models' rows, (n,); NaN with too few of them. `seconds` replace the measured."""
    predicted, distinct = np.full(len(models), np.nan), sorted(set(models.tolist()))
    for name in distinct if len(distinct) > len(columns) else ():
        here = models == name
        given = made_of[here].copy()
        if seconds is not None:
            given[:, BASE] = seconds[here]
        predicted[here] = given @ fit_energy(made_of[~here], measured[~here], columns)
    return predicted


def _worth(held_out: Sequence[FloatArray], measured: FloatArray) -> int:
    """The set of columns with the least error on models held out; the smaller one where both are alike."""
    errors = [float(np.median(np.abs(found / measured - 1.0))) for found in held_out]
    return int(np.isfinite(errors[1]) and errors[1] < errors[0])


def _made_of(rows: Sequence[Measurement], device: Device, law: Law) -> FloatArray:
    """Seconds, FLOPs and bytes of metered rows, (n, 3)."""
    found = np.zeros((len(rows), 3))
    for row, m in zip(found, rows, strict=True):
        scenario, x = scenario_of(m, device, law), Dimensions(m.architecture)
        row[BASE] = m.seconds
        row[FLOP:] = sum(pass_work(x, Pass(phase, scenario))[:, 0] for phase in _phases(m, phases(scenario)))
    return found


def _phases(m: Measurement, both: tuple[Phase, Phase]) -> Iterator[Phase]:
    """The phases that were metered."""
    if m.phase != "decode":
        length = m.attended or m.prompt
        yield replace(both[0], first_kv=length, last_kv=length)
    if m.phase != "prefill":
        yield both[1]


def _seconds_held_out(
    rows: Sequence[Measurement], times: Sequence[Measurement], device: Device, law: Law
) -> FloatArray:
    """Seconds of metered rows predicted by a calibration on other models of the same format and batch, (n,)."""
    found, known = np.full(len(rows), np.nan), dict[tuple[str, int, str], Calibration | None]()
    for i, m in enumerate(rows):
        key = (m.format.family, m.batch, m.model)
        if key not in known:
            known[key] = _times_without(m, times, device, law)
        profile = known[key]
        if profile is not None:
            found[i] = _seconds(m, profile, device, law)
    return found


def _times_without(m: Measurement, times: Sequence[Measurement], device: Device, law: Law) -> Calibration | None:
    """A calibration on phases alike of all models but the row's; None where none are."""
    alike = [
        t
        for t in times
        if (t.format.family, t.batch) == (m.format.family, m.batch)
        and t.phase != "request"
        and t.plain
        and t.model != m.model
    ]
    if not alike:
        return None
    group = Group(terms(alike, device, law), np.array([t.model for t in alike]), device)
    return group.fitted(choose(group).kept)


def _seconds(m: Measurement, profile: Calibration, device: Device, law: Law) -> float:
    """Seconds of what was metered under a calibration."""
    wanted = [replace(m, phase=phase) for phase in ("prefill", "decode") if m.phase in (phase, "request")]
    table = terms(wanted, device, law)
    steps = np.array([w.generated if w.phase == "decode" else 1 for w in wanted])
    return float((predict(table, profile) * steps).sum() * 1e-3)


def _profile(
    weights: FloatArray,
    rows: Sequence[Measurement],
    device: Device,
    source: str,
    held_out: FloatArray,
    from_times: FloatArray,
) -> Energy:
    """The coefficients to 4 digits with what they have seen and how wrong they are."""
    measured, sizes = _joules(rows), [float(total(m.architecture)[0]) for m in rows]
    known: BoolArray = np.isfinite(from_times)
    shares = np.abs(held_out / measured - 1.0)
    base, flop, byte = map(rounded, weights.tolist())
    return Energy(
        engine=rows[0].engine,
        mode=device.mode,
        base_power=base,
        per_flop=flop,
        per_byte=byte,
        rail=", ".join(sorted({m.rail for m in rows if m.rail})),
        precisions=sorted({m.format.family for m in rows}),
        batches=sorted({m.batch for m in rows}),
        most_tokens=max(m.prompt + m.generated * (m.phase != "prefill") for m in rows),
        parameters=(min(sizes), max(sizes)),
        experts=any(int(m.architecture.n_experts[0]) > 1 for m in rows),
        rows=len(rows),
        held_out_error=rounded(float(np.median(shares))) if np.isfinite(shares).all() else None,
        held_out=sorted(map(rounded, (measured[known] / from_times[known]).tolist())),
        held_out_models=len({m.model for m, seen in zip(rows, known, strict=True) if seen}) or None,
        source=f"{source}: {len(rows)} rows, {', '.join(sorted({m.model for m in rows}))}",
    )


def _joules(rows: Sequence[Measurement]) -> FloatArray:
    return np.array([m.joules or np.nan for m in rows], dtype=np.float64)
