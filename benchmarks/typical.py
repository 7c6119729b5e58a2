"""Typical efficiencies of classes of chips: how they are estimated from the public measurements, and judged by devices left out whole.

    PLAS_EXTERNAL_DATA=FOLDER python -m benchmarks.typical          errors of devices that were left out
    PLAS_EXTERNAL_DATA=FOLDER python -m benchmarks.typical --write  objectives/typical/efficiencies.yaml as well

FOLDER holds latency/measured_latency.csv and latency/devices3/m_*.csv, which are not part of the project. Rows are those of
devices of the catalogue at batch 1 in their default power mode, and of server engines at batches up to 16, a group for each device, engine, format and batch.
Rows of several requests served together say what their engines are in their kind, and are a class of their own where they are judged; nothing else is estimated from them.

The form, chosen on the same rows among some thirty variants of its effects and of `SHAPE`: a phase takes exp(y) times what
`SHAPE` predicts, with y = level + class of chip + its kind + family of formats + engine of that class + device + rest, each but the level
normal about 0. A group's y is the median over its rows. The standard deviations are of the largest restricted likelihood, with
log(sd) normal about `USUAL`, as classes and engines are few.
Ranges are of left-out devices' residuals in standard deviations, those of the kind `OWN` times, the wider the fewer boards it has, of
fewer than `FEW` as far as a kind that was not seen may be off, devices alike or kinds alike: `print_coverage` says how often they hold.
A device of which nothing is known has no term of its own: its variance is in the spread. Without an engine it has one of those that
devices of its class were seen with.
"""

import argparse
import csv
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
from scipy.optimize import minimize

from benchmarks.calibration import device, measurements, public_rows
from nas.files import yaml_source
from nas.search.assembly import assemble
from nas.study.catalogue import load_device, load_law
from objectives.counts import active, total
from objectives.device import Calibration, Chip, Device, Phase
from objectives.engines import beside_attention, engine_of
from objectives.measured_bounds import beyond, conformal_factor
from objectives.typical.efficiencies import FAMILIES, Cell, Level, Typical, chip_kind, family_of, profile_of
from plas_board.calibrate.command import LAW, resolve
from plas_board.calibrate.inputs import read_input
from plas_board.calibrate.request import CalibrateRequest
from plas_board.calibrating.group import PHASES, calibrate, groups, of_class
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
#: prefills, which no row here decides. Processors read caches half as fast as weights, as builds that do not fuse attention do: a Ryzen AI 5 340
#: at .42 to .67 in llama.cpp; of an M4 Max in LiteRT-LM, left out, rows are nearer for it.
DIFFERS = {
    "gpu NVIDIA": {"attention_compute": 1.0},
    "server_gpu NVIDIA HBM": {"attention_compute": 1.0},
    "server_gpu NVIDIA": {"attention_compute": 1.0},
    "soc NVIDIA": {"attention_compute": 1.0},
    "npu": {"scan_compute": 0.01},
    "cpu": {"batched_compute": 0.5, "attention_bandwidth": 0.5},
    "gpu AMD": {"batched_compute": 0.5},
    "soc other": {"batched_compute": 0.5},
    "soc Apple": {"batched_compute": 0.5, "decode_compute": 4.0},
    "soc Apple Ultra": {"batched_compute": 4.0, "decode_compute": 4.0, "overhead": 0.0105, "attention_bandwidth": 0.4},
}
#: Power of FLOPs a byte by which the share of the peak falls: 0.40 when it was estimated beside the effects, from 26 (M1 Max) to 947 (Thor).
RIDGE = 0.4
#: Builds whose attention writes its scores, and what of the profile is theirs alone.
OLD = ("llama-bench May-2024", "llama-bench 8e672ef")
UNFUSED = {"attention_compute": 0.4, "attention_bandwidth": 0.5, "overhead": 0.0075}
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
LIMITS, MOST_SD = 25, 4.0  # limits that are tried on a device; standard deviations beyond which none is priced
OWN = 4  # times that a kind's devices count among all
FEW = 3  # boards of a kind with rows of a phase from which its range is its own
MAKERS = 4  # boards from which phones' GPUs, each of another maker, say how they decode
LEVELS = np.linspace(0.0, 1.0, 39)  # quantiles, as many outside of a range as of all errors
HELPS = 0.9  # of the error without an engine, which stating it must save
KEPT = (0.1, 0.3, 0.5, 0.7, 0.9)  # quantiles that stand for the rows of a device
FILES = {"m_5070.csv": "rtx_5070", "m_xt.csv": "rx_7900_xt", "m_rk3588.csv": "rk3588_npu"}
LOGS = {"strix_1b.jsonl": "ryzen_ai_max_395", "strix_vulkan.md": "ryzen_ai_max_395"}
#: Boards that the catalogue has under another name, or not: cores x clock x operations a cycle, and the memory's rate.
BOARDS: dict[str, dict[str, Any]] = {
    "intel_n150": {"fp16": 0.23, "int8": 0.92, "bandwidth": 25.6},  # 4 x 3.6 GHz x 16 (AVX2), VNNI, DDR4-3200
    "radxa_dragon_q8b": {"fp16": 1.07, "int8": 2.14, "bandwidth": 68.3},  # SC8280XP: 4 X1C at 3.0 and 4 A78C at 2.4 GHz
    # Two of the RK3588's four 16-bit channels of LPDDR4X, at the same clock.
    "rk3576_npu": {"chip": "npu", "vendor": "Rockchip", "fp16": 3, "int8": 6, "bandwidth": 16.9},
    "b200_sxm": {"chip": "server_gpu", "vendor": "NVIDIA", "fp16": 2250, "int8": 4500, "bandwidth": 8000},
    "raspberry_pi_500plus": {"fp16": 0.307, "int8": 0.614, "bandwidth": 17.1},
}
RECENT = "latency/devices-2026"
#: Llama 2 7B at build 8e672ef, tokens/s; Source: ggml-org/llama.cpp discussion 4167.
SCOREBOARD = Path(__file__).parents[1] / "studies" / "accuracy" / "apple_scoreboard.csv"
#: Time a token of several requests at once; Source: aiconfigurator 0.10, systems/silicon_sample.csv (Apache-2.0).
SERVERS = SCOREBOARD.with_name("server_engines.csv")
#: 64 tokens after 128 in w8a8; Source: airockchip/rknn-llm at 878f936, benchmark.md.
ROCKCHIP = SCOREBOARD.with_name("rk3576.csv")
PER_CORE = {"M1": 0.327, "M2": 0.355, "M3": 0.355, "M4": 0.46}  # TFLOP/s in FP16 of a core, as the catalogue has them
CORES = re.compile(r"_\d+c$")
ALIAS = {"m3ultra": "m3_ultra"}
TARGET = Path(__file__).parents[1] / "objectives" / "typical" / "efficiencies.yaml"


SHARED = Typical(
    shape=SHAPE,
    differs=DIFFERS,
    ridge=RIDGE,
    devices=1,
    rows=1,
    residuals={},
    with_engine={},
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
    board: Device
    old: bool = False
    floats: bool = False
    shared: bool = True
    phase: Phase = "decode"
    widest_npu: float = math.inf

    @property
    def stack(self) -> str:
        """What NPUs share in a phase: their maker's way of prefills, and in decoding the path to memory."""
        return self.kind.partition(" ")[0] if self.phase == "prefill" else self.kind

    def as_built(self, profile: Calibration) -> Calibration:
        """A profile of today's builds as of the rows' own."""
        if not self.old:
            return profile
        changes = UNFUSED
        if self.kind.startswith("Apple"):
            changes = UNFUSED | {"overhead": 0.0105, "compute_efficiency": 0.85 * profile.compute_efficiency}
        return profile.model_copy(update=changes)

    @cached_property
    def off(self) -> FloatArray:
        """log(measured / predicted) under the shape, (n,)."""
        shape = SHARED.model_copy(update={"widest_npu": self.widest_npu}).shaped(self.board)
        return np.log(self.terms.ms / predict(self.terms, self.as_built(shape)))

    @property
    def served(self) -> bool:
        """Whether several requests were served together."""
        return any(m.batch > 1 for m in self.measured)

    @property
    def by_rule(self) -> FloatArray:
        """log(measured / predicted) by `RULE`, (n,), NaN of prefills."""
        read = [BYTES[self.family] * float(active(m.architecture)[0]) for m in self.measured]
        ms = 1e3 * np.array(read) / (RULE * self.board.bandwidth)
        return np.where(self.of("decode"), np.log(self.terms.ms / ms), np.nan)

    def of(self, phase: Phase) -> Any:
        """Which rows are of a phase."""
        return (self.terms.requests > 0) == (phase == "prefill")


def boards_of(folder: Path) -> dict[str, Device]:
    """Devices that the catalogue has under another name, or not: `BOARDS`, files beside the rows, chips of the scoreboard."""
    stated: dict[str, dict[str, Any]] = {name: {"chip": "cpu"} | figures for name, figures in BOARDS.items()}
    for row in _table(SCOREBOARD):
        figures = {"fp16": int(row["cores"]) * PER_CORE[row["chip"][:2]], "bandwidth": float(row["bandwidth_gb_s"])}
        stated[_chip_id(row)] = figures | {"chip": "soc", "name": f"Apple {row['chip']}"}
    made = {name: Device.model_validate({"name": name, "memory": 16} | figures) for name, figures in stated.items()}
    return made | {file.stem: load_device(str(file)) for file in (folder / RECENT).glob("*.yaml")}


def board_named(name: str) -> Device:
    """A device of the catalogue."""
    found = device(name)
    assert found is not None
    return found


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _chip_id(row: Mapping[str, str]) -> str:
    """As the catalogue names it: `m4_max_40c`."""
    return f"{row['chip'].lower().replace(' ', '_')}_{row['cores']}c"


def of_file(path: Path, name: str) -> list[Measurement]:
    """The rows of a table, or of a log."""
    if path.suffix == ".csv":
        return read(path.read_text(encoding="utf-8").splitlines(), name, resolve)[0]
    return read(read_input(CalibrateRequest((path,), name))[0], name, resolve)[0]


def further_rows(folder: Path) -> Iterator[dict[str, str]]:
    """Rows of the tables of 2026, of Qualcomm's and of llama.cpp's scoreboard, with the columns that `read` knows."""
    for path in sorted((folder / RECENT).glob("*.csv")):
        for row in _table(path):
            after, reading = int(float(row["depth"] or 0)), row["phase"].startswith("prefill")
            if row["kv"] in ("", "f16"):
                prompt, attended = (row["inp"], after + int(row["inp"]) if "@" in row["phase"] else "")
                cells = ("ttft_ms", prompt, attended) if reading else ("tpot_ms", max(int(prompt), after), "")
                yield _row(
                    row["device"],
                    row["engine"],
                    row["model"],
                    row["precision"],
                    row["batch"],
                    row["gen"],
                    row["ms"],
                    *cells,
                )
    for row in _table(folder / "latency" / "devices3" / "qualcomm_ai_hub.csv"):
        if row["device"] == "Snapdragon X Elite CRD":
            place = ("snapdragon_x_elite", "Genie", row["model"], row["precision"], 1, 64)
            yield _row(*place, row["ttft_min_ms"], "ttft_ms", 128, row["context_length"])
            yield _row(*place, row["tokens_per_second"], "decode_tok_s", row["context_length"], "")
    for row in _table(ROCKCHIP):
        yield _row(
            "rk3576_npu", "rkllm", row["model"], "int8", 1, 64, row["tokens_per_second"], "decode_tok_s", 128, ""
        )
    for row in _table(SCOREBOARD):
        for name, rate in row.items():
            precision, _, phase = name.rpartition("_")
            if phase in PHASES and rate:
                place = (_chip_id(row), "llama-bench 8e672ef", "llama_2_7b", precision, 1, 128, rate, f"{phase}_tok_s")
                yield _row(*place, 512 if phase == "prefill" else 1, "")


def server_rows() -> Iterator[dict[str, str]]:
    """Rows of `SERVERS`, with the columns that `read` knows."""
    for row in _table(SERVERS):
        names = ("device", "engine", "model", "precision", "batch", "generated", "tpot_ms")
        yield _row(*(row[name] for name in names), "tpot_ms", row["prompt"], "")


def _row(*cells: object) -> dict[str, str]:
    names = (
        "device",
        "engine",
        "model",
        "precision",
        "batch",
        "gen_len",
        "value",
        "metric",
        "prompt_len",
        "attended_len",
    )
    return {name: str(cell) for name, cell in zip(names, cells, strict=True)}


def public_groups(folder: Path) -> list[Rows]:
    """Every group of the tables and logs; of decode rows without lengths a short context is taken.

    Rows of BF16 are left out of the logs, whose chip says that it has none.
    """
    table, boards = public_rows(folder), boards_of(folder)
    short = {"prompt_len": "64", "gen_len": "128"}
    rows = [r | {key: r[key] or n for key, n in short.items()} if r["metric"] == "decode_tok_s" else r for r in table]
    by_device = measurements(rows, lambda m, r: m.batch == 1)
    for name, of in (FILES | LOGS).items():
        place = "devices3" if name in FILES else "logs"
        rows_of = of_file(folder / "latency" / place / name, of)
        by_device.setdefault(of, []).extend(m for m in rows_of if name in FILES or m.format.family != "fp16")
    further = measurements(list(further_rows(folder)), lambda m, r: m.batch == 1)
    for name, those in [*further.items(), *measurements(list(server_rows()), lambda m, r: True).items()]:
        by_device.setdefault(name, []).extend(those)
    law, made = load_law(LAW), []
    for name, members in by_device.items():
        board = device(name) or boards.get(name)
        if board is None or board.mode not in ("", "super"):
            continue
        for (engine, _, _), group in groups(members).items():
            family = family_of(group[0].format.precision)
            place = (label_of(name), board.chip, chip_kind(board), family, engine_of(engine))
            floats = group[0].format.family == "w4"
            made.append(Rows(*place, group, terms(group, board, law), board, engine in OLD, floats))
    return made


def label_of(name: str) -> str:
    """What is left out together: a chip whatever its mode and its number of cores."""
    return CORES.sub("", ALIAS.get(name, name).partition("@")[0])


Label_of = Callable[[Rows], tuple[str, ...]]
#: An engine that two boards of a kind were seen with is an effect of the kind, that of one board stays with it. NPUs of a maker prefill
#: alike, as its stack does, and those of a kind decode alike; boards of processors and phones differ as much as makers of NPUs do.
EFFECTS: tuple[Label_of, ...] = (
    lambda g: (g.chip,),
    lambda g: (g.chip, g.kind),
    lambda g: (g.family,),
    lambda g: (g.chip, g.kind, g.engine, str(g.floats)) if g.shared else (g.device,),
    lambda g: () if g.shared else (g.device, g.engine),
    lambda g: (g.device,),
    lambda g: (g.stack,) if g.chip == "npu" else (g.device,) if g.chip == "cpu" or g.kind == "phone" else (),
    lambda g: (g.device,) if g.chip == "npu" else (),
)


@dataclass(frozen=True, eq=False)
class Mixed:
    """The form fitted to one phase: groups, their weights on the residuals, standard deviations of the effects and of the rest."""

    seen: Sequence[Rows]
    level: float
    sds: FloatArray
    inverse: FloatArray
    weights: FloatArray
    phase: Phase = "prefill"

    def at(self, chip: Chip, kind: str, family: str, engine: str, *, floats: bool) -> Level:
        """The median and the standard deviation of a device that was not seen, with today's builds.

        `any` chip and the engine "" are any that was, in equal parts of devices, around those that serve several requests where some do;
        the kind "" is one that was not. NPUs of vendors that were not seen decode by `RULE`, which is nearer than other vendors' mean,
        as do GPUs of phones, of several makers each, while fewer than `MAKERS` were seen.
        """
        chip = _path(chip, kind, self.phase)
        seen = {
            (g.chip, g.kind if chip == "any" else kind, g.engine, g.device): g.served
            for g in self.seen
            if chip in ("any", g.chip) and kind in ("", g.kind) and engine in ("", g.engine) and g.floats == floats
        }
        means, variances = np.array(
            [self._one(of, its, family, by, floats) for of, its, by, _ in sorted(seen)]
            or [self._one(chip, kind, family, engine, floats)]
        ).T
        of_today = np.array([served for _, served in sorted(seen.items())] or [True])
        middle = float(means[of_today | ~of_today.any()].mean())
        boards = len({g.device for g in self.seen if (g.chip, g.kind) == (chip, kind)})
        if self.phase == "decode" and boards < (MAKERS if (chip, kind) == ("soc", "phone") else chip == "npu"):
            middle = math.log(SHAPE.bandwidth_efficiency / RULE)
        spread = variances.mean() + np.square(means - middle).mean()
        return Level(ratio=_rounded(math.exp(middle)), sd=_rounded(np.sqrt(spread)))

    def _one(self, chip: Chip, kind: str, family: str, engine: str, floats: bool) -> tuple[float, float]:
        """Mean and variance of y of a kind with an engine."""
        wanted = replace(
            self.seen[0], device="", chip=chip, kind=kind, family=family, engine=engine, floats=floats, shared=True
        )
        if not any(g.shared and EFFECTS[3](g) == EFFECTS[3](wanted) for g in self.seen):
            wanted = replace(wanted, shared=False)
        seen, variances = (
            np.zeros(len(self.seen)),
            self.sds**2 * np.array([bool(effect(wanted)) for effect in EFFECTS] + [True]),
        )
        for effect, variance in zip(EFFECTS, variances, strict=False):
            seen += variance * np.array([effect(g) == effect(wanted) for g in self.seen], dtype=float)
        left = float(variances.sum()) - seen @ self.inverse @ seen
        return self.level + float(seen @ self.weights), float(left)


def _path(chip: Chip, kind: str, phase: Phase) -> Chip:
    """The class whose path to memory a phase takes: a server GPU without HBM decodes as a card does."""
    return "gpu" if (chip, phase) == ("server_gpu", "decode") and kind and not kind.endswith("HBM") else chip


def fitted(found: Sequence[Rows], phase: Phase) -> Mixed:
    """The form on the groups that have rows of a phase."""
    here = [replace(g, chip=_path(g.chip, g.kind, phase), phase=phase) for g in found if g.of(phase).any()]
    boards = Counter(place[:-1] for place in {(g.chip, g.kind, g.engine, g.floats, g.device) for g in here})
    seen = [replace(g, shared=boards[g.chip, g.kind, g.engine, g.floats] > 1) for g in here]
    y, ones = np.array([np.median(g.off[g.of(phase)]) for g in seen]), np.ones(len(seen))
    alike = np.stack([*(_alike([effect(g) for g in seen]) for effect in EFFECTS), np.eye(len(seen))])

    def solved(logs: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        inverse = np.linalg.inv(np.tensordot(np.exp(2 * logs), alike, 1))
        level = float(ones @ inverse @ y / (ones @ inverse @ ones))
        return inverse, level, inverse @ (y - level)

    def cost(logs: FloatArray) -> tuple[float, FloatArray]:
        """Half the restricted deviance with what is `USUAL`, and its slopes."""
        inverse, level, weights = solved(logs)
        of_level = inverse @ ones
        deviance = float(np.log(of_level.sum()) - np.linalg.slogdet(inverse)[1] + (y - level) @ weights)
        apart = inverse - np.outer(of_level, of_level) / of_level.sum()
        slopes = np.exp(2 * logs) * (
            np.einsum("kij,ij->k", alike, apart) - np.einsum("kij,i,j->k", alike, weights, weights)
        )
        off = (logs - USUAL) / LOOSE
        return 0.5 * deviance + 0.5 * float(off @ off), slopes + off / LOOSE

    start = np.full(len(EFFECTS) + 1, USUAL)
    logs = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=[(-5.0, 1.0)] * len(start), tol=1e-9).x
    inverse, level, weights = solved(logs)
    return Mixed(seen, level, np.exp(logs), inverse, weights, phase)


Forms = Mapping[tuple[Phase, bool], Mixed]  # of a phase, without rows of several requests or with them


def forms_of(found: Sequence[Rows]) -> Forms:
    """The forms on these groups."""
    widest = widest_of(found)
    found = [replace(g, widest_npu=widest) for g in found]
    return {(p, more): fitted([g for g in found if more or not g.served], p) for p in PHASES for more in (False, True)}


def widest_of(found: Sequence[Rows]) -> float:
    """The widest memory that `FEW` NPUs had at least, bytes per second: what is drawn of a wider one would be what one or two boards say.

    It is of memories alone, no time decides it; here it stays as it is with any one board left out, so that each is judged by the bound that ships.
    """
    widths = sorted({g.device: g.board.bandwidth for g in found if g.chip == "npu"}.values())
    return widths[-FEW] if len(widths) >= FEW else math.inf


def _alike(labels: Sequence[tuple[str, ...]]) -> FloatArray:
    """1 where two groups share a label, (n, n); an empty one is none."""
    codes = np.array([hash(label) for label in labels])
    return np.equal.outer(codes, codes) * np.array([bool(label) for label in labels])


Place = tuple[Chip, str, str, str]  # of a cell: class, kind, family, engine


def made(
    found: Sequence[Rows],
    cells: Iterable[Place],
    residuals: "Residuals",
    *,
    floats: bool = False,
    forms: Forms | None = None,
) -> Typical:
    """What is shipped, of these groups; residuals with an engine stated and without, by kind.

    floats: of activations of FP16, which no study can ask for.
    """
    forms = forms or forms_of(found)
    served = {(g.chip, g.kind, name) for g in forms["decode", True].seen if g.served for name in (g.engine, "")}
    return Typical(
        shape=SHAPE,
        differs=DIFFERS,
        builds=builds_of(found),
        layers=sorted(
            {f"{g.chip} {g.kind}" for g in found if any(beside_attention(m.architecture) for m in g.measured)}
        ),
        ridge=RIDGE,
        widest_npu=forms["decode", False].seen[0].widest_npu,
        devices=len({g.device for p in PHASES for g in forms[p, False].seen}),
        rows=sum(int(g.of(p).sum()) for p in PHASES for g in forms[p, False].seen),
        residuals=residuals.get(False, {}),
        with_engine=residuals.get(True, {}),
        cells=[
            Cell(
                chip=chip,
                kind=kind,
                family=family,
                engine=engine,
                **{
                    p: forms[p, (chip, kind, engine) in served].at(chip, kind, family, engine, floats=floats)
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
    """Every kind of every class and family, with no engine and with each that two boards of it were seen with; "" is a kind that was not seen, with engines of two kinds."""
    for chip in get_args(Chip):
        for kind in ("", *sorted({g.kind for g in found if g.chip == chip and g.kind})):
            here = [g for g in found if g.chip == chip and kind in ("", g.kind)]
            boards = {(g.engine, g.device if kind else g.kind) for g in here}
            engines = sorted(name for name, n in Counter(name for name, _ in boards).items() if n > 1)
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
    ms: float = math.nan
    row: Measurement | None = None

    @property
    def served(self) -> bool:
        """Whether several requests were served together."""
        return self.row is not None and self.row.batch > 1

    @property
    def label(self) -> str:
        """The class that it is shown in."""
        return self.kind + " served" * self.served

    @property
    def chip(self) -> str:
        """Of the class."""
        return self.kind.partition(" ")[0]


def left_out(found: Sequence[Rows], *, engines: bool) -> list[Judged]:
    """Every row predicted from the other devices, with its engine or as of an engine that is not stated.

    Of kinds that servers were seen with that is one of today's, so that rows of old builds have theirs.
    """
    judged, servers = [], {(g.chip, g.kind) for g in found if g.served}
    for name, chip, floats in sorted({(g.device, g.chip, g.floats) for g in found}):
        here = [g for g in found if (g.device, g.chip, g.floats) == (name, chip, floats)]
        forms = _without(tuple(found), name)
        stated = [engines or (g.old and (g.chip, g.kind) in servers) for g in here]
        asked = [(g.chip, g.kind, g.family, g.engine if by else "") for g, by in zip(here, stated, strict=True)]
        typical = made((), dict.fromkeys(asked), {}, floats=floats, forms=forms)
        for group, (_, _, family, engine) in zip(here, asked, strict=True):
            cell = typical.cell(group.board, family, engine)
            off = np.log(group.terms.ms / predict(group.terms, group.as_built(profile_of(typical, cell, group.board))))
            peaks = np.log(group.terms.ms / predict(group.terms, Calibration()))
            columns = np.stack([off, peaks, group.by_rule, group.terms.ms])
            judged += [
                Judged(name, f"{group.chip} {group.kind}", group.engine, phase, *of_row, row)
                for phase in PHASES
                for row, of_row in _rows_of(group, phase, columns, cell.level(phase).sd)
            ]
    return judged


def _rows_of(group: Rows, phase: Phase, columns: FloatArray, sd: float) -> Iterator[tuple[Measurement, list[float]]]:
    """Each measurement of a phase with what `Judged` holds of it."""
    for at in np.flatnonzero(group.of(phase)).tolist():
        off, *others = columns[:, at].tolist()
        yield group.measured[at], [off, sd, *others]


@cache
def _without(found: Sequence[Rows], device: str) -> Forms:
    """The forms on groups but those of a device."""
    return forms_of([g for g in found if g.device != device])


def helpful(judged: Mapping[bool, Sequence[Judged]]) -> list[str]:
    """Kinds and engines, `soc int8 vLLM`: of devices left out the median error of their rows, phases alike, is less with the engine stated."""
    means: dict[str, dict[bool, float]] = defaultdict(dict)
    for stated, rows in judged.items():
        for place in {(row.kind, row.engine) for row in rows}:
            own = [row for row in rows if (row.kind, row.engine) == place]
            of_phases = [[abs(math.exp(-row.off) - 1.0) for row in own if row.phase == phase] for phase in PHASES]
            if len({row.device for row in own}) > 1:
                means[" ".join(place)][stated] = float(np.mean([np.median(errors) for errors in of_phases if errors]))
    return sorted(name for name, error in means.items() if error[True] < HELPS * error.get(False, 0.0))


def few_rows(group: Rows) -> AnyArray:
    """Three rows of a log: both phases of the smallest model and decoding of the largest; of one model at its shortest and its longest."""
    sizes = [float(total(m.architecture)[0]) for m in group.measured]
    order = np.lexsort((group.terms.lengths, sizes))
    prefills, decodes = (order[group.of(phase)[order]] for phase in PHASES)
    seen: AnyArray = np.zeros(len(sizes), dtype=np.bool_)
    seen[np.concatenate([prefills[:1], decodes[:1], decodes[-1:]])] = True
    return seen


def narrowed(found: Sequence[Rows], residuals: "Residuals") -> dict[str, list[Judged]]:
    """The same rows predicted as typical of the class, and after three rows of the device."""
    judged: dict[str, list[Judged]] = {"no profile": [], "three rows of a log": []}
    for group in found:
        board, seen = group.board, few_rows(group)
        if seen.all():
            continue
        place = (group.chip, group.kind, group.family, group.engine)
        forms = _without(tuple(found), group.device)
        known = made((), [place], residuals, floats=group.floats, forms=forms)
        known = known.model_copy(update={"few": {phase: [1.0] for phase in PHASES}})
        cell, rest = known.cell(board, group.family, group.engine), group.terms.rows(~seen)
        rows = [m for m, here in zip(group.measured, seen, strict=True) if here]
        few = of_class(rows, board, load_law(LAW), "", known).profile
        for name, ms in (
            ("no profile", predict(rest, group.as_built(profile_of(known, cell, board)))),
            ("three rows of a log", predict(rest, few)),
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
    residuals: "Residuals",
    picked: dict[str, dict[Phase, list[float]]],
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
        engine = group.engine if engines else ""
        asked = [(group.chip, group.kind, group.family, engine)]
        forms = _without(tuple(found), group.device)
        known = made((), asked, residuals, floats=group.floats, forms=forms)
        known = known.model_copy(update={"picked": picked})
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


Residuals = Mapping[bool, dict[str, dict[Phase, list[float]]]]  # with an engine stated or not, by kind


def by_kind(judged: Mapping[bool, Sequence[Judged]]) -> Residuals:
    """The errors that ranges are made of; the kind "" is one that was not seen."""
    return {
        engines: {
            kind: {phase: errors_of([row for row in rows if row.phase == phase], kind) for phase in PHASES}
            for kind in ("", *sorted({row.kind for row in rows}))
        }
        for engines, rows in judged.items()
    }


def errors_of(judged: Sequence[Judged], kind: str, *, beside: int = 0) -> list[float]:
    """Quantiles of a phase's errors in standard deviations, for the ranges of a kind; `beside` these rows it has as many boards that are left out.

    Of n boards sqrt(1 + 1/(n + 1)) times as wide, as a further one differs from a mean of so many; of fewer than `FEW` no narrower than of a kind that was not seen.
    """
    by_device, kinds = of_devices(judged), {row.device: row.kind for row in judged}
    boards = beside + Counter(kinds.values())[kind]
    errors = math.sqrt(1.0 + 1.0 / (boards + 1)) * _pooled(judged, by_device, kind)
    if boards < FEW:
        for others in (math.sqrt(2.0) * _pooled(judged, by_device, ""), _of_kinds(by_device, kinds)):
            errors = np.where(LEVELS < 0.5, np.minimum(errors, others), np.maximum(errors, others))
    return errors.round(3).tolist()


def _of_kinds(by_device: Mapping[str, Sequence[float]], kinds: Mapping[str, str]) -> FloatArray:
    """`LEVELS` of kinds, each one score, its middle board's: of n the rank (n + 1) times the level, which a further one is within."""
    scores = defaultdict(list)
    for name, zs in by_device.items():
        scores[kinds[name]].append(np.quantile(zs, LEVELS))
    middles = np.stack([np.median(boards, axis=0) for boards in scores.values()])
    return np.array([np.quantile(of, p, method="weibull") for of, p in zip(middles.T, LEVELS, strict=True)])


def _pooled(judged: Sequence[Judged], by_device: Mapping[str, Sequence[float]], kind: str) -> FloatArray:
    """`LEVELS` of what devices have, as much of each, of those of the kind `OWN` times."""
    own = {row.device for row in judged if row.kind == kind}
    zs = [np.quantile(z, KEPT) for name, z in by_device.items() for _ in range(OWN if name in own else 1)]
    pooled: FloatArray = np.quantile(np.concatenate(zs), LEVELS)
    return pooled


def picked_of(judged: Sequence[Judged]) -> dict[str, dict[Phase, list[float]]]:
    """By kind, quantiles of the standard deviations that limits need so that what is picked within one holds it, of left-out devices.

    Picked is the slowest row priced within a limit, which selects what is priced too low. Limits are those at which a row is just
    within, and `LIMITS` from the least to the largest measured time.
    """
    found: dict[str, dict[Phase, list[float]]] = defaultdict(dict)
    for phase in PHASES:
        rows = [row for row in judged if row.phase == phase]
        needed = needed_of(rows)
        for kind in {row.kind for row in rows}:
            found[kind][phase] = _pooled(rows, needed, kind).round(3).tolist()
    return dict(found)


def needed_of(judged: Sequence[Judged]) -> dict[str, list[float]]:
    """By device what its limits need; rows of one engine are picked among."""
    by_engine = defaultdict(list)
    for row in judged:
        by_engine[row.device, row.engine].append((math.log(row.ms), row.off, row.sd))
    needed = defaultdict(list)
    for (name, _), rows in by_engine.items():
        ms, off, sd = np.array(rows).T
        needed[name] += [*_needed(ms, off, sd), *(off / sd)]
    return needed


def _needed(ms: FloatArray, off: FloatArray, sd: FloatArray) -> Iterator[float]:
    """For each limit on log(ms) the least standard deviations from which on the slowest row priced within it, by so many, holds it."""
    tried = np.linspace(-MOST_SD, MOST_SD, 161)
    priced = (ms - off)[:, None] + sd[:, None] * tried
    for limit in np.linspace(ms.min(), ms.max(), LIMITS):
        slowest = np.where(priced <= limit, priced, -np.inf)
        holds = (ms[slowest.argmax(axis=0)] <= limit) | ~np.isfinite(slowest.max(axis=0))
        broken = np.flatnonzero(~holds)
        yield float(tried[min(broken[-1] + 1, 160)] if len(broken) else -MOST_SD)


def of_devices(judged: Sequence[Judged]) -> dict[str, list[float]]:
    """Errors in standard deviations, by device."""
    by_device = defaultdict(list)
    for row in judged:
        by_device[row.device].append(row.off / row.sd)
    return by_device


def coverage(judged: Sequence[Judged], phase: Phase) -> dict[str, tuple[float, float]]:
    """The share of a left-out device's rows below the upper end at `SHARE`, and inside the range of 80 %, by class and of "all", devices alike.

    Residuals are those of the other devices, and ranges those that kinds of so many boards have.
    """
    rows, shares = [row for row in judged if row.phase == phase], defaultdict(list)
    for name in sorted({row.device for row in rows}):
        here, others = [r for r in rows if r.device == name], [r for r in rows if r.device != name]
        known, count = errors_of(others, here[0].kind, beside=1), len({r.device for r in others})
        z = np.array(of_devices(here)[name])
        upper = conformal_factor(known, count, SHARE, rows=len(known))
        outside = beyond(len(known), count, (1 - SHARE) / 2)
        assert upper is not None
        share = float((z <= upper).mean()), float(((known[outside] <= z) & (z <= known[-1 - outside])).mean())
        for group in (here[0].label, *["all"] * (not here[0].served)):
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
    residuals = by_kind(judged)
    picked = picked_of(judged[False])
    print("the shape alone")
    print_errors(
        [
            Judged(g.device, f"{g.chip} {g.kind}", g.engine, p, float(v), 1.0)
            for g in found
            for p in PHASES
            for v in g.off[g.of(p)]
        ]
    )
    after = narrowed(found, residuals)
    for name, those in after.items():
        print(f"rows that three others of the device leave: {name}")
        for phase in PHASES:
            print(f"  {phase:<9}{_summary([row for row in those if row.phase == phase])}")
    for engines in (True, False):
        shares = np.array(overshoots(found, residuals, picked, engines=engines))
        print(
            f"picks at q80, engine {'stated' if engines else 'not stated'}: {(shares <= 1.25).sum()} of {len(shares)} within 1.25 of "
            f"their budget, {(shares <= 1.0).sum()} within it, the worst {shares.max():.2f}"
        )
    if asked.write:
        of_few = {
            p: [round(math.exp(z), 3) for z in zs] for p, zs in residuals_of(after["three rows of a log"]).items()
        }
        content = made(found, cells_of(found), residuals).model_copy(
            update={"few": of_few, "picked": picked, "helpful": helpful(judged)}
        )
        TARGET.write_text(yaml_source.dump(content.model_dump(mode="json", exclude_defaults=True)), encoding="utf-8")


if __name__ == "__main__":
    main()
