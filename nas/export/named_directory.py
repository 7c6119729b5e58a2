"""Stacks whose files name the Hugging Face directory instead of repeating its shape."""

from pathlib import Path
from typing import Any

from nas.export.fields import architecture_fields
from nas.export.hf_config import architecture_of
from objectives import outside

PIVOT_PATH = "hf"


def referred_architecture(folder: Path, named: object) -> dict[str, Any]:
    """The architecture behind the path that a stack's file names, seen from the candidate's folder.

    Raises:
        ValueError: it names something else than the pivot.
        OSError: the pivot is not there.
    """
    if named != PIVOT_PATH:
        raise ValueError(f"model: expected {PIVOT_PATH!r}, got {named!r}")
    config = outside.json_of(folder.parent / PIVOT_PATH / "config.json", outside.MB)
    return architecture_fields(architecture_of(config))
