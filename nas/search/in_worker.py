"""Evaluates one metric of one architecture in a worker, under a clock, wherever the worker is."""

import ctypes
import hashlib
import importlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import NotRunError, UsageError
from nas.problem.objective import Objective
from nas.problem.problem import call_user_metric, failure
from nas.study.user_code import loaded
from objectives import outside
from objectives.plugins import DISTRIBUTION, version_of
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures

Answer = tuple[float, str]
_imported: dict[str, str] = {}  # on a worker elsewhere: hash of the file of each user's module, as it was imported


class Overdue(KeyboardInterrupt):
    """Raised inside an evaluation whose time is up; not an Exception, so that user code does not catch it."""


def in_worker(
    name: str,
    architecture: Architectures,
    scenario: Scenario | None,
    timeout_s: float | None,
    place: str,
    settings: Mapping[str, Any] | None = None,
    fidelity: float | None = None,
    others: Sequence[str] = (),
) -> Any:
    """A user metric of one architecture, in a worker, imported from its place: value and reason of failure; with `others` of its columns a list.

    The clock runs from here, so that starting a process or waiting in a queue costs no time.
    Whatever the module or the function raises fails this architecture alone.

    Raises:
        UsageError: values of another shape or type, which no architecture would get right.
        NotRunError: this machine lacks what the function needs.
    """
    try:
        with clock(timeout_s):
            module, _, attribute = place.partition(":")
            function = getattr(loaded(module), attribute.partition(".")[0])
            log_scale = bool(getattr(function, "LOG_SCALE", False))
            metric = Objective(name, "", log_scale, function, place, settings=settings, fidelity=fidelity)
            values, reasons = call_user_metric(metric, architecture, scenario)
            answer = float(values[0]), reasons[0]
            further = [in_worker(other, architecture, scenario, None, other, None, fidelity) for other in others]
            return [answer, *further] if others else answer
    except (UsageError, NotRunError):
        raise
    except Overdue:
        return np.nan, overdue(name, timeout_s)
    except BaseException as error:
        return np.nan, failure(name, error)


def _interrupt(*_: object) -> None:
    raise Overdue


@contextmanager
def clock(timeout_s: float | None) -> Iterator[None]:
    """Raise `Overdue` in here when the time is up; in a thread once it is back from what is not Python."""
    if timeout_s is None:
        yield
    elif threading.current_thread() is threading.main_thread():
        with _alarm(timeout_s):
            yield
    else:
        with _bell(timeout_s):
            yield


@contextmanager
def _alarm(timeout_s: float) -> Iterator[None]:
    previous = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


@contextmanager
def _bell(timeout_s: float) -> Iterator[None]:
    """Signals reach the main thread alone; any other is sent the exception by name."""
    thread, left, lock = ctypes.c_ulong(threading.get_ident()), threading.Event(), threading.Lock()

    def ring() -> None:
        with lock:
            if not left.is_set():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(Overdue))

    timer = threading.Timer(timeout_s, ring)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            left.set()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)  # one that was sent and did not arrive yet
        timer.cancel()


def overdue(name: str, timeout_s: float | None) -> str:
    """The reason of a timeout."""
    return f"{name}: timeout after {timeout_s:g} s"


def prepare_worker(path: Sequence[str]) -> None:
    """Workers import what the driver can import, leave Ctrl-C and a terminal that goes away to the driver, and end when it is killed."""
    sys.path[:] = list(path)
    for sent in (signal.SIGINT, signal.SIGHUP):
        signal.signal(sent, signal.SIG_IGN)
    threading.Thread(target=_end_with_driver, daemon=True).start()


def _end_with_driver() -> None:
    driver = parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)


@dataclass(frozen=True)
class Place:
    """Where a user's module is for the driver: its name, the folder to import it from, and the hash of its file."""

    module: str
    folder: str
    written: str


def place_of(module: str) -> Place:
    """Where a module that was imported here lies; of one without a file its name alone."""
    top, found = sys.modules.get(module.partition(".")[0]), sys.modules.get(module)
    file = getattr(top, "__file__", None)
    if file is None:
        return Place(module, "", "")
    parent = Path(file).resolve().parent
    return Place(module, str(parent.parent if hasattr(top, "__path__") else parent), _hash_of(found))


def _hash_of(module: object) -> str:
    """Hash of a module's file; "" of one without."""
    try:
        return hashlib.blake2b(
            outside.content(Path(str(getattr(module, "__file__", ""))), 100 * outside.MB), digest_size=16
        ).hexdigest()
    except OSError:
        return ""


def at_worker(place: Place, *what: Any) -> Any:
    """`in_worker` on a machine that is not the driver's, with the user's module as the driver has it."""
    if place.folder and not _found(place.module) and Path(place.folder).is_dir():
        sys.path.append(place.folder)
    _as_the_driver(place)
    return in_worker(*what)


def _found(module: str) -> bool:
    with suppress(ImportError, ValueError):
        return find_spec(module.partition(".")[0]) is not None
    return False


def _as_the_driver(place: Place) -> None:
    """Import a module again where an older file of it was imported before; what it raises, the evaluation says.

    Raises:
        NotRunError: this worker finds another file.
    """
    if not place.written or _imported.get(place.module) == place.written:
        return
    if place.module in _imported:
        sys.modules.pop(place.module, None)
        importlib.invalidate_caches()
    with suppress(BaseException):
        _imported[place.module] = _hash_of(loaded(place.module))
    if _imported.get(place.module, place.written) != place.written:
        raise NotRunError(f"another file of {place.module} on {socket.gethostname()} than here; copy yours there")


def version_here() -> str:
    """This project's version on every worker."""
    return version_of(DISTRIBUTION)
