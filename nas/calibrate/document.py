"""A file from outside: its text, and its content as JSON, lines of JSON or CSV; never executed, never too large."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from objectives import outside
from objectives.table import decoded, sheet_of

MOST_BYTES = 32_000_000
PAGE = "see docs/calibrate.md"


@dataclass(frozen=True, eq=False)
class Document:
    """A file's name and text."""

    path: Path
    text: str

    @cached_property
    def json(self) -> Any:
        """The content as JSON, None where it is none."""
        return _json(self.text) if self.text.lstrip()[:1] in ("{", "[") else None

    @cached_property
    def objects(self) -> list[Mapping[str, Any]]:
        """Objects of a JSON array, one object alone, or those of lines of JSON among others; empty where there are none."""
        if self.json is None:
            found = [_json(line) for line in self.text.splitlines() if line.startswith("{")]
        else:
            found = self.json if isinstance(self.json, list) else [self.json]
        return found if all(isinstance(each, dict) for each in found) else []

    @cached_property
    def header(self) -> tuple[str, ...]:
        """The column names of a CSV file; any first line where it is none."""
        first = next((line for line in self.text.splitlines() if line.strip()), "")
        try:
            return tuple(name.strip() for name in next(csv.reader([first], strict=True), ()))
        except csv.Error:
            return ()

    @cached_property
    def table(self) -> list[dict[str, str]]:
        """Rows of a CSV file by column name.

        Raises:
            UsageError: no such table.
        """
        try:
            return sheet_of(self.path, self.text).rows
        except ValueError as error:
            raise UsageError(str(error)) from None


def _json(text: str) -> Any:
    try:
        return outside.parsed(text)
    except ValueError:
        return None


def document(path: Path) -> Document:
    """A file as text.

    Raises:
        UsageError: not readable, not text, or too large.
    """
    try:
        text = decoded(outside.content(path, MOST_BYTES)).replace("\x00", "")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "bytes that are no UTF-8 text"
        raise UsageError(f"{path}: expected a CSV file or a log, got {reason}; {PAGE}") from None
    return Document(path, text)
