"""The name that a user typed, so that every command we propose is one that works there."""

import sys

from nas.terminal.doors import COMMANDS


def command(name: str) -> str:
    """`plas NAME` where this program was started as plas or the command is an installed package's, else `python -m nas.NAME`."""
    return f"plas {name}" if sys.argv[0].startswith("plas ") or name not in COMMANDS else f"python -m nas.{name}"
