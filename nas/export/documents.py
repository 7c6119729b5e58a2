"""Documents of training data, and the share of them that is held out.

Sources are text files, rows of .jsonl, folders, patterns, data sets that Hugging Face's `datasets` saved (Arrow), Parquet files and
Python's own standard library. Held out are whole documents, or blocks of them where they are few, in the order of their hashes.
"""

import glob
import hashlib
import os
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from objectives import outside

STDLIB = "stdlib"
STDLIB_LICENCE = "PSF-2.0"
LEFT_OUT = {"test", "tests", "idle_test", "encodings", "site-packages", "dist-packages", "__pycache__"}
MOST_BYTES = 4_000 * outside.MB  # of a text, which is read whole
SNIFFED = 8192  # bytes in which a NUL tells a file that is no text
ROWS, TEXT = ".jsonl", "text"

Document = tuple[str, bytes]  # where it comes from, its bytes
COLUMN = "text"
ENDINGS = (".arrow", ".parquet")
STATE, SPLITS = "state.json", "dataset_dict.json"
MOST_SET_BYTES = 1_000_000 * outside.MB
PART = "train"  # of a data set that is saved in parts
FEW = 20  # documents below which they are cut into blocks, so that a share of them can be held out
BLOCK = 65_536  # bytes


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
    names = sorted(name for name in glob.glob(given, recursive=True) if os.path.isfile(name))
    if not names:
        raise UsageError(
            f"{flag}: expected a text file, a folder, a pattern, a saved data set or {STDLIB}, got {given} with nothing "
            "there; correct the path"
        )
    for name in names:
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
        got = f"an object with {', '.join(map(str, row))[:80] or 'nothing'}" if isinstance(row, dict) else "none"
    except ValueError as error:
        got = "no UTF-8 text" if isinstance(error, UnicodeError) else "no JSON"
    raise UsageError(f'{where}: expected an object with "{TEXT}", got {got}; correct the row, or name other data')


def is_saved_set(path: Path) -> bool:
    """Whether a path is a saved data set: an Arrow or Parquet file, or a folder with one or with its description."""
    if path.is_file():
        return path.suffix in ENDINGS
    return path.is_dir() and (
        (path / SPLITS).is_file() or (path / STATE).is_file() or any(p.suffix in ENDINGS for p in path.iterdir())
    )


def rows_of(path: Path, flag: str) -> Iterator[tuple[str, bytes]]:
    """The rows of the column `text`, in order.

    Raises:
        UsageError: pyarrow is missing, no such column, rows in another order than the files'.
    """
    if find_spec("pyarrow") is None:
        raise UsageError(f"{flag}: expected pyarrow to read {path}, got none; pip install pyarrow, or give text files")
    for file in _set_files(path, flag):
        number = 0
        for batch in _batches(file):
            if COLUMN not in batch.schema.names:
                names = ", ".join(batch.schema.names)
                raise UsageError(
                    f"{flag}: expected a column {COLUMN} in {file}, got {names}; save the data set with one"
                )
            for text in batch.column(COLUMN).to_pylist():
                number += 1
                if text:
                    yield f"{file.name}:{number}", str(text).encode()


def _set_files(path: Path, flag: str) -> list[Path]:
    """The files of a data set in order; of one that is saved in parts, those of its training part."""
    if path.is_file():
        return [path]
    if (path / SPLITS).is_file():
        if not (path / PART).is_dir():
            raise UsageError(f"{flag}: expected a part {PART} in {path}, got none; name the folder of a part")
        path = path / PART
    if not (path / STATE).is_file():
        return sorted(p for p in path.iterdir() if p.suffix in ENDINGS)
    try:
        state = outside.json_of(path / STATE, outside.MB)
        names = [Path(entry["filename"]).name for entry in state["_data_files"]]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{flag}: expected a saved data set in {path}, got a garbled {STATE} ({error}); save it again"
        ) from None
    if state.get("_indices_data_files"):
        raise UsageError(
            f"{flag}: expected rows in their files' order in {path}, got indices; flatten_indices() before saving"
        )
    return [path / name for name in names]


def _batches(file: Path) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet

    try:
        outside.checked(file, MOST_SET_BYTES)
        if file.suffix == ".parquet":
            yield from pyarrow.parquet.ParquetFile(file).iter_batches()
            return
        with pa.memory_map(str(file)) as source:
            try:
                yield from pyarrow.ipc.open_stream(source)
            except pa.ArrowInvalid:
                source.seek(0)
                reader = pyarrow.ipc.open_file(source)
                yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
    except pa.ArrowException as error:
        raise UsageError(
            f"{file}: expected an Arrow or Parquet file, got {str(error).splitlines()[0]}; save it again"
        ) from None


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
