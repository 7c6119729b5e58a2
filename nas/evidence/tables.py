"""Tables of trained models: the evidence base, published files in its convention, tables of the user's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from nas.errors import UsageError
from nas.files.faults import unknown
from nas.files.yaml_source import read
from objectives.evidence.convention import converted
from objectives.evidence.source import EvidenceSource
from objectives.fitting.several_tables import read_tables
from objectives.fitting.sheet import read_sheet
from objectives.fitting.trained_models import MOST_ROWS, Table
from objectives.plugins import documents, normalised
from search_spaces.arrays import AnyArray

SOURCES = "objectives.evidence.sources"


@dataclass(frozen=True, eq=False)
class GroupedTable:
    """A table with its name, whose it is, and which rows may be compared, (n,)."""

    name: str
    laboratory: str
    table: Table
    group: AnyArray


@cache
def sources() -> Mapping[str, EvidenceSource]:
    """The documents of the evidence base by id."""
    return {name: EvidenceSource.model_validate(read(path)[0]) for name, path in documents(SOURCES).items()}


def base() -> list[GroupedTable]:
    """The packaged tables of the evidence base."""
    places = documents(SOURCES)
    return [_grouped(source, places[name].with_suffix(".csv")) for name, source in sources().items() if source.packaged]


def published(given: Sequence[str]) -> list[GroupedTable]:
    """Published files in the convention, each `NAME=FILE` of a source of the evidence base.

    Raises:
        UsageError: an unknown source, or a file that is not the source's.
    """
    found = []
    for item in given:
        name, equals, file = item.partition("=")
        if not equals or normalised(name) not in sources():
            raise UsageError(f"published: {unknown('NAME=FILE of a source', name, sorted(sources()))}")
        source = sources()[normalised(name)]
        try:
            columns = converted(source, Path(file)).columns
        except (OSError, ValueError) as error:
            raise UsageError(str(error)) from None
        group = columns.pop("group")
        found.append(GroupedTable(source.name, source.laboratory, Table(columns, np.arange(len(group))), group))
    return found


def own(paths: Sequence[Path]) -> list[GroupedTable]:
    """Tables of the user's; a column `group` marks which rows may be compared, without it all may.

    Raises:
        UsageError: one that cannot be read.
    """
    try:
        return [GroupedTable(path.stem, "", table := read_tables([path]), _group(path, table)) for path in paths]
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None


def _grouped(source: EvidenceSource, path: Path) -> GroupedTable:
    table = read_tables([path])
    return GroupedTable(source.name, source.laboratory, table, _group(path, table))


def _group(path: Path, table: Table) -> AnyArray:
    """The number of each row's cell in the column `group`, (n,); all alike without one."""
    sheet = read_sheet(path, lambda name: name == "group", MOST_ROWS)
    if "group" not in sheet.header:
        return np.zeros(len(table), dtype=np.int64)
    place = sheet.header.index("group")
    cells = {line: row[place] for line, row in zip(sheet.lines.tolist(), sheet.body, strict=True)}
    return np.unique([cells[line] for line in table.lines.tolist()], return_inverse=True)[1]
