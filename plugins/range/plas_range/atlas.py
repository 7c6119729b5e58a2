"""An answer at a glance: one offline page with the exact frontiers of every shipped board, its formats and four workloads.

    python -m plas_range.atlas docs/at-a-glance.html [BOARD ...]

Boards that the page holds are kept, so that an interrupted run goes on; those that are named are made again. Without the page all are made.
A frontier here holds every design that is the answer of `plas run --algo exact` under some limits on time and memory, in the order in which
that answer is chosen: the first that keeps the limits is it. Times and memory are rounded to as few digits as change nothing that the page prints or
compares with a limit of its sliders.
"""

import csv
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from nas.answer.changes import NOTHING
from nas.answer.design_words import count, describe_in_words
from nas.answer.device_times import in_ms
from nas.answer.take import GPU, hours_per_token, level, losses_of_model, parity_with, predicted_losses, tokens_of
from nas.api.study import load_study
from nas.errors import UsageError
from nas.files.tables import write
from nas.pages.page import embedded, policy
from nas.problem.evaluations import Evaluations, rounded
from nas.problem.parity import LossCurve, Parity
from nas.problem.problem import Problem
from nas.problem.quantiles import share_of, time_ranges
from nas.problem.uncertainty import AS_GOOD
from nas.study.catalogue import load_device
from nas.study.published import MEMORY, label_of, published
from nas.terminal.console import notice
from objectives.assessment import Assessment
from objectives.device import Device
from objectives.measured_bounds import factors_of
from objectives.plugins import documents
from objectives.typical.efficiencies import chip_kind
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray

WORKLOADS = (
    ("A label, a command", 1024, 16),
    ("A turn of a chat", 512, 256),
    ("A document, summarised", 8192, 256),
    ("A long context", 32768, 256),
)
FORMATS = ("fp16", "int8", "int4")
GGUF, MLX = ("q8_0", "q4_k_m"), ("mlx_8bit", "mlx_4bit")  # of llama.cpp, of Apple's engine
SHARE = Fraction(8, 10)  # of devices or models that keep a time at its quantile
#: What sliders stop at, ms or GB: 25 values of each power of ten.
STOPS = np.array(
    [
        float(f"{value}e{power}")
        for power in range(-3, 8)
        for value in (*range(10, 17), 18, 20, 22, 25, 28, 30, 32, *range(35, 85, 5), 90)
    ]
)
FIRST = "raspberry_pi_5"  # the board that the page opens with
ACCURACY = Path(__file__).parents[3] / "studies" / "accuracy"
CORES = re.compile(r"_\d+c$")
BLOCK = re.compile(r'<script type="application/json" id="([^"]+)">(.*?)</script>', re.DOTALL)
Views = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class Costs:
    """Times, ms, and memory, GB, of designs or models in one case, (n,) each; `sparse`: with experts.

    safe: the factors of prefill and decode at the quantile, dense and sparse; None where it is not claimed. ranges: of each kind the least and most of
    both phases, measured / predicted; empty where nothing was held out.
    """

    prefill: FloatArray
    total: FloatArray
    memory: FloatArray
    sparse: BoolArray
    tokens: int
    safe: tuple[tuple[float, float], ...] | None
    ranges: tuple[tuple[float, ...], ...]

    @property
    def deciding(self) -> tuple[FloatArray, ...]:
        """What limits are compared with: total time, as predicted and as late as the quantile, and memory."""
        if self.safe is None:
            return self.total, self.memory
        of_prefill, of_decode = np.array(self.safe)[self.sparse.astype(int)].T
        late = of_prefill * self.prefill + of_decode * (self.total - self.prefill)
        return self.total, np.maximum(self.total, late), self.memory

    def rows(self, chosen: IntArray) -> "Costs":
        """Those of some rows."""
        return replace(
            self,
            prefill=self.prefill[chosen],
            total=self.total[chosen],
            memory=self.memory[chosen],
            sparse=self.sparse[chosen],
        )

    def columns(self) -> dict[str, list[float]]:
        """Prefill, total and memory in as few digits as say the same."""
        rows = zip(*(column.tolist() for column in (self.prefill, self.total, self.memory, self.sparse)), strict=True)
        short = [
            (*shortened((p, t), lambda p, t, at=int(s): self._seen(p, t, at)), *shortened((m,), _of_memory))
            for p, t, m, s in rows
        ]
        return {name: [row[at] for row in short] for at, name in enumerate(("p", "t", "m"))}

    def _seen(self, prefill: float, total: float, kind: int) -> tuple[Any, ...]:
        """All that the page shows of a design's times, and between which stops they lie."""
        decode = total - prefill
        texts = [in_ms(prefill), in_ms(total), f"{total:.3g}", in_ms(1e3 * self.tokens / decode)]
        texts += [f"{int(STOPS.searchsorted(total))}"]
        if self.safe is not None:
            of_prefill, of_decode = self.safe[kind]
            late = of_prefill * prefill + of_decode * decode
            texts += [in_ms(late), f"{int(STOPS.searchsorted(max(total, late)))}"]
        if self.ranges:
            a, b, c, d = self.ranges[kind]
            texts += [in_ms(a * prefill + c * decode), in_ms(b * prefill + d * decode)]
        return tuple(texts)


def _of_memory(memory: float) -> tuple[Any, ...]:
    return in_ms(memory), f"{memory:.2f}", int(STOPS.searchsorted(memory))


def shortened(values: tuple[float, ...], views: Views) -> tuple[float, ...]:
    """Values in as few significant digits as leave every view of them as it is, also where the next larger numbers are printed."""
    wanted = views(*values)
    for digits in range(3, 17):
        short = tuple(float(f"{value:.{digits}g}") for value in values)
        above = tuple(value * (1 + 1e-13) for value in short)  # a half is rounded up in browsers
        if views(*short) == wanted == views(*above):
            return short
    return values


def stops(values: FloatArray) -> FloatArray:
    """The stops of a slider that change anything among values, and no limit, ascending."""
    if not len(values):
        return np.zeros(0)
    low, high = STOPS.searchsorted([values.min(), values.max()])
    return np.array([*STOPS[low : high + 1], np.inf])


def in_order(deciding: Sequence[FloatArray]) -> IntArray:
    """Rows, ordered by preference, that are the first within some limits: no earlier row is as low in everything."""
    table = np.stack(deciding, axis=1)
    chosen: list[int] = []
    for row, values in enumerate(table):
        if not (table[chosen] <= values).all(axis=1).any():
            chosen.append(row)
    return np.array(chosen, dtype=np.int64)


class Case:
    """A board in a format under a workload: its frontier, and the published models that can be the one to take.

    losses: of each published model, nats, NaN where the law does not price it.
    """

    def __init__(self, board: str, precision: str, tokens: tuple[int, int], losses: FloatArray) -> None:
        self.losses = losses
        self.problem: Problem = load_study(
            device=board, precision=precision, baselines=[], input_tokens=tokens[0], output_tokens=tokens[1]
        ).problem
        self.size = self.problem.space.size  # keys are of a space, which an engine narrows
        (self.limit,) = (budget.limit for budget in self.problem.limits)
        space = self.problem.space
        genotypes = space.genotypes(np.arange(space.size))
        self._every, whole = self.problem.architectures(genotypes), self.problem.evaluate(genotypes)
        fitting = whole[whole.feasible]
        keys = (fitting.keys, rounded(fitting.metrics["total_ms"]), rounded(fitting.metrics["loss"]))
        ordered = fitting[np.lexsort(keys)]
        kept = in_order(self._costs(ordered.metrics, self.problem.architectures(ordered.genotypes).n_experts).deciding)
        self.designs: Evaluations = ordered[kept]
        self.costs = self._costs(self.designs.metrics, self._architectures.n_experts)

    @cached_property
    def _architectures(self) -> Any:
        return self.problem.architectures(self.designs.genotypes)

    @cached_property
    def _factors(self) -> tuple[tuple[float, float], ...] | None:
        try:
            both = factors_of("total_ms", SHARE, self.problem.scenario).values()
        except ValueError:  # too few models were held out to claim it
            return None
        prefill, decode = both
        return (prefill.dense, decode.dense), (prefill.sparse, decode.sparse)

    @cached_property
    def _ranges(self) -> tuple[tuple[float, ...], ...]:
        """Of a dense and a sparse design the ends of both phases, per ms predicted."""
        kinds = []
        for of_experts in (self.problem.space.experts.min(), self.problem.space.experts.max()):
            row = int(np.flatnonzero(self._every.n_experts == of_experts)[0])
            one = self._every[[row]]
            ends = time_ranges(self.problem.scenario, one, {"prefill_ms": 1.0, "decode_ms": 1.0})
            kinds.append(tuple(end for phase in ends.values() for end in phase))
        return tuple(kinds) if all(len(kind) == 4 for kind in kinds) else ()

    def _costs(self, metrics: Assessment | Mapping[str, FloatArray], experts: Any) -> Costs:
        return Costs(
            metrics["prefill_ms"],
            metrics["total_ms"],
            metrics[MEMORY],
            np.asarray(experts) > 1,
            self.problem.scenario.output_tokens,
            self._factors,
            self._ranges,
        )

    @cached_property
    def models(self) -> tuple[IntArray, Costs]:
        """The published models that are the best of those that fit under some limits, the newest first, and what they take."""
        everything, losses = published()[1], self.losses
        costs = self._costs(self.problem.assess(everything), everything.n_experts)
        table, within = np.stack(costs.deciding, axis=1), costs.memory <= self.limit
        rows = np.flatnonzero(np.isfinite(losses) & within)
        chosen = []
        for row in rows.tolist():
            cheaper = rows[(table[rows] <= table[row]).all(axis=1)]
            better, alike = losses[cheaper] < losses[row] - AS_GOOD, (losses[cheaper] <= losses[row]) & (cheaper < row)
            if not (better | alike).any():
                chosen.append(row)
        return np.array(chosen, dtype=np.int64), costs.rows(np.array(chosen, dtype=np.int64))

    @cached_property
    def answers(self) -> tuple[set[tuple[int, int]], set[int]]:
        """Rows of designs and of models (-1: none fits) that are the answer at some stop of the sliders, together; further models that decide it."""
        losses = self.losses[self.models[0]]
        *times, memory = self.costs.deciding
        *of_times, of_memory = self.models[1].deciding
        both, deciding = set[tuple[int, int]](), set[int]()
        for own, theirs in zip(times, of_times, strict=True):
            limits = stops(own)[:, None]
            for most in stops(memory):
                designs, models = (memory <= most) & (own <= limits), (of_memory <= most) & (theirs <= limits)
                known = np.where(models, losses, np.inf)
                best = (known <= known.min(axis=1, initial=np.inf, keepdims=True) + AS_GOOD) & models
                beside = (
                    np.where(best.any(axis=1), best.argmax(axis=1), -1) if len(losses) else np.full(len(limits), -1)
                )
                fits = designs.any(axis=1)
                both |= set(zip(designs[fits].argmax(axis=1).tolist(), beside[fits].tolist(), strict=True))
                deciding |= set(known[models.any(axis=1)].argmin(axis=1).tolist())
        return both, deciding

    def content(self) -> dict[str, Any]:
        """The case as the page holds it."""
        both, deciding = self.answers
        designs, models = (
            np.array(sorted(rows), dtype=np.int64)
            for rows in ({d for d, _ in both}, deciding | {m for _, m in both} - {-1})
        )
        scenario, one = self.problem.scenario, self._architectures[[0]] if len(designs) else None
        profile = scenario.calibration
        return {
            "space": self.size,
            "limit": self.limit,
            "share": 0 if one is None else share_of(scenario, one),
            "typical": profile is not None and bool(profile.typical),
            "safe": self._factors,
            "ranges": self._ranges,
            "designs": {"id": self.designs.keys[designs].tolist(), **self.costs.rows(designs).columns()},
            "models": {"id": self.models[0][models].tolist(), **self.models[1].rows(models).columns()},
        }

    def words(self, held: Mapping[str, Any]) -> dict[str, list[Any]]:
        """What is said of each design that is not held: its size, the rest with its parameters, its loss; whether it has experts."""
        said = {}
        for row in {row for row, _ in self.answers[0] if f"{self.size}.{self.designs.keys[row]}" not in held}:
            design, metrics = self._architectures[[row]], self.designs[row : row + 1].first
            size, rest = describe_in_words(design, self.problem.space.settings)
            sparse = int(design.n_experts[0]) > 1
            used = f", {count(metrics['params_active'], 'B')} used per token" if sparse else ""
            words = f"{rest}, {count(metrics['params_total'], 'B')} parameters{used}"
            said[f"{self.size}.{self.designs.keys[row]}"] = [size, words, metrics["loss"], int(sparse)]
        return said

    def levels(self, shared: "Levels") -> None:
        """Add what is not there yet: of designs beside the models to take the tokens until they are level."""
        for row, at in sorted(self.answers[0]):
            if at >= 0:
                shared.add(
                    self.problem,
                    f"{self.size}.{self.designs.keys[row]}",
                    self._architectures[[row]],
                    int(self.models[0][at]),
                )


class Levels:
    """Of designs beside published models whether to take the model, and the tokens until they are level, by `design-model`."""

    def __init__(self, held: dict[str, list[Any]]) -> None:
        self.held, self.trainer = held, load_device(GPU)
        self._of_designs: dict[str, tuple[LossCurve, float]] = {}
        self._of_models: dict[int, FloatArray] = {}

    def add(self, problem: Problem, key: str, design: Architectures, model: int) -> None:
        """Add a design beside a model, unless it is held."""
        law, (trained, models) = problem.scenario.law, published()
        if f"{key}-{model}" in self.held:
            return
        if key not in self._of_designs:
            self._of_designs[key] = LossCurve.of(law, design), hours_per_token(problem, design, self.trainer)
        if model not in self._of_models:
            self._of_models[model] = losses_of_model(law, trained[model], models[[model]])
        curve, per_token = self._of_designs[key]
        parity = parity_with(curve, trained[model], self._of_models[model])
        hours = Parity(*(per_token * number for number in (parity.low, parity.middle, parity.high)))
        self.held[f"{key}-{model}"] = [
            int(parity.middle > (law.tokens or 0.0)),
            level(parity, hours, self.trainer.name),
        ]


def boards() -> list[str]:
    """Every shipped board, and each of its power modes."""
    names = documents("objectives.devices")
    return [f"{name}@{mode}" if mode else name for name in names for mode in ("", *load_device(name).modes)]


def formats_of(device: Device) -> tuple[str, ...]:
    """The formats that a board is shown in: those of engines that run on its kind of chip."""
    blackwell = ("nvfp4",) if "fp4" in device.peaks else ()
    gguf = () if device.chip == "npu" else GGUF
    return (*FORMATS, *blackwell, *gguf, *(MLX if chip_kind(device).startswith("Apple") else ()))


def of_board(name: str, shared: dict[str, Any], losses: FloatArray, levels: Levels) -> dict[str, Any]:
    """A board as the page holds it; what boards share, designs and tokens until they are level, is added to `shared`."""
    device, formats = load_device(name), {}
    for precision in formats_of(device):
        cases: list[dict[str, Any]] = []
        for _, *tokens in WORKLOADS:
            case = Case(name, precision, (tokens[0], tokens[1]), losses)
            cases.append(without_memory(case.content(), shared["memory"].setdefault(f"{precision} {len(cases)}", {})))
            shared["designs"] |= case.words(shared["designs"])
            case.levels(levels)
        formats[precision] = cases
    place = f"{device.chip} {chip_kind(device)}".strip()
    shown = f"{device.name} at {device.mode.upper()}" if device.mode else device.name
    return {"name": shown, "class": place, "formats": formats}


def without_memory(case: dict[str, Any], memory: dict[str, float]) -> dict[str, Any]:
    """A case whose memory is in a table of all boards, by the number of a design in its space, or by `m` and that of a model; where a board's is another, it keeps its own."""
    for kind in ("designs", "models"):
        own = {
            f"{case['space']}.{at}" if kind == "designs" else f"m{at}": gb
            for at, gb in zip(case[kind]["id"], case[kind]["m"], strict=True)
        }
        if all(memory.get(at, gb) == gb for at, gb in own.items()):
            memory |= own
            del case[kind]["m"]
    return case


def indexed(name: str, board: Mapping[str, Any]) -> dict[str, Any]:
    """What the page knows of a board before it is chosen; label: of the record of errors, a chip in any mode and of any number of cores."""
    label = CORES.sub("", name.partition("@")[0])
    return {"name": board["name"], "class": board["class"], "label": label, "formats": list(board["formats"])}


def model_losses() -> FloatArray:
    """The predicted loss of each published model, nats; NaN where the law does not price it."""
    law = load_study(preset="device").problem.scenario.law
    return predicted_losses(law, np.ones(len(published()[0]), dtype=bool))


def models_in_words(losses: FloatArray) -> list[list[Any]]:
    """Every published model, the newest first: its name, training tokens, licence, predicted loss or None, whether it has experts."""
    trained, models = published()
    rows = zip(trained, losses.tolist(), (models.n_experts > 1).tolist(), strict=True)
    return [[label_of(t), tokens_of(t), t.licence, None if np.isnan(loss) else loss, int(e)] for t, loss, e in rows]


def accuracy() -> dict[str, Any]:
    """The record of errors: of boards and classes that were left out whole, of profiles, and every row that ships."""
    names = {"classes": "accuracy-classes.csv", "groups": "accuracy-groups.csv", "rows": "accuracy-rows.csv"}
    tables = {}
    for name, file in names.items():
        with (ACCURACY / file).open(encoding="utf-8") as lines:
            tables[name] = list(csv.DictReader(lines))
    return tables


def blocks_of(page: str) -> dict[str, Any]:
    """What a page holds, by name."""
    return {name: json.loads(text) for name, text in BLOCK.findall(page)}


def page_of(blocks: Mapping[str, Any]) -> str:
    """The page of blocks."""
    template, script = (
        files("plas_range").joinpath(name).read_text(encoding="utf-8") for name in ("atlas.html", "atlas.js")
    )
    first = dict.fromkeys(
        ["shared", "accuracy", FIRST]
    )  # what stands before the script: the first answer does not wait for the rest
    data = {True: "", False: ""}
    for name in dict.fromkeys((*first, *blocks)):
        if name in blocks:
            data[name in first] += f'<script type="application/json" id="{name}">{embedded(blocks[name])}</script>\n'
    return Template(template).substitute(
        policy=policy([script]), data=data[True], further=data[False], script=script, first=FIRST
    )


def made(target: Path, named: Sequence[str]) -> None:
    """Write the page, board by board; those that it holds are kept but for the named ones.

    Raises:
        UsageError: a board that does not ship.
    """
    every = boards()
    if wrong := [name for name in named if name not in every]:
        raise UsageError(f"boards: expected some of {', '.join(every)}, got {wrong[0]}; correct it")
    blocks = blocks_of(target.read_text(encoding="utf-8")) if target.exists() else {}
    shared, losses = blocks.pop("shared", {}), model_losses()
    common = {
        "workloads": WORKLOADS,
        "stops": STOPS.tolist(),
        "good": AS_GOOD,
        "nothing": NOTHING,
        "models": models_in_words(losses),
    }
    common = json.loads(json.dumps(common))
    if any(
        shared.get(name) != value for name, value in common.items()
    ):  # boards of other models or stops are made again
        blocks, shared = {}, {"designs": {}, "levels": {}, "memory": {}}
    shared |= common
    levels = Levels(shared["levels"])
    kept = {name: blocks[name] for name in every if name in blocks and name not in named}

    def written() -> None:
        held = {name: kept[name] for name in every if name in kept}
        index = {"boards": {name: indexed(name, content) for name, content in held.items()}}
        write(target, page_of({"shared": shared | index, "accuracy": accuracy(), **held}))

    for name in (name for name in dict.fromkeys((*named, *every)) if name not in kept):
        notice(name)
        kept[name] = of_board(name, shared, losses, levels)
        written()
    written()


if __name__ == "__main__":
    try:
        made(Path(sys.argv[1]), sys.argv[2:])
    except (IndexError, UsageError) as error:
        sys.exit(str(error) if isinstance(error, UsageError) else __doc__)
