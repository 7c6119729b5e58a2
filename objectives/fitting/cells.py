"""Cells of a table of trained models as numbers, and what these can be: counts, shares, losses in nats, rows that are architectures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from objectives.display_text import in_a_command
from objectives.fitting.columns import BESIDE, COLUMNS
from objectives.fitting.layer_columns import own_columns
from objectives.table import NOT_FINITE, fault, listed, mended, number, numbers_of
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, BoolArray, FloatArray
from search_spaces.columns import CODES
from search_spaces.layer_kinds import KIND_DEFAULTS

KEPT = ("loss", "weight", *KIND_DEFAULTS)  # columns that every fit uses, or whose empty cells mean none
DENSE = dict.fromkeys(("n_experts", "top_k"), " (of a dense model write 1)")
LEAST_LOSS, MOST_LOSS = 0.01, 20.0
LEAST_COUNTS = {
    "parameters": 1e4,
    "active_parameters": 1e4,
    "tokens": 1e5,
}  # where no row has so many, their unit was left out
TRUTHS = {"true": 1.0, "false": 0.0}  # of Python and JSON


def numbers_in(
    columns: Mapping[str, list[str]], lines: AnyArray, path: Path
) -> tuple[dict[str, FloatArray], dict[str, str], list[str], list[str]]:
    """Known columns as numbers, those with empty cells as the fault that they are if a law needs them, what is not used, and other faults.

    Empty cells of layer kinds are none of the kind. What no law reads (seed, learning rate, batch) is not used where a cell is no number.
    """
    numbers, empty, notes, faults = {}, {}, [], []
    for name, cells in columns.items():
        if name not in COLUMNS or (name != "loss" and not any(cells)):
            continue
        values = of_kinds(name, cells) if name in KIND_DEFAULTS else numbers_of(cells)
        wrong = ~np.isfinite(values)
        if wrong.any() and name in BESIDE:
            notes.append(f"{name} is not used: {cells[int(np.argmax(wrong))]!r} is no number (line {lines[wrong][0]})")
            continue
        if wrong.any():
            wanted = f"one of {', '.join(CODES[name])}" if name in CODES else "a number"
            said = fault(path, lines, wrong, name, wanted, list(map(repr, cells)), _remedy(name, cells, wrong))
            if name not in KEPT and not any(cells[row] for row in np.flatnonzero(wrong)):
                empty[name] = said
                notes.append(f"{name} is not used: {wrong.sum()} empty cells{listed(lines[wrong])}")
                continue
            faults.append(said)
        numbers[name] = values
    return numbers, empty, notes, faults


def _remedy(name: str, cells: Sequence[str], wrong: BoolArray) -> str:
    cell = cells[int(np.argmax(wrong))]
    if cell:
        return "correct it" if name in CODES else mended(name, cell)
    return f"correct it{DENSE.get(name, '')}, or leave such rows out with --where {in_a_command(f'{name}>0')}"


def converged(columns: Mapping[str, list[str]], lines: AnyArray, path: Path) -> tuple[BoolArray, list[str]]:
    """Rows (n,) whose loss is not infinite or "nan", as a diverged run's is, and how many others there are.

    Raises:
        ValueError: every run diverged.
    """
    out = np.array([cell in NOT_FINITE for cell in columns.get("loss", [])], dtype=bool)
    if not out.any():
        return np.ones(len(lines), dtype=bool), []
    if out.all():
        raise ValueError(f"{path}: loss: expected finite losses, got none; every run diverged, add runs that did not")
    return ~out, [f"{out.sum()} rows of diverged runs (loss inf or nan) left out{listed(lines[out])}"]


def of_kinds(name: str, cells: Sequence[str]) -> FloatArray:
    """A column of layer kinds as numbers, (n,): words by their places, empty cells as none, NaN for anything else."""
    words = {word: float(place) for place, word in enumerate(CODES[name])} if name in CODES else TRUTHS
    numeric = name not in CODES
    return np.array([words.get(cell.lower(), number(cell) if numeric else np.nan) if cell else 0.0 for cell in cells])


def out_of_range(numbers: Mapping[str, FloatArray], lines: AnyArray, path: Path) -> list[str]:
    """Counts that are not positive, losses that are no nats, more active experts than there are; columns and lines (n,)."""
    faults = []

    def add(wrong: BoolArray, name: str, expected: str, remedy: str) -> None:
        if wrong.any():
            got = [f"{value:g}" for value in numbers[name].tolist()]
            faults.append(fault(path, lines, wrong, name, expected, got, remedy))

    for name, values in numbers.items():
        if name not in ("loss", "checkpoint", *BESIDE, *KIND_DEFAULTS):
            add(values <= 0, name, "a positive number", f"correct the row{DENSE.get(name, '')}")
    rates = numbers.get("activation_rate", np.ones(1))
    add(
        rates > 1,
        "activation_rate",
        "a share of at most 1",
        'df["activation_rate"] = df["activation_rate"] / 100 of percentages',
    )
    for name, least in LEAST_COUNTS.items():
        if name in numbers and (values := numbers[name]).size:
            wrong = _too_few(numbers, values) if name == "tokens" else np.full(len(lines), values.max() < least)
            unit = "1e9 of billions" if name == "tokens" else "1e6 of millions"
            add(wrong & (values > 0), name, "a count", f'df["{name}"] = df["{name}"] * {unit}')
    if "tokens" not in numbers and {"training_flops", "parameters"} <= numbers.keys():
        flops = numbers["training_flops"]
        few = _too_few(numbers, flops / (6.0 * numbers["parameters"]))
        add((flops > 0) & few, "training_flops", "FLOP of a training", "write FLOP, 6e18 where 6 EFLOP are meant")
    if (loss := numbers.get("loss")) is not None:
        expected = f"nats per token between {LEAST_LOSS} and {MOST_LOSS:g}"
        add((loss < LEAST_LOSS) | (loss > MOST_LOSS), "loss", expected, "a perplexity is exp(loss), bits are loss/ln 2")
    experts = numbers.get("n_experts", np.full(len(lines), np.inf))
    if (more := numbers.get("top_k", np.ones(1)) > experts).any():
        add(more, "top_k", f"at most n_experts {experts[int(np.argmax(more))]:g}", "correct the row")
    return faults


def _too_few(numbers: Mapping[str, FloatArray], tokens: FloatArray) -> BoolArray:
    """Rows (n,) of so few training tokens that their unit was left out: below 100,000 and a token for each thousand parameters.

    Where the parameters are unknown, or lack their unit too, all rows or none.
    """
    few, shaped = tokens < LEAST_COUNTS["tokens"], {"depth", "width"} <= numbers.keys()
    models = numbers["depth"] * numbers["width"] ** 2 if shaped else numbers.get("parameters")
    if models is None or ("depth" not in numbers and models.max() < LEAST_COUNTS["parameters"]):
        return np.asarray(few & few.all())
    return np.asarray(few & (tokens < models / 1000))


def not_architectures(numbers: Mapping[str, FloatArray], lines: AnyArray, path: Path) -> list[str]:
    """Rows that are no architecture, where the columns say a whole one."""
    own = own_columns(numbers)
    try:
        Architectures.from_columns(own)
    except ValueError as error:
        if any("got nothing" in line for line in str(error).splitlines()):
            return []
        for row, line in enumerate(lines.tolist()):
            try:
                Architectures.from_columns({name: column[row : row + 1] for name, column in own.items()})
            except ValueError as fault:
                return [f"{path}:{line}: {text}" for text in str(fault).splitlines()]
        return [f"{path}: {error}"]
    return []
