"""The texts of `tokenize`: documents that are UTF-8, a tenth of them held out, their bytes and hash."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nas.errors import UsageError
from nas.export.held_out import BLOCK, held_out, key, units_of
from nas.export.sources import STDLIB, Document, documents_of
from objectives.display_text import LONGEST, escaped
from objectives.token_curve import Source

FLAG = "texts"
HELD_OUT = 0.1  # share of the bytes


@dataclass(frozen=True, eq=False)
class Texts:
    """Paths as given, what is known of them, and the hashes of what is held out."""

    paths: Sequence[str]
    source: Source
    held: frozenset[bytes]
    total_bytes: int
    held_bytes: int
    held_characters: int

    @property
    def trained_bytes(self) -> int:
        """Bytes of the part that is trained on."""
        return self.total_bytes - self.held_bytes

    def parts(self) -> Iterator[tuple[str, int, bool]]:
        """Every document or block: its text, its bytes, whether it is held out."""
        for unit in units_of(self.paths, FLAG, BLOCK):
            yield decoded(unit), len(unit[1]), key(unit) in self.held


def read(paths: Sequence[str]) -> Texts:
    """Texts that have been read once, with the held-out tenth chosen.

    Raises:
        UsageError: nothing there, no text, or nothing to hold out.
    """
    digest, count, size = hashlib.sha256(), 0, 0
    for document in documents_of(paths, FLAG):
        decoded(document)
        digest.update(document[1])
        count, size = count + 1, size + len(document[1])
    held = frozenset(held_out(units_of(paths, FLAG, BLOCK), HELD_OUT))
    kept = [unit for unit in units_of(paths, FLAG, BLOCK) if key(unit) in held]
    if not kept:
        raise UsageError(f"{FLAG}: expected a text of which a tenth can be held out, got one piece; give more text")
    names = [path if path == STDLIB else named(path) for path in paths]
    source = Source(texts=names, documents=count, bytes=size, sha256=digest.hexdigest())
    characters = sum(len(decoded(unit)) for unit in kept)
    return Texts(paths, source, held, size, sum(len(content) for _, content in kept), characters)


def named(path: str) -> str:
    """The last part of a path, which says nothing of the machine."""
    return escaped(Path(path).name or Path(path).resolve().name)[:LONGEST]


def decoded(document: Document) -> str:
    """The text of a document.

    Raises:
        UsageError: it is binary, or no UTF-8.
    """
    name, content = document
    if (place := content.find(b"\0")) >= 0:
        raise UsageError(f"{name}: expected UTF-8 text, got a NUL byte at {place:,} as in binary files; leave it out")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name}: expected UTF-8 text, got {error.reason} at byte {error.start:,}; convert it"
        ) from None
