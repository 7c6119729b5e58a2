"""Code of a user's or of an installed package that raises: one line with its place in that code, no traceback of ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from types import ModuleType, TracebackType

from nas.errors import PlasError
from nas.study.user_code import OURS

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ("site-packages", "dist-packages")


class ForeignError(PlasError):
    """Code that is not ours raised something: exit code 1."""


@contextmanager
def naming_user_code(whose: str, what: str, module: ModuleType | None) -> Iterator[None]:
    """Say what foreign code raises in one line: whose, which function, what, and where in its own files.

    Raises:
        ForeignError: instead of whatever was raised, `SystemExit` included.
    """
    try:
        yield
    except PlasError:
        raise
    except (Exception, SystemExit) as error:
        text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
        place = place_in(module, error.__traceback__)
        raise ForeignError(f"{whose}: {what} failed with {text} ({place}); correct it there") from error


def place_in(module: ModuleType | None, traceback: TracebackType | None) -> str:
    """`file:line` of the innermost frame in a module's own folder, else, where it is in none, of the last one."""
    frames, file = extract_tb(traceback), getattr(module, "__file__", None)
    theirs = [frame for frame in frames if file is not None and _own(Path(frame.filename), Path(file).resolve())]
    last = theirs[-1] if theirs else frames[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _own(frame: Path, file: Path) -> bool:
    """Whether a frame's file belongs to a module: it is the module's, or lies in its folder and is neither installed nor ours."""
    inner, home = frame.resolve(), file.parent
    if inner == file or not inner.is_relative_to(home) or home.name in INSTALLED:
        return inner == file
    ours = any(inner.is_relative_to(ROOT / name) and not home.is_relative_to(ROOT / name) for name in OURS)
    return not ours and not any(part in INSTALLED for part in inner.relative_to(home).parts)
