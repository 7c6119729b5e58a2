"""Cells of a table of trained models as numbers."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from objectives.display_text import in_a_command
from objectives.fitting.columns import BESIDE, COLUMNS, COUNTED
from objectives.fitting.kept_rows import listed, number, numbers_of
from search_spaces.arrays import AnyArray, BoolArray, FloatArray
from search_spaces.columns import CODES
from search_spaces.layer_kinds import KIND_DEFAULTS

DIVERGED = ("inf", "infinity", "nan")
POWERS = {"k": 3, "thousand": 3, "m": 6, "million": 6, "b": 9, "g": 9, "billion": 9, "t": 12, "trillion": 12}
COUNT = re.compile(rf"([+-]?[\d.]+(?:e[+-]?\d+)?)\s*({'|'.join(POWERS)})", re.IGNORECASE)
EMPTY = ("", "-", "na", "n/a", "nan", "none", "null")
KEPT = ("loss", "weight", *KIND_DEFAULTS)  # columns that every fit uses, or whose empty cells mean none
DENSE = dict.fromkeys(("n_experts", "top_k"), " (of a dense model write 1)")
TRUTHS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}


def numbers_in(
    columns: Mapping[str, list[str]], lines: AnyArray, path: Path
) -> tuple[dict[str, FloatArray], dict[str, str], list[str], list[str]]:
    """Known columns as numbers, those with empty cells as the fault that they are if a law needs them, what is not used, and other faults.

    Empty cells of layer kinds are none of the kind. What no law reads (seed, learning rate, batch) is not used where a cell is no number.
    """
    numbers, empty, notes, faults = {}, {}, [], []
    for name, cells in columns.items():
        if name not in COLUMNS or (name != "loss" and not any(cell.strip() for cell in cells)):
            continue
        values = of_kinds(name, cells) if name in KIND_DEFAULTS else numbers_of(cells)
        wrong = ~np.isfinite(values)
        if wrong.any() and name in BESIDE:
            notes.append(f"{name} is not used: {cells[int(np.argmax(wrong))]!r} is no number (line {lines[wrong][0]})")
            continue
        if wrong.any():
            wanted = f"one of {', '.join(CODES[name])}" if name in CODES else "a number"
            said = fault(path, lines, wrong, name, wanted, list(map(repr, cells)), _remedy(name, cells, wrong))
            if name not in KEPT and all(cells[row].strip().lower() in EMPTY for row in np.flatnonzero(wrong)):
                empty[name] = said
                notes.append(f"{name} is not used: {wrong.sum()} empty cells{listed(lines[wrong])}")
                continue
            faults.append(said)
        numbers[name] = values
    return numbers, empty, notes, faults


def _remedy(name: str, cells: Sequence[str], wrong: BoolArray) -> str:
    if re.fullmatch(r"\s*[\d.,]+\s*[^\W\d]+\s*", cells[int(np.argmax(wrong))]):
        return "write the number alone"
    return f"correct it{DENSE.get(name, '')}, or leave such rows out with --where {in_a_command(f'{name}>0')}"


def fault(
    path: Path, lines: AnyArray, wrong: BoolArray, name: str, expected: str, cells: Sequence[str], remedy: str
) -> str:
    """What is wrong with a column: its first wrong cell, and all lines with one where there are several."""
    count, first = int(wrong.sum()), int(np.argmax(wrong))
    more = f", wrong in {count} rows{listed(lines[wrong])}" if count > 1 else ""
    return f"{path}:{lines[first]}: {name}: expected {expected}, got {cells[first]}{more}; {remedy}"


def converged(columns: Mapping[str, list[str]], lines: AnyArray, path: Path) -> tuple[BoolArray, list[str]]:
    """Rows (n,) whose loss is not infinite or "nan", as a diverged run's is, and how many others there are.

    Raises:
        ValueError: every run diverged.
    """
    cells = [cell.strip().lower() for cell in columns.get("loss", [])]
    out = np.array([cell.lstrip("+-") in DIVERGED for cell in cells], dtype=bool)
    if not out.any():
        return np.ones(len(lines), dtype=bool), []
    if out.all():
        raise ValueError(f"{path}: loss: expected finite losses, got none; every run diverged, add runs that did not")
    return ~out, [f"{out.sum()} rows of diverged runs (loss inf or nan) left out{listed(lines[out])}"]


def multiplied(columns: Mapping[str, list[str]], units: Mapping[str, str]) -> tuple[dict[str, list[str]], list[str]]:
    """Counts as plain numbers where a cell ends with K, M, B or T (1.3B), or its column's header says such a unit; what was read so."""
    found, notes = dict(columns), []
    for name in COUNTED:
        cells = columns.get(name, [])
        plain = [_multiplied(cell, units.get(name, "")) for cell in cells]
        at = next((i for i, cell in enumerate(cells) if cell != plain[i]), None)
        if at is not None:
            notes.append(f"{name}: {cells[at].strip()} is read as {float(plain[at]):g}")
            found[name] = plain
    return found, notes


def bare_of_units(columns: Mapping[str, list[str]], units: Mapping[str, str]) -> dict[str, list[str]]:
    """Losses without "nats" behind them, activation rates in percent, by their cells or their column's header, as shares."""
    found = dict(columns)
    if "loss" in found:
        found["loss"] = [re.sub(r"(?<=\d)\s*nats?$", "", cell.strip(), flags=re.IGNORECASE) for cell in found["loss"]]
    if "activation_rate" in found:
        percent = units.get("activation_rate") == "%"
        found["activation_rate"] = [_share(cell.strip(), percent=percent) for cell in found["activation_rate"]]
    return found


def _share(cell: str, *, percent: bool) -> str:
    value = number(cell.removesuffix("%"))
    return repr(value / 100) if (percent or cell.endswith("%")) and np.isfinite(value) else cell


def _multiplied(cell: str, unit: str) -> str:
    parts = COUNT.fullmatch(cell.strip())
    text, power = (parts[1], parts[2].lower()) if parts else (cell, unit.rstrip("s"))
    value = number(text)
    return repr(value * 10.0 ** POWERS[power]) if power in POWERS and np.isfinite(value) else cell


def of_kinds(name: str, cells: Sequence[str]) -> FloatArray:
    """A column of layer kinds as numbers, (n,): words by their places, empty cells as none, NaN for anything else."""
    words = {word: float(place) for place, word in enumerate(CODES[name])} if name in CODES else TRUTHS
    plain = [cell.strip().lower() for cell in cells]
    return np.array([0.0 if not cell else words[cell] if cell in words else _number(name, cell) for cell in plain])


def _number(name: str, cell: str) -> float:
    return float("nan") if name in CODES else number(cell)
