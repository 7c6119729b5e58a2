"""The record of measurements: one line of JSON per candidate and round, appended and flushed, never rewritten."""

import json
import os
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.files.own_files import opened, refuse_links
from nas.files.tables import write
from objectives import outside

MOST_BYTES = 200 * outside.MB
LOG, SETTINGS = "samples.jsonl", "settings.json"


def own_folder(folder: Path) -> None:
    """Make the folder of a record, or see that it is one.

    Raises:
        UsageError: a folder of something else, or none can be made.
    """
    try:
        begun = (folder / SETTINGS).is_file()
        if folder.exists() and not begun and (not folder.is_dir() or any(f.name != ".lock" for f in folder.iterdir())):
            raise UsageError(f"--out: expected a new folder or one of an earlier measure, got {folder}; name another")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out: expected a writable folder, got {error.strerror}; name another") from None


class Record:
    """A folder with the settings, every raw sample, and what failed."""

    def __init__(self, folder: Path, settings: dict[str, Any], of: str = "measure", log: str = LOG) -> None:
        """Open or start a folder that this process holds, as the command `of` keeps it.

        Raises:
            UsageError: a garbled record, or one measured under other settings.
        """
        self.path = folder / log
        known = folder / SETTINGS
        refuse_links(self.path, known)
        try:
            if known.is_file():
                self._same(folder, outside.json_of(known, outside.MB, own=True), settings)
            else:
                write(known, json.dumps(settings, indent=2) + "\n")
            self.lines = self._read()
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{folder}: expected the record of an earlier {of}, got {error}; name another --out"
            ) from None

    @staticmethod
    def _same(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
        for name in (*new, *(name for name in old if name not in new)):
            if old.get(name) != new.get(name):
                raise UsageError(
                    f"{folder}: expected the settings that it began with ({name} {old.get(name)!r}), "
                    f"got {new.get(name)!r}; repeat them or name another --out"
                )

    def _read(self) -> list[dict[str, Any]]:
        """Whole lines; the half of one that a kill left is cut off."""
        if not self.path.exists():
            return []
        raw = outside.content(self.path, MOST_BYTES, own=True)
        whole = raw[: raw.rfind(b"\n") + 1]
        if len(whole) < len(raw):
            with os.fdopen(opened(self.path, 0), "r+b") as file:
                file.truncate(len(whole))
        return [outside.parsed(line) for line in whole.decode("utf-8").splitlines()]

    def has(self, candidate: str, turn: int, *, retry: bool) -> bool:
        """Whether a candidate's round was measured; failures count unless they are to be retried."""
        return any(
            line["id"] == candidate and line["round"] == turn and (line["state"] == "ok" or not retry)
            for line in self.lines
        )

    def add(self, line: dict[str, Any]) -> None:
        """Append a line, on the disk when this returns."""
        with os.fdopen(opened(self.path, os.O_APPEND), "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.lines.append(line)
