"""The designs of the GPU table and the order of their trainings, drawn before anything ran: `studies/gpu_table/`."""

from pathlib import Path

import numpy as np

from nas.files.tables import csv_text
from nas.search.assembly import assemble
from nas.study.layers import layered
from plas_fit.next_designs import candidates_of
from search_spaces.columns import SHAPE
from studies.gpu_table.lists import DESIGNS, ORDER, STUDY, hold

SEED, REPEATED = 20261126, 16
FURTHER = 2  # FFN size in widths of the designs that are trained last


def drawn() -> dict[Path, str]:
    """Both lists as text; the same for the same versions."""
    generator = np.random.default_rng(SEED)
    found = candidates_of(assemble(*layered({}, [], str(STUDY))).problem.space, generator)
    ids = np.array([f"g-{i:03}" for i in range(len(found))])
    further = found.expert_size == FURTHER * found.width
    first = np.flatnonzero(~further)
    again = generator.choice(first, REPEATED, replace=False)
    core = [(row, 0) for row in first] + [(row, 1) for row in again]
    core = [core[i] for i in generator.permutation(len(core))]
    order = core + [(row, 0) for row in generator.permutation(np.flatnonzero(further))]
    parts = ["core"] * len(core) + ["further"] * int(further.sum())
    columns = {"id": ids[[row for row, _ in order]], "seed": [seed for _, seed in order], "part": parts}
    return {
        DESIGNS: csv_text({"id": ids, **{name: getattr(found, name) for name in SHAPE}}),
        ORDER: csv_text(columns),
    }


def design() -> None:
    """Write the lists that are not there, and refuse to go on where those that are differ."""
    hold(drawn())
