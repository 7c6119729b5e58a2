"""What files of several stacks have in common: fields to compare, shell commands, the reference to hf."""

import shlex
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from nas.export.hf_config import architecture_of
from objectives import outside
from search_spaces.architectures import Architectures
from search_spaces.columns import NOT_OF_A_MODEL

PIVOT_PATH = "hf"
HEAD = "#!/usr/bin/env bash\n# Run in the candidate's folder, the one that holds hf.\nset -euo pipefail\n"


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


def architecture_fields(architecture: Architectures) -> dict[str, Any]:
    """Every stored column of one architecture (n = 1) that a model's file holds: its tokens are in a trainer's steps."""
    names = [field.name for field in fields(Architectures) if field.name not in NOT_OF_A_MODEL]
    return {name: getattr(architecture, name)[0].item() for name in names}


def differences(wanted: dict[str, Any], given: dict[str, Any]) -> list[str]:
    """`field: expected X, got Y` for every field that differs; floats must agree to 12 digits."""
    names = [*wanted, *(name for name in given if name not in wanted)]
    return [
        f"{name}: expected {wanted.get(name, 'nothing')!r}, got {given.get(name, 'nothing')!r}"
        for name in names
        if not _same(wanted.get(name), given.get(name))
    ]


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, (int, float)):
        return bool(abs(first - second) <= 1e-12 * max(abs(first), abs(second)))
    return bool(first == second)


def command(program: str, flags: Iterable[tuple[str, Any]]) -> str:
    """`program \\ --flag value \\ …`; True is a bare flag, False and None are left out."""
    parts = [program]
    for name, value in flags:
        if value is True:
            parts.append(name)
        elif value is not None and value is not False:
            parts.append(f"{name} {shlex.quote(value if isinstance(value, str) else repr(value))}")
    return " \\\n  ".join(parts) + "\n"


def parsed(script: str, program: str) -> list[dict[str, Any]]:
    """Flags of every command of a script that starts with this program, values as they stand."""
    skipped = len(shlex.split(program))
    lines = script.replace("\\\n", " ").splitlines()
    return [_flags(shlex.split(line)[skipped:]) for line in lines if line.startswith(program + " ")]


def _flags(words: list[str]) -> dict[str, Any]:
    flags: dict[str, Any] = {}
    name = ""
    for word in words:
        if word.startswith("-") and not word[1:2].isdigit():
            name = word
            flags[name] = True
        elif name and flags[name] is True:
            flags[name] = word
        else:
            raise ValueError(f"expected a flag, got {word!r}")
    return flags


def number(flags: dict[str, Any], name: str) -> Any:
    """A flag's value as an integer where it is one, else as a float.

    Raises:
        ValueError: it is not there.
    """
    if name not in flags:
        raise ValueError(f"{name}: expected a value, got nothing")
    text = str(flags[name])
    return int(text) if text.lstrip("-").isdigit() else float(text)
