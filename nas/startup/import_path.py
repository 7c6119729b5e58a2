"""The working folder leaves the import path before a command imports anything else.

`python -m` puts it first, where a `yaml.py` of whoever wrote the folder would run in the place of PyYAML, and a user's
own `select.py` would break commands that never meant it. A user's functions are found without: `nas.study.metrics`
looks in the working folder last. Nothing but what the interpreter itself has loaded may be imported here.
"""

import os
import sys


def started_with_m() -> bool:
    """Whether this interpreter looks for the module of `python -m nas…` right now."""
    if sys.argv[:1] != ["-m"]:  # what stands there meanwhile
        return False
    word = sys.orig_argv[-len(sys.argv)]
    module = word.partition("m")[2] if word.startswith("-") else word
    return module.partition(".")[0] == "nas"


def leave_working_folder() -> None:
    """Drop the working folder here and in worker processes; a checkout is its own, and stays."""
    own = os.path.realpath(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    if started_with_m() and not sys.flags.safe_path and os.path.realpath(sys.path[0]) != own:
        del sys.path[0]
        os.environ["PYTHONSAFEPATH"] = "1"
