"""`plas COMMAND …`, the same as `python -m nas.COMMAND …`."""

import importlib
import sys

from nas.terminal.streams import terminal

COMMANDS = (
    *(
        "demo",
        "run",
        "compare",
        "bench",
        "select",
        "explain",
        "fit",
        "theory",
        "reproduce",
        "devices",
        "fleet",
        "blocks",
        "pairs",
        "export",
        "tokenize",
    ),
    *("train", "measure", "evidence", "calibrate", "report", "watch", "open", "list", "init", "schema"),
)


def main() -> None:
    """Dispatch to a command; without one, say which there are."""
    with terminal():
        dispatch()


def dispatch() -> None:
    """The command that the arguments name."""
    from nas.terminal import overview
    from nas.terminal.parser import own_package

    own_package()
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(overview.overview(COMMANDS))
    elif arguments[0] == "--version":
        from objectives.installed import DISTRIBUTION, version_of

        sys.stdout.write(f"{DISTRIBUTION} {version_of(DISTRIBUTION)}\n")
    elif arguments[0] == "completion":
        sys.stdout.write(overview.completion(arguments[1:], COMMANDS))
    elif arguments[0] in COMMANDS:
        sys.argv = [f"plas {arguments[0]}", *arguments[1:]]
        from nas.terminal.doors import door

        importlib.import_module(door(arguments[0])).main()
    else:
        from nas.files.faults import unknown

        sys.stderr.write(f"plas: {unknown('a command', arguments[0], COMMANDS)}\n")
        raise SystemExit(2)


if __name__ == "__main__":
    main()
