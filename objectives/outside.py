"""The only reader of files from outside: plain files, never waited for, of bounded size, depth and integers.

Whoever wrote a file is not known: a folder from elsewhere can hold a link to `/dev/zero`, a pipe that nobody writes to,
or a gigabyte of brackets under any name. Every refusal is an `OSError` whose `strerror` says what is there instead.
`tests/test_outside.py` sees that nothing is read past this file.
"""

import errno
import json
import os
import re
import stat
from io import BufferedReader
from pathlib import Path
from typing import Any

MB = 1_000_000
DEEPEST = 200
MOST_BROKEN = 20  # objects that are not whole, after which no more are looked for
OBJECT = re.compile(r"(?:^|(?<=[}\],]))[ \t]*[\[,]?[ \t]*(?=\{\s*\")", re.MULTILINE)
KINDS = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFREG: "a file"}


class Refused(OSError):
    """Raised for a path that cannot be read; `strerror` says why."""


def kind(mode: int) -> str:
    """Return the kind of file that a mode stands for."""
    return KINDS.get(stat.S_IFMT(mode), "a device or pipe")


def opened(path: Path, *, own: bool = False) -> BufferedReader:
    """Return a plain file opened for reading; links are followed unless it is a run folder's `own`.

    Raises:
        OSError: it is not there, or something else than a plain file is.
    """
    try:
        _see(os.stat(path, follow_symlinks=not own), path)  # before it is opened: opening a device can do something
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_NOFOLLOW if own else 0)
        file = os.fdopen(os.open(path, flags), "rb")
    except ValueError:
        raise Refused(errno.EINVAL, "a name that no file can have") from None
    try:
        _see(os.fstat(file.fileno()), path)
    except Refused:
        file.close()
        raise
    return file


def checked(path: Path, most: int) -> Path:
    """Return the path after checking that it is a plain file of at most `most` bytes; for libraries that open files themselves.

    Raises:
        OSError: it is not.
    """
    with opened(path) as file:
        _fits(file, most)
    return path


def content(path: Path, most: int, *, own: bool = False) -> bytes:
    """Return the bytes of a plain file, at most `most`.

    Raises:
        OSError: it cannot be read, is no plain file, or is larger.
    """
    with opened(path, own=own) as file:
        _fits(file, most)
        found = file.read(most + 1)  # it may grow meanwhile
    if len(found) > most:
        raise _larger(most)
    return found


def text(path: Path, most: int, *, own: bool = False, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Return the text of a plain file, with Python's line ends.

    Raises:
        OSError: as of `content`.
        UnicodeDecodeError: it is none.
    """
    return content(path, most, own=own).decode(encoding, errors).replace("\r\n", "\n").replace("\r", "\n")


def beginning(path: Path, size: int) -> bytes:
    """Return the first bytes of a plain file of any size.

    Raises:
        OSError: it cannot be read, or is no plain file.
    """
    with opened(path) as file:
        return file.read(size)


def json_of(path: Path, most: int, *, own: bool = False) -> Any:
    """Return the content of a JSON file.

    Raises:
        OSError: as of `content`.
        ValueError: no JSON.
    """
    return parsed(content(path, most, own=own).decode("utf-8-sig"))


def parsed(source: str, *, exact: bool = False, once: bool = False) -> Any:
    """Return JSON with integers that a float can hold (`exact`: any integer) and of bounded depth.

    once: a key that an object has twice is refused.

    Raises:
        ValueError: no JSON, or one beyond these bounds.
    """
    try:
        found = json.loads(
            source, parse_int=_bounded if exact else whole_number, object_pairs_hook=_once if once else None
        )
    except RecursionError:
        raise ValueError(f"lists within lists, more than {DEEPEST} levels") from None
    level = [found]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _inside(each) if isinstance(inner, (dict, list))]
        if not level:
            return found
    raise ValueError(f"lists within lists, more than {DEEPEST} levels")


def objects_in(source: str) -> tuple[list[Any], list[int]]:
    """Return JSON objects at line starts among other text, also from unclosed lists, and the lines of incomplete ones."""
    objects: list[Any] = []
    broken: list[int] = []
    place = 0
    while len(broken) < MOST_BROKEN and (start := OBJECT.search(source, place)):
        place = start.end()
        try:
            _, end = json.JSONDecoder().raw_decode(source, place)
            objects.append(parsed(source[place:end]))
            place = end
        except (ValueError, RecursionError):
            broken.append(source.count("\n", 0, place) + 1)
            place += 1
    return objects, broken


def whole_number(digits: str) -> int | float:
    """Return an integer: decimal even with leading zeros, octal after 0o, hexadecimal after 0x; a float beyond 64 bits.

    Raises:
        ValueError: no float is as large.
    """
    if len(digits) > 400:
        raise ValueError(f"an integer of {len(digits):,} digits")
    number = int(digits, {"0o": 8, "0x": 16}.get(digits[:2], 10))
    if abs(number) < 2**63:
        return number
    try:
        return float(number)
    except OverflowError:
        raise ValueError(f"an integer of {len(digits):,} digits") from None


def _bounded(digits: str) -> int:
    whole_number(digits)
    return int(digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)} twice")
    return found


def _inside(each: Any) -> Any:
    return each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()


def _see(told: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(told.st_mode):
        raise Refused(errno.EISDIR if stat.S_ISDIR(told.st_mode) else errno.EINVAL, kind(told.st_mode), str(path))


def _fits(file: BufferedReader, most: int) -> None:
    if os.fstat(file.fileno()).st_size > most:
        raise _larger(most)


def _larger(most: int) -> Refused:
    return Refused(errno.EFBIG, f"more than {most // MB:,} MB")
