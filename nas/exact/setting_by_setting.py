"""Exact answers of a problem over settings: each setting's own by sums of parts, joined; without settings there is one."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce

from nas.exact.decomposition.branch_and_bound import Effort
from nas.exact.decomposition.frontier import SumsOfParts
from nas.frontier.dominance import frontier_rows
from nas.frontier.picks import best_row
from nas.problem.evaluations import Evaluations, joined
from nas.problem.objective import Budget, Objective
from nas.problem.problem import Problem
from nas.problem.settings import each_setting, of_all_settings
from nas.search.notebook import Notebook


class SettingBySetting:
    """Sums of parts of the problem of every setting; answers are in genotypes of the whole.

    Raises:
        BrokenSum: parts that do not add up to the whole.
    """

    def __init__(
        self, problem: Problem, metrics: tuple[str, ...], notebook: Notebook | None = None, most: int | None = None
    ) -> None:
        self.problem = problem
        self.each = [SumsOfParts(one, metrics, notebook, most) for one in each_setting(problem)]

    @property
    def effort(self) -> Effort:
        """The work of all answers."""
        total = Effort()
        for sums in self.each:
            total.add(sums.effort)
        return total

    def frontier(
        self,
        objectives: tuple[Objective, ...],
        budgets: tuple[Budget, ...],
        report: Callable[[int], None] = lambda covered: None,
    ) -> Evaluations | None:
        """The feasible frontier with all ties, in file order, with the metrics of objectives and budgets; None when nothing is feasible.

        Raises:
            Exceeded: `most` items did not suffice.
            BrokenSum: sums of parts prove nothing here.
            UsageError: no objective depends on the architecture.
        """
        names = (*(objective.name for objective in objectives), *(budget.metric for budget in budgets))
        found = self._joined((sums.frontier(objectives, budgets, report=report) for sums in self.each), names)
        return None if found is None else found[frontier_rows(found)]

    def lowest(
        self, budgets: tuple[Budget, ...], asked: Budget | None = None, least: str = "loss"
    ) -> Evaluations | None:
        """The pick within budgets and one more, one row: the least of the loss or of another metric, ties broken as everywhere."""
        limits = (*budgets, *([] if asked is None else [asked]))
        names = (least, "total_ms", *(limit.metric for limit in limits))
        found = self._joined((_lowest(sums, limits, asked, least) for sums in self.each), names)
        row = None if found is None else best_row(found, asked, of=least)
        return None if found is None or row is None else found[row : row + 1]

    def _joined(self, answers: Iterable[Evaluations | None], names: tuple[str, ...]) -> Evaluations | None:
        """The settings' answers, in their order, with some of their metrics."""
        parts = [
            replace(part, metrics={name: part.metrics[name] for name in dict.fromkeys(names)})
            for number, answer in enumerate(answers)
            if answer is not None
            for part in [of_all_settings(answer, number, self.problem)]
        ]
        return reduce(joined, parts) if parts else None


def _lowest(sums: SumsOfParts, limits: tuple[Budget, ...], asked: Budget | None, least: str) -> Evaluations | None:
    """One setting's pick: the frontier of what is minimised alone, ties broken as everywhere.

    Where all its architectures are the same in what is minimised, what breaks its ties decides first.
    """
    deciding = (least, *([asked.metric] if asked else []), "total_ms")
    first = next(metric for metric in deciding if sums.varies(metric))
    ties = ("total_ms",) if sums.varies("total_ms") else ()
    best = sums.frontier((Objective(first),), limits, (least, "total_ms"), ties)
    row = None if best is None else best_row(best, asked, of=least)
    return None if best is None or row is None else best[row : row + 1]
