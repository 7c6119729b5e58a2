"""The overview that `plas` prints without a command, and the words that complete one in a shell."""

import sys
from collections.abc import Mapping, Sequence

from nas.errors import UsageError
from nas.terminal.doors import headline, summary


def overview(commands: Sequence[str], installed: Mapping[str, str]) -> str:
    """Commands with their first docstring lines; those of installed packages, each with its module, stand last."""
    lines = [f"  {name:<9} {headline(name)}" for name in commands]
    lines += [f"  {name:<9} {summary(module)}" for name, module in installed.items()]
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


def completion(arguments: Sequence[str], commands: Mapping[str, str]) -> str:
    """A shell's script, or the words that may follow a command, each with its module; a refusal ends with exit code 2."""
    from nas.terminal.completion import answer

    try:
        return answer(arguments, commands)
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(2) from None
