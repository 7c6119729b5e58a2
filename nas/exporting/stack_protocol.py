"""What a module of `nas/stacks/` provides, and how it is found by its file name."""

import importlib
from pathlib import Path
from typing import Any, Protocol, cast

from nas.errors import UsageError
from nas.exporting.model import Model
from nas.files.faults import unknown
from nas.study.catalogue import normalised
from objectives.plugins import importable

PACKAGE = "nas.stacks"
PIVOT = "hf"


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
        """What the stack cannot represent or will do otherwise."""

    def fields(self, model: Model) -> dict[str, Any]:
        """What `read` must find."""

    def read(self, folder: Path) -> dict[str, Any]:
        """Every field, parsed back from the written files; ValueError where they are none."""


def stack_names(given: str) -> tuple[str, ...]:
    """Stacks from `hf,llama-bench`: the pivot first, each once.

    Raises:
        UsageError: an unknown one.
    """
    known = importable(PACKAGE)
    asked = [part.strip() for part in given.split(",") if part.strip()]
    for name in asked:
        if normalised(name) not in known:
            raise UsageError(f"to: {unknown('a stack', name, map(shown, known))}")
    return tuple(dict.fromkeys([PIVOT, *(normalised(name) for name in asked)]))


def shown(name: str) -> str:
    """A stack's name and folder as people write it."""
    return name.replace("_", "-")


def stack(name: str) -> Stack:
    """The module of a stack."""
    return cast(Stack, importlib.import_module(f"{PACKAGE}.{name}"))
