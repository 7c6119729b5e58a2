"""A user's own modules: on the Python path or, last, in the working folder; never inside a run folder."""

import importlib
import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from nas.errors import UsageError

RUN_MARKS = ("manifest.json", "evaluations.sqlite")


def imported(name: str) -> ModuleType:
    """A user's module by its dotted name.

    Raises:
        UsageError: it lies inside a run folder, or cannot be imported.
    """
    _refuse_from_run_folder(name)
    _look_here_last()
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise UsageError(f"expected an importable module, got {type(error).__name__}: {error}; check {name}") from None


def could_be_own(name: str) -> bool:
    """Whether a dotted name is one of Python's grammar and not one that Python's own library has."""
    return (
        all(part.isidentifier() for part in name.split(".")) and name.partition(".")[0] not in sys.stdlib_module_names
    )


def is_there(name: str) -> bool:
    """Whether the first part of a dotted name is a module that could be a user's; nothing is imported."""
    if not could_be_own(name):
        return False
    _look_here_last()
    try:
        return importlib.util.find_spec(name.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def in_run_folder(place: Path) -> bool:
    """Whether a folder or file is a run folder or lies inside one."""
    return any((parent / mark).exists() for parent in (place, *place.parents) for mark in RUN_MARKS)


def _look_here_last() -> None:
    """The working folder at the end of the import path, unless it is there already or is a run folder."""
    here = Path.cwd()
    if "" not in sys.path and str(here) not in sys.path and not in_run_folder(here):
        sys.path.append(str(here))


def _refuse_from_run_folder(name: str) -> None:
    """Code inside a run folder is refused before it runs: opening a stranger's run executes nothing from it."""
    spec = PathFinder.find_spec(name.partition(".")[0], [*sys.path, str(Path.cwd())])
    places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
    for place in filter(None, places):
        if in_run_folder(Path(place)):
            raise UsageError(f"expected code outside run folders, got {name} in {place}; move the module elsewhere")
