"""The commands that ship and those of installed packages, and the module with a command's flags: `nas/NAME.py`, or `nas/NAME/__main__.py` of one with a room of its own."""

import sys
from contextlib import suppress
from importlib.metadata import distributions
from os.path import isdir, join

from objectives.plugins import bundled, first_line, folder, located

COMMANDS = ("run", "compare", "select", "explain", "export", "report", "watch", "list", "init")

#: Commands of the packages around the core, by the folder of `plugins/` that has each.
PACKAGES = {
    "bench": "bench",
    "blocks": "blocks",
    "evidence": "evidence",
    "fleet": "fleet",
    "pairs": "fleet",
    "publish": "bench",
}

#: Objectives that ship and cost, by the module of their command. A module has `UNIT`, `LOG_SCALE`, `PRIOR` and `COST_S`, as shipped metrics and functions
#: of one's own have; `resolved_settings`, which checks the study's settings before anything runs and completes them; `refuse_here`, what this
#: machine lacks; and the function.
EXPENSIVE = {"measure": "plas_board.measure.objective", "train": "plas_train.objective"}


def door(command: str) -> str:
    """The module that `python -m nas.COMMAND` runs."""
    return f"nas.{command}.__main__" if isdir(join(folder("nas"), command)) else f"nas.{command}"


def installed() -> dict[str, str]:
    """The modules of the commands that installed packages add, by name (group `plas.commands`); a shipped name stays ours."""
    found = {point.name: point.module for point in bundled("commands").values()}
    for distribution in distributions():
        with suppress(Exception):  # whatever a damaged description raises: it hurts nobody else
            points = distribution.entry_points.select(group="plas.commands")
            found |= {point.name: point.module for point in points if point.name not in (*COMMANDS, *found)}
    return found


def summary(module: str) -> str:
    """The first line of a module's docstring; nothing is imported."""
    path = located(module, file=True)
    return "" if path is None else first_line(path)


def command(name: str) -> str:
    """`plas NAME` where this program was started as plas or the command is an installed package's, else `python -m nas.NAME`."""
    return f"plas {name}" if sys.argv[0].startswith("plas ") or name not in COMMANDS else f"python -m nas.{name}"


def overview() -> str:
    """Commands with their first docstring lines; those of installed packages stand last."""
    modules = {name: door(name) for name in COMMANDS} | installed()
    lines = [f"  {name:<9} {summary(module)}" for name, module in modules.items()]
    return "\n".join(
        [
            "Usage: plas COMMAND [OPTIONS]   (those of the core also: python -m nas.COMMAND)",
            *lines,
            "",
            "plas COMMAND -h shows a command's most used options, --help all; plas completion bash|zsh|fish completes them.",
            "",
        ]
    )
