"""Lines of one screen: sentences wrapped, columns aligned, names cut."""

import textwrap
from collections.abc import Callable, Sequence

WIDTH, HEIGHT = 80, 40


def wrapped(text: str) -> list[str]:
    """A sentence on lines of the screen's width, further ones indented."""
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int, last: bool, gap: int) -> list[str]:
    """Aligned columns `gap` apart: the first `left` to the left, and the last one where `last` says so."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [
            cell.ljust(width) if i < left or (last and i == len(header) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + (" " * gap).join(cells).rstrip())
    return lines


def fitted(header: Sequence[str], rows: Sequence[Sequence[str]], cutter: Callable[[str, int], str]) -> list[str]:
    """Columns of at most the screen's width: the second is cut by `cutter`, the last at its end."""
    fixed = [[*row[:-1], cut_end(row[-1], 40)] for row in rows]
    others = sum(max(len(row[i]) for row in (header, *fixed)) + 2 for i in range(len(header)) if i != 1)
    most = max(WIDTH - 2 - others, 12)
    shown = [[cutter(cell, most) if i == 1 else cell for i, cell in enumerate(row)] for row in fixed]
    return columns(header, shown, left=2, last=True, gap=2)


def cut(text: str, most: int) -> str:
    """A text of at most so many characters, its middle left out."""
    return text if len(text) <= most else f"{text[: (most - 1) // 2]}…{text[len(text) - most // 2 :]}"


def cut_end(text: str, most: int) -> str:
    """A text of at most so many characters, its end left out."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
