"""The tables that are asked: the evidence base, published files in its convention, tables of the user's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from nas.errors import UsageError
from nas.files.faults import unknown
from nas.files.yaml_source import read
from objectives.evidence.convention import converted
from objectives.evidence.source import EvidenceSource
from objectives.evidence.trainings import Trainings, trainings
from objectives.fitting.several_tables import read_tables
from objectives.fitting.trained_models import Table
from objectives.plugins import documents, normalised
from objectives.table import numbers_or_empty
from search_spaces.arrays import AnyArray, FloatArray

SOURCES = "objectives.evidence.sources"
YOURS = "yours"  # the laboratory of tables that are given


@dataclass(frozen=True, eq=False)
class GroupedTable:
    """A table with its name, whose it is, which rows may be compared, (n,), the unit of its losses, how often each row read its text, (n,),
    the laws that were fitted to it, and why the law evidence claims nothing of it, if so.
    """

    name: str
    laboratory: str
    table: Table
    group: AnyArray
    unit: str = "nats per token"
    epochs: FloatArray | None = None
    fitted: tuple[str, ...] = ()
    outside: str = ""

    @property
    def no_evidence(self) -> bool:
        """Whether the law evidence neither is fitted to it nor claims anything of it: said of it, or losses of an unknown unit."""
        return bool(self.outside) or self.unit == "as published"

    @cached_property
    def trainings(self) -> Trainings:
        """The same as the pooled law reads it."""
        return trainings(
            self.name,
            self.laboratory,
            self.table,
            self.group,
            unit=self.unit,
            epochs=self.epochs,
            outside=self.no_evidence,
        )


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
        group, unique = columns.pop("group"), columns.pop("unique_tokens", None)
        epochs = None if unique is None else columns["tokens"] / unique
        found.append(
            GroupedTable(
                source.name,
                source.laboratory,
                Table(columns, np.arange(len(group))),
                group,
                source.unit,
                epochs,
                source.fitted,
                source.outside,
            )
        )
    return found


def own(paths: Sequence[Path]) -> list[GroupedTable]:
    """Tables of the user's; a column `group` tells which rows may be compared, without it all may.

    Raises:
        UsageError: one that cannot be read.
    """
    try:
        return [_read(path, path.stem, YOURS) for path in paths]
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None


def _grouped(source: EvidenceSource, path: Path) -> GroupedTable:
    return replace(
        _read(path, source.name, source.laboratory), unit=source.unit, fitted=source.fitted, outside=source.outside
    )


def _read(path: Path, name: str, laboratory: str) -> GroupedTable:
    """A table; its column `group` tells rows that may be compared, all without one; `unique_tokens` how often a text was read."""
    table = read_tables([path])
    if table.empty:  # every column may be one that some law reads
        raise ValueError("\n".join(table.empty.values()))
    group = np.zeros(len(table), dtype=np.int64)
    if "group" in table.beside:
        group = np.unique(table.beside["group"], return_inverse=True)[1]
    epochs = None
    if "unique_tokens" in table.beside and table.has("tokens"):
        unique = table.beside["unique_tokens"].tolist()
        epochs = table.feature("tokens") / numbers_or_empty("unique_tokens", unique, table.lines, path)
    return GroupedTable(name, laboratory, table, group, epochs=epochs)
