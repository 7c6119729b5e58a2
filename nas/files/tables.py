"""Tables on disk: CSV with full precision, written whole or not at all."""

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nas.errors import PlasError, UsageError
from nas.files.own_files import replacing
from objectives.display_text import cell

BLOCK = 5_000  # rows of a table written at once


def csv_text(columns: Mapping[str, Any], *, header: bool = True) -> str:
    """CSV of equally long columns: repr of float64, whole numbers without a point, NaN empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if header:
        writer.writerow(cell(name) for name in columns)
    writer.writerows(zip(*(_cells(column) for column in columns.values()), strict=True))
    return buffer.getvalue()


def _cells(column: Any) -> list[Any]:
    cells = column.tolist() if hasattr(column, "tolist") else list(column)
    if hasattr(column, "dtype") and column.dtype.kind in "if" and (column == column).all():  # no NaN
        return cells
    return [_written(value) if isinstance(value, (str, float)) else value for value in cells]


def _written(value: str | float) -> str | float:
    if isinstance(value, str):
        return cell(value)
    return "" if math.isnan(value) else value


def refuse_existing(flag: str, path: Path) -> None:
    """Say before the work that a file would be overwritten.

    Raises:
        UsageError: it exists.
    """
    if os.path.exists(path):  # unlike Path.exists also of a name that no file can have
        raise UsageError(f"{flag}: expected a new file, got {path} which exists; name another")


def refuse_used(flag: str, folder: Path) -> None:
    """Say before the work that a folder's files would be overwritten.

    Raises:
        UsageError: it holds some, or is a file.
    """
    if os.path.isdir(folder) and not os.listdir(folder):
        return
    if os.path.lexists(folder):
        held = f"{folder} with files in it" if os.path.isdir(folder) else f"a file {folder}"
        raise UsageError(f"{flag}: expected a new or empty folder, got {held}; name another")


def write(path: Path, content: str | bytes | Iterable[str]) -> None:
    """Replace a file in one step, from text, bytes or blocks of text: a killed process leaves the old one or the new one.

    Raises:
        PlasError: the folder cannot be written.
    """
    blocks = [content] if isinstance(content, (str, bytes)) else content
    try:
        with replacing(path) as file:
            file.writelines(block if isinstance(block, bytes) else block.encode() for block in blocks)
    except OSError as error:
        raise PlasError(
            f"{path}: cannot be written ({error.strerror}); free or change the folder, evaluations are kept"
        ) from None


def write_json(path: Path, content: Any) -> None:
    """Indented JSON, keys in their order; infinities and NaN become null."""
    write(path, json.dumps(finite(content), indent=2, ensure_ascii=False) + "\n")


def finite(content: Any) -> Any:
    """The same content with null for numbers that JSON does not know."""
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
