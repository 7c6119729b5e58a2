"""The file that a law was read from: recorded with the law, and looked at again when a run goes on."""

import hashlib
from pathlib import Path
from typing import Any

from objectives import outside
from objectives.loss_law.law import SHOWN_DIGITS, Law, origin_of

LARGEST = 50_000_000  # bytes of a law file


def with_file(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """A law's content with the file that it was read from, by path if relative, else by name."""
    given = content.get("provenance", {})
    digest = sha256_of(path)
    if not isinstance(given, dict) or digest is None:
        return content
    name = path.name if path.is_absolute() else str(path)
    return {**content, "provenance": {**given, "file": {"name": name, "sha256": digest}}}


def sha256_of(path: Path) -> str | None:
    """The hash of a file's content; None for what is no plain file, too large for a law, or not to be read."""
    try:
        return hashlib.sha256(outside.content(path, LARGEST)).hexdigest()
    except OSError:
        return None


def changed(law: Law) -> str:
    """That a law's file has another content now than when the law was read; "" where it has not, or is not there."""
    found = origin_of(law)
    if found is None or found.file is None or not found.file.name or Path(found.file.name).is_absolute():
        return ""
    now = sha256_of(Path(found.file.name))
    if now is None or now == found.file.sha256:
        return ""
    return f"{found.file.name} has changed since ({found.file.sha256[:SHOWN_DIGITS]} then, {now[:SHOWN_DIGITS]} now)"
