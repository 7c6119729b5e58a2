"""The lists of architectures of the miniature headline, drawn before anything is trained: `studies/headline/lists/`.

python -m studies.headline design    draws them again and says whether they are the committed ones
"""

import csv
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.random import Generator

from nas.files.tables import csv_text
from nas.search.assembly import assemble
from nas.study.layers import layered
from plas_fit.fitting.design import filling_rows
from plas_fit.fitting.diagnostics import FACTORS
from plas_fit.next_designs import candidates_of
from search_spaces.architectures import Architectures
from search_spaces.arrays import IntArray
from search_spaces.columns import SHAPE

HERE = Path(__file__).resolve().parent
STUDY, LISTS = HERE / "study.yaml", HERE / "lists"
OPTIMAL, FILLING, HELD_OUT, LONGER, REPEATED = 44, 24, 16, 12, 6  # a tenth of OPTIMAL are repeats of others
SEED = 20261122


def drawn() -> dict[str, str]:
    """Every list as a candidate file's text, by name; the same for the same versions."""
    generator = np.random.default_rng(SEED)
    candidates = feasible(generator)
    keys = {key(candidates, i): i for i in range(len(candidates))}
    chosen = np.array([keys[shape] for shape in optimal()], dtype=np.int64)
    filled = filling_rows(FACTORS, candidates, chosen, FILLING, generator)
    training = np.concatenate([chosen, filled])
    held_out = balanced(candidates, np.setdiff1d(np.arange(len(candidates)), training), HELD_OUT, generator)
    longer = np.sort(balanced(candidates, training, LONGER, generator))
    repeated = np.sort(balanced(candidates, training, REPEATED, generator))
    names = {int(row): f"t-{i:02}" for i, row in enumerate(training)}
    purpose = ["fit_next"] * len(chosen) + ["space_filling"] * len(filled)
    return {
        "training": text(candidates[training], [names[int(row)] for row in training], purpose),
        "held_out": text(candidates[held_out], [f"h-{i:02}" for i in range(HELD_OUT)], ["held_out"] * HELD_OUT),
        "longer": text(candidates[longer], [names[int(row)] for row in longer], ["twice_the_tokens"] * LONGER),
        "repeated": text(candidates[repeated], [names[int(row)] for row in repeated], ["other_seeds"] * REPEATED),
    }


def feasible(generator: Generator) -> Architectures:
    """Every architecture of the study's space within its budgets."""
    problem = assemble(*layered({}, [], str(STUDY))).problem
    everything = candidates_of(problem.space, generator)
    assessed = problem.assess(problem.headed(everything))
    return everything[np.flatnonzero(np.all([assessed[b.metric] <= b.limit for b in problem.budgets], axis=0))]


def optimal() -> list[tuple[int, ...]]:
    """Shapes that `plas fit --next` proposes under the paper's law, repeats left out."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "next.csv")
        asked = ["--next", str(OPTIMAL), "--config", str(STUDY), "--goal", "coefficients", "--candidates", str(out)]
        subprocess.run([sys.executable, "-m", "plas_fit", *asked, "--quiet"], stdout=subprocess.DEVNULL, check=True)
        with out.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    return list(dict.fromkeys(tuple(int(row[name]) for name in SHAPE) for row in rows))


def key(architectures: Architectures, row: int) -> tuple[int, ...]:
    """The shape of one architecture."""
    return tuple(int(getattr(architectures, name)[row]) for name in SHAPE)


def balanced(candidates: Architectures, rows: IntArray, n: int, generator: Generator) -> IntArray:
    """n of the rows, half of them dense, uniformly within each half."""
    dense = candidates.n_experts[rows] == 1
    halves = [generator.choice(rows[mask], n // 2, replace=False) for mask in (dense, ~dense)]
    return np.concatenate(halves)


def text(architectures: Architectures, ids: Sequence[str], purpose: Sequence[str]) -> str:
    """A candidate file."""
    shapes = {name: getattr(architectures, name) for name in SHAPE}
    return csv_text({"id": np.array(ids, dtype=object), **shapes, "purpose": np.array(purpose, dtype=object)})


def design() -> None:
    """Write the lists that are not there, and refuse to go on where those that are differ."""
    LISTS.mkdir(exist_ok=True)
    for name, content in drawn().items():
        path = LISTS / f"{name}.csv"
        if not path.exists():
            path.write_text(content, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != content:
            sys.exit(f"{path}: differs from what this version draws; a design is not changed after the first run")
        print(f"{path.relative_to(HERE.parent)}: {content.count(chr(10)) - 1} architectures")
