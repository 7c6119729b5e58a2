"""Documents on a terminal. Their tables fit the screen: what has no room stands below its row, wraps in its column, or follows in a second block."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from nas.document.document import Document, Section, Table
from nas.terminal.console import Line, say, say_json, sentence, write
from nas.terminal.screen_text import FAINT, TITLE, Styled, cells, columns, padded, shown, wrapped

ROOM = 20  # columns in which a text may wrap
SCREENS = 100  # lines of two screens
GAP = 2  # spaces between columns, but those of a matrix
BELOW = ("architecture",)
SAID = ("second witness",)  # columns whose cells say themselves what they are

INDENT = "  "  # of what stands below a title, and of tables
NO_ROOM = "No room here for {}: a wider screen or --json has all"

Row = Sequence[str]


def show(document: Document, *, as_json: bool = False, verbose: bool = True) -> None:
    """Print a document: each section's title, and its parts below it; or its data. Figures are files, which a terminal does not show.

    Not verbose: of sections that are folded as many as two screens hold, and the names of the others.
    """
    if as_json:
        say_json(document.data)
        return
    lines, left = document_lines(document), list[str]()
    for section in reversed(document.sections):
        if not verbose and section.folded and len(lines) > SCREENS:
            document = replace(document, sections=tuple(each for each in document.sections if each is not section))
            left.insert(0, section.title)
            lines = [*document_lines(document), [], *sentence(f"With --verbose: {'; '.join(left)}")]
    write(lines)


def document_lines(document: Document) -> list[Line]:
    """A document as lines that fit the screen, sections apart."""
    return [line for section in document.sections for line in ([], *section_lines(section))][1:]


def section_lines(section: Section) -> list[Line]:
    """A section as lines that fit the screen."""
    lines = sentence(Styled(section.title, TITLE)) if section.title else []
    for part in section.parts:
        if isinstance(part, str):
            lines += sentence(f"{INDENT}{part}" if section.title and part else part)
        elif isinstance(part, Table):
            lines += table_lines(part)
    return lines


def table_lines(of: Table) -> list[Line]:
    """A table as lines that fit the screen: its title, its rows, its notes."""
    below, spare = ([c.head for c in of.columns if c.narrow == where] for where in ("below", "left out"))
    words, gap = [c.head for c in of.columns if c.words], 1 if of.matrix else GAP
    lines, dropped = fitted(of.header, of.texts, _to_left(of), below=below, spare=spare[::-1], words=words, gap=gap)
    lines = (sentence(Styled(of.title, TITLE)) if of.title else []) + lines
    notes = [*of.notes, *([NO_ROOM.format(", ".join(dropped))] if dropped else [])]
    return lines + [line for note in notes for line in sentence(f"{INDENT}{note}")]


def _to_left(of: Table) -> int:
    """How many columns stand to the left and are repeated: the first ones of words, else the first one of text."""
    words = len(list(takewhile(lambda column: column.words, of.columns)))
    return words or int(not of.rows or isinstance(of.rows[0][0], str))


def table(
    header: Row, rows: Sequence[Row], left: int = 1, *, below: Sequence[str] = BELOW, spare: Sequence[str] = ()
) -> None:
    """Print aligned columns, as `fitted` lays them out, and name those that are left out."""
    lines, dropped = fitted(header, rows, left, below=below, spare=spare)
    write(lines)
    say_dropped(dropped)


def say_dropped(dropped: Sequence[str]) -> None:
    """Which columns had no room."""
    if dropped:
        say(Styled(INDENT + NO_ROOM.format(", ".join(dropped)), FAINT))


def fitted(
    header: Row,
    rows: Sequence[Row],
    left: int = 1,
    *,
    below: Sequence[str] = BELOW,
    spare: Sequence[str] = (),
    words: Sequence[str] = BELOW,
    gap: int = GAP,
) -> tuple[list[Line], list[str]]:
    """Lines of aligned columns, the first `left` to the left and the last where it is text, and which are left out.

    On a screen without room for all, the columns named in `below` stand below their row, as many of them as must, in
    that order; then `spare` columns are left out, in that order; then the last column wraps, and the first; then the
    columns go into blocks that repeat the first `left`.
    """
    width, dropped = columns(sys.stdout), list[str]()
    content = [[shown(cell, sys.stdout) for cell in row] for row in (header, *rows)]
    for name in (name for name in spare if name in header):
        if _total(_without(content, [*dropped, *below])) <= width:
            break
        dropped.append(name)
    return list(laid_out(_without(content, dropped), width, left, below, words, gap)), dropped


def laid_out(
    content: Sequence[Row], width: int, left: int, below: Sequence[str], words: Sequence[str] = BELOW, gap: int = GAP
) -> Iterator[Line]:
    """Lines of a table, header first, no wider than `width` where single words are not."""
    header, lowered = list(content[0]), list[str]()
    for name in (name for name in below if name in header):
        if _total(_without(content, lowered)) <= width:
            break
        lowered.append(name)
    under = [_under(header, row, lowered) for row in content[1:]]
    for block in _blocks(_without(content, lowered), width, left, gap):
        text = block[0][-1] in words or (gap == GAP and any(_is_text(row[-1]) for row in block[1:]))
        yield from _block(block, width, {*range(left), *([len(block[0]) - 1] if text else [])}, under, gap)
        under = []


def _total(content: Sequence[Row], gap: int = GAP) -> int:
    return len(INDENT) + sum(_widths(content)) + gap * (len(content[0]) - 1)


def _widths(content: Sequence[Row]) -> list[int]:
    return [max(cells(row[i]) for row in content) for i in range(len(content[0]))]


def _without(content: Sequence[Row], names: Sequence[str]) -> list[list[str]]:
    kept = [i for i, name in enumerate(content[0]) if name not in names]
    return [[row[i] for i in kept] for row in content]


def _under(header: list[str], row: Row, lowered: list[str]) -> list[Line]:
    """Lines below a row: the first lowered column as it is, the others with their names, what is several words on a line of its own."""
    found = [(name, row[header.index(name)]) for name in lowered]
    named = [cell if not i or name in SAID else f"{name} {cell}" for i, (name, cell) in enumerate(found) if cell]
    alone = [text for text in named if ", " in text]
    figures = ", ".join(text for text in named if text not in alone)
    return [["    ", text] for text in (*alone, figures) if text]


def _blocks(content: Sequence[Row], width: int, left: int, gap: int) -> Iterator[Sequence[Row]]:
    """Tables that fit, by columns; one column besides the first ones is always taken."""
    first, count = left, len(content[0])
    while True:
        end = min(first + 1, count)
        while end < count and _least(_columns(content, left, first, end + 1), gap) <= width:
            end += 1
        yield _columns(content, left, first, end)
        if end == count:
            return
        first = end


def _columns(content: Sequence[Row], left: int, first: int, end: int) -> list[list[str]]:
    return [[*row[:left], *row[first:end]] for row in content]


def _least(content: Sequence[Row], gap: int) -> int:
    """The columns that a table takes when its first and last column wrap."""
    return _total(content, gap) - sum(_slack(content, place) for place in {0, len(content[0]) - 1})


def _slack(content: Sequence[Row], place: int) -> int:
    """By how much wrapping may narrow a column."""
    longest = max(cells(word) for row in content for word in row[place].split(" "))
    return max(_widths(content)[place] - max(longest, ROOM), 0)


def _block(
    content: Sequence[Row], width: int, to_left: set[int], under: Sequence[Sequence[Line]], gap: int
) -> Iterator[Line]:
    widths = _fitting(content, width, gap)
    for number, row in enumerate(content):
        styled = [Styled(cell, TITLE) for cell in row] if number == 0 else row
        yield from _row(styled, widths, to_left, gap)
        for line in under[number - 1] if number and under else ():
            yield from wrapped(line, width)


def _is_text(cell: str) -> bool:
    return bool(cell) and not cell.lstrip("+-−(")[:1].isdigit()


def _fitting(content: Sequence[Row], width: int, gap: int) -> list[int]:
    """Widths of columns, the last and then the first narrowed to the screen."""
    widths, over = _widths(content), _total(content, gap) - width
    for place in dict.fromkeys((len(widths) - 1, 0)):
        narrower = min(max(over, 0), _slack(content, place))
        widths[place], over = widths[place] - narrower, over - narrower
    return widths


def _row(row: Row, widths: list[int], to_left: set[int], gap: int) -> Iterator[Line]:
    """The lines of one row: more than one where a cell wraps."""
    columns_of = [_cell(cell, width) for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, columns_of))):
        line: Line = []
        for i, (lines, width) in enumerate(zip(columns_of, widths, strict=True)):
            cell = lines[number] if number < len(lines) else ""
            line += [" " * gap if i else INDENT, *padded(cell, width, left=i in to_left)]
        yield _trimmed(line)


def _cell(cell: str, width: int) -> list[str]:
    """A cell's lines."""
    if cells(cell) <= width:
        return [cell]
    return ["".join(line).strip() for line in wrapped([cell], width)]


def _trimmed(line: Line) -> Line:
    while line and not line[-1].strip():
        line = line[:-1]
    return line
