"""A new user's first minutes, from nothing but the README: clone, install, describe a device, search, choose, export, look at the report.

python tests/docs/first_hour.py > first-hour.log

The last commit of this checkout is cloned into a temporary folder. The README's install command and every step of its tour run there as they
stand, 80 columns wide; each is logged with what it prints and with the seconds it took. Exit code 1 when a step fails or leaves nothing to look at.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from samples import ROOT, blocks_of, commands_of

TOUR = "## Five minutes with your own device"
ENTER = "source .venv/bin/activate"
AIM_S = 300
LOOK_AT = ("runs/mine/frontier.csv", "runs/mine/report.html", "candidates.csv", "trained/README.md")
DROPPED = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PLAS_EXTERNAL_DATA")


def steps(readme: str) -> Iterator[str]:
    """The shell commands that the README tells a new user to type, in order."""
    before, _, after = readme.partition(TOUR)
    yield "\n".join(next(block.lines for block in blocks_of(before) if block.language == "bash"))
    tour = re.split(r"^## ", after, flags=re.MULTILINE)[0]
    if ENTER not in tour:
        sys.exit(f"README.md: expected {ENTER!r} in the tour, got none; a new user has no plas without it")
    for block in blocks_of(tour):
        if block.kind == "file":
            yield f"cat > {shlex.quote(block.marks['file'])} <<'END'\n" + "\n".join(block.lines) + "\nEND"
        elif block.kind == "bash":
            yield from block.lines
        elif block.kind in ("console", "from"):
            for command, _ in commands_of(block.lines) if block.kind == "console" else ():
                yield "\n".join([command[0].removeprefix("$ "), *command[1:]])


def said(text: str) -> None:
    """A line of the log, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def typed(step: str, folder: Path, begun: float) -> bool:
    """Whether a step ended well; what it printed and how long it took is logged."""
    environment = {key: value for key, value in os.environ.items() if key not in DROPPED}
    environment |= {"COLUMNS": "80", "LINES": "40", "BROWSER": "true", "NO_COLOR": "1"}
    enter = f"{ENTER} && " if (folder / ".venv").exists() else ""
    said(f"$ {step}")
    start = time.monotonic()
    ended = subprocess.run(
        ["bash", "-e", "-c", enter + step],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    now = time.monotonic()
    said(ended.stdout.decode("utf-8", "replace").rstrip())
    said(f"[exit code {ended.returncode}, {now - start:.1f} s, {now - begun:.1f} s since the beginning]\n")
    return ended.returncode == 0


def main() -> int:
    """Clone, follow, look."""
    with tempfile.TemporaryDirectory() as place:
        begun, folder = time.monotonic(), Path(place) / "plas"
        if not typed(f"git clone --quiet {shlex.quote(str(ROOT))} plas", Path(place), begun):
            return 1
        for step in steps((folder / "README.md").read_text(encoding="utf-8")):
            if not typed(step, folder, begun):
                return 1
        missing = [name for name in LOOK_AT if not (folder / name).is_file() or not (folder / name).stat().st_size]
        took = time.monotonic() - begun
        said(f"To look at: {', '.join(LOOK_AT)}" if not missing else f"Missing: {', '.join(missing)}")
        said(f"{took:.0f} s from the clone to the end; the aim of {AIM_S} s is {'met' if took < AIM_S else 'missed'}")
        return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
