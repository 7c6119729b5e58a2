"""Groups of measurements that share one calibration: the profile of each, and its rows measured and predicted."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear

from objectives.assessment import Assessment
from objectives.counts import active, total
from objectives.device import Calibration, Device, Phase
from objectives.engines import beside_attention, engine_of, prefill_chunk_of
from objectives.loss_law.law import Law
from objectives.profile_choice import FAR_OFF
from objectives.transfers import priced_otherwise
from objectives.typical.efficiencies import FEWEST, Typical, as_far, family_of, profile_of, shipped
from plas_board.calibrating.efficiencies import BELOW, PARAMETERS, Freedom, Priors, class_priors
from plas_board.calibrating.held_out import Errors, Group, choose, errors, leave_one_out
from plas_board.calibrating.measurements import Measurement, rounded
from plas_board.calibrating.terms import Terms, predict, scenario_of, terms
from search_spaces.arrays import AnyArray, FloatArray

MISFIT = 0.25  # in-sample error from which a row is named
AT_BOUND = 0.995
BETWEEN = 0.05  # log error of a model beside others of a device, by which a class is left the less the more there are
LAUNCHES = 2.0 ** np.arange(-5.0, 2.25, 0.25)  # times the class's, that are tried
PHASES: tuple[Phase, Phase] = ("prefill", "decode")
MOST_OF_PREFILL = 8.0  # of the bandwidth, the largest that a profile states
OTHER_SIZE = 1.25  # ratio of models' memory from which a factor is told from a fixed part
MOST_COPIES = 50.0
LEAST_ORDER = 0.5  # Kendall's τ of models held out below which their order is not predicted: 3 of 4 pairs
Key = tuple[str, str, int]


def groups(measurements: Sequence[Measurement]) -> dict[Key, list[Measurement]]:
    """Plain rows of single phases by engine, family of formats and batch, in their order; those of whole requests are for energy.

    Prefill of a batch does not scale from one sequence, so that batches are calibrated apart.
    """
    found: dict[Key, list[Measurement]] = {}
    for m in (m for m in measurements if m.phase != "request" and m.plain):
        found.setdefault((m.engine, m.format.family, m.batch), []).append(m)
    return found


def with_beside(measurements: Sequence[Measurement]) -> list[tuple[list[Measurement], list[Measurement]]]:
    """Every group, and the rows of its engine and family at other batches."""
    found = groups(measurements)
    return [
        (rows, [m for other, those in found.items() if other[:2] == key[:2] and other != key for m in those])
        for key, rows in found.items()
    ]


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A group with its profile, and milliseconds predicted, (n,): in-sample, held out, from the datasheet."""

    rows: list[Measurement]
    terms: Terms
    profile: Calibration
    free: Freedom
    in_sample: FloatArray
    held_out: FloatArray
    datasheet: FloatArray

    @property
    def name(self) -> str:
        """Engine, precision and batch."""
        return f"{self.profile.engine or 'unnamed engine'}, {self.profile.format or self.profile.precision}, batch {self.profile.batch}"

    @property
    def models(self) -> int:
        """Distinct models."""
        return len({m.model for m in self.rows})

    def errors(self, phase: Phase, predicted: FloatArray) -> Errors:
        """Errors of a phase under one of the predictions."""
        here = self.terms.requests > 0 if phase == "prefill" else self.terms.requests == 0
        sizes = np.array([float(total(m.architecture)[0]) for m in self.rows])
        return errors(predicted[here], self.terms.ms[here], sizes[here])

    def misfits(self) -> list[tuple[Measurement, float]]:
        """Rows that the fit misses by more than `MISFIT`, with predicted / measured − 1."""
        off = self.in_sample / self.terms.ms - 1.0
        return [(m, float(e)) for m, e in zip(self.rows, off, strict=True) if abs(e) > MISFIT]

    def remarks(self) -> list[str]:
        """Coefficients that the data did not determine, and figures of the device that look wrong."""
        found = []
        if busy := sum(m.contended for m in self.rows):
            fastest = ": the fastest of their repetitions counts" if any(m.fastest for m in self.rows) else ""
            found.append(f"{busy} of {len(self.rows)} rows were measured while others had the processor{fastest}")
        if self.profile.format:
            found.append(priced_otherwise(self.profile))
        if self.models == 1:
            found.append("one model: no held-out error of its own")
        for name, value in (
            ("compute", self.profile.compute_efficiency),
            ("bandwidth", self.profile.bandwidth_efficiency),
        ):
            if value >= AT_BOUND * self.free.largest:
                found.append(
                    f"{name} efficiency is at its bound of {self.free.largest:g}: the device's figure may be too low"
                )
        return found

    def doubts(self) -> list[str]:
        """Why the profile should not be used: nothing held out, far off, or models held out in no clear order."""
        found = []
        for phase in PHASES:
            e = self.errors(phase, self.held_out)
            if not self.errors(phase, self.in_sample).rows:
                continue
            if not e.rows:
                found += [] if self.profile.borrowed else [f"{phase}: no model was held out"]
            elif e.median > FAR_OFF:
                found.append(f"{phase}: {100 * e.median:.0f} % off on models held out")
            elif self.models >= FEWEST and not e.kendall >= LEAST_ORDER:
                found.append(f"{phase}: models held out are not in order, Kendall's tau {e.kendall:.2f}")
        return found


def calibrate(
    rows: list[Measurement],
    device: Device,
    law: Law,
    source: str,
    *,
    request: bool = False,
    beside: Sequence[Measurement] = (),
    few: bool = True,
) -> Calibrated:
    """The profile of one group and how wrong it is.

    Args:
        rows: one engine's, family's and batch's.
        device: in its power mode.
        law: which a scenario needs; times do not depend on it.
        source: where the rows are from, for the profile.
        request: whether there is a constant per request.
        beside: rows at other batches, of which efficiencies may differ by a factor of compute and one of bandwidth.
        few: whether fewer than `FEWEST` models keep the class's curve; else, and with a constant per request, all is fitted.

    Raises:
        ValueError: a format whose peak the device lacks.
    """
    if few and not request and device.confidence != "measured" and len({m.model for m in rows}) < FEWEST:
        return of_class(rows, device, law, source, shipped())
    everything = [*rows, *beside]
    priors = _priors(rows, device)
    group = Group(terms(everything, device, law), np.array([m.model for m in everything]), device, request, priors)
    chosen, table = choose(group), group.terms.rows(~group.terms.beside)
    unseen = leave_one_out(group)
    fitted_to = chosen.fitted_rows(group)
    profile = _profile(fitted_to.fitted(chosen.kept), rows, device, source, table, unseen)
    free = fitted_to.free().keeping(chosen.kept)
    return Calibrated(rows, table, profile, free, predict(table, profile), unseen, predict(table, Calibration()))


def of_class(rows: list[Measurement], device: Device, law: Law, source: str, known: Typical) -> Calibrated:
    """The profile of fewer than `FEWEST` models: that of the device's class, each measured phase as much slower as its rows are.

    On processors, where an engine that fuses launches little, decoding of several models tells launches from bytes; on other chips
    public rows are nearer with the class's launches. Its errors are those of devices of which three rows had been seen, none beyond the class's, and at least those of its own models, each left out in turn.
    """
    first, table = rows[0], terms(rows, device, law)
    cell = known.cell(device, family_of(first.format.precision), engine_of(first.engine))
    usual, models = profile_of(known, cell, device), np.array([m.model for m in rows])
    times = LAUNCHES if device.chip == "cpu" else np.ones(1)
    of_launch = [usual.model_copy(update={"overhead": usual.overhead * each}) for each in times.tolist()]
    offs = np.log(table.ms / np.array([predict(table, profile) for profile in of_launch]))
    phase_of, everything = np.where(table.requests > 0, "prefill", "decode"), np.ones(len(rows), dtype=bool)
    ends = {phase: np.log([min(errors), max(errors)]) for phase, errors in usual.held_out.items()}

    def launch(seen: AnyArray) -> int:
        """At which of `times` the models lie least apart, beside how far a launch lies from the class's."""
        here = seen & (phase_of == "decode")
        of_models = [np.median(offs[:, here & (models == name)], axis=1) for name in sorted(set(models[here].tolist()))]
        apart = np.var(of_models or [np.zeros(len(times))], axis=0) * len(of_models) / BETWEEN**2
        return int(np.argmin(apart + (np.log(times) / PARAMETERS["overhead_us"].spread) ** 2))

    def slower(phase: Phase, seen: AnyArray) -> float:
        """By what rows are slower than the class, less where models are few, never beyond its range."""
        here = seen & (phase_of == phase)
        if not here.any():
            return 0.0
        off = offs[launch(seen)]
        of_models = [float(np.median(off[here & (models == name)])) for name in set(models[here].tolist())]
        trusted = cell.level(phase).sd ** 2
        return float(np.clip(np.median(of_models) * trusted / (trusted + BETWEEN**2 / len(of_models)), *ends[phase]))

    unseen = np.full(len(rows), np.nan)
    for name in set(models.tolist()) if len(set(models.tolist())) > 1 else ():
        for phase in PHASES:
            here = (models == name) & (phase_of == phase)
            others = models != name
            unseen[here] = table.ms[here] * np.exp(slower(phase, others) - offs[launch(others), here])
    by = {phase: slower(phase, everything) for phase in PHASES}
    levels: dict[str, Any] = {
        p: cell.level(p).model_copy(update={"ratio": cell.level(p).ratio * np.exp(by[p])}) for p in PHASES
    }
    fitted = profile_of(known, cell.model_copy(update=levels), device)
    most = 2.0 if device.confidence in BELOW else 1.0
    limits = dict.fromkeys(("compute_efficiency", "compute_efficiency_int8", "bandwidth_efficiency"), most)
    limits |= {"prefill_bandwidth_efficiency": MOST_OF_PREFILL}
    shares = {name: min(share, limit) for name, limit in limits.items() if (share := getattr(fitted, name))}
    fitted = fitted.model_copy(update=shares)
    own = table.ms / unseen
    held_out = {
        p: as_far(own[(phase_of == p) & np.isfinite(own)], np.clip(known.few[p], *np.exp(ends[p] - by[p])))
        if (phase_of == p).any()
        else errors
        for p, errors in usual.held_out.items()
    }
    overhead = rounded(fitted.overhead * float(times[launch(everything)]))
    of_devices = {"held_out": held_out, "held_out_models": known.devices, "borrowed": cell.chip, "overhead": overhead}
    profile = _profile(fitted, rows, device, source, table, np.full(len(rows), np.nan)).model_copy(update=of_devices)
    free = Freedom(("compute", "bandwidth"), most)
    return Calibrated(rows, table, profile, free, predict(table, profile), unseen, predict(table, Calibration()))


def with_memory(group: Calibrated, device: Device, law: Law) -> Calibrated:
    """The group with what its engine holds: a fixed part and at least once the model's memory, by least squares of shares.

    Of models of one size the fixed part alone; nothing where no row has memory.
    """
    rows, engine = [m for m in group.rows if m.memory], engine_of(group.profile.engine)
    if not rows:
        return group
    chunk = prefill_chunk_of(engine)
    scenarios = [replace(scenario_of(m, device, law), engine=engine, prefill_chunk=chunk) for m in rows]
    of_model = np.array([Assessment(m.architecture, s)["resident_gb"][0] for m, s in zip(rows, scenarios, strict=True)])
    held = np.array([m.memory for m in rows])
    own, factor = max(float(np.median(held - of_model)), 0.0), 1.0
    if of_model.max() >= OTHER_SIZE * of_model.min():
        shares = np.stack([1.0 / held, of_model / held], axis=1)
        bounds = (0.0, 1.0), (np.inf, MOST_COPIES)
        own, factor = lsq_linear(shares, np.ones(len(rows)), bounds, method="bvls").x
    memory = {"engine_gb": rounded(own), "memory_factor": rounded(factor)}
    return replace(group, profile=group.profile.model_copy(update=memory))


def _priors(rows: Sequence[Measurement], device: Device) -> Priors:
    """Those of the class of the device, in the rows' family of formats and with their engine; the general ones of measured peaks."""
    if device.confidence == "measured":
        return PARAMETERS
    known, first = shipped(), rows[0]
    cell = known.cell(device, family_of(first.format.precision), engine_of(first.engine))
    shape = known.shaped(device)
    return class_priors(cell, shape, {phase for phase in PHASES if any(m.phase == phase for m in rows)})


def _profile(
    fitted: Calibration, rows: list[Measurement], device: Device, source: str, table: Terms, unseen: FloatArray
) -> Calibration:
    """The fitted numbers to 4 digits with their key and held-out ratios."""
    numbers = {key: rounded(value) for key, value in fitted.model_dump().items() if isinstance(value, float)}
    known = np.isfinite(unseen)
    ratios: dict[str, list[float]] = {}
    for phase, here in (("prefill", table.requests > 0), ("decode", table.requests == 0)):
        if (known & here).any():
            ratios[phase] = sorted(rounded(r) for r in table.ms[known & here] / unseen[known & here])
    shares = np.abs(unseen[known] / table.ms[known] - 1.0)
    first, batched = rows[0], shipped().shaped(device).batched_compute
    return Calibration.model_validate(
        numbers
        | {
            "batched_compute": batched if first.batch == 1 else 1.0,
            "engine": first.engine,
            "precision": first.format.study or first.format.family,
            "format": first.format.family if first.format.study not in ("", first.format.family) else "",
            "mode": device.mode,
            "batch": first.batch,
            "prompts": _range(table.lengths[table.requests > 0]),
            "contexts": _range(table.lengths[table.requests == 0]),
            "experts": bool(table.experts.any()),
            "layers": any(beside_attention(m.architecture) for m in rows),
            "held_out_error": rounded(float(np.median(shares))) if len(shares) else None,
            "held_out": ratios,
            "held_out_models": len({m.model for m, seen in zip(rows, known, strict=True) if seen}) or None,
            "source": f"{source}: {len(rows)} rows, {', '.join(sorted({m.model for m in rows}))}",
        }
    )


def _range(lengths: FloatArray) -> tuple[int, int] | None:
    return (int(lengths.min()), int(lengths.max())) if len(lengths) else None


LENGTHS = (128, 512, 2048, 8192)  # prompts up to each, tokens


def row_by_row(group: Calibrated) -> dict[str, Any]:
    """Columns of equal length: the row, its workload, milliseconds measured, predicted in-sample, held out, by the datasheet."""
    rows = group.rows
    return {
        "line": [m.line for m in rows],
        "model": [m.model for m in rows],
        "phase": [m.phase for m in rows],
        "kind": [kind_of(m) for m in rows],
        "prompt_tokens": [m.prompt for m in rows],
        "generated_tokens": [m.generated if m.phase == "decode" else 0 for m in rows],
        "attended_tokens": [m.attended for m in rows],
        "contended": [m.contended for m in rows],
        "parameters": [float(total(m.architecture)[0]) for m in rows],
        "active_parameters": [float(active(m.architecture)[0]) for m in rows],
        "measured_ms": group.terms.ms.tolist(),
        "in_sample_ms": group.in_sample.tolist(),
        "held_out_ms": group.held_out.tolist(),
        "datasheet_ms": group.datasheet.tolist(),
    }


def kind_of(m: Measurement) -> str:
    """dense or MoE."""
    return "MoE" if float(np.asarray(m.architecture.n_experts).reshape(-1)[0]) > 1 else "dense"


def length_of(m: Measurement) -> str:
    """A class of prompt lengths."""
    least = 0
    for most in LENGTHS:
        if m.prompt <= most:
            return f"prompts of {least:,} to {most:,} tokens"
        least = most + 1
    return f"prompts of {least:,} tokens and more"


SHARED: dict[str, Callable[[Measurement], str]] = {"model": lambda m: m.model, "kind": kind_of, "length": length_of}


def unseen_by(group: Calibrated) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Held-out errors of rows that share a model, a kind or a length, by phase; nothing where none was held out."""
    found: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for name, shared in SHARED.items():
        values = np.array([shared(m) for m in group.rows], dtype=object)
        found[name] = {each: _by_phase(group, values == each) for each in dict.fromkeys(values.tolist())}
    return found


def _by_phase(group: Calibrated, chosen: np.ndarray[Any, Any]) -> dict[str, dict[str, float]]:
    unseen: FloatArray = np.where(chosen, group.held_out, np.nan)
    errors = {phase: group.errors(phase, unseen) for phase in PHASES}
    shown = ("rows", "median", "p90")
    return {
        phase: {name: value for name, value in asdict(e).items() if name in shown}
        for phase, e in errors.items()
        if e.rows
    }
