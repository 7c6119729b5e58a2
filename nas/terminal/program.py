"""The name that a user typed, so that every command we propose is one that works there."""

import sys


def command(name: str) -> str:
    """`plas NAME` where this program was started as plas, else `python -m nas.NAME`."""
    return f"plas {name}" if sys.argv[0].startswith("plas ") else f"python -m nas.{name}"
