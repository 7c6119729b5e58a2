"""The protocol of a stack, and how one is found: a module of `nas/export/stacks/` by its file name, one of a package by its entry point."""

import importlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

from nas.errors import UsageError
from nas.export.model import Model
from nas.files.faults import unknown
from nas.study import entry_points
from nas.study.user_code import code_named, loaded_code, naming_user_code
from objectives.plugins import bundled, normalised

KIND = "stacks"
PIVOT = "hf"
#: Trained from `hf` as the page says; exports once had files of theirs.
RECIPES = ("llamafactory", "megatron", "torchtitan")
RECIPES_PAGE = "plugins/stacks/docs/stacks.md"
WHAT = ("emit", "launch", "size", "cautions", "fields", "read")


class Stack(Protocol):
    """A training or inference stack; every file lies in the stack's own folder beside the pivot `hf`.

    Commands are run in the candidate's folder, so that `hf` names the Hugging Face directory.
    """

    def emit(self, model: Model, folder: Path) -> None:
        """Write the stack's files into its folder."""

    def launch(self, model: Model) -> str:
        """The command to run in the candidate's folder."""

    def size(self, model: Model) -> int:
        """Bytes of its large files, to compare with the free space."""

    def cautions(self, model: Model) -> list[str]:
        """Limits of the stack: what it cannot represent or will do otherwise."""

    def fields(self, model: Model) -> dict[str, Any]:
        """The fields that `read` must return."""

    def read(self, folder: Path) -> dict[str, Any]:
        """Every field, parsed back from the written files; ValueError where they are none.

        A stack may also have `refuse(model)`, which raises UsageError for what it does not take, and `loaded(model, folder)`, which
        returns the fields in place of `read` as the stack's own program finds them.
        """


def stack_names(given: str, where: str = "to") -> tuple[str, ...]:
    """Stacks from `hf,llama-bench`: the pivot first, each once; nothing is imported.

    Raises:
        UsageError: an unknown one.
    """
    stacks = entry_points.named(KIND)
    names = [part.strip() for part in given.split(",") if part.strip()]
    for name in names:
        if normalised(name) in {*RECIPES}.difference(stacks):
            raise UsageError(
                f"{where}: expected a stack ({', '.join(sorted(map(shown, stacks)))}), got {name}, which trains from hf and has no "
                f"files of its own any more; leave it out and see {RECIPES_PAGE}"
            )
        if normalised(name) not in stacks:
            raise UsageError(f"{where}: {unknown('a stack', name, map(shown, stacks))}")
    return tuple(dict.fromkeys([PIVOT, *(normalised(name) for name in names)]))


def shown(name: str) -> str:
    """A stack's name and folder as people write it."""
    return name.replace("_", "-")


def installed(names: Iterable[str]) -> dict[str, str]:
    """Stacks of installed packages among some, each with its distribution; nothing is imported.

    Raises:
        UsageError: several packages have one of them.
    """
    plug_ins = {name: entry_points.found(KIND, name) for name in names}
    return {shown(name): plug_in.distribution for name, plug_in in plug_ins.items() if plug_in is not None}


@cache
def stack(name: str) -> Stack:
    """The module of a stack; an installed package's is imported, so the user must have named it.

    Raises:
        UsageError: an installed package's that cannot be imported, or that is no stack.
    """
    if (code := code_named(KIND, name)) is None:
        point = bundled(KIND).get(name)
        return cast(Stack, point.load() if point else importlib.import_module(f"{entry_points.SHIPPED[KIND]}.{name}"))
    with loaded_code(code) as module:
        if missing := [what for what in WHAT if not callable(getattr(module, what, None))]:
            raise UsageError(f"expected {', '.join(WHAT)} in {code.place}, got no {' and no '.join(missing)}")
        return cast(Stack, _Foreign(module, str(code)))


class _Foreign:
    """An installed package's stack, whose exceptions become one line with their place and distribution."""

    def __init__(self, module: ModuleType, whose: str) -> None:
        self.module, self.whose = module, whose

    def __getattr__(self, what: str) -> Callable[..., Any]:
        function = getattr(self.module, what)

        def called(*arguments: Any) -> Any:
            with naming_user_code(self.whose, what, self.module):
                return function(*arguments)

        return called
