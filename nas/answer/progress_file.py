"""Where a run stands, in a small file for other machines: SQLite's write-ahead log can be read only where it is written."""

import socket
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from nas.answer.progress import LARGEST, Progress, RunFollower, manifest_of
from nas.errors import PlasError
from nas.files.tables import write_json
from objectives import outside

NAME = "progress.json"
EVERY_S = 2.0


def this_machine() -> str:
    """The name that distinguishes machines that share a folder."""
    return socket.gethostname()


class ProgressFile:
    """Keeps `progress.json` in the folder of a run that goes on here; it costs at most a fiftieth of the run's time."""

    def __init__(self, folder: Path) -> None:
        self.path, self.follower, self.due = folder / NAME, RunFollower(folder), time.monotonic() + EVERY_S

    def __call__(self) -> None:
        """Write where the run stands, when it is time."""
        began = time.monotonic()
        if began < self.due:
            return
        with suppress(PlasError):  # nobody's result depends on it
            write_json(self.path, self.follower.look().json())
        now = time.monotonic()
        self.due = now + max(EVERY_S, 50 * (now - began))

    def close(self) -> None:
        """Leave nothing: a run that does not go on is read from its store."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


def going_on_elsewhere(folder: Path) -> bool:
    """Whether another machine works on a run, as its manifest says."""
    manifest = manifest_of(folder)
    return bool(manifest["state"] == "running" and manifest.get("host", this_machine()) != this_machine())


def read(folder: Path) -> Progress | None:
    """Content of the file of a run that goes on elsewhere; None where there is none, or it is none of ours."""
    place = folder / NAME
    try:
        content, written = outside.json_of(place, LARGEST, own=True), place.lstat().st_mtime
        found = TypeAdapter(Progress).validate_python(content, strict=False)
    except (OSError, ValueError, ValidationError):
        return None
    return replace(found, run=str(folder), silent_s=found.silent_s + max(time.time() - written, 0.0))


class Elsewhere:
    """Follows a run on another machine by its file, and by its store once that is written no more."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, RunFollower(folder)

    def look(self) -> Progress:
        """The run as it stood when it was last noted.

        Raises:
            PlasError: nothing is noted, or a damaged store.
        """
        if not going_on_elsewhere(self.folder):
            return self.store.look()
        found = read(self.folder)
        if found is None:
            raise PlasError(
                f"{self.folder}: expected {NAME}, which the machine that runs it writes, got none; look again"
            )
        return found
