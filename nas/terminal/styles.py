"""Bold, colour and links: what a terminal shows better, and the same words in plain text everywhere else."""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from nas.terminal.streams import encodable
from objectives.display_text import escaped

if TYPE_CHECKING:
    from rich.console import Console

TITLE, GOOD, DOUBT, BAD, FAINT, COMMAND = "bold", "green", "yellow", "bold red", "dim", "cyan"
DUMB = ("dumb", "unknown")  # values of TERM that stand for terminals without any control codes


class Styled(str):
    """Text with a style of rich's (`bold`, `red`) and the address it links to; anything that builds on it is plain."""

    style: str
    link: str

    def __new__(cls, text: str, style: str = "", link: str = "") -> "Styled":
        made = super().__new__(cls, text)
        made.style, made.link = style, link
        return made


def linked(path: Path, text: str = "") -> Styled:
    """A file's path that opens it where a terminal has links."""
    try:
        address = path.resolve().as_uri()
    except (OSError, ValueError):
        address = ""
    return Styled(text or str(path), link=address)


def is_live(stream: Any) -> bool:
    """Whether lines of a stream can be rewritten."""
    return bool(stream.isatty()) and os.environ.get("TERM") not in DUMB


def is_coloured(stream: Any) -> bool:
    """Whether a stream gets colours: a terminal does; NO_COLOR and TERM=dumb forbid, FORCE_COLOR forces."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") in DUMB:
        return False
    forced = os.environ.get("FORCE_COLOR")
    return forced not in ("", "0") if forced is not None else bool(stream.isatty())


def shown(part: str, stream: Any) -> str:
    """One line's text as a stream can write it, nothing in it obeyed; its style is kept."""
    text = encodable(escaped(part), stream)
    return Styled(text, part.style, part.link) if isinstance(part, Styled) else text


def write_line(stream: TextIO, parts: Sequence[str]) -> None:
    """Parts of one line that are `shown`, styled where the stream has colours."""
    if not any(isinstance(part, Styled) for part in parts) or not is_coloured(stream):
        stream.write("".join(parts) + "\n")
        return
    from rich.text import Text

    line = Text(end="\n")
    for part in parts:
        line.append(str(part), _style(part) or None)
    _console(stream).print(line, soft_wrap=True)


def _style(part: str) -> str:
    if not isinstance(part, Styled):
        return ""
    link = part.link if os.environ.get("TERM") != "linux" else ""  # the console's driver prints a link's address
    return f"{part.style} link {link}".strip() if link else part.style


@cache
def _console(stream: TextIO) -> "Console":
    from rich.console import Console

    return Console(file=stream, force_terminal=True, highlight=False, markup=False, emoji=False)
