"""`plas COMMAND …`, the same as `python -m nas.COMMAND …`."""

import importlib
import sys

from nas.terminal.streams import terminal

COMMANDS = (
    *("run", "compare", "select", "explain", "fit", "theory", "reproduce"),
    *(
        "devices",
        "blocks",
        "export",
        "train",
        "measure",
        "calibrate",
        "report",
        "watch",
        "open",
        "list",
        "init",
        "schema",
    ),
)


def main() -> None:
    """Dispatch to a command; without one, say which there are."""
    with terminal():
        dispatch()


def dispatch() -> None:
    """The command that the arguments name."""
    from nas.terminal.options import own_package

    own_package()
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(overview())
    elif arguments[0] == "--version":
        from objectives.installed import DISTRIBUTION, version_of

        sys.stdout.write(f"{DISTRIBUTION} {version_of(DISTRIBUTION)}\n")
    elif arguments[0] == "completion":
        sys.stdout.write(completion(arguments[1:]))
    elif arguments[0] in COMMANDS:
        sys.argv = [f"plas {arguments[0]}", *arguments[1:]]
        from nas.terminal.doors import door

        importlib.import_module(door(arguments[0])).main()
    else:
        from nas.files.faults import unknown

        sys.stderr.write(f"plas: {unknown('a command', arguments[0], COMMANDS)}\n")
        raise SystemExit(2)


def completion(arguments: list[str]) -> str:
    """A shell's script, or the words that may follow; a refusal ends with exit code 2."""
    from nas.errors import UsageError
    from nas.terminal.completion import answer

    try:
        return answer(arguments, COMMANDS)
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(2) from None


def overview() -> str:
    """Commands with their first docstring lines."""
    from nas.terminal.doors import headline

    lines = [f"  {name:<9} {headline(name)}" for name in COMMANDS]
    return "\n".join(
        [
            "Usage: plas COMMAND [OPTIONS]   (the same as python -m nas.COMMAND)",
            "",
            *lines,
            "",
            "plas COMMAND --help shows a command's options; plas completion bash|zsh|fish prints what completes them.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
