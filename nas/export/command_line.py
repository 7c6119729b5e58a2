"""Command lines of shell scripts: written one flag a line, and read back as a shell would."""

import shlex
from collections.abc import Iterable
from typing import Any

HEAD = "#!/usr/bin/env bash\n# Run in the candidate's folder, the one that holds hf.\nset -euo pipefail\n"


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
        elif word != "$@":
            raise ValueError(f"expected a flag, got {word!r}")
    return flags


def number(flags: dict[str, Any], name: str, otherwise: float | None = None) -> Any:
    """A flag's value as an integer where it is one, else as a float.

    Raises:
        ValueError: it is not there and there is nothing otherwise.
    """
    if name not in flags:
        if otherwise is None:
            raise ValueError(f"{name}: expected a value, got nothing")
        return otherwise
    text = str(flags[name])
    return int(text) if text.lstrip("-").isdigit() else float(text)
