"""Documents of training data: text files, folders, patterns, saved data sets, Python's own standard library."""

import glob
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from nas.errors import UsageError
from nas.export.saved_sets import is_saved_set, rows_of
from objectives import outside

STDLIB = "stdlib"
STDLIB_LICENCE = "PSF-2.0"
LEFT_OUT = {"test", "tests", "idle_test", "encodings", "site-packages", "dist-packages", "__pycache__"}
MOST_BYTES = 4_000 * outside.MB  # of a text, which is read whole
SNIFFED = 8192  # bytes in which a NUL tells a file that is no text

Document = tuple[str, bytes]  # where it comes from, its bytes


def documents(given: str, flag: str = "--data") -> Iterator[Document]:
    """The documents of one path, in an order that is the same everywhere; empty ones are left out.

    A file is one document, a row of a saved data set another.

    Raises:
        UsageError: nothing there, nothing readable.
    """
    path = Path(given)
    try:
        if given == STDLIB and not path.exists():
            yield from _files(Path(sysconfig.get_path("stdlib")), ".py")
        elif is_saved_set(path):
            yield from rows_of(path, flag)
        elif path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield from ((given, content) for content in [outside.content(path, MOST_BYTES)] if content)
        else:
            yield from _matching(given, flag)
    except OSError as error:
        raise UsageError(f"{flag}: {given}: expected readable text, got {error.strerror}; correct the path") from None


def _matching(given: str, flag: str) -> Iterator[Document]:
    found = sorted(name for name in glob.glob(given, recursive=True) if os.path.isfile(name))
    if not found:
        raise UsageError(
            f"{flag}: expected a text file, a folder, a pattern, a saved data set or {STDLIB}, got {given} with nothing "
            "there; correct the path"
        )
    for name in found:
        if content := outside.content(Path(name), MOST_BYTES):
            yield name, content


def _files(folder: Path, ending: str = "") -> Iterator[Document]:
    """Text files below a folder by their relative names; hidden ones and files with a NUL are left out."""
    for path in sorted(folder.rglob(f"*{ending}"), key=lambda path: path.relative_to(folder).as_posix()):
        parts = path.relative_to(folder).parts
        if any(part.startswith(".") for part in parts) or (ending and LEFT_OUT & set(parts)) or not path.is_file():
            continue
        content = outside.content(path, MOST_BYTES)
        if content and b"\0" not in content[:SNIFFED]:
            yield "/".join(parts), content
