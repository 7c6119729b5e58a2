"""What `select`, `explain` and `report` do with a folder that is no run folder: the function of the installed package that wrote it."""

from collections.abc import Callable
from os.path import isfile, join
from pathlib import Path
from typing import Any, Literal

from nas.errors import UsageError
from nas.study.user_code import STORE, modules

Command = Literal["select", "explain", "report"]


def work_of(command: Command, folder: Path | None) -> Callable[[Any], object] | None:
    """The function of an installed package that answers a command for one of its folders; None where no package knows the folder.

    A package's module of the group `plas.answers` has `recognises(folder)`, and a function of the request named as
    the command for each command that it answers. A manifest alone does not make a run folder: packages write one too.

    Raises:
        UsageError: the package that knows the folder does not answer this command.
    """
    if folder is None or isfile(join(folder, STORE)):
        return None
    for plug_in, module in modules("answers", "recognises"):
        if module.recognises(folder):
            work = getattr(module, command, None)
            if work is None:
                raise UsageError(
                    f"{folder}: expected a folder that plas {command} takes, got one of {plug_in}; name a run"
                )
            return work  # type: ignore[no-any-return]
    return None
