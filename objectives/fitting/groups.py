"""Which rows of tables of trained models share a level: those of one cell in the column `group`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from objectives.fitting.columns import is_known
from objectives.fitting.sheet import read_sheet
from objectives.fitting.trained_models import MOST_ROWS, Table
from search_spaces.arrays import AnyArray

COLUMN = "group"


def groups_of(paths: Sequence[Path], table: Table, renamed: Sequence[str] = ()) -> AnyArray:
    """The cell of each row's column `group`, "" where its file has none, (n,); `paths` are the files that the table was read from."""
    cells: dict[str, str] = {}
    for path, source in zip(paths, table.sources, strict=True):
        sheet = read_sheet(path, is_known, MOST_ROWS)
        asked = dict(pair.partition("=")[::2] for pair in renamed)
        header = [asked.get(name, name) for name in sheet.header]
        if COLUMN in header:
            named = f"{source.name}:" if len(paths) > 1 else ""
            place = header.index(COLUMN)
            cells |= {f"{named}{line}": row[place] for line, row in zip(sheet.lines, sheet.body, strict=True)}
    return np.array([cells.get(str(line), "") for line in table.lines], dtype=object)
