"""Documents: sections of sentences, tables and figures. A command builds one; terminal, page and Markdown render it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Cell = str | float | int | None


@dataclass(frozen=True)
class Column:
    """A column of a table: its name with the unit, how its figures are written, what they mean.

    format: of `format()`, for numbers; text stays as it is, None is the empty cell, NaN and infinity a dash.
    words: the cells are words, to the left, and may break. narrow: what happens on a narrow screen: the column stands below
    its row, or is left out.
    """

    name: str
    unit: str = ""
    format: str = ".4g"
    help: str = ""
    words: bool = False
    narrow: Literal["", "below", "left out"] = ""

    @property
    def head(self) -> str:
        """`loss (nats)`."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def written(self, value: Cell) -> str:
        """A cell as text."""
        if value is None or isinstance(value, str):
            return value or ""
        return format(value, self.format) if math.isfinite(value) else "-"


@dataclass(frozen=True)
class Table:
    """Columns and rows of values; a title; notes that stand below it.

    indices: the architecture of each row on a page that can show it, None of a row without one. matrix: its columns hold
    the same of different things, in few characters, and stand close to each other.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    indices: tuple[int | None, ...] = ()
    matrix: bool = False

    @property
    def header(self) -> tuple[str, ...]:
        """The head of each column."""
        return tuple(column.head for column in self.columns)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The rows as text."""
        return tuple(
            tuple(column.written(value) for column, value in zip(self.columns, row, strict=True)) for row in self.rows
        )


@dataclass(frozen=True)
class Figure:
    """A picture: its name is its file's in the folder `plots`, without the ending; what it shows; PNG for a page that holds it."""

    name: str
    alt: str
    png: bytes = b""


Part = str | Table | Figure  # a part that is text is one sentence, or one line


@dataclass(frozen=True)
class Section:
    """A title and what stands below it; `key` names what it is of a result, for a page that has more to show of it.

    folded: a page shows its title alone until it is opened.
    """

    title: str
    parts: tuple[Part, ...]
    key: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Document:
    """A result: its title, its sections, and the same in numbers, which is the result as JSON."""

    title: str
    sections: tuple[Section, ...]
    data: Any = field(default_factory=dict)

    def section(self, key: str) -> Section:
        """The section of a key."""
        return next(section for section in self.sections if section.key == key)


#: Columns that several commands show. A column that is not here carries no help and holds figures.
SHARED = {
    column.head: column
    for column in (
        Column("architecture", help="the design in words", words=True, narrow="below"),
        *(
            Column(name, words=True, narrow="below")
            for name in ("what it is", "second witness", "architecture in convention")
        ),
        *(Column(name, words=True) for name in ("run", "strategy", "within", "family", "pick", "compared", "device")),
        *(Column(name, words=True) for name in ("binds", "purpose", "model", "remarks")),
        *(Column(name, format=",") for name in ("rows", "models", "different values")),
    )
}


def table_of(
    header: Sequence[str], rows: Sequence[Sequence[Cell]], title: str = "", notes: Sequence[str] = ()
) -> Table:
    """A table whose columns are found by their heads among the shared ones, else hold what their first row holds."""
    return Table(
        tuple(SHARED.get(head) or Column(head) for head in header), tuple(map(tuple, rows)), title, tuple(notes)
    )


def figures(formats: Mapping[str, str]) -> tuple[Column, ...]:
    """Columns of figures, by their heads and formats."""
    return tuple(Column(head, format=written) for head, written in formats.items())


def markdown(document: Document) -> str:
    """The document as Markdown; figures are files in `plots`."""
    blocks = [f"# {document.title}"]
    for section in document.sections:
        blocks += [f"## {section.title}"] if section.title else []
        blocks += _blocks(section.parts)
    return "\n\n".join(blocks) + "\n"


def _blocks(parts: Sequence[Part]) -> Iterator[str]:
    """Paragraphs, tables and pictures; sentences that follow each other are lines of one paragraph."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            lines += [part] if part else []
            continue
        if lines:
            yield "  \n".join(lines)
            lines = []
        yield from markdown_table(part) if isinstance(part, Table) else [f"![{part.alt}](plots/{part.name}.png)"]
    if lines:
        yield "  \n".join(lines)


def markdown_table(table: Table) -> Iterator[str]:
    """A table's title, its rows and its notes, a block each."""
    if table.title:
        yield f"{table.title}."
    rows = [[cell.replace("|", r"\|") for cell in row] for row in (table.header, *table.texts)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    yield "\n".join([lines[0], "|---" * len(table.columns) + "|", *lines[1:]])
    yield from table.notes
