"""The committed lists of the GPU table, and the trainings that they stand for."""

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from nas.export.candidates import with_vocabulary
from nas.export.recipe import Recipe, load_recipe
from nas.export.tokenizer import tokenizer_for
from nas.record.candidates import read_candidates
from plas_train.jobs import Job, jobs_of
from search_spaces.architectures import Architectures

HERE = Path(__file__).resolve().parent
STUDY, DESIGNS, ORDER, RECIPE = (HERE / name for name in ("study.yaml", "designs.csv", "order.csv", "recipe.yaml"))
TOKENIZER = "bytes"
PROMPT, STEPS = 1024, 16  # bytes in and steps after them of what is timed
TRAININGS, MEASUREMENTS, MACHINE, PILOT = "trainings.jsonl", "measurements.jsonl", "machine.json", "pilot.json"


def hold(lists: Mapping[Path, str]) -> None:
    """Write the lists of a design that are not there, and end the program where those that are differ."""
    for path, content in lists.items():
        if not path.exists():
            path.write_text(content, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != content:
            sys.exit(f"{path}: differs from what this version draws; a design is not changed after the first run")
        print(f"{path.name}: {content.count(chr(10)) - 1} rows")


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a list."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def designs() -> tuple[Architectures, list[str]]:
    """Every design with its vocabulary, and its name."""
    architectures, ids = read_candidates(DESIGNS)
    return with_vocabulary(architectures, None, tokenizer_for(TOKENIZER).size), ids


def recipe_of(peak: float) -> Recipe:
    """The recipe with a constant rate, `peak` at width 128."""
    recipe = load_recipe(str(RECIPE))
    rate = recipe.learning_rate.model_copy(update={"peak": peak, "final": peak})
    return recipe.model_copy(update={"learning_rate": rate})


def jobs(ids: Sequence[str], seeds: Sequence[int], tokens: int, peak: float) -> list[Job]:
    """A training of each named design with its seed, in this order."""
    architectures, names = designs()
    rows = [names.index(name) for name in ids]
    found = []
    for row, seed in zip(rows, seeds, strict=True):
        one = architectures[row : row + 1]
        found += jobs_of(one, [names[row]], [[seed]], [tokens], recipe_of(peak), tokenizer_for(TOKENIZER))
    return found


def in_order(tokens: int, peak: float) -> list[Job]:
    """Every training, in the committed order."""
    order = rows_of(ORDER)
    return jobs([row["id"] for row in order], [int(row["seed"]) for row in order], tokens, peak)
