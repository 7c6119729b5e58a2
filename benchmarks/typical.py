"""Typical efficiencies of classes of chips: how they are estimated from the public measurements, and judged by devices left out whole.

    PLAS_EXTERNAL_DATA=FOLDER python -m benchmarks.typical          errors of devices that were left out
    PLAS_EXTERNAL_DATA=FOLDER python -m benchmarks.typical --write  objectives/typical/efficiencies.yaml as well

FOLDER holds latency/measured_latency.csv and latency/devices3/m_*.csv, which are not part of the project. Rows are those of
devices of the catalogue at batch 1 in their default power mode, a group for each device, engine and format.

The form, chosen on the same rows among some thirty variants of its effects and of `SHAPE`: a phase takes exp(y) times what
`SHAPE` predicts, with y = level + class of chip + its kind + family of formats + engine of that class + device + rest, each but the level
normal about 0. A group's y is the median over its rows. The standard deviations are of the largest restricted likelihood, with
log(sd) normal about `USUAL`, as classes and engines are few.
Residuals of left-out devices, in standard deviations, are those of all kinds: `print_coverage` says how often their ranges hold in each. A kind of
which no device was seen has those of devices whose kind was left out whole.
A device of which nothing is known has no term of its own: its variance is in the spread. Without an engine it has one of those that
devices of its class were seen with.
"""

import argparse
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import numpy as np
from scipy.optimize import minimize

from benchmarks.calibration import device, measurements, public_rows
from nas.files import yaml_source
from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from objectives.counts import active, total
from objectives.device import Calibration, Chip, Device, Phase
from objectives.engines import engine_of
from objectives.measured_bounds import beyond, conformal_factor
from objectives.typical.efficiencies import FAMILIES, Cell, Level, Typical, chip_kind, family_of, profile_of
from plas_board.calibrate.command import LAW, resolve
from plas_board.calibrate.inputs import read_input
from plas_board.calibrate.request import CalibrateRequest
from plas_board.calibrating.efficiencies import class_priors
from plas_board.calibrating.group import PHASES, calibrate, groups
from plas_board.calibrating.held_out import Group, choose, leave_one_out
from plas_board.calibrating.measurements import Measurement, read
from plas_board.calibrating.terms import Terms, predict, terms
from search_spaces.arrays import AnyArray, FloatArray

#: What phases are of before classes differ: efficiencies and overheads that `calibrate` begins from, the attention core of builds that
#: fuse it, as rows up to 65,792 tokens have it (Strix Halo), and the recurrence of linear attention, as Qwen3.5 beside models without has it there. Arithmetic of
#: decoding one token: 6 % of INT8's peak, as Apple's M1 Max and M2 Ultra and three processors have it (4 to 6 %).
SHAPE = Calibration(
    compute_efficiency=0.5,
    bandwidth_efficiency=0.8,
    overhead=0.005,
    prefill_overhead=0.015,
    attention_compute=0.5,
    decode_compute=0.25,
    scan_compute=0.04,
    expert_bandwidth=0.9,
    routing_overlap=0.45,
)
#: Where it is otherwise: attention on matrix units that run like other products; without fast INT8 several vectors at half of the rate of
#: prefills, which no row here decides.
DIFFERS = {
    "gpu int8": {"attention_compute": 1.0},
    "server_gpu int8": {"attention_compute": 1.0},
    "server_gpu int8 HBM": {"attention_compute": 1.0},
    "soc int8": {"attention_compute": 1.0},
    "npu": {"scan_compute": 0.01},
    "cpu": {"batched_compute": 0.5},
    "gpu fp16": {"batched_compute": 0.5},
    "soc fp16": {"batched_compute": 0.5},
}
#: Power of FLOPs a byte by which the share of the peak falls: 0.40 when it was estimated beside the effects, from 26 (M1 Max) to 947 (Thor).
RIDGE = 0.4
#: Builds whose attention writes its scores, and what of the profile is theirs alone.
OLD = ("llama-bench May-2024", "llama-bench 8e672ef")
UNFUSED = {"attention_compute": 0.4, "attention_bandwidth": 0.5}
USUAL, LOOSE = np.log(0.3), 1.0
SHARE = Fraction(8, 10)
RULE = 0.55  # of the bandwidth at which active weights are read in decoding: llmfit 2026-08, llmfit-core/src/fit.rs (estimate_tps)
BYTES = {
    "fp16": 2.0,
    "w8": 1.0,
    "int8": 1.0,
    "w4": 0.5,
    "fp4": 0.5,
}  # a weight: the same, models.rs (quant_bytes_per_param)
HELPS = 0.9  # of the error without an engine, which stating it must save
KEPT = (0.1, 0.3, 0.5, 0.7, 0.9)  # quantiles that stand for the rows of a device
FILES = {"m_5070.csv": "rtx_5070", "m_xt.csv": "rx_7900_xt", "m_rk3588.csv": "rk3588_npu"}
LOGS = {"strix_1b.jsonl": "ryzen_ai_max_395", "strix_vulkan.md": "ryzen_ai_max_395"}
#: Boards that the catalogue has under another name, or not: cores x clock x operations a cycle, and the memory's rate.
BOARDS = {
    "intel_n150": {"fp16": 0.23, "int8": 0.92, "bandwidth": 25.6},  # 4 x 3.6 GHz x 16 (AVX2), VNNI, DDR4-3200
    "radxa_dragon_q8b": {"fp16": 1.07, "int8": 2.14, "bandwidth": 68.3},  # SC8280XP: 4 X1C at 3.0 and 4 A78C at 2.4 GHz
    "raspberry_pi_500plus": {"fp16": 0.307, "int8": 0.614, "bandwidth": 17.1},
}
TARGET = Path(__file__).parents[1] / "objectives" / "typical" / "efficiencies.yaml"


SHARED = Typical(
    shape=SHAPE,
    differs=DIFFERS,
    ridge=RIDGE,
    devices=1,
    rows=1,
    residuals={},
    with_engine={},
    unseen={},
    cells=[],
    source="",
)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one device, engine and format; `old`: of builds that do not fuse attention.

    floats: activations are of FP16 where the format's are integers. Qualcomm's `w4` has them, beside w4a16 (quic/ai-hub-models).
    An NPU multiplies them in other units, so prefills of the two are apart. Decoding, which waits for weights, is not.
    """

    device: str
    chip: Chip
    kind: str
    family: str
    engine: str
    measured: Sequence[Measurement]
    terms: Terms
    old: bool = False
    floats: bool = False

    @property
    def board(self) -> Device:
        """The device in the mode of the rows."""
        return board_of(self.measured[0].device or self.device)

    def as_built(self, profile: Calibration) -> Calibration:
        """A profile of today's builds as of the rows' own."""
        return profile.model_copy(update=UNFUSED) if self.old else profile

    @cached_property
    def off(self) -> FloatArray:
        """log(measured / predicted) under the shape, (n,)."""
        return np.log(self.terms.ms / predict(self.terms, self.as_built(SHARED.shaped(self.board))))

    @property
    def by_rule(self) -> FloatArray:
        """log(measured / predicted) by `RULE`, (n,), NaN of prefills."""
        read = [BYTES[self.family] * float(active(m.architecture)[0]) for m in self.measured]
        ms = 1e3 * np.array(read) / (RULE * self.board.bandwidth)
        return np.where(self.of("decode"), np.log(self.terms.ms / ms), np.nan)

    def of(self, phase: Phase) -> Any:
        """Which rows are of a phase."""
        return (self.terms.requests > 0) == (phase == "prefill")


def board_of(name: str) -> Device:
    """A device of the catalogue, or one of `BOARDS`."""
    stated = BOARDS.get(name)
    named = Device.model_validate({"name": name, "memory": 16, "chip": "cpu"} | stated) if stated else device(name)
    assert named is not None
    return named


def of_file(path: Path, name: str) -> list[Measurement]:
    """The rows of a table, or of a log."""
    if path.suffix == ".csv":
        return read(path.read_text(encoding="utf-8").splitlines(), name, resolve)[0]
    return read(read_input(CalibrateRequest((path,), name))[0], name, resolve)[0]


def public_groups(folder: Path) -> list[Rows]:
    """Every group of the tables and logs; of decode rows without lengths a short context is taken.

    Rows of BF16 are left out of the logs, whose chip says that it has none.
    """
    table = public_rows(folder)
    short = {"prompt_len": "64", "gen_len": "128"}
    rows = [r | {key: r[key] or n for key, n in short.items()} if r["metric"] == "decode_tok_s" else r for r in table]
    by_device = measurements(rows, lambda m, r: m.batch == 1)
    for name, of in (FILES | LOGS).items():
        place = "devices3" if name in FILES else "logs"
        rows_of = of_file(folder / "latency" / place / name, of)
        by_device.setdefault(of, []).extend(m for m in rows_of if name in FILES or m.format.family != "fp16")
    law, made = load_law(LAW), []
    for name, members in by_device.items():
        if name not in BOARDS and (device(name) is None or board_of(name).mode not in ("", "super")):
            continue
        board = board_of(name)
        for (engine, _, _), group in groups(members).items():
            family = family_of(group[0].format.precision)
            place = (name.partition("@")[0], board.chip, chip_kind(board), family, engine_of(engine))
            floats = group[0].format.family == "w4"
            made.append(Rows(*place, group, terms(group, board, law), engine in OLD, floats))
    return made


Terms_of = Callable[[Rows], tuple[str, ...]]
EFFECTS: tuple[Terms_of, ...] = (
    lambda g: (g.chip,),
    lambda g: (g.chip, g.kind),
    lambda g: (g.family,),
    lambda g: (g.chip, g.engine, str(g.floats)),
    lambda g: (g.device,),
)


@dataclass(frozen=True, eq=False)
class Mixed:
    """The form fitted to one phase: groups, their weights on the residuals, standard deviations of the effects and of the rest."""

    seen: Sequence[Rows]
    level: float
    sds: FloatArray
    inverse: FloatArray
    weights: FloatArray

    def at(self, chip: Chip, kind: str, family: str, engine: str, *, floats: bool) -> Level:
        """The median and the standard deviation of a device that was not seen, with today's builds.

        `any` chip and the engine "" are any that was, in equal parts of devices; the kind "" is one that was not.
        """
        seen = {
            (g.chip, g.kind if chip == "any" else kind, g.engine, g.device)
            for g in self.seen
            if chip in ("any", g.chip) and kind in ("", g.kind) and engine in ("", g.engine) and g.floats == floats
        }
        means, variances = np.array(
            [self._one(of, its, family, by, floats) for of, its, by, _ in sorted(seen)]
            or [self._one(chip, kind, family, engine, floats)]
        ).T
        return Level(ratio=_rounded(np.exp(means.mean())), sd=_rounded(np.sqrt(variances.mean() + means.var())))

    def _one(self, chip: Chip, kind: str, family: str, engine: str, floats: bool) -> tuple[float, float]:
        """Mean and variance of y of a kind with an engine."""
        wanted = replace(
            self.seen[0], device="", chip=chip, kind=kind, family=family, engine=engine, old=False, floats=floats
        )
        shared = np.zeros(len(self.seen))
        for effect, sd in zip(EFFECTS[:-1], self.sds, strict=False):
            shared += sd**2 * np.array([effect(g) == effect(wanted) for g in self.seen], dtype=float)
        left = float((self.sds**2).sum()) - shared @ self.inverse @ shared
        return self.level + float(shared @ self.weights), float(left)


def fitted(found: Sequence[Rows], phase: Phase) -> Mixed:
    """The form on the groups that have rows of a phase."""
    seen = [replace(g, floats=g.floats and phase == "prefill") for g in found if g.of(phase).any()]
    y = np.array([np.median(g.off[g.of(phase)]) for g in seen])
    alike = [np.array([[f(a) == f(b) for b in seen] for a in seen], dtype=float) for f in EFFECTS]
    ones = np.ones(len(y))

    def solved(logs: FloatArray) -> tuple[FloatArray, float, FloatArray, float]:
        covariance = np.exp(2 * logs[-1]) * np.eye(len(y)) + sum(
            np.exp(2 * s) * z for s, z in zip(logs, alike, strict=False)
        )
        inverse = np.linalg.inv(covariance)
        information = float(ones @ inverse @ ones)
        level = float(ones @ inverse @ y) / information
        rest = y - level
        deviance = np.linalg.slogdet(covariance)[1] + np.log(information) + rest @ inverse @ rest
        return inverse, level, inverse @ rest, 0.5 * float(deviance)

    def cost(logs: FloatArray) -> float:
        return solved(logs)[3] + 0.5 * float((((logs - USUAL) / LOOSE) ** 2).sum())

    start = np.full(len(EFFECTS) + 1, USUAL)
    logs = minimize(cost, start, method="L-BFGS-B", bounds=[(-5.0, 1.0)] * len(start)).x
    inverse, level, weights, _ = solved(logs)
    return Mixed(seen, level, np.exp(logs), inverse, weights)


Place = tuple[Chip, str, str, str]  # of a cell: class, kind, family, engine


def made(
    found: Sequence[Rows],
    cells: Iterable[Place],
    residuals: Mapping[bool, dict[Phase, list[float]]],
    unseen: Mapping[Phase, list[float]] = MappingProxyType({}),
    *,
    floats: bool = False,
) -> Typical:
    """What is shipped, of these groups; residuals with an engine stated and without, and of kinds that were left out whole.

    floats: of activations of FP16, which no study can ask for.
    """
    forms = {phase: fitted(found, phase) for phase in PHASES}
    return Typical(
        shape=SHAPE,
        differs=DIFFERS,
        builds=builds_of(found),
        ridge=RIDGE,
        devices=len({g.device for g in found}),
        rows=sum(len(g.terms.ms) for g in found),
        residuals=residuals.get(False, {}),
        with_engine=residuals.get(True, {}),
        unseen=dict(unseen),
        cells=[
            Cell(
                chip=chip,
                kind=kind,
                family=family,
                engine=engine,
                **{
                    p: forms[p]
                    .at(chip, kind, family, engine, floats=floats and p == "prefill")
                    .model_copy(update={"seen": any((g.chip, g.kind) == (chip, kind) for g in forms[p].seen)})
                    for p in PHASES
                },
            )
            for chip, kind, family, engine in cells
        ],
        source="benchmarks/typical.py on public tables",
    )


def builds_of(found: Sequence[Rows]) -> dict[str, list[str]]:
    """The builds of each engine, as the rows name them."""
    names = {(g.engine, m.engine) for g in found for m in g.measured}
    return {engine: sorted(name for of, name in names if of == engine) for engine in sorted({of for of, _ in names})}


def cells_of(found: Sequence[Rows]) -> Iterator[Place]:
    """Every kind of every class and family, with no engine and with each that was seen of it; "" is a kind that was not seen."""
    for chip in get_args(Chip):
        for kind in ("", *sorted({g.kind for g in found if g.chip == chip})):
            engines = sorted({g.engine for g in found if g.chip == chip and kind in ("", g.kind)})
            for family in FAMILIES:
                yield from ((chip, kind, family, engine) for engine in ("", *engines))


@dataclass(frozen=True)
class Judged:
    """A row of a device that was left out: log(measured / predicted), its standard deviation, and the same at datasheet peaks and by `RULE`."""

    device: str
    kind: str
    engine: str
    phase: Phase
    off: float
    sd: float
    at_peaks: float = math.nan
    by_rule: float = math.nan

    @property
    def chip(self) -> str:
        """Of the class."""
        return self.kind.partition(" ")[0]


def left_out(found: Sequence[Rows], *, engines: bool, kinds: bool = False) -> list[Judged]:
    """Every row predicted from the other devices (or those of other kinds), with its engine or as of an engine that is not stated."""
    judged = []
    for name, floats in sorted({(g.device, g.floats) for g in found}):
        here = [g for g in found if (g.device, g.floats) == (name, floats)]
        own = {(g.chip, g.kind) for g in here} if kinds else set()
        others = [g for g in found if g.device != name and (g.chip, g.kind) not in own]
        asked = [(g.chip, g.kind, g.family, g.engine if engines else "") for g in here]
        typical = made(others, dict.fromkeys(asked), {}, floats=floats)
        for group, (_, _, family, engine) in zip(here, asked, strict=True):
            cell = typical.cell(group.board, family, engine)
            off = np.log(group.terms.ms / predict(group.terms, group.as_built(profile_of(typical, cell, group.board))))
            others_off = np.stack([off, np.log(group.terms.ms / predict(group.terms, Calibration())), group.by_rule])
            judged += [
                Judged(name, f"{group.chip} {group.kind}", group.engine, phase, o, cell.level(phase).sd, peaks, rule)
                for phase in PHASES
                for o, peaks, rule in others_off[:, group.of(phase)].T.tolist()
            ]
    return judged


def helpful(judged: Mapping[bool, Sequence[Judged]]) -> list[str]:
    """Kinds and engines, `soc int8 vLLM`: of devices left out the median error of their rows, phases alike, is less with the engine stated."""
    means: dict[str, dict[bool, float]] = defaultdict(dict)
    for stated, rows in judged.items():
        for place in {(row.kind, row.engine) for row in rows}:
            own = [row for row in rows if (row.kind, row.engine) == place]
            of_phases = [[abs(math.exp(-row.off) - 1.0) for row in own if row.phase == phase] for phase in PHASES]
            if len({row.device for row in own}) > 1:
                means[" ".join(place)][stated] = float(np.mean([np.median(errors) for errors in of_phases if errors]))
    return sorted(name for name, error in means.items() if error[True] < HELPS * error[False])


def few_rows(group: Rows) -> AnyArray:
    """Three rows of a log: both phases of the smallest model and decoding of the largest; of one model at its shortest and its longest."""
    sizes = [float(total(m.architecture)[0]) for m in group.measured]
    order = np.lexsort((group.terms.lengths, sizes))
    prefills, decodes = (order[group.of(phase)[order]] for phase in PHASES)
    seen: AnyArray = np.zeros(len(sizes), dtype=np.bool_)
    seen[np.concatenate([prefills[:1], decodes[:1], decodes[-1:]])] = True
    return seen


def narrowed(found: Sequence[Rows]) -> dict[str, list[Judged]]:
    """The same rows predicted as typical of the class, after three rows of the device, and by its other models or lengths."""
    judged: dict[str, list[Judged]] = {"no profile": [], "three rows of a log": [], "calibrated": []}
    for group in found:
        board, seen = group.board, few_rows(group)
        if seen.all():
            continue
        place = (group.chip, group.kind, group.family, group.engine)
        known = made([g for g in found if g.device != group.device], [place], {}, floats=group.floats)
        cell, rest = known.cell(board, group.family, group.engine), group.terms.rows(~seen)
        models = np.array([m.model for m in group.measured])
        single = len(set(models.tolist())) == 1
        few = Group(
            group.terms.rows(seen),
            models[seen],
            board,
            priors=class_priors(cell, SHARED.shaped(group.board), _phases(group, seen)),
        )
        every = leave_one_out(Group(group.terms, models, board), by=group.terms.lengths if single else None)[~seen]
        for name, ms in (
            ("no profile", predict(rest, group.as_built(profile_of(known, cell, board)))),
            ("three rows of a log", predict(rest, few.fitted(choose(few).kept))),
            ("calibrated", every),
        ):
            judged[name] += [
                Judged(group.device, f"{group.chip} {group.kind}", group.engine, phase, float(off), 1.0)
                for phase in PHASES
                for off in np.log(rest.ms / ms)[(rest.requests > 0) == (phase == "prefill")]
                if np.isfinite(off)
            ]
    return judged


def overshoots(
    found: Sequence[Rows],
    residuals: Mapping[bool, dict[Phase, list[float]]],
    *,
    engines: bool,
) -> list[float]:
    """Time by the device's own profile / budget of the exact picks of `paper`'s space at total_ms@q80, its devices left out of what is typical.

    Of groups with both phases of two models or more; budgets are the 10th, 30th and 50th percentile of the space's own times there.
    """
    shares = []
    for group in found:
        models = {m.model for m in group.measured}
        if len(models) < 2 or not (group.of("prefill").any() and group.of("decode").any()):
            continue
        board = group.board
        others = [g for g in found if g.device != group.device]
        engine = group.engine if engines else ""
        asked = [(group.chip, group.kind, group.family, engine)]
        known = made(others, asked, residuals, residuals[engines], floats=group.floats)
        own = calibrate(list(group.measured), board, load_law(LAW), "").profile
        name = {"int8": "int8", "fp4": "nvfp4", "fp16": "fp16"}.get(group.family, "int4")
        study = {"algo": "exact", "preset": "device", "device": board.mapping(), "precision": name}
        problem = assemble(study, {}).problem
        whole = problem.space.genotypes(np.arange(problem.space.size))
        typical = profile_of(known, known.cell(board, group.family, engine), board)
        ours, theirs = (
            replace(problem, scenario=replace(problem.scenario, calibration=profile))
            .evaluate(whole, ("loss", metric))
            .metrics
            for profile, metric in ((typical, "total_ms@q80"), (own, "total_ms"))
        )
        for budget in np.quantile(theirs["total_ms"], (0.1, 0.3, 0.5)):
            within = np.flatnonzero(ours["total_ms@q80"] <= budget)
            if len(within):
                shares.append(float(theirs["total_ms"][within[np.argmin(ours["loss"][within])]] / budget))
    return shares


def _phases(group: Rows, seen: AnyArray) -> set[Phase]:
    return {phase for phase in PHASES if (group.of(phase) & seen).any()}


def residuals_of(judged: Sequence[Judged]) -> dict[Phase, list[float]]:
    """Errors in standard deviations, as many of each device."""
    found: dict[Phase, list[float]] = {}
    for phase in PHASES:
        by_device = of_devices([row for row in judged if row.phase == phase])
        found[phase] = sorted(round(float(z), 3) for zs in by_device.values() for z in np.quantile(zs, KEPT))
    return found


def of_devices(judged: Sequence[Judged]) -> dict[str, list[float]]:
    """Errors in standard deviations, by device."""
    by_device = defaultdict(list)
    for row in judged:
        by_device[row.device].append(row.off / row.sd)
    return by_device


def coverage(judged: Sequence[Judged], phase: Phase) -> dict[str, tuple[float, float]]:
    """The share of a left-out device's rows below the upper end at `SHARE`, and inside the range of 80 %, by class and of "all", devices alike.

    Residuals are those of the other devices.
    """
    rows, shares = [row for row in judged if row.phase == phase], defaultdict(list)
    for name in sorted({row.device for row in rows}):
        here, others = [r for r in rows if r.device == name], [r for r in rows if r.device != name]
        known, count = residuals_of(others)[phase], len({r.device for r in others})
        z = np.array(of_devices(here)[name])
        upper = conformal_factor(known, count, SHARE, rows=len(known))
        outside = beyond(len(known), count, (1 - SHARE) / 2)
        assert upper is not None
        share = float((z <= upper).mean()), float(((known[outside] <= z) & (z <= known[-1 - outside])).mean())
        for group in (here[0].kind, "all"):
            shares[group].append(share)
    return {group: tuple(np.mean(each, axis=0).tolist()) for group, each in shares.items()}


def print_coverage(judged: Mapping[bool, Sequence[Judged]]) -> None:
    """How often upper ends at `SHARE` and ranges of 80 % hold, by class."""
    for engines, rows in judged.items():
        for phase in PHASES:
            print(f"upper ends at q80 and ranges of 80 % hold, {phase}, engine {'stated' if engines else 'not stated'}")
            for group, (below, inside) in coverage(rows, phase).items():
                print(f"  {group:<21}{100 * below:.0f} % and {100 * inside:.0f} %")


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def print_errors(judged: Sequence[Judged]) -> None:
    """Median and 90th percentile of |predicted / measured − 1| by phase and class."""
    for phase in PHASES:
        rows = [row for row in judged if row.phase == phase]
        print(f"{phase:<9}{_summary(rows)}")
        for kind in sorted({row.kind for row in rows}):
            print(f"  {kind:<16}{_summary([row for row in rows if row.kind == kind])}")


def _summary(rows: Sequence[Judged]) -> str:
    error = np.abs(np.exp([-row.off for row in rows]) - 1.0)
    devices = len({row.device for row in rows})
    return f"median {100 * np.median(error):.1f} %, p90 {100 * np.quantile(error, 0.9):.1f} % ({len(rows)} rows of {devices} devices)"


def main() -> None:
    """Print errors; write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {TARGET.name}")
    asked = parser.parse_args()
    found = public_groups(Path(os.environ["PLAS_EXTERNAL_DATA"]))
    judged = {engines: left_out(found, engines=engines) for engines in (True, False)}
    print_coverage(judged)
    for engines, rows in judged.items():
        print(f"devices left out, engine {'stated' if engines else 'not stated'}")
        print_errors(rows)
    residuals = {engines: residuals_of(rows) for engines, rows in judged.items()}
    print("the shape alone")
    print_errors(
        [
            Judged(g.device, f"{g.chip} {g.kind}", g.engine, p, float(v), 1.0)
            for g in found
            for p in PHASES
            for v in g.off[g.of(p)]
        ]
    )
    after = narrowed(found)
    for name, those in after.items():
        print(f"rows that three others of the device leave: {name}")
        for phase in PHASES:
            print(f"  {phase:<9}{_summary([row for row in those if row.phase == phase])}")
    for engines in (True, False):
        shares = np.array(overshoots(found, residuals, engines=engines))
        print(
            f"picks at q80, engine {'stated' if engines else 'not stated'}: {(shares <= 1.25).sum()} of {len(shares)} within 1.25 of "
            f"their budget, {(shares <= 1.0).sum()} within it, the worst {shares.max():.2f}"
        )
    if asked.write:
        unseen = residuals_of(left_out(found, engines=False, kinds=True))
        of_few = {
            p: [round(math.exp(z), 3) for z in zs] for p, zs in residuals_of(after["three rows of a log"]).items()
        }
        content = made(found, cells_of(found), residuals, unseen).model_copy(
            update={"few": of_few, "helpful": helpful(judged)}
        )
        TARGET.write_text(yaml_source.dump(content.model_dump(mode="json", exclude_defaults=True)), encoding="utf-8")


if __name__ == "__main__":
    main()
