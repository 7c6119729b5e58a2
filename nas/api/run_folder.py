"""A run folder as Python tables; nothing in it is executed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from nas.answer.past_run import RecordedRun, recorded_run, solvable, solved_within, with_quantiles
from nas.api.data_frames import design_of, notebook_html, with_differences
from nas.api.frontier import budgets_of, texts_of, within
from nas.errors import InfeasibleError, UsageError
from nas.problem.evaluations import frontier_rows
from nas.problem.objective import Budget, unit_of
from nas.problem.picks import PickRule, least_of
from nas.record.candidates import read_rows
from nas.study.metrics import check_form, select
from nas.terminal.doors import command
from objectives import outside
from objectives.display_text import escaped, in_a_command
from search_spaces.arrays import IntArray


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Evaluations of a run, as tables."""

    recorded: RecordedRun

    @property
    def folder(self) -> Path:
        """The path of the run folder."""
        return self.recorded.run.path

    @property
    def config(self) -> dict[str, Any]:
        """The resolved study with space, law and device; `load_study(run.folder)` makes a study of it."""
        return self.recorded.run.resolved

    @property
    def evaluations(self) -> pd.DataFrame:
        """All evaluations in order, with `id`, `feasible`, `state` (`ok`, `failed`) and `reason`; `attrs["units"]` holds the metrics' units."""
        found = self.recorded.evaluations
        frame = self._table(np.arange(len(found)))
        return frame.assign(state=np.where(found.ok, "ok", "failed"), reason=found.reasons or "")

    @property
    def frontier(self) -> pd.DataFrame:
        """The feasible architectures that no other evaluated one dominates, sorted by the objectives."""
        return self._table(frontier_rows(self.recorded.evaluations))

    @property
    def picks(self) -> pd.DataFrame:
        """The picks of a finished run as in `picks.csv`: yours, those of applications, and those beside published models.

        If the law has uncertainty, the table has their differences from each published model and expected regrets.

        Raises:
            UsageError: the run has no picks yet, or the file does not match the run.
        """
        return pd.DataFrame(read_rows(self.folder / "picks.csv")).apply(_of_numbers)

    @property
    def answer(self) -> str:
        """The answer of a finished run in three lines: what to train, what it takes and what limits it, which change helps most.

        Raises:
            UsageError: the run has no answer yet, or the file does not match the run.
        """
        try:
            content = outside.json_of(self.folder / "summary.json", 10 * outside.MB, own=True)
            return "\n".join(escaped(str(each)) for each in content["answer"]["sentences"])
        except (OSError, ValueError, TypeError, LookupError):
            raise UsageError(
                f"answer: expected summary.json of a finished run in {self.folder}, got none with an answer; "
                f"go on with {command('run')} --resume {in_a_command(self.folder)}"
            ) from None

    def select(self, how: str) -> pd.DataFrame:
        """Return rows by `frontier`, `best`, `knee`, `diverse:K` or `budget:metric=limit`; none if nothing is feasible.

        Raises:
            UsageError: `how` has another form.
        """
        check_form(how)
        return self._knowing([how.partition(":")[2]])._select(how)

    def _knowing(self, limits: list[str]) -> Self:
        """The same with the metrics at a quantile that limits name."""
        return replace(self, recorded=with_quantiles(self.recorded, limits))

    def _select(self, how: str) -> pd.DataFrame:
        if not self.recorded.evaluations.feasible.any():
            return self.frontier
        kind, _, rest = how.partition(":")
        asked = (
            budgets_of([rest], tuple(self.recorded.evaluations.metrics), self.recorded.workload)
            if kind == "budget"
            else ()
        )
        found = self._answering(asked)
        return self._compared(select(found.evaluations, how, self.recorded.scale(), self.recorded.workload), found)

    def pick(self, *budgets: str | Mapping[str, Any]) -> pd.Series:
        """Return the evaluated architecture of lowest loss within the run's budgets and these, as `Frontier.pick` does.

        A run of `exact` picks from its whole space.

        Raises:
            UsageError: an unknown metric or an invalid limit.
            InfeasibleError: no evaluated architecture satisfies the budgets.
        """
        return self._knowing(texts_of(budgets))._pick(budgets)

    def _pick(self, budgets: Iterable[str | Mapping[str, Any]]) -> pd.Series:
        asked = budgets_of(budgets, tuple(self.recorded.evaluations.metrics), self.recorded.workload)
        found = self._answering(asked)
        rule = PickRule(asked[0] if asked else None, asked[1:], least=least_of(found.evaluations.objectives))
        row = rule.row(found.evaluations)
        if row is None:
            limits = within((*self.recorded.evaluations.budgets, *asked))
            raise InfeasibleError(f"pick: expected an evaluated architecture within {limits}, got none; raise a limit")
        return design_of(self._compared(np.array([row]), found))

    def _compared(self, rows: IntArray, run: RecordedRun) -> pd.DataFrame:
        return with_differences(self._table(rows, run), run.law, run.architectures(rows), run.baselines)

    def _answering(self, asked: tuple[Budget, ...]) -> RecordedRun:
        """The run, or what an exact one answers under further budgets: its log holds the frontier alone."""
        problem = solvable(self.recorded) if asked else None
        if problem is None:
            return self.recorded
        return solved_within(self.recorded, problem, (*self.recorded.evaluations.budgets, *asked[1:]), asked[0])

    def _table(self, rows: IntArray, run: RecordedRun | None = None) -> pd.DataFrame:
        chosen = run or self.recorded
        frame = pd.DataFrame({**chosen.columns(rows), "feasible": chosen.evaluations.feasible[rows]})
        metrics = (name for name in chosen.evaluations.metrics if name in frame)
        frame.attrs["units"] = {name: unit for name in metrics if (unit := unit_of(name, chosen.workload.figures))}
        return frame

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its folder, which is read again."""
        return read_run, (self.folder.resolve(),)

    def __repr__(self) -> str:
        found = self.recorded.evaluations
        return f"Run {self.folder}: {len(found):,} of {self.recorded.space.size:,} architectures evaluated, {int(found.feasible.sum()):,} feasible"

    def _repr_html_(self) -> str:
        try:
            answer = self.answer
        except UsageError:  # of a run that goes on
            answer = ""
        return notebook_html(repr(self), self.frontier, above=answer)


def _of_numbers(column: pd.Series) -> pd.Series:
    """A column of text as numbers, where all of it are; NaN for what is empty."""
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers if (numbers.notna() | (column == "")).all() else column


def read_run(folder: str | Path) -> Run:
    """Return a run folder, finished or not, as a `Run`; nothing in it is executed or imported.

    Args:
        folder: of a run.

    Examples:
        >>> run = nas.read_run("run")
        >>> run.evaluations.attrs["units"]["total_ms"], run.pick("total_ms<=100").loss < 4
        ('ms', True)

    Raises:
        UsageError: not a run folder.
        PlasError: a damaged run folder.
    """
    if not isinstance(folder, (str, Path)):
        raise UsageError(f"read_run: expected the path of a run folder, got {type(folder).__name__}; give one")
    return Run(recorded_run(Path(folder)))
