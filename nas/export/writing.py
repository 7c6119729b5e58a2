"""A folder written whole or not at all: into a hidden one beside it, then renamed."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nas.errors import PlasError, UsageError
from nas.export.launch_list import FILE
from nas.export.manifest import MANIFEST
from nas.export.readme import README

SPARE_BYTES = 50_000_000


@contextmanager
def whole_folder(out: Path, expected_bytes: int) -> Iterator[Path]:
    """A folder to write into; it becomes `out` when the block ends, and nothing of it stays when it fails.

    Raises:
        UsageError: `out` is a file, is not empty, or cannot be made.
        PlasError: too little space before, or none left while, writing.
    """
    _refuse_used(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}.part-", dir=out.parent))
    except OSError as error:
        raise UsageError(f"out: expected a writable folder, got {out} ({error.strerror}); name another") from None
    try:
        _refuse_full(temporary, expected_bytes)
        temporary.chmod(0o777 & ~_umask())
        yield temporary
        os.rename(temporary, out)
    except OSError as error:
        raise PlasError(
            f"{out}: cannot be written ({error.strerror}); nothing was kept, free space or name another"
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _refuse_used(out: Path) -> None:
    try:
        if out.is_dir() and any(out.iterdir()):
            raise UsageError(f"out: expected a new or empty folder, got {out} with files in it; name another")
        if out.exists() and not out.is_dir():
            raise UsageError(f"out: expected a folder, got a file {out}; name another")
    except OSError as error:
        raise UsageError(f"out: expected a folder, got {out} ({error.strerror}); name another") from None


def _refuse_full(folder: Path, expected_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if expected_bytes and free < expected_bytes + SPARE_BYTES:
        raise PlasError(
            f"out: expected {expected_bytes / 1e9:.3g} GB of free space for the weights, got {free / 1e9:.3g} GB; "
            "leave out --weights, choose fewer candidates, or name another disk"
        )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def folder_names(ids: list[str]) -> list[str]:
    """A distinct folder name per id, of letters, digits, dots, underscores and hyphens."""
    names: list[str] = []
    used = {FILE, MANIFEST, README.lower()}
    for identity in ids:
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", identity).strip(".-")[:100] or "candidate"
        name, n = base, 1
        while name.lower() in used:
            n += 1
            name = f"{base}-{n}"
        used.add(name.lower())
        names.append(name)
    return names
