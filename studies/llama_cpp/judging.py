"""How wrong predicted times of llama.cpp are, and whether that is within the rules of studies/llama_cpp/design.md.

Nothing here measures: the tests recompute the page's figures from the table and the device file that ship with it.
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from nas.files.tables import csv_text
from nas.study.catalogue import load_device, load_law
from objectives.counts import total
from plas_board.calibrate.command import LAW, calibrated, measured_rows
from plas_board.calibrating.group import Calibrated
from plas_board.calibrating.held_out import Group, choose
from plas_board.calibrating.measurements import Measurement
from plas_board.calibrating.terms import predict, terms
from search_spaces.arrays import FloatArray

Row = dict[str, str]
Found = Callable[[Row], bool]
PHASES = ("prefill", "decode")
LINES = {"dense": {"prefill": 0.10, "decode": 0.08}, "with MoE": {"prefill": 0.15, "decode": 0.12}}
TAIL, ORDER = 3.0, 0.9  # 90th percentile in medians aimed at; Kendall's tau
THIRDS = (0.0, 97e6, 312e6, np.inf)  # bytes as 16-bit files
INSIDE = (64, 256, 512)  # lengths between others
ALONE = ("held out by model", "from batch 1")
WORST = 10
HEAD = ("rows", "phase", "n", "median", "p90", "Kendall's tau", "to 97 MB", "to 312 MB", "to 1 GB")


@dataclass(frozen=True)
class Line:
    """Errors of one phase of one line of the rules: over all rows, and the medians of each third of the sizes."""

    name: str
    phase: str
    rows: int
    median: float
    p90: float
    tau: float
    thirds: tuple[float, ...]

    def cells(self) -> list[str]:
        """A row of the table."""
        shares = [percent(value) for value in (self.median, self.p90)]
        return [self.name, self.phase, str(self.rows), *shares, f"{self.tau:.2f}", *map(percent, self.thirds)]

    def faults(self) -> list[str]:
        """What is not as the rules ask; a figure that could not be had is a fault too."""
        most = LINES[self.name][self.phase]
        wanted = {"median": (self.median, most), "p90": (self.p90, TAIL * most)}
        if self.name == "dense":
            wanted |= {f"median of size class {i}": (value, most) for i, value in enumerate(self.thirds, 1)}
        found = [
            f"{self.phase} {what} {percent(value)} above {percent(limit)}"
            for what, (value, limit) in wanted.items()
            if not value <= limit
        ]
        return found + [f"{self.phase} tau {self.tau:.2f} below {ORDER}"] * (not self.tau >= ORDER)


def percent(share: float) -> str:
    """A share as text; a dash where there is none."""
    return "-" if np.isnan(share) else f"{100 * share:.1f} %"


def rows_of(table: Path) -> list[Row]:
    """The rows of a CSV."""
    with table.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def lines_of(rows: Sequence[Row]) -> list[str]:
    """Rows as lines of a CSV."""
    return csv_text({name: [row[name] for row in rows] for name in rows[0]}).splitlines()


def chosen(table: Path, kind: str, wanted: Found) -> list[str]:
    """The measured rows of a format that are wanted, as lines."""
    return lines_of(
        [row for row in rows_of(table) if row["precision"] == kind and row["state"] == "ok" and wanted(row)]
    )


@cache
def group(table: Path, board: str, kind: str, name: str, batch: int = 1) -> Calibrated:
    """The profile of a line of the rules, with every row held out by model."""

    def wanted(row: Row) -> bool:
        return int(row["batch"]) == batch and (name != "dense" or row["n_experts"] == "1")

    (found,) = calibrated(chosen(table, kind, wanted), board, table.name).groups
    return found


def judged(table: Path, board: str, kind: str, name: str) -> list[Line]:
    """Prefill and decode of a line of the rules."""
    found = group(table, board, kind, name)
    return [_line(name, phase, found.rows, found.held_out, found.terms.ms) for phase in PHASES]


def _line(name: str, phase: str, rows: Sequence[Measurement], predicted: FloatArray, measured: FloatArray) -> Line:
    here = np.array([m.phase == phase for m in rows])
    share = np.abs(predicted / measured - 1.0)
    size = np.array([2.0 * float(total(m.architecture)[0]) for m in rows])
    thirds = [(size > low) & (size <= high) for low, high in pairwise(THIRDS)]
    lengths = np.array([m.prompt for m in rows])
    orders = [tau(predicted[here & (lengths == n)], measured[here & (lengths == n)]) for n in np.unique(lengths[here])]
    medians = tuple(middle(share[here & third]) for third in thirds)
    return Line(name, phase, int(here.sum()), middle(share[here]), high(share[here]), middle(np.array(orders)), medians)


def tau(predicted: FloatArray, measured: FloatArray) -> float:
    """Kendall's, of at least two models."""
    return float(kendalltau(predicted, measured).statistic) if len(predicted) > 1 else float("nan")


def middle(values: FloatArray) -> float:
    """The median; NaN of nothing."""
    return float(np.median(values)) if len(values) else float("nan")


def high(values: FloatArray) -> float:
    """The 90th percentile; NaN of nothing."""
    return float(np.quantile(values, 0.9)) if len(values) else float("nan")


def worst(table: Path, board: str, kind: str) -> list[str]:
    """The rows that are missed most, of all models."""
    found = group(table, board, kind, "with MoE")
    off = found.held_out / found.terms.ms - 1.0
    first = np.argsort(-np.abs(off))[:WORST]
    return [
        f"{m.model}, {m.phase}, {m.prompt:,} tokens {100 * e:+.0f} %"
        for m, e in ((found.rows[i], off[i]) for i in first)
    ]


def by_length(table: Path, board: str, kind: str) -> dict[tuple[str, int], str]:
    """Median and 90th percentile of each length predicted from the others, with what the rules say of those inside."""
    found: dict[tuple[str, int], str] = {}
    lengths = sorted({int(row["prompt_len"]) for row in rows_of(table) if row["batch"] == "1"})
    for length in lengths:
        unseen = _measurements(chosen(table, kind, lambda row, n=length: _is(row, n)), board)
        known = chosen(table, kind, lambda row, n=length: row["batch"] == "1" and not _is(row, n))
        share = errors_under(known, unseen, board)
        for phase in PHASES:
            own = share[[m.phase == phase for m in unseen]]
            holds = "" if length not in INSIDE else " holds" if middle(own) <= LINES["with MoE"][phase] else " fails"
            found[phase, length] = f"{percent(middle(own))} ({percent(high(own))}){holds}"
    return found


def _is(row: Row, length: int) -> bool:
    return row["batch"] == "1" and int(row["prompt_len"]) == length


def _measurements(lines: Sequence[str], board: str) -> list[Measurement]:
    return measured_rows(lines, board)[0]


def errors_under(known: Sequence[str], unseen: Sequence[Measurement], board: str) -> FloatArray:
    """Shares by which rows are missed under the profile of others, (n,)."""
    device, law, seen = load_device(board), load_law(LAW), _measurements(known, board)
    group = Group(terms(seen, device, law), np.array([m.model for m in seen]), device)
    there = terms(list(unseen), device, law)
    return np.abs(predict(there, group.fitted(choose(group).kept)) / there.ms - 1.0)


def batch_errors(table: Path, board: str, kind: str) -> list[str]:
    """Of several sequences: held out by model under a profile of their own, and predicted from batch 1; by phase."""
    batches = sorted({int(row["batch"]) for row in rows_of(table)})[1:]
    if not batches:
        return ["-"] * 4
    own = group(table, board, kind, "with MoE", batches[0])
    share = np.abs(own.held_out / own.terms.ms - 1.0)
    other = errors_under(chosen(table, kind, lambda row: row["batch"] == "1"), own.rows, board)
    phases = [np.array([m.phase == phase for m in own.rows]) for phase in PHASES]
    return [f"{percent(middle(v[here]))} ({percent(high(v[here]))})" for here in phases for v in (share, other)]
