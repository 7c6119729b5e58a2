"""Documents of training data: text files, rows of .jsonl, folders, patterns, saved data sets, Python's own standard library."""

import glob
import os
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from nas.errors import UsageError
from nas.export.saved_sets import is_saved_set, rows_of
from objectives import outside

STDLIB = "stdlib"
STDLIB_LICENCE = "PSF-2.0"
LEFT_OUT = {"test", "tests", "idle_test", "encodings", "site-packages", "dist-packages", "__pycache__"}
MOST_BYTES = 4_000 * outside.MB  # of a text, which is read whole
SNIFFED = 8192  # bytes in which a NUL tells a file that is no text
ROWS, TEXT = ".jsonl", "text"

Document = tuple[str, bytes]  # where it comes from, its bytes


def documents(given: str, flag: str = "--data") -> Iterator[Document]:
    """The documents of one path, in an order that is the same everywhere; empty ones are left out.

    A file is one document; a row of a saved data set is one, and the `text` of a line of a .jsonl file.

    Raises:
        UsageError: nothing there, nothing readable.
    """
    path = Path(given)
    try:
        if given == STDLIB and not path.exists():
            yield from _files(Path(sysconfig.get_path("stdlib")), flag, ".py")
        elif is_saved_set(path):
            yield from rows_of(path, flag)
        elif path.is_dir():
            yield from _files(path, flag)
        elif path.is_file():
            yield from _in_file(path, given, flag)
        else:
            yield from _matching(given, flag)
    except OSError as error:
        raise UsageError(f"{flag}: {given}: expected readable text, got {error.strerror}; correct the path") from None


def documents_of(paths: Sequence[str], flag: str) -> Iterator[Document]:
    """The documents of several paths.

    Raises:
        UsageError: a path without any.
    """
    for path in paths:
        empty = True
        for document in documents(path, flag):
            empty = False
            yield document
        if empty:
            raise UsageError(f"{flag}: expected text, got nothing but empty files in {path}; name other data")


def _matching(given: str, flag: str) -> Iterator[Document]:
    found = sorted(name for name in glob.glob(given, recursive=True) if os.path.isfile(name))
    if not found:
        raise UsageError(
            f"{flag}: expected a text file, a folder, a pattern, a saved data set or {STDLIB}, got {given} with nothing "
            "there; correct the path"
        )
    for name in found:
        yield from _in_file(Path(name), name, flag)


def _files(folder: Path, flag: str, ending: str = "") -> Iterator[Document]:
    """Text files below a folder by their relative names; hidden ones and files with a NUL are left out."""
    for path in sorted(folder.rglob(f"*{ending}"), key=lambda path: path.relative_to(folder).as_posix()):
        parts = path.relative_to(folder).parts
        if any(part.startswith(".") for part in parts) or (ending and LEFT_OUT & set(parts)) or not path.is_file():
            continue
        if b"\0" not in outside.beginning(path, SNIFFED):
            yield from _in_file(path, "/".join(parts), flag)


def _in_file(path: Path, name: str, flag: str) -> Iterator[Document]:
    """The documents of a file: its content, or the rows of a .jsonl file by their lines."""
    content = outside.content(path, MOST_BYTES)
    if path.suffix != ROWS:
        yield from [(name, content)] if content else []
        return
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip() and (text := _text_of(line, f"{flag}: {name}:{number}")):
            yield f"{name}:{number}", text


def _text_of(line: bytes, where: str) -> bytes:
    """The text of a row of a .jsonl file.

    Raises:
        UsageError: the row has none.
    """
    try:
        row = outside.parsed(line.decode("utf-8-sig"))
        if isinstance(row, dict) and isinstance(row.get(TEXT), str):
            return str(row[TEXT]).encode()
        found = f"an object with {', '.join(map(str, row))[:80] or 'nothing'}" if isinstance(row, dict) else "none"
    except ValueError as error:
        found = "no UTF-8 text" if isinstance(error, UnicodeError) else "no JSON"
    raise UsageError(f'{where}: expected an object with "{TEXT}", got {found}; correct the row, or name other data')
