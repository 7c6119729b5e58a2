"""The working folder leaves the import path before a command imports anything else.

`python -m` puts it first, where a `yaml.py` of whoever wrote the folder would run in the place of PyYAML, and a user's
own `select.py` would break commands that never meant it. A user's functions are found without: `nas.study.user_code`
looks in the working folder last. Nothing but what the interpreter itself has loaded may be imported here.
"""

import os
import sys

OWN = os.path.realpath(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))


class BesideUs:
    """Finds our other packages beside this one: a user's `objectives.py` further up the path is not ours."""

    @staticmethod
    def find_spec(name, path=None, target=None):  # type: ignore[no-untyped-def]  # typing is not loaded yet
        """The interpreter's own answer for the folder that holds us; None for any other name."""
        if name not in ("objectives", "search_spaces"):
            return None
        by_path = next(finder for finder in sys.meta_path if getattr(finder, "__name__", "") == "PathFinder")
        return by_path.find_spec(name, [OWN])


def keep_together() -> None:
    """Find `objectives` and `search_spaces` beside `nas` from here on."""
    if BesideUs not in sys.meta_path:
        sys.meta_path.insert(0, BesideUs)


def started_with_m() -> bool:
    """Whether this interpreter looks for the module of `python -m nas…`, or of a package `plas_…` around it, right now."""
    if sys.argv[:1] != ["-m"]:  # what stands there meanwhile
        return False
    word = sys.orig_argv[-len(sys.argv)]
    module = word.partition("m")[2] if word.startswith("-") else word
    return module.partition(".")[0] == "nas" or module.startswith("plas_")


def is_program() -> bool:
    """Whether this process is the installed program `plas`."""
    return os.path.basename(sys.argv[0] if sys.argv else "") == "plas"


def leave_working_folder() -> None:
    """Drop the working folder here and in worker processes; a checkout is its own, and stays."""
    if started_with_m() and not sys.flags.safe_path and os.path.realpath(sys.path[0]) != OWN:
        del sys.path[0]
        os.environ["PYTHONSAFEPATH"] = "1"
    elif is_program():  # which never had it; its workers would
        os.environ["PYTHONSAFEPATH"] = "1"
