"""The floor under all printing: streams that hold any character and never end a command in a traceback.

A character that a stream's encoding lacks is written in plain ones. A closed stream is none. What
cannot be written beside the result is dropped; a result that cannot be written ends the command with
one line and exit code 1, a reader that went away (`| head`) with 0.
"""

import codecs
import io
import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

PLAIN = {
    "│": "|",
    "┤": "|",
    "└": "+",
    "─": "-",
    "·": ".",
    "…": "...",
    "−": "-",
    "–": "-",
    "×": "x",
    "±": "+-",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "→": "->",
    "∝": "~",
    "√": "sqrt",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "◆": "#",
    "◇": "%",
    "▲": "A",
    "△": "^",
    "■": "@",
    "□": "B",
}
HANDLER = "plas_plain"


class LostOutputError(Exception):
    """The result cannot be written to standard output."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"standard output: expected a stream that takes the result, got {error.strerror or error}; "
            "free space, or send it elsewhere"
        )


class ReaderLeftError(Exception):
    """Nobody reads standard output any more; not a BrokenPipeError, which the parser would turn into exit code 1."""


class Result(io.TextIOWrapper):
    """Standard output: a failing write says so."""

    def write(self, text: str) -> int:
        """Write, or raise.

        Raises:
            LostOutputError: the stream is full or broken.
            ReaderLeftError: it is a pipe that was closed.
        """
        try:
            return super().write(text)
        except OSError as error:
            raise unwritten(error) from None

    def flush(self) -> None:
        """Flush, or raise as `write` does."""
        try:
            super().flush()
        except OSError as error:
            raise unwritten(error) from None


def unwritten(error: OSError) -> Exception:
    """What a failing write to standard output is raised as."""
    return ReaderLeftError() if isinstance(error, BrokenPipeError) else LostOutputError(error)


class Beside(io.TextIOWrapper):
    """Standard error: what cannot be written is dropped."""

    def write(self, text: str) -> int:
        """Write what can be written."""
        try:
            return super().write(text)
        except OSError:
            send_nowhere(self)
            return len(text)

    def flush(self) -> None:
        """Flush what can be written."""
        try:
            super().flush()
        except OSError:
            send_nowhere(self)


def send_nowhere(stream: io.TextIOWrapper) -> None:
    """Let a stream's descriptor drop everything, what is still buffered too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def plain(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that an encoding lacks; a codec's error handler."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_plain(c) for c in error.object[error.start : error.end]), error.end


def _plain(character: str) -> str:
    if character in PLAIN:
        return PLAIN[character]
    if unicodedata.combining(character):
        return ""
    base = unicodedata.normalize("NFKD", character)[0]
    name = unicodedata.name(character, "")
    if base.isascii():
        return base
    return name.split()[3].lower() if name.startswith("GREEK SMALL LETTER") else "?"


codecs.register_error(HANDLER, plain)


@contextmanager
def terminal() -> Iterator[None]:
    """Run a command over streams that hold; a stream that a host program put in place is left alone."""
    _hold_descriptors()
    if sys.stdout is None or sys.stdout is sys.__stdout__:
        sys.stdout = _over(sys.stdout, 1, Result)
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr = _over(sys.stderr, 2, Beside)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except (LostOutputError, ReaderLeftError) as error:
        if isinstance(sys.stdout, Result):
            send_nowhere(sys.stdout)
        if isinstance(error, ReaderLeftError):
            raise SystemExit(0) from None
        sys.stderr.write(f"{error}\n")
        raise SystemExit(1) from None


def _hold_descriptors() -> None:
    """Keep 0, 1 and 2 taken where they are closed, so that no file opened later gets what is printed."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free one


def _over(stream: object, descriptor: int, kind: type[io.TextIOWrapper]) -> io.TextIOWrapper:
    """A stream of a kind over an open one's bytes, or over nothing where it was closed."""
    if not isinstance(stream, io.TextIOWrapper):
        return kind(open(descriptor, "wb", closefd=False), encoding="utf-8", errors=HANDLER)
    lines = descriptor == 2 or stream.line_buffering
    at_once = stream.write_through  # python -u and PYTHONUNBUFFERED, under which no stream buffers lines
    return kind(stream.buffer, encoding=stream.encoding, errors=HANDLER, line_buffering=lines, write_through=at_once)


def encodable(text: str, stream: object) -> str:
    """Text as a stream's encoding holds it: what it lacks is written in plain characters, before lines are laid out."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return (
        text
        if text.isascii() or encoding.lower().startswith("utf")
        else text.encode(encoding, HANDLER).decode(encoding)
    )


def holds_unicode() -> bool:
    """Whether standard output takes any character as it is."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
