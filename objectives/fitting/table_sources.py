"""Where rows of trained models come from: the file, and what it calls each row."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from objectives.display_text import LONGEST
from objectives.fitting.columns import bare
from search_spaces.arrays import AnyArray

NAMING = (
    "run_name",
    "name",
    "model",
    "model_name",
    "run",
    "run_id",
    "id",
    "label",
    "hyper_id",
)  # columns that call rows


@dataclass(frozen=True)
class Source:
    """A file that rows come from: its path as typed, if relative, else its name; SHA-256 of its text; rows that are fitted."""

    name: str
    sha256: str
    rows: int


def source_of(path: Path, text: str, rows: int) -> Source:
    """The file of this text, `rows` of which are fitted."""
    name = path.name if path.is_absolute() else str(path)
    return Source(name, hashlib.sha256(text.encode()).hexdigest(), rows)


def row_names(columns: Mapping[str, list[str]]) -> AnyArray | None:
    """What a table calls its rows, (n,), long ones cut; None where no column does."""
    found = [cells for wanted in NAMING for header, cells in columns.items() if bare(header) == wanted and any(cells)]
    return np.array([cell.strip()[:LONGEST] for cell in found[0]], dtype=object) if found else None
