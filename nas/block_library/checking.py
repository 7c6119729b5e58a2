"""What a library must be to be summed: every fault a line, all at once."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.block_library.library import SCORE, Library, Row, larger_is_better
from nas.errors import UsageError
from nas.files.faults import unknown
from objectives.written_text import shown_name

UNITS_APART = 800.0  # a column whose largest differ by more from layer to layer holds two units: MiB and GiB, ms and s
MOST_FAULTS = 40


@dataclass(frozen=True)
class Meaning:
    """What the user, or the format, says of the columns: which are scores, of which more is better, the rest's costs."""

    scores: tuple[str, ...] = ()
    larger: tuple[str, ...] = ()
    rest: Mapping[str, float] | None = None

    @classmethod
    def typed(cls, scores: Sequence[str], larger: Sequence[str], rest: Sequence[str]) -> "Meaning":
        """What the flags say; a score of which more is better need not be named twice.

        Raises:
            UsageError: a rest that is no metric=value.
        """
        return cls(tuple(scores), tuple(larger), dict(_amount(text) for text in rest))


def _amount(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise UsageError(f"--rest: expected metric=value, got {text!r}; write for example memory_mib=512")
    return name.strip(), number


def checked(source: str, rows: Sequence[Row], meaning: Meaning) -> Library:
    """The library of a file's rows.

    Raises:
        UsageError: every fault, a line each: missing layers, values that are no numbers, negative or mixed costs, duplicates.
    """
    if not rows:
        raise UsageError(f"{source}: expected replacements of layers, got none; write one a row")
    names = _complete(rows)
    scores = tuple(name for name in names if name in (meaning.scores or (SCORE,)))
    faults = [*_strangers(names, meaning), *_places(rows), *_values(rows, names, scores)]
    faults += [] if faults else [*_units(rows, [n for n in names if n not in scores]), *_missing(rows)]
    kept, doubled = _distinct(rows, names)
    faults += doubled
    if faults:
        more = [f"and {len(faults) - MOST_FAULTS:,} more"] * (len(faults) > MOST_FAULTS)
        raise UsageError("\n".join([*(f"{source}: {fault}" for fault in faults[:MOST_FAULTS]), *more]))
    return _library(source, kept, names, scores, meaning)


def _complete(rows: Sequence[Row]) -> tuple[str, ...]:
    """Metrics that at least one row has a value of; a column that is empty throughout is none."""
    return tuple(dict.fromkeys(name for row in rows for name, value in row.values.items() if value is not None))


def _strangers(names: Sequence[str], meaning: Meaning) -> Iterable[str]:
    """Names that were said of no column."""
    for name in (*meaning.scores, *meaning.larger, *(meaning.rest or {})):
        if name not in names:
            yield unknown("a metric", name, names)


def _places(rows: Sequence[Row]) -> Iterable[str]:
    for row in rows:
        told = list(row.layers)
        if not told or told[0] < 0 or told != list(range(told[0], told[0] + len(told))):
            said = f"expected layers that follow each other from 0 up, got {told}"
            yield f"{row.where}: {said}; write them as one range"
        try:
            shown_name(row.block)
        except ValueError as error:
            yield f"{row.where}: block: {error}"


def _values(rows: Sequence[Row], names: Sequence[str], scores: Sequence[str]) -> Iterable[str]:
    for row in rows:
        for name in names:
            value = row.values.get(name)
            if value is None:
                yield f"{row.where}: {name}: expected a number, got nothing; other rows have one, measure it"
            elif isinstance(value, bool) or not isinstance(value, (int, float)):
                yield f"{row.where}: {name}: expected a plain number in the column's unit, got {str(value)[:60]!r}; convert it"
            elif not math.isfinite(value):
                yield f"{row.where}: {name}: expected a finite number, got {value}; measure it again, or leave the row out"
            elif name not in scores and value < 0:
                yield f"{row.where}: {name}: expected a cost of at least 0, got {value:g}; name a score with --score {name}"


def _units(rows: Sequence[Row], costs: Sequence[str]) -> Iterable[str]:
    """Costs whose size jumps from one layer to the next by what separates two units."""
    for name in costs:
        largest: dict[int, float] = defaultdict(float)
        for row in rows:
            for layer in row.layers:
                largest[layer] = max(largest[layer], float(row.values[name]) / len(row.layers))
        seen = {layer: value for layer, value in largest.items() if value > 0}
        if seen and max(seen.values()) > UNITS_APART * min(seen.values()):
            low, high = min(seen, key=lambda k: seen[k]), max(seen, key=lambda k: seen[k])
            said = f"expected one unit, got up to {seen[low]:g} at layer {low} and {seen[high]:g} at layer {high}"
            yield f"{name}: {said}; convert one of them"


def _missing(rows: Sequence[Row]) -> Iterable[str]:
    covered = {layer for row in rows for layer in row.layers}
    gone = sorted(set(range(max(covered) + 1)) - covered)
    if gone:
        listed = ", ".join(map(str, gone[:8])) + (f" and {len(gone) - 8} more" if len(gone) > 8 else "")
        yield f"expected a replacement of every layer up to {max(covered)}, got none of {listed}; measure the parent's block"


def _distinct(rows: Sequence[Row], names: Sequence[str]) -> tuple[list[Row], list[str]]:
    """Rows without those that say the same twice, and what is said twice in two ways."""
    seen: dict[tuple[Any, ...], Row] = {}
    faults = []
    for row in rows:
        key = (row.layers, row.kind or row.block)
        other = seen.setdefault(key, row)
        if other is row:
            continue
        if any(other.values.get(name) != row.values.get(name) for name in names):
            faults.append(
                f"{row.where}: expected each block once a layer, got {row.block!r} of layer {row.layers[0]} with other values "
                f"in {other.where} too; keep one"
            )
        elif row.parent and not other.parent:
            seen[key] = row
    return list(seen.values()), faults


def _library(
    source: str, rows: Sequence[Row], names: Sequence[str], scores: tuple[str, ...], meaning: Meaning
) -> Library:
    ordered = sorted(rows, key=lambda row: (row.layers[0], len(row.layers), row.block, row.kind))
    first, length = ([f(row) for row in ordered] for f in (lambda row: row.layers[0], lambda row: len(row.layers)))
    metrics = {name: np.array([float(row.values[name]) for row in ordered]) for name in names}
    larger = frozenset({*meaning.larger, *(name for name in scores if larger_is_better(name))})
    return Library(
        source,
        np.array(first, dtype=np.int64),
        np.array(length, dtype=np.int64),
        tuple(row.block for row in ordered),
        tuple(row.kind or row.block for row in ordered),
        np.array([row.parent for row in ordered], dtype=bool),
        metrics,
        scores,
        larger,
        dict(meaning.rest or {}),
        tuple(row.content for row in ordered),
    )
