"""Measured latencies from CSV: one row per phase of one architecture, its weight format and the precision that it is priced in."""

import csv
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from nas.files.tables import csv_text
from objectives.display_text import read_cell
from objectives.measured_formats import Format, format_of
from objectives.profile_choice import FAR_OFF
from objectives.table import mended
from objectives.table import number as number_in
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import MOST_DRAFTED, SHAPE

CONTENDED = "others had the processor while it was measured"
Contended = Literal[
    "", "median", "minimum"
]  # what of rows measured beside other work counts: nothing, as written, the fastest repetition
REASONS = 8  # that a message names
ASSUMED_OUTPUT = 128  # tokens generated where a source does not say
Measured = Literal["prefill", "decode", "request"]
Resolve = Callable[[Mapping[str, str]], tuple[str, Architectures]]


@dataclass(frozen=True, eq=False)
class Measurement:
    """One measured phase: milliseconds of a whole prefill, of one decode step averaged over the output, or of a request.

    A request is the prefill and all decode steps. attended: KV length that the prefill attends to where it is not the
    prompt's (a static graph), else 0. contended: others had the processor meanwhile; fastest: its fastest repetition counts. joules: of the prefill, of all
    decode steps or of the request, where it was metered; rail: what of the device was. slow_share: of the layers with experts, those
    whose experts lay in slow memory. drafted: tokens that a head of the model drafted in a step, of which the share accepted was.
    memory: GB that loading and running added at most, None where nobody looked.
    """

    line: int
    device: str
    engine: str
    format: Format
    model: str
    architecture: Architectures
    phase: Measured
    batch: int
    prompt: int
    generated: int
    attended: int
    ms: float
    contended: bool = False
    fastest: bool = False
    joules: float | None = None
    rail: str = ""
    slow_share: float = 0.0
    drafted: int = 0
    accepted: float = 0.0
    memory: float | None = None

    @property
    def plain(self) -> bool:
        """Whether one memory was read token by token; only such rows say something of the device's own efficiencies."""
        return not self.slow_share and not self.drafted

    @property
    def seconds(self) -> float:
        """Seconds of all that was metered."""
        return self.ms * 1e-3 * (self.generated if self.phase == "decode" else 1)

    @property
    def place(self) -> str:
        """How a report names it."""
        return f"line {self.line}: {self.model}, {self.phase}, batch {self.batch}, {self.prompt:,} tokens in"


@dataclass(frozen=True, eq=False)
class Fit:
    """Rows, what was fitted to them, and what it predicts of models held out, (n,): NaN where none was."""

    rows: list[Measurement]
    held_out: FloatArray
    HIGH: ClassVar[float] = 0.9  # the quantile of errors beside their median
    NONE_HELD_OUT: ClassVar[str] = "no model was held out"

    @property
    def measured(self) -> FloatArray:
        """Milliseconds, (n,)."""
        return np.array([m.ms for m in self.rows])

    @property
    def models(self) -> int:
        """Distinct models."""
        return len({m.model for m in self.rows})

    def errors(self, predicted: FloatArray) -> tuple[float, float, int]:
        """Median and `HIGH` quantile of |predicted / measured - 1| and of how many rows; NaN where nothing was predicted."""
        known = np.isfinite(predicted)
        share = np.abs(predicted[known] / self.measured[known] - 1.0)
        middle, high = np.quantile(share, (0.5, self.HIGH)).tolist() if len(share) else (np.nan, np.nan)
        return middle, high, len(share)

    def doubts(self) -> list[str]:
        """Why it should not be used: nothing held out, or far off."""
        median, _, rows = self.errors(self.held_out)
        if not rows:
            return [self.NONE_HELD_OUT.format(models=self.models)]
        return [f"{100 * median:.0f} % off on models held out"] if median > FAR_OFF else []


def rounded(value: float) -> float:
    """A fitted number to 4 digits."""
    return float(f"{value:.4g}")


def rows_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """CSV of rows under every column that one of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return csv_text({name: [row.get(name, "") for row in rows] for name in names})


@dataclass(frozen=True)
class LeftOut:
    """A row that is not used, and why."""

    line: int
    device: str
    reason: str


def read(
    lines: Iterable[str], device: str, resolve: Resolve, *, contended: Contended = "", first: int = 2
) -> tuple[list[Measurement], list[LeftOut]]:
    """Rows of a measured CSV, and those left out with the reason.

    Args:
        lines: the file's lines, header first; a column `left_out` says why a row is not used.
        device: for rows without one.
        resolve: name and architecture of a row, from its `model` or its architecture columns.
        contended: what of rows that were measured beside other work counts.
        first: number of the first row.
    """
    found: list[Measurement] = []
    left: list[LeftOut] = []
    for line, row in enumerate(csv.DictReader(lines, strict=True), first):
        cells = {key: read_cell(value.strip()) for key, value in row.items()}
        try:
            found.append(_measurement(line, cells, device, resolve, contended))
            if found[-1].contended and not contended:
                raise ValueError(
                    f"{CONTENDED}; measure it again alone, or use the fastest of its repetitions with --contended minimum"
                )
        except ValueError as error:
            left.append(LeftOut(line, cells.get("device", "") or device, str(error).splitlines()[0]))
    unused = {row.line for row in left}
    return _told_apart([m for m in found if m.line not in unused]), left


def _told_apart(rows: Sequence[Measurement]) -> list[Measurement]:
    """Rows whose model's name stands for several shapes, numbered by them; each is a model of its own."""
    shapes: dict[str, dict[tuple[float, ...], int]] = {}
    own = [tuple(float(getattr(m.architecture, name)[0]) for name in SHAPE) for m in rows]
    for m, shape in zip(rows, own, strict=True):
        known = shapes.setdefault(m.model, {})
        known.setdefault(shape, len(known) + 1)
    return [
        m if len(shapes[m.model]) == 1 else replace(m, model=f"{m.model} ({shapes[m.model][shape]})")
        for m, shape in zip(rows, own, strict=True)
    ]


def reasons(left: Sequence[LeftOut]) -> str:
    """The most frequent reasons with the rows that each concerns, as text, and how many rows have others."""
    counts = Counter(row.reason for row in left).most_common(REASONS)
    said = [f"{n} row{'s' * (n > 1)}: {reason}" for reason, n in counts]
    rest = len(left) - sum(n for _, n in counts)
    return "; ".join([*said, *([f"{rest} row{'s' * (rest > 1)} for further reasons"] if rest else [])])


def _measurement(line: int, row: Mapping[str, str], device: str, resolve: Resolve, contended: Contended) -> Measurement:
    if row.get("left_out"):
        raise ValueError(row["left_out"])
    if row.get("quality") == "C":
        raise ValueError("quality C is never calibrated on")
    if (row.get("state") or "ok") != "ok":
        raise ValueError(f"the measurement failed: {row.get('state')}")
    metric, batch = row.get("metric", ""), _batch(row)
    prompt = _count(row, "prompt_len")
    busy = row.get("contended", "") == "yes"
    fastest = busy and contended == "minimum"
    if fastest and metric.endswith("_tok_s"):
        raise ValueError("metric: expected a time for the fastest of repetitions, got a rate; give --contended median")
    value = _positive(row, "min" if fastest else "value")
    generated = _count(row, "gen_len", ASSUMED_OUTPUT)
    model, architecture = resolve(row)
    phase, ms = _phase_ms(metric, value, batch, prompt)
    if phase != "decode" and prompt < 1:
        raise ValueError("prompt_len: expected at least 1 token for a prefill, got 0; correct it")
    found = Measurement(
        line,
        row.get("device", "") or device,
        row.get("engine", ""),
        _format(row),
        model,
        architecture,
        phase,
        batch,
        prompt,
        max(generated, 1),
        _count(row, "attended_len", 0),
        ms,
        busy,
        fastest,
    )
    memory = _positive(row, "memory_gb") if row.get("memory_gb") else None
    return replace(found, joules=_joules(row, found.seconds), rail=row.get("rail", ""), memory=memory, **_served(row))


def _served(row: Mapping[str, str]) -> dict[str, Any]:
    """How the model was served: the share of slow experts, tokens drafted in a step and the share of them that was accepted."""
    slow, drafted = _share(row, "slow_share"), _count(row, "drafted", 0)
    if drafted > MOST_DRAFTED:
        raise ValueError(f"drafted: expected at most {MOST_DRAFTED} tokens, got {drafted}; leave the row out")
    if drafted and not row.get("accepted"):
        raise ValueError("accepted: expected the share of drafted tokens that was accepted, got nothing; state it")
    if drafted and slow:
        raise ValueError("tokens drafted ahead and experts in slow memory together: no formula gives their time")
    return {"slow_share": slow, "drafted": drafted, "accepted": _share(row, "accepted") if drafted else 0.0}


def _share(row: Mapping[str, str], name: str) -> float:
    """A share from 0 to 1; 0 where the cell is empty."""
    text = row.get(name, "")
    share = number_in(text or "0")
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"{name}: expected a share from 0 to 1, got {text!r}; {mended(name, text)}")
    return share


def _format(row: Mapping[str, str]) -> Format:
    """The weight format; its linear weights in as many bits as the measured file has, where `weight_bits` says so."""
    known = format_of(row.get("precision", "") or "fp16")
    if not row.get("weight_bits"):
        return known
    own = replace(known.precision, weight_bytes=_positive(row, "weight_bits") / 8, stored=None)
    return replace(known, precision=own)


def _joules(row: Mapping[str, str], seconds: float) -> float | None:
    """Energy as given, or mean power times the time; None where neither is."""
    if row.get("energy_j"):
        return _positive(row, "energy_j")
    return _positive(row, "power_w") * seconds if row.get("power_w") else None


def _phase_ms(metric: str, value: float, batch: int, prompt: int) -> tuple[Measured, float]:
    """Phase and milliseconds of a metric: rates are aggregate over the batch."""
    if metric in ("ttft_ms", "prefill_ms"):
        return "prefill", value
    if metric == "prefill_tok_s":
        return "prefill", 1e3 * batch * prompt / value
    if metric == "tpot_ms":
        return "decode", value
    if metric == "decode_tok_s":
        return "decode", 1e3 * batch / value
    if metric == "total_ms":
        return "request", value
    raise ValueError(
        f"metric: expected prefill_ms, ttft_ms, prefill_tok_s, tpot_ms, decode_tok_s or total_ms, got {metric!r}; correct it"
    )


def _positive(row: Mapping[str, str], name: str) -> float:
    text = row.get(name, "")
    value = number_in(text)
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name}: expected a positive number, got {text!r}; {mended(name, text)}")
    return value


def _batch(row: Mapping[str, str]) -> int:
    """Sequences at once, a whole number of at least 1; 1 where the cell is empty."""
    text = row.get("batch", "")
    number = _count(row, "batch", 1)
    if number < 1 or (text and float(text) != number):
        raise ValueError(f"batch: expected a whole number of at least 1, got {text}; correct it")
    return number


def _count(row: Mapping[str, str], name: str, default: int | None = None) -> int:
    """A whole number of at least 0; a mean length is rounded."""
    text = row.get(name, "")
    if not text:
        if default is None:
            raise ValueError(f"{name}: expected a number of tokens, got nothing; state it")
        return default
    if not math.isfinite(value := number_in(text)):
        raise ValueError(f"{name}: expected a whole number, got {text!r}; {mended(name, text)}")
    number = round(value)
    if number < 0:
        raise ValueError(f"{name}: expected at least 0, got {text}; correct it")
    return number
