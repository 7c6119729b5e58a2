"""Checks that a library can be summed; every fault a line, all at once."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files.faults import unknown
from objectives.display_text import escaped, shown_name
from plas_blocks.library import Library, Row, is_score, larger_is_better
from plas_blocks.request import BlocksRequest

UNITS_APART = 800.0  # costs that differ by more from layer to layer are in two units: MiB and GiB, ms and s
MOST_FAULTS = 40
MOST_LAYERS = 4_096
LARGEST = 1e100  # what is above it counts as infinite: sums could overflow
#: Columns of an answer's tables, which a metric of that name would be mixed up with.
TAKEN = (
    *("id", "layer", "block", "parent", "content", "limit", "share_of_parent", "layers_changed", "kinds"),
    *("tied", "blocks", "next_cost", "next_gain"),
)


@dataclass(frozen=True)
class Meaning:
    """Meaning of the columns by flags or format: which are scores, of which more is better, the rest's costs."""

    scores: tuple[str, ...] = ()
    larger: tuple[str, ...] = ()
    rest: Mapping[str, float] | None = None

    @classmethod
    def typed(cls, request: BlocksRequest) -> "Meaning":
        """Meaning of the columns by the flags; a score of which more is better need not be named twice.

        Raises:
            UsageError: a rest that is no metric=value.
        """
        return cls(request.scores, request.larger, dict(_amount(text) for text in request.rest))


def _amount(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number <= LARGEST:
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
    scores = tuple(name for name in names if name in (*meaning.scores, *meaning.larger) or is_score(name))
    faults = [*_names(names), *_strangers(names, meaning), *_places(rows), *_values(rows, names, scores)]
    faults += [] if faults else [*_units(rows, [n for n in names if n not in scores]), *_missing(rows)]
    kept, doubled = _distinct(rows, names)
    faults += [*doubled, *_parents(kept)]
    if faults:
        more = [f"and {len(faults) - MOST_FAULTS:,} more"] * (len(faults) > MOST_FAULTS)
        raise UsageError("\n".join([*(f"{source}: {fault}" for fault in faults[:MOST_FAULTS]), *more]))
    return _library(source, kept, names, scores, meaning)


def _complete(rows: Sequence[Row]) -> tuple[str, ...]:
    """Metrics that at least one row has a value of; a column that is empty throughout is none."""
    return tuple(dict.fromkeys(name for row in rows for name, value in row.values.items() if value is not None))


def _names(names: Sequence[str]) -> Iterable[str]:
    """Metrics that cannot be shown, or that an answer's own columns would be mixed up with."""
    for name in names:
        try:
            shown_name(name)
        except ValueError as error:
            yield f"metric {escaped(name[:60])!r}: {error}"
        if name in TAKEN or (name.startswith("layer_") and name[6:].isdigit()):
            yield f"expected metrics with names of their own, got {name!r}, a column of answers; call it otherwise"


def _strangers(names: Sequence[str], meaning: Meaning) -> Iterable[str]:
    """Names given for no column, and costs of the rest that are none."""
    rest = meaning.rest or {}
    for name in (*meaning.scores, *meaning.larger, *rest):
        if name not in names:
            yield unknown("a metric", name, names)
    for name, value in rest.items():
        if not 0 <= _number(value) <= LARGEST:
            yield f"rest: {name}: expected a cost of at least 0, got {str(value)[:60]}; correct it"


def _number(value: float) -> float:
    """As a float; a whole number that is none is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _places(rows: Sequence[Row]) -> Iterable[str]:
    for row in rows:
        told = list(row.layers)
        if not told or told[0] < 0 or told != list(range(told[0], told[0] + len(told))):
            text = f"expected layers that follow each other from 0 up, got {told}"
            yield f"{row.where}: {text}; write them as one range"
        elif told[-1] >= MOST_LAYERS:
            yield f"{row.where}: expected layers up to {MOST_LAYERS - 1}, got {told[-1]}; count them from 0"
        try:
            if not shown_name(row.block):
                yield f"{row.where}: block: expected a name, got nothing; name the block"
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
            elif not abs(_number(value)) <= LARGEST:
                text = f"expected a finite number, got {str(value)[:60]}"
                yield f"{row.where}: {name}: {text}; measure it again, or leave the row out"
            elif name not in scores and value < 0:
                yield f"{row.where}: {name}: expected a cost of at least 0, got {value:g}; name a score with --score {name}"


def _units(rows: Sequence[Row], costs: Sequence[str]) -> Iterable[str]:
    """Costs whose size jumps from one layer to another by what separates two units."""
    for name in costs:
        seen: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
        for row in rows:
            if (value := float(row.values[name])) > 0:
                seen[row.kind or row.block, len(row.layers)][row.layers[0]] = value / len(row.layers)
        levels = _levels(list(seen.values()))
        low, high = (choose(levels, key=lambda layer: levels[layer], default=0) for choose in (min, max))
        if levels and levels[high] - levels[low] > math.log(UNITS_APART):
            up_to = [max(values[layer] for values in seen.values() if layer in values) for layer in (low, high)]
            text = f"expected one unit, got up to {up_to[0]:g} at layer {low} and {up_to[1]:g} at layer {high}"
            yield f"{name}: {text}; convert one of them"


def _levels(kinds: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The logarithm of each layer's costs beside those of the same kinds of block elsewhere, given by kind and layer.

    Of its largest cost, where no kind occurs in two layers; a layer that has no kind in common is left out otherwise.
    """
    shared = [values for values in kinds if len(values) > 1]
    found: dict[int, list[float]] = defaultdict(list)
    for values in shared or kinds:
        mean = fmean(map(math.log, values.values())) if shared else 0.0
        for layer, value in values.items():
            found[layer].append(math.log(value) - mean)
    return {layer: median(logs) if shared else max(logs) for layer, logs in found.items()}


def _missing(rows: Sequence[Row]) -> Iterable[str]:
    covered = {layer for row in rows for layer in row.layers}
    gone = sorted(set(range(max(covered) + 1)) - covered)
    if gone:
        listed = ", ".join(map(str, gone[:8])) + (f" and {len(gone) - 8} more" if len(gone) > 8 else "")
        yield f"expected a replacement of every layer up to {max(covered)}, got none of {listed}; measure the parent's block"


def _distinct(rows: Sequence[Row], names: Sequence[str]) -> tuple[list[Row], list[str]]:
    """Rows without repeated ones, and keys that are given twice with different values."""
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


def _parents(rows: Sequence[Row]) -> Iterable[str]:
    seen: dict[int, Row] = {}
    for row in rows:
        if row.parent and len(row.layers) == 1:
            other = seen.setdefault(row.layers[0], row)
            if other is not row:
                text = f"expected one block of the parent's a layer, got {other.block!r} and {row.block!r} at layer {row.layers[0]}"
                yield f"{row.where}: {text}; mark one"


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
