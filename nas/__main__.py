"""`plas COMMAND …`, the same as `python -m nas.COMMAND …`; installed packages add commands."""

import importlib
import sys
from typing import NoReturn

from nas.terminal.doors import COMMANDS, PACKAGES, door, installed, overview
from nas.terminal.streams import terminal


def main() -> None:
    """Run the command that the arguments name; without one, say which there are."""
    with terminal():
        from nas.terminal.parser import own_package

        own_package()
        arguments = sys.argv[1:]
        if not arguments or arguments[0] in ("-h", "--help", "help"):
            sys.stdout.write(overview())
        elif arguments[0] in ("--version", "version"):
            from objectives.plugins import DISTRIBUTION, version_of

            sys.stdout.write(f"{DISTRIBUTION} {version_of(DISTRIBUTION)}\n")
        elif arguments[0] == "completion":
            complete(arguments[1:])
        elif arguments[0] in COMMANDS:
            run(arguments, door(arguments[0]))
        elif arguments[0] in (theirs := installed()):
            run(arguments, theirs[arguments[0]])
        elif package := PACKAGES.get(arguments[0]):
            refuse(f"plas: expected an installed command, got {arguments[0]!r}; pip install ./plugins/{package}")
        else:
            from nas.files.faults import unknown

            refuse(f"plas: {unknown('a command', arguments[0], (*COMMANDS, *theirs))}")


def refuse(text: str) -> NoReturn:
    """Say why on standard error and end with exit code 2."""
    sys.stderr.write(f"{text}\n")
    raise SystemExit(2)


def complete(arguments: list[str]) -> None:
    """Print a shell's script, or the words that may follow a command; a refusal ends with exit code 2."""
    from nas.errors import UsageError
    from nas.terminal.completion import answer

    try:
        sys.stdout.write(answer(arguments, {name: door(name) for name in COMMANDS} | installed()))
    except UsageError as error:
        refuse(str(error))


def run(arguments: list[str], module: str) -> None:
    """Run a command's module with the words that follow its name; an installed package's that cannot be imported ends with exit code 2."""
    program = f"plas {arguments[0]}"
    sys.argv = [program, *arguments[1:]]
    try:
        main = importlib.import_module(module).main
    except Exception as error:
        if arguments[0] in COMMANDS:
            raise
        text = " ".join(f"{type(error).__name__}: {error}".split())
        refuse(f"{program}: expected a module with main, got {text}; install the package of {module} again")
    main()


if __name__ == "__main__":
    main()
