"""Cells of a table of trained models as numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from objectives.fitting.columns import COLUMNS
from objectives.fitting.kept_rows import number, numbers_of
from search_spaces.arrays import AnyArray, BoolArray, FloatArray
from search_spaces.columns import CODES
from search_spaces.layer_kinds import KIND_DEFAULTS

BESIDE = ("seed", "learning_rate")  # said of the rows, in no law
DIVERGED = ("inf", "infinity", "nan")
TRUTHS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}


def numbers_in(columns: Mapping[str, list[str]], lines: AnyArray, path: Path) -> dict[str, FloatArray]:
    """Known columns as numbers, empty cells of layer kinds as none of the kind; others are not used.

    Nor is a seed or a learning rate that some rows leave empty.

    Raises:
        ValueError: cells that are no numbers, or no column of losses.
    """
    numbers, faults = {}, []
    for name, cells in columns.items():
        if name not in COLUMNS:
            continue
        if not any(cell.strip() for cell in cells):
            continue
        values = of_kinds(name, cells) if name in KIND_DEFAULTS else numbers_of(cells)
        if not (fine := np.isfinite(values)).all():
            if name in BESIDE and not any(cells[row].strip() for row in np.flatnonzero(~fine)):
                continue
            at = int(np.argmin(fine))
            wanted = f"one of {', '.join(CODES[name])}" if name in CODES else "a number"
            faults.append(
                f"{path}:{lines[at]}: {name}: expected {wanted}, got {cells[at]!r}; correct or leave out the row"
            )
        numbers[name] = values
    if "loss" not in numbers:
        faults.append(f"{path}: expected a column loss, got {', '.join(columns)}; rename one with --rename OLD=loss")
    if faults:
        raise ValueError("\n".join(faults))
    return numbers


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
    shown = ", ".join(str(line) for line in lines[out][:5].tolist()) + (", …" if out.sum() > 5 else "")
    return ~out, [f"{out.sum()} rows of diverged runs (loss inf or nan) left out (lines {shown})"]


def of_kinds(name: str, cells: Sequence[str]) -> FloatArray:
    """A column of layer kinds as numbers, (n,): words by their places, empty cells as none, NaN for anything else."""
    words = {word: float(place) for place, word in enumerate(CODES[name])} if name in CODES else TRUTHS
    plain = [cell.strip().lower() for cell in cells]
    return np.array([0.0 if not cell else words[cell] if cell in words else _number(name, cell) for cell in plain])


def _number(name: str, cell: str) -> float:
    return float("nan") if name in CODES else number(cell)
