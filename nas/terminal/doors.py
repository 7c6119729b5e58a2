"""The commands that ship, and the module with a command's flags: `nas/NAME.py`, or `nas/NAME/__main__.py` of one with a room of its own."""

from os.path import isdir, join

from objectives.plugins import first_line, folder

COMMANDS = (
    *("demo", "run", "compare", "select", "explain", "fit", "theory", "reproduce", "devices", "fleet"),
    *("blocks", "pairs", "export", "tokenize", "train", "measure", "evidence", "calibrate", "report", "watch"),
    *("open", "list", "init", "schema"),
)


def door(command: str) -> str:
    """The module that `python -m nas.COMMAND` runs."""
    return f"nas.{command}.__main__" if isdir(join(folder("nas"), command)) else f"nas.{command}"


def headline(command: str) -> str:
    """The first line of a shipped command's docstring; nothing is imported."""
    return first_line(folder("nas").parent / f"{door(command).replace('.', '/')}.py")
