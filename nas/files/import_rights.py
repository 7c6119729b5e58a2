"""The table of which command may import a user's module, and on whose word.

`docs/run-folder.md` shows this table, and a test holds the page to it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum

from nas.errors import UsageError


class Right(Enum):
    """Whose word is enough to import a metric's or a strategy's module."""

    STUDY = "what the study names: it evaluates"
    TYPED = "only what you type"
    NONE = "nothing"


RIGHTS = {
    **dict.fromkeys(("run", "compare"), Right.STUDY),
    **dict.fromkeys(("explain", "export", "list"), Right.TYPED),
}  # every other command: nothing; one of an installed package: what it says itself
#: The command and its right; without one it is a program of the user's own, which says what it wants.
_command: ContextVar[tuple[str, Right]] = ContextVar("command", default=("", Right.STUDY))


@contextmanager
def command(name: str, right: Right | None = None) -> Iterator[None]:
    """Name the command for which modules are imported inside the block, and its right if an installed package adds it."""
    token = _command.set((name, right or right_of(name)))
    try:
        yield
    finally:
        _command.reset(token)


def right_of(name: str) -> Right:
    """Whose word is enough for a command."""
    return RIGHTS.get(name, Right.NONE)


def refuse_import(kind: str, what: str, *, typed: bool) -> None:
    """See that the command may import a metric or a strategy called `what`, which the user typed himself or a study names.

    Raises:
        UsageError: it may not.
    """
    name, right = _command.get()
    if right is Right.STUDY or (right is Right.TYPED and typed):
        return
    flag = f"objectives=loss,{what}" if kind == "metric" else f"algo={what}"
    hint = f"name it yourself: --set {flag}" if right is Right.TYPED else "use plas run"
    raise UsageError(
        f"expected a {kind} that ships, which is all that plas {name} takes from a study, got {what}; {hint}"
    )
