"""A copy of the code with one thing more in it, as whoever adds it would write it, and the commands run with it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("nas", "objectives", "search_spaces")
DRIVER = """
import contextlib, importlib, io, json, sys, traceback
from nas.terminal.doors import door, installed
answers = []
for command, *arguments in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    sys.argv, code = [f"nas.{command}", *arguments], 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            importlib.import_module(installed().get(command) or door(command)).main()
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 0 if stopped.code is None else 1
        except BaseException:
            code = -1
            traceback.print_exc()
    answers.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(answers))
"""


@dataclass(frozen=True)
class Said:
    """What a command ended with; code -1 is a traceback, which no user may see."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class ChangedTree:
    """The copy, and the folder that commands run in."""

    root: Path
    folder: Path

    @classmethod
    def made(cls, place: Path, edits: Sequence[tuple[str, str, str]]) -> "ChangedTree":
        """The code as it is but for the edits: file, text that stands there once, text instead of it."""
        root, folder = place / "tree", place / "user"
        folder.mkdir(parents=True)
        for package in PACKAGES:
            shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
        for name, old, new in edits:
            text = (root / name).read_text(encoding="utf-8") if (root / name).exists() else ""
            assert not text or text.count(old) == 1, (name, old)
            (root / name).write_text(text.replace(old, new) if text else new, encoding="utf-8")
        return cls(root, folder)

    def __call__(self, *commands: Sequence[object]) -> list[Said]:
        """What each command says, one after the other in one process; `-P` keeps the checkout off the path."""
        done = subprocess.run(
            [sys.executable, "-P", "-c", DRIVER],
            input=json.dumps([[str(word) for word in command] for command in commands]),
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.root), "NO_COLOR": "1", "COLUMNS": "1000"},
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        return [Said(*answer) for answer in json.loads(done.stdout.splitlines()[-1])]
