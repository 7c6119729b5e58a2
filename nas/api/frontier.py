"""A frontier in Python: a table that knows its problem, says whether it is exact, and picks from itself."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from nas.answer.carried_study import write_with_study
from nas.answer.three_sentences import ThreeSentences
from nas.api.data_frames import Given, design_of, designs_of, evaluations_table, notebook_html, with_differences
from nas.errors import InfeasibleError, UsageError
from nas.exact.solution import pick_of
from nas.problem.evaluations import Distance, Evaluations, Scale, distance, frontier_rows
from nas.problem.objective import Baseline, Budget
from nas.problem.picks import PickRule, least_of
from nas.problem.problem import Problem
from nas.problem.quantiles import knowing, with_metrics
from nas.record.identity import PRICING, difference
from nas.search.assembly import Study
from nas.study.metrics import check_form, parse_budget, select
from objectives.scenario import Workload


@dataclass(frozen=True, eq=False, repr=False)
class Frontier:
    """Feasible architectures that no other dominates, sorted by the objectives.

    exact: True if every architecture of the space was covered. `how` says in a sentence where the frontier comes from.
    `evaluated` holds the evaluations of a search (None for an exact frontier), `folder` its run folder.
    `baselines` are the published models that picks are compared with. `answering` gives the sentences of `answer`.
    """

    problem: Problem
    members: Evaluations
    exact: bool
    how: str
    evaluated: Evaluations | None = None
    folder: Path | None = None
    baselines: tuple[Baseline, ...] = ()
    answering: Callable[[], ThreeSentences | None] | ThreeSentences | None = None
    study: Study = field(kw_only=True)

    @cached_property
    def answer(self) -> str:
        """The answer in three lines, as `plas run` prints it: what to train, what it takes and what limits it, which change helps most.

        Examples:
            >>> answer = nas.load_study(budgets={"total_ms": 100}).solve().answer
            >>> [line.split()[0] for line in answer.splitlines()]
            ['Train', 'On', 'Of']
            >>> answer.split(":")[0]
            'Train 12 layers, width 768, 16 experts of which 2 are used'
        """
        return str((self.answering() if callable(self.answering) else self.answering) or "")

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The columns of `frontier.csv`, one row a member; `attrs["units"]` holds the metrics' units."""
        return evaluations_table(self.problem, self.members)

    def pick(self, *budgets: str | Mapping[str, Any]) -> pd.Series:
        """Return the architecture of lowest loss within the study's budgets and these ("total_ms<=100", or {"total_ms": 100}).

        If loss is no objective, the first objective is minimised. An exact frontier picks from the whole space, a search
        from everything it evaluated. Ties (12 digits) go to the lower value of the first budget's metric, then the lower total_ms,
        then the smaller genotype. If the law has uncertainty, the row compares the pick with each baseline of the study:
        `difference_MODEL` (nats), `difference_MODEL_low`, `_high` (90 %) and `better_than_MODEL` (probability); NaN outside the law's evidence.

        Examples:
            >>> nas.load_study().solve().pick("total_ms<=100").loss < 3.2
            True

        Raises:
            UsageError: an unknown metric or an invalid limit.
            InfeasibleError: no architecture satisfies the budgets.
        """
        return self._knowing(texts_of(budgets))._pick(budgets)

    def _knowing(self, limits: list[str]) -> Self:
        """The same with the metrics at a quantile that limits name."""
        problem = knowing(self.problem, limits)
        lacking = tuple(name for name in problem.metric_names if name not in self.problem.metric_names)
        if not lacking:
            return self
        evaluated = None if self.evaluated is None else with_metrics(problem, self.evaluated, lacking)
        return replace(self, problem=problem, members=with_metrics(problem, self.members, lacking), evaluated=evaluated)

    def _pick(self, budgets: Iterable[str | Mapping[str, Any]]) -> pd.Series:
        asked = budgets_of(budgets, self.problem.metric_names, self.problem.scenario)
        rule = PickRule(asked[0] if asked else None, asked[1:], least=least_of(self.members.objectives))
        row = self._solved(rule) if self.evaluated is None else rule.answer(self.evaluated)
        if row is None:
            limits = within((*self.problem.budgets, *asked))
            raise InfeasibleError(f"pick: expected an architecture within {limits}, got none; raise a limit")
        return design_of(self._compared(row))

    def _compared(self, rows: Evaluations) -> pd.DataFrame:
        frame, designs = evaluations_table(self.problem, rows), self.problem.architectures(rows.genotypes)
        return with_differences(frame, self.problem.scenario.law, designs, self.baselines)

    def _solved(self, rule: PickRule) -> Evaluations | None:
        return pick_of(self.problem, rule)

    def select(self, how: str) -> pd.DataFrame:
        """Return members by `frontier`, `best`, `knee`, `diverse:K` or `budget:metric=limit`, as `plas select --select` does.

        Args:
            how: frontier, best, knee, diverse:K or budget:METRIC=LIMIT.

        Examples:
            >>> len(nas.load_study().solve().select("diverse:4"))
            4

        Raises:
            UsageError: `how` has another form.
        """
        check_form(how)
        kind, _, rest = how.partition(":")
        if self.evaluated is None and (how == "best" or kind == "budget"):
            return self.pick(*([rest] if rest else [])).to_frame().T.infer_objects()
        if not len(self):
            return self.frame
        known = self._knowing([rest])
        source = known.members if known.evaluated is None else known.evaluated
        return known._compared(source[select(source, how, self.scale, self.problem.scenario)])

    @property
    def scale(self) -> Scale:
        """The scale of hypervolumes and distances: the best values of this frontier at 0, its worst at 1."""
        return Scale.from_frontier(self.problem.objectives, self.members.values)

    def distance_to(self, exact: "Frontier | Given") -> Distance:
        """Return hypervolume gap, share found, IGD+ and additive epsilon against another frontier, on that frontier's scale.

        In place of a frontier it takes designs, such as those of a search of your own: their distance is measured against this frontier.

        Args:
            exact: another frontier, or designs.

        Examples:
            >>> study = nas.load_study()
            >>> 0 < study.search(algo="random", evaluations=200).distance_to(study.solve()).gap < 1
            True

        Raises:
            UsageError: a frontier of another problem (space, law, device, workload, objectives, budgets), or designs that are none of this space.
        """
        if not isinstance(exact, Frontier):
            return self._of_designs(exact).distance_to(self)
        there, here = exact.study.resolved(), self.study.resolved()
        if other := difference(there, here, PRICING, ("there", "here")):
            raise UsageError(
                f"distance_to: expected a frontier of the same problem, got another ({other}); solve this study"
            )
        common = len(set(self.members.keys.tolist()) & set(exact.members.keys.tolist()))
        return distance(exact.scale, self.members.values, exact.members.values, common)

    def _of_designs(self, given: Given) -> "Frontier":
        """Return the frontier of designs of this problem."""
        space = self.problem.space
        keys = space.find(self.problem.headed(designs_of(self.problem, given)))
        if (keys < 0).any():
            row = int((keys < 0).argmax()) + 1
            raise UsageError(f"distance_to: expected a Frontier, or designs of {space.name}, got another in row {row}")
        found = self.problem.evaluate(space.genotypes(np.unique(keys)))
        return replace(self, members=found[frontier_rows(found)], exact=False, evaluated=found)

    def save(self, path: str | Path) -> None:
        """Write a candidate file (.csv or .jsonl) and its study beside it, replacing existing files.

        Args:
            path: of a .csv or .jsonl file.

        Examples:
            >>> nas.load_study().solve().save("candidates.csv")

        Raises:
            UsageError: a file name with another ending.
            PlasError: the file cannot be written.
        """
        columns = {str(name): column.to_numpy() for name, column in self.frame.items()}
        write_with_study(Path(path), columns, self.study)

    def __repr__(self) -> str:
        kind = "exact frontier" if self.exact else "frontier found by a search"
        names = " and ".join(o.name for o in self.problem.objectives)
        return f"{len(self):,} architectures: {kind} of {names} in {self.problem.space.name} ({self.how})"

    def _repr_html_(self) -> str:
        return notebook_html(repr(self), self.frame, above=self.answer)


def budgets_of(
    given: Iterable[str | Mapping[str, Any]], metrics: tuple[str, ...], workload: Workload
) -> tuple[Budget, ...]:
    """Return budgets from texts, `total_ms<=100`, or mappings, `{"total_ms": 100}` or `{"tokens_per_second": ">=20"}`.

    Raises:
        UsageError: something else, an unknown metric or an invalid limit.
    """
    return tuple(parse_budget(text, metrics, workload) for text in texts_of(given))


def texts_of(given: Iterable[str | Mapping[str, Any]]) -> list[str]:
    """Return budgets as texts, `total_ms<=100`.

    Raises:
        UsageError: neither a text nor a mapping.
    """
    texts: list[str] = []
    for item in given:
        if not isinstance(item, (str, Mapping)):
            raise UsageError(
                f'budget: expected "total_ms<=100" or {{"total_ms": 100}}, got {item!r}; write one of them'
            )
        texts += [item] if isinstance(item, str) else [_written(*limit) for limit in item.items()]
    return texts


def _written(metric: str, limit: Any) -> str:
    """A metric and its limit, `100` or `">=20"`, in one text."""
    return f"{metric}{'' if str(limit).startswith('>=') else '='}{limit}"


def within(budgets: tuple[Budget, ...]) -> str:
    """Return budgets in words, the tightest of each metric."""
    tightest: dict[str, Budget] = {}
    for budget in budgets:
        if budget.metric not in tightest or budget.limit < tightest[budget.metric].limit:
            tightest[budget.metric] = budget
    return ", ".join(map(str, tightest.values())) or "no budget"
