"""The share of a text that is held out: whole documents, or blocks of them where they are few, in the order of their hashes."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import inf

from nas.export.sources import Document, documents_of

FEW = 20  # documents below which they are cut into blocks, so that a share of them can be held out
BLOCK = 65_536  # bytes


def key(document: Document) -> bytes:
    """The hash of a document's text, by which it is held out or not."""
    return hashlib.sha256(document[1]).digest()


def held_out(units: Iterable[Document], share: float) -> set[bytes]:
    """Hashes of the documents held out: in the order of their hashes, until they are a share of all bytes.

    Equal documents have equal hashes: no text is on both sides.
    """
    sizes: dict[bytes, int] = {}
    for unit in units:
        digest = key(unit)
        sizes[digest] = sizes.get(digest, 0) + len(unit[1])
    wanted, held = share * sum(sizes.values()), set[bytes]()
    for digest in sorted(sizes):
        if wanted <= 0 or len(held) + 1 >= len(sizes):
            break
        held.add(digest)
        wanted -= sizes[digest]
    return held


def units_of(paths: Sequence[str], flag: str, longest: float = inf) -> Iterator[Document]:
    """Documents of several paths; where they are few, and of one that has more than `longest` bytes, blocks of them.

    Raises:
        UsageError: a path without any.
    """
    few = sum(1 for _ in islice(documents_of(paths, flag), FEW)) < FEW
    for name, content in documents_of(paths, flag):
        yield from ((name, part) for part in (blocks(content) if few or len(content) > longest else [content]))


def blocks(content: bytes, size: int = BLOCK) -> Iterator[bytes]:
    """A text in parts of about `size` bytes that end with a line, where lines are shorter, and never inside a character."""
    size = min(size, max(1, len(content) // FEW))
    start = 0
    while start < len(content):
        end = min(start + size, len(content))
        if end < len(content):
            end = content.rfind(b"\n", start, end) + 1 or end
            while end < len(content) and content[end] & 0xC0 == 0x80:
                end += 1
        yield content[start:end]
        start = end
