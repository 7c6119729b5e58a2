"""Files and folders of ours inside a folder of others: no link is followed, nothing is written through.

A folder from elsewhere can hold a link under any name that we are going to write. New files therefore get names that
nobody can guess and are created exclusively; existing ones are opened only where they are plain files.
"""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from nas.errors import PlasError, UsageError
from objectives import outside

ENDING = ".part"


@contextmanager
def drawing(folder: Path, kept: str = "results") -> Iterator[Path]:
    """The folder of a run's pictures; where they cannot be written, a notice names what is kept all the same.

    Raises:
        PlasError: the disk is full, the folder cannot be written.
    """
    try:
        yield folder / "plots"
    except OSError as error:
        text = f"{folder}/plots: pictures cannot be written ({error.strerror}); all {kept} are kept"
        raise PlasError(text) from None


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when the block ends, and is gone when it fails.

    Raises:
        OSError: the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}{ENDING}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def clear_leftovers(folder: Path) -> None:
    """Remove what a killed process was writing; the folder's lock must be held."""
    for place in (folder, folder / "plots"):
        for left in place.glob(f".*{ENDING}") if not place.is_symlink() else ():
            with suppress(OSError):
                left.unlink()


def inner_folder(folder: Path, *names: str) -> Path:
    """A folder inside another, made where it is missing.

    Raises:
        UsageError: a link or a file has its name.
        OSError: it cannot be made.
    """
    for name in names:
        folder = folder / name
        with suppress(FileExistsError):
            folder.mkdir()
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise UsageError(f"{folder}: expected a folder, got {outside.kind(folder.lstat().st_mode)}; remove it")
    return folder


def made_folder(path: Path) -> Path:
    """A folder that a user named, made with its parents; the links of one's own paths are followed.

    Raises:
        PlasError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlasError(f"{path}: cannot be made ({error.strerror}); name another folder") from None
    return path


def refuse_links(*paths: Path, writing: bool = False) -> None:
    """See that each path is a plain file or nothing; one to write to must have no second name, under which it is another's.

    Raises:
        UsageError: a link, a folder, a pipe.
    """
    for path in paths:
        with suppress(FileNotFoundError):
            told = path.lstat()
            if not stat.S_ISREG(told.st_mode):
                found, hint = outside.kind(told.st_mode), "remove it, or copy what it points to"
            elif writing and told.st_nlink > 1:
                found, hint = "a hard link, which has another name", "put a copy in its place"
            else:
                continue
            raise UsageError(f"{path}: expected a plain file, got {found}; {hint}")


def opened(path: Path, flags: int) -> int:
    """A descriptor of a plain file, created if it is missing; for reading and writing, with further `flags`.

    Raises:
        UsageError: a link, a folder, a pipe, a file with a second name.
        OSError: it cannot be opened.
    """
    refuse_links(path, writing=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o666)
