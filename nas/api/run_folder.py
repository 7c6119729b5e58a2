"""A run folder read from Python; nothing in it is executed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nas.answer.past_run import RecordedRun, recorded_run
from nas.api.data_frames import notebook_html
from nas.frontier.dominance import frontier_rows
from nas.frontier.preferences import select
from nas.problem.objective import unit_of
from search_spaces.arrays import IntArray


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What a run evaluated, as tables."""

    recorded: RecordedRun

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.recorded.run.path

    @property
    def config(self) -> dict[str, Any]:
        """The resolved study: spaces, law and device embedded; `load_study(run.folder)` makes a study of it."""
        return self.recorded.run.resolved

    @property
    def evaluations(self) -> pd.DataFrame:
        """Everything evaluated, in order, with `id` and `feasible`."""
        return self._table(np.arange(len(self.recorded.evaluations)))

    @property
    def frontier(self) -> pd.DataFrame:
        """The feasible architectures that no other evaluated one dominates, sorted by the objectives."""
        return self._table(frontier_rows(self.recorded.evaluations))

    def select(self, how: str) -> pd.DataFrame:
        """Rows by `frontier`, `best`, `knee`, `diverse:K` or `budget:metric=limit`; none where nothing is feasible.

        Raises:
            UsageError: another form.
        """
        evaluations = self.recorded.evaluations
        if not evaluations.feasible.any():
            return self.frontier
        return self._table(select(evaluations, how, self.recorded.scale()))

    def _table(self, rows: IntArray) -> pd.DataFrame:
        frame = pd.DataFrame({**self.recorded.columns(rows), "feasible": self.recorded.evaluations.feasible[rows]})
        metrics = (name for name in self.recorded.evaluations.metrics if name in frame)
        frame.attrs["units"] = {name: unit for name in metrics if (unit := unit_of(name))}
        return frame

    def __repr__(self) -> str:
        found = self.recorded.evaluations
        return f"Run {self.folder}: {len(found):,} of {self.recorded.space.size:,} architectures evaluated, {int(found.feasible.sum()):,} feasible"

    def _repr_html_(self) -> str:
        return notebook_html(repr(self), self.frontier)


def read_run(folder: str | Path) -> Run:
    """A run folder, finished or not.

    Raises:
        UsageError: not a run folder.
        PlasError: a damaged one.
    """
    return Run(recorded_run(Path(folder)))
