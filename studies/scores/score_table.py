"""Reads a table of models with bits per byte, or a loss per token, and scores: one row a model, one column `family:task` a score."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from objectives.table import Source, fault, not_numbers, number, numbers_of, read_sheet, source_of
from objectives.token_curve import TokenCurve
from search_spaces.arrays import AnyArray, BoolArray, FloatArray

MOST = 10_000  # rows
BITS = (0.2, 4.0)  # a byte, of any text and model
CHANCE, TOP = "chance", "top"  # models that are none: rows that hold the ends of each score
OURS = ("model", "laboratory", "text", "bits_per_byte", "loss", "bytes_per_token", "vocabulary")
EXAMPLE = "model,laboratory,bits_per_byte,commonsense:hellaswag"


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Models (n,), bits per byte, laboratories, and of each `family:task` the scores, NaN where a model has none.

    chance, top: the ends of each score, where the table gives them. notes: what was read how.
    """

    source: Source
    model: AnyArray
    laboratory: AnyArray
    bits: FloatArray
    text: str
    scores: dict[str, FloatArray]
    chance: dict[str, float]
    top: dict[str, float]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.model)

    @property
    def families(self) -> dict[str, list[str]]:
        """Tasks by family, in the order of the columns."""
        found: dict[str, list[str]] = {}
        for name in self.scores:
            found.setdefault(name.partition(":")[0], []).append(name)
        return found


def score_table(path: Path, curve: TokenCurve) -> ScoreTable:
    """The table in a CSV; `curve` gives bytes per token where a loss per token stands beside a vocabulary.

    Raises:
        ValueError: what cannot be read, each fault on its line.
    """
    sheet = read_sheet(path, "model", most=MOST)
    names, columns, faults = sheet.header, sheet.columns, list[str]()
    known = [name for name in names if name in OURS or ":" in name]
    _refuse_header(path, names)
    ends = columns["model"]
    whole = np.array([cell not in (CHANCE, TOP) for cell in ends])
    rows = {name: [cell for cell, kept in zip(columns[name], whole, strict=True) if kept] for name in known}
    lines = sheet.lines[whole]
    if not whole.any():
        raise ValueError(f"{path}: expected a row per model, got none; add them")
    laboratory = rows.get("laboratory", ["yours"] * len(lines))
    faults += [*_unnamed(path, rows, lines), *_repeated(path, rows["model"], laboratory, lines)]
    bits, of_bits = _bits(path, rows, lines, curve, faults)
    text = _text(path, rows.get("text", []), faults)
    scores = {name: _scores(path, name, rows[name], lines, faults) for name in known if ":" in name}
    limits = {end: _ends(path, end, columns, ends, list(scores), faults) for end in (CHANCE, TOP)}
    faults += _beyond(path, scores, limits, lines)
    if faults:
        raise ValueError("\n".join(faults))
    unused = [name for name in names if name not in known]
    notes = [*of_bits, *([f"not used: {', '.join(unused)}"] if unused else [])]
    notes += _assumed(limits, list(scores))
    labs, models = np.array(laboratory, dtype=object), np.array(rows["model"], dtype=object)
    source = source_of(sheet, len(models))
    return ScoreTable(source, models, labs, bits, text, scores, limits[CHANCE], limits[TOP], tuple(notes))


def _refuse_header(path: Path, names: Sequence[str]) -> None:
    """Refuse a header without models, bits per byte or scores.

    Raises:
        ValueError: the first of them.
    """
    if "model" not in names:
        raise ValueError(f"{path}: model: expected a column of that name, got {', '.join(names)}; write {EXAMPLE}")
    if "bits_per_byte" not in names and "loss" not in names:
        raise ValueError(
            f"{path}: bits_per_byte: expected a column of that name, or loss with bytes_per_token or vocabulary, got neither; add it"
        )
    if "bits_per_byte" not in names and not {"bytes_per_token", "vocabulary"} & {*names}:
        raise ValueError(
            f"{path}: loss: expected bytes_per_token or vocabulary beside a loss per token, got neither; add one, or bits_per_byte"
        )
    wrong = [name for name in names if ":" in name and not all(part.strip() for part in name.split(":", 1))]
    if wrong:
        raise ValueError(f"{path}: {wrong[0]}: expected family:task, got an empty part; name both")
    if not any(":" in name for name in names):
        raise ValueError(
            f"{path}: expected columns family:task with scores, such as commonsense:hellaswag, got none; rename them so"
        )


def _unnamed(path: Path, rows: Mapping[str, list[str]], lines: AnyArray) -> list[str]:
    """Rows without a model or a laboratory."""
    found = []
    for name in ("model", "laboratory"):
        empty = np.array([not cell for cell in rows.get(name, [])], dtype=bool)
        if empty.any():
            cells = ["an empty cell"] * len(empty)
            found.append(fault(path, lines, empty, name, f"the name of a {name}", cells, "name it"))
    return found


def _repeated(path: Path, models: list[str], laboratory: list[str], lines: AnyArray) -> list[str]:
    pairs = list(zip(models, laboratory, strict=True))
    again = np.array([pairs.index(pair) < i for i, pair in enumerate(pairs)], dtype=bool)
    if not again.any():
        return []
    return [fault(path, lines, again, "model", "each model once", list(map(repr, models)), "leave out or rename one")]


def _bits(
    path: Path, rows: Mapping[str, list[str]], lines: AnyArray, curve: TokenCurve, faults: list[str]
) -> tuple[FloatArray, list[str]]:
    """Bits per byte, (n,), and how they were made."""
    if "bits_per_byte" in rows:
        bits, said = _numbers(path, "bits_per_byte", rows["bits_per_byte"], lines, faults), list[str]()
        said += ["loss is not used: bits_per_byte stands beside it"] if "loss" in rows else []
    else:
        loss = _numbers(path, "loss", rows["loss"], lines, faults)
        held, how = _held(path, rows, lines, curve, faults)
        bits, said = loss / (math.log(2.0) * held), [f"bits per byte: loss / (ln 2 · bytes per token), {how}"]
    wrong = np.isfinite(bits) & ~((bits >= BITS[0]) & (bits <= BITS[1]))
    if wrong.any():
        name = "bits_per_byte" if "bits_per_byte" in rows else "loss"
        cells = [f"{value:.4g}" for value in bits.tolist()]
        remedy = "a loss in nats per token belongs in the column loss, with bytes_per_token"
        faults.append(fault(path, lines, wrong, name, f"{BITS[0]:g} to {BITS[1]:g} bits per byte", cells, remedy))
    return bits, said


def _held(
    path: Path, rows: Mapping[str, list[str]], lines: AnyArray, curve: TokenCurve, faults: list[str]
) -> tuple[FloatArray, str]:
    """Bytes per token of each row, (n,), and where they are from."""
    if "bytes_per_token" in rows:
        return _numbers(path, "bytes_per_token", rows["bytes_per_token"], lines, faults), "those of the table"
    sizes = _numbers(path, "vocabulary", rows["vocabulary"], lines, faults)
    try:
        return curve.bytes_per_token(np.where(np.isfinite(sizes), sizes, curve.sizes[0].vocabulary)), (
            f"by vocabulary as {curve.name} counts them"
        )
    except ValueError as error:
        faults.append(f"{path}: {error}")
        return np.full(len(lines), np.nan), ""


def _numbers(path: Path, name: str, cells: list[str], lines: AnyArray, faults: list[str]) -> FloatArray:
    """A column of positive numbers, (n,)."""
    values = numbers_of(cells)
    wrong = ~(np.isfinite(values) & (values > 0))
    if wrong.any():
        faults.append(not_numbers(path, lines, wrong, name, cells, "a positive number"))
    return np.where(wrong, np.nan, values)


def _text(path: Path, cells: list[str], faults: list[str]) -> str:
    """The text that all bits per byte are of."""
    named = sorted({cell for cell in cells if cell})
    if len(named) > 1:
        shown = " and ".join(named[:3])
        faults.append(f"{path}: text: expected one text in all rows, got {shown}; make a table of each")
    return named[0] if named else ""


def _scores(path: Path, name: str, cells: list[str], lines: AnyArray, faults: list[str]) -> FloatArray:
    """A column of scores, (n,); an empty cell is NaN: not measured."""
    values = numbers_of(cells)
    wrong = ~np.isfinite(values) & np.array([bool(cell) for cell in cells])
    if wrong.any():
        faults.append(not_numbers(path, lines, wrong, name, cells, "a number, or an empty cell"))
    return np.where(np.isfinite(values), values, np.nan)


def _ends(
    path: Path, end: str, columns: Mapping[str, list[str]], models: list[str], names: list[str], faults: list[str]
) -> dict[str, float]:
    """Chance or top of the scores that the row of that name gives."""
    places = [i for i, model in enumerate(models) if model == end]
    if len(places) > 1:
        faults.append(f"{path}: {end}: expected one row of that name, got {len(places)}; leave out the others")
    found = {}
    for name in names if places else []:
        cell = columns[name][places[0]]
        if not cell:
            continue
        if not math.isfinite(value := number(cell)):
            faults.append(f"{path}: {name}: expected a number in the row {end}, got {cell!r}; correct it")
            continue
        found[name] = value
    return found


def _beyond(
    path: Path, scores: Mapping[str, FloatArray], limits: Mapping[str, Mapping[str, float]], lines: AnyArray
) -> list[str]:
    """Scores below 0 or above their top, and ends in the wrong order."""
    found = []
    for name, values in scores.items():
        chance, top = limits[CHANCE].get(name, 0.0), limits[TOP].get(name, 1.0)
        if not chance < top:
            found.append(f"{path}: {name}: expected chance below top, got {chance:g} and {top:g}; correct the rows")
            continue
        wrong: BoolArray = (values < min(0.0, chance)) | (values > top)
        if wrong.any():
            cells = [f"{value:g}" for value in values.tolist()]
            remedy = f"write shares of 1, or give a row {TOP} with the highest score, such as 100"
            found.append(fault(path, lines, wrong, name, f"scores of 0 to {top:g}", cells, remedy))
    return found


def _assumed(limits: Mapping[str, Mapping[str, float]], names: list[str]) -> list[str]:
    """Which scores have no chance level in the table."""
    without = [name for name in names if name not in limits[CHANCE]]
    if not without:
        return []
    which = "all scores" if len(without) == len(names) else ", ".join(without)
    return [f"chance is taken as 0 for {which}: a row {CHANCE} in the column model gives it"]
