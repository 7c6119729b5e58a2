"""Where the stages of the miniature headline keep what they make, and how they call the product's commands."""

import csv
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nas.files.tables import write

HERE = Path(__file__).resolve().parent
STUDY, LISTS, RECIPE, BASELINE = (HERE / name for name in ("study.yaml", "lists", "recipe.yaml", "baseline.csv"))
DOCS = HERE.parents[1] / "docs"
TOKENS, LONGER = 307_200, 614_400
Row = dict[str, str]


@dataclass(frozen=True)
class Folder:
    """The folder of one whole run."""

    root: Path

    def __truediv__(self, name: str) -> Path:
        return self.root / name

    def made(self, name: str) -> Path:
        """A subfolder, made if it is not there."""
        (self.root / name).mkdir(parents=True, exist_ok=True)
        return self.root / name


def plas(command: str, *arguments: object, output: Path | None = None) -> None:
    """One command of the product; its standard output into a file where one is named. Ends the stage where it fails."""
    line = [sys.executable, "-m", f"nas.{command}", *map(str, arguments)]
    print("$ plas", command, *arguments, flush=True)
    result = subprocess.run(line, stdout=None if output is None else subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(f"plas {command} ended with {result.returncode}; the same stage again continues")
    if output is not None:
        write(output, result.stdout)


def rows(path: Path) -> list[Row]:
    """The rows of a CSV; none where it is not there."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, found: Sequence[Mapping[str, object]]) -> None:
    """A CSV with every column that some row has, in the order of their first appearance."""
    names = list(dict.fromkeys(name for row in found for name in row))
    lines = [names, *([str(row.get(name, "")) for name in names] for row in found)]
    write(path, "".join(",".join(line) + "\n" for line in lines))
