"""Logs what is evaluated, in order, as COCO's observers do: a CSV of designs and values, and a JSON file that says of what."""

import csv
import io
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files import own_files
from nas.files.tables import refuse_existing, write_json
from nas.record.store import GENE
from objectives.plugins import DISTRIBUTION, version_of
from plas_bench.instance import BenchProblem, Values
from search_spaces.arrays import AnyArray


class Logger:
    """A trace in a folder, `NAME--ALGORITHM--sSEED.csv` and `.json`; a row is there as soon as it is evaluated.

    Use it in place of the problem: `logger.evaluate(genotypes)`; or give it to `pymoo_problem`.

    Examples:
        >>> with plas_bench.Logger(problem, "runs/mine", algorithm="mine", seed=1) as log:
        ...     values = log.evaluate(problem.sample(20, seed=1))

    Raises:
        UsageError: the trace is there already, or a name that no file can have.
    """

    def __init__(self, problem: BenchProblem, folder: str | Path, algorithm: str, seed: int = 0, **more: Any) -> None:
        if not algorithm or set(algorithm) & set('/\\"\n'):
            raise UsageError(
                f"algorithm: expected a name that a file can have, got {algorithm!r}; leave out / and quotes"
            )
        self.problem, self.count = problem, 0
        self.path = own_files.made_folder(Path(folder)) / f"{problem.name}--{algorithm}--s{seed}.csv"
        refuse_existing("logger", self.path)
        self.info = {
            "problem": problem.name,
            "version": problem.definition.version,
            "sha256": problem.definition.front.sha256,
            "algorithm": algorithm,
            "seed": seed,
            "logged_with": f"{DISTRIBUTION} {version_of(DISTRIBUTION)}",
            "begun": datetime.now(UTC).isoformat(timespec="seconds"),
            **more,
        }
        write_json(self.path.with_suffix(".json"), self.info)
        genes, limits = problem.genes, (text.split()[0] for text in problem.constraints)
        designs = self._designs(problem.sample(1, 0))
        header = ("evaluation", *(f"{GENE}{name}" for name in genes), *designs, *problem.objectives)
        self._append(_line([*header, *(f"violation_{name}" for name in limits)]))

    def evaluate(self, genotypes: Any) -> Values:
        """Objectives (n, m) and violations (n, k) of any integers (n, g), logged as the designs that they stand for."""
        repaired = self.problem.repair(genotypes)
        found = self.problem.evaluate(repaired)
        self.log(repaired, found)
        return found

    def log(self, genotypes: Any, found: Values) -> None:
        """Append evaluations, a row each."""
        table = np.concatenate([found.objectives, found.violations], axis=1).tolist()
        designs = zip(*(column.tolist() for column in self._designs(genotypes).values()), strict=True)
        rows = zip(np.asarray(genotypes).tolist(), designs, table, strict=True)
        text = "".join(_line([self.count + i, *genes, *design, *row]) for i, (genes, design, row) in enumerate(rows, 1))
        self._append(text)
        self.count += len(table)

    def _designs(self, genotypes: Any) -> dict[str, AnyArray]:
        """The columns of their architectures, as every table of designs has them."""
        space = self.problem.problem.space
        return space.architectures(np.asarray(genotypes)).columns(space.further)

    def _append(self, text: str) -> None:
        """Add lines in one step: a killed process leaves whole ones."""
        descriptor = own_files.opened(self.path, os.O_APPEND)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Say in the JSON file how many evaluations there are."""
        write_json(self.path.with_suffix(".json"), {**self.info, "evaluations": self.count})

    def __enter__(self) -> "Logger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _line(cells: Sequence[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()
