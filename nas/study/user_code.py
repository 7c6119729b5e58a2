"""Code that is not ours, by the name that a study gives it: an installed package's, or a user's own module.

A user's own is found on the Python path or, last, in the working folder; never inside a run folder.
"""

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType, TracebackType

from nas.errors import PlasError, UsageError
from nas.files.import_rights import refuse_import
from nas.problem.problem import printed_aside
from nas.study import entry_points
from nas.study.entry_points import PlugIn
from nas.terminal.doors import EXPENSIVE

STORE = "evaluations.sqlite"
RUN_MARKS = ("manifest.json", STORE)
OURS = ("nas", "objectives", "search_spaces", "configs")
ROOT = Path(__file__).resolve().parents[2]
FUNCTION = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*(\.\w+)?$")  # and a column of what it returns
MOVED = {  # names in run folders and studies from before
    "nas.comparison.hard": "configs.compare_hard",
    "nas.compare.hard": "configs.compare_hard",
    "nas.compare.synthetic_problems": "configs.compare_hard",
}


def code_named(kind: str, name: str, *, typed: bool = False) -> PlugIn | None:
    """Look up the code of a name that is not ours: an installed package's, else the user's own; nothing is imported.

    None where it is ours or nobody's.

    Raises:
        UsageError: several packages have it, or one has the name, which the user `typed`, of what we ship.
    """
    own = FUNCTION.match(name) if kind == "metrics" else kind == "strategies" and is_own(name)
    return entry_points.found(kind, name, typed=typed) or (PlugIn(kind, name, name, "") if own else None)


@contextmanager
def loaded_code(code: PlugIn, *, typed: bool = True) -> Iterator[ModuleType]:
    """Give the module of code that is not ours, imported; what is found wrong with it is said with its distribution.

    Raises:
        UsageError: the command may not import it, it cannot be imported, or what the block raises.
    """
    if code.kind in ("metrics", "strategies"):
        refuse_import(entry_points.ONE[code.kind], code.name, typed=typed)
    try:
        yield imported(code.place.partition(":")[0])
    except UsageError as error:
        raise UsageError(f"{code}: {error}" if code.distribution else str(error)) from None


def modules(
    kind: str, *holding: str, broken: Callable[[str], None] | None = None
) -> Iterator[tuple[PlugIn, ModuleType]]:
    """Every module of a kind that is asked without being named (answers, logs), imported one after the other.

    broken: gets the fault of a module that cannot be used; without it the first one is raised.

    Raises:
        UsageError: one cannot be imported or lacks what it must hold, with its distribution.
    """
    for plug_in in (each for several in entry_points.offered(kind).values() for each in several):
        try:
            with loaded_code(plug_in) as module:
                if missing := [name for name in holding if not hasattr(module, name)]:
                    raise UsageError(
                        f"expected {', '.join(holding)} in {plug_in.place}, got no {missing[0]}; mend the package"
                    )
        except UsageError as error:
            if broken is None:
                raise
            broken(f"{error}; left out")
            continue
        yield plug_in, module


def imported(name: str) -> ModuleType:
    """A user's module by its dotted name; one that is called as ours or Python's own is the user's nevertheless.

    Raises:
        UsageError: it lies inside a run folder, or cannot be imported.
    """
    top = name.partition(".")[0]
    _refuse_from_run_folder(name, _namesake(top) or PathFinder.find_spec(top, [*sys.path, str(Path.cwd())]))
    _look_here_last()
    try:
        return loaded(name)
    except (Exception, SystemExit) as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"expected an importable module, got {text}; check {name}") from None


def loaded(name: str) -> ModuleType:
    """A user's module that was looked at before, or one of ours that costs; raises whatever it raises.

    What it prints goes to the standard error: the output is the command's answer.
    """
    theirs = None if name in EXPENSIVE.values() else _namesake(name.partition(".")[0])
    with printed_aside():
        return importlib.import_module(MOVED.get(name, name)) if theirs is None else _beside_ours(name, theirs)


def script_module() -> str:
    """The name under which the script that runs here can be imported, as which it is then known; "" in a notebook."""
    script = sys.modules["__main__"]
    file = Path(getattr(script, "__file__", None) or "")
    if script.__spec__ is not None or file.suffix != ".py" or not could_be_own(file.stem) or file.stem in OURS:
        return ""
    return file.stem if sys.modules.setdefault(file.stem, script) is script else ""


def could_be_own(name: str) -> bool:
    """Whether a dotted name is one of Python's grammar and not one that Python's own library has."""
    return (
        all(part.isidentifier() for part in name.split(".")) and name.partition(".")[0] not in sys.stdlib_module_names
    )


def is_own(name: str) -> bool:
    """Whether the name of a strategy is that of a user's own module; nothing is imported."""
    ours, theirs = entry_points.shipped("strategies"), entry_points.offered("strategies")
    return name not in ours and name not in theirs and is_there(name)


def is_there(name: str) -> bool:
    """Whether the first part of a dotted name is a module that could be a user's; nothing is imported."""
    top = name.partition(".")[0]
    try:
        if not could_be_own(name):
            return top.isidentifier() and _namesake(top) is not None
        _look_here_last()
        return find_spec(top) is not None
    except (ImportError, ValueError, OSError):
        return False


def in_run_folder(place: Path) -> bool:
    """Whether a folder or file is a run folder or lies inside one."""
    return any((parent / mark).exists() for parent in (place, *place.parents) for mark in RUN_MARKS)


def _namesake(top: str) -> ModuleSpec | None:
    """The user's module under a name that is ours or Python's own: on PYTHONPATH or in the working folder."""
    if top not in OURS and top not in sys.stdlib_module_names:
        return None
    places = [Path(place or ".").resolve() for place in (*os.environ.get("PYTHONPATH", "").split(os.pathsep), "")]
    spec = PathFinder.find_spec(top, [str(place) for place in places if place != ROOT])
    return None if spec is None or spec.origin is None else spec


def _beside_ours(name: str, theirs: ModuleSpec) -> ModuleType:
    """The user's module under a name of its own, so that ours of the same name stays what it is."""
    top, *inner = name.split(".")
    alias = f"users_{top}"
    before = sys.modules.get(alias)
    if before is None or before.__file__ != theirs.origin:
        spec = spec_from_file_location(
            alias, str(theirs.origin), submodule_search_locations=theirs.submodule_search_locations
        )
        if spec is None or spec.loader is None:
            raise ImportError(f"{theirs.origin} is no Python file")
        sys.modules[alias] = module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[alias])
        except BaseException:
            del sys.modules[alias]
            raise
    return importlib.import_module(".".join([alias, *inner]))


def _look_here_last() -> None:
    """The working folder at the end of the import path, unless it is there already or is a run folder."""
    here = Path.cwd()
    if "" not in sys.path and str(here) not in sys.path and not in_run_folder(here):
        sys.path.append(str(here))


def _refuse_from_run_folder(name: str, spec: ModuleSpec | None) -> None:
    """Code inside a run folder is refused before it runs: opening a run of others executes nothing from it."""
    places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
    for place in filter(None, places):
        if in_run_folder(Path(place)):
            raise UsageError(f"expected code outside run folders, got {name} in {place}; move the module elsewhere")


OUR_ROOT = Path(__file__).resolve().parents[2]
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
    ours = any(inner.is_relative_to(OUR_ROOT / name) and not home.is_relative_to(OUR_ROOT / name) for name in OURS)
    return not ours and not any(part in INSTALLED for part in inner.relative_to(home).parts)
