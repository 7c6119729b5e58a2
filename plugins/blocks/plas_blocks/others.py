"""Answers of others in a file: Puzzletron's solutions.json, or a table of the block of each layer."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.files.tables import csv_text, write
from objectives import outside
from objectives.display_text import read_cell
from objectives.table import read_sheet
from plas_blocks.files import layers_of, text_of
from plas_blocks.library import Library

Named = tuple[str, list[int]]


def read_answers(path: Path, library: Library) -> list[Named]:
    """Mixtures by name, as rows of the library.

    Raises:
        UsageError: no such file, another format, layers left out, blocks that the library does not have.
    """
    text = text_of(path, "answers to compare with", "name solutions.json or a CSV")
    places = _places(library)
    told = _solutions(path, text) if path.suffix.lower() == ".json" else _table(path)
    if not told:
        raise UsageError(f"{path}: expected answers to compare with, got none; write a row a layer")
    return [(name, _rows(f"{path}: {name}", parts, places, library)) for name, parts in told]


def write_answers(path: Path, answers: Sequence[Named], library: Library) -> None:
    """The same mixtures as a table of answer, layer, block.

    Raises:
        PlasError: the folder cannot be written.
    """
    rows = [(name, library.written_layers(row), library.blocks[row]) for name, chosen in answers for row in chosen]
    write(path, csv_text(dict(zip(("answer", "layer", "block"), zip(*rows, strict=True), strict=True))))


Part = tuple[tuple[int, ...], str]  # layers, and what the block is


def _places(library: Library) -> dict[Part, int]:
    found: dict[Part, int] = {}
    for row in reversed(range(len(library))):
        layers = tuple(range(int(library.first[row]), int(library.first[row] + library.length[row])))
        found |= {(layers, library.kinds[row]): row, (layers, library.blocks[row]): row}
    return found


def _rows(where: str, parts: Sequence[Part], places: Mapping[Part, int], library: Library) -> list[int]:
    covered = sorted(layer for layers, _ in parts for layer in layers)
    if covered != list(range(library.layers)):
        raise UsageError(
            f"{where}: expected one block for each of {library.layers} layers, got {len(covered)}; complete it"
        )
    for layers, kind in parts:
        if (layers, kind) not in places:
            raise UsageError(
                f"{where}: layer {layers[0]}: expected a block of the library, got {kind[:80]!r}; it has none such"
            )
    return [places[part] for part in sorted(parts)]


def _solutions(path: Path, text: str) -> list[tuple[str, list[Part]]]:
    try:
        content = outside.parsed(text)
        listed = content if isinstance(content, list) else [content]
        return [(f"solution {i}", [_part(each) for each in one["chosen_replacements"]]) for i, one in enumerate(listed)]
    except (ValueError, LookupError, TypeError):
        raise UsageError(
            f"{path}: expected Puzzletron's solutions.json with chosen_replacements, got another file; name that one"
        ) from None


def _part(each: Mapping[str, Any]) -> Part:
    config = each["block_config"] if "block_config" in each else each["child_block_configs"][0]
    only_name = isinstance(config, dict) and set(config) == {"block"}
    kind = str(config["block"]) if only_name else json.dumps(config, sort_keys=True)
    layers = tuple(each["parent_layer_indices"])
    if not all(type(layer) is int for layer in layers):
        raise TypeError
    return layers, kind


def _table(path: Path) -> list[tuple[str, list[Part]]]:
    """Rows of answer, layer, block; without the column answer they are one."""
    try:
        sheet = read_sheet(path)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if not {"layer", "block"} <= {*sheet.header}:
        raise UsageError(
            f"{path}: expected the columns answer, layer (7, or 7-9) and block, got others; correct the file"
        )
    answers: dict[str, list[Part]] = {}
    for row in sheet.rows:
        part = (layers_of(f"{path}", row["layer"]), read_cell(row["block"]))
        answers.setdefault(read_cell(row.get("answer") or "answer"), []).append(part)
    return list(answers.items())
