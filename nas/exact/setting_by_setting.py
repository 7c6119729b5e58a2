"""Exact answers of a problem with settings: those of each setting by sums of parts, joined.

A setting need not be searched for what another one beats: what is found in one prunes those after it. Where the tables of
all settings together would not fit into memory, those of one at a time are held.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from nas.exact.checkpoint import SolverCheckpoint
from nas.exact.decomposition.branch_and_bound import Effort, Exceeded
from nas.exact.decomposition.frontier import FIRST, MOST_BACKBONES, Question, SumsOfParts, backbones
from nas.problem.evaluations import Evaluations, frontier_rows, joined
from nas.problem.objective import Budget, Objective
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.settings import each_setting, in_all_settings
from search_spaces.arrays import IntArray

FEW = 2000  # architectures of each setting that say which to solve first


class SettingBySetting:
    """Sums of parts for every setting of a problem; answers are genotypes of the whole.

    good: genotypes that are thought to be good, where there is one setting: branch and bound begins with them.

    Raises:
        BrokenSum: parts that do not add up to the whole.
        Exceeded: seconds do not suffice (`most` is given) for tables that do not fit into memory together.
    """

    def __init__(
        self,
        problem: Problem,
        metrics: tuple[str, ...],
        checkpoint: SolverCheckpoint | None = None,
        most: int | None = None,
        good: IntArray | None = None,
    ) -> None:
        self.good = good if len(each_setting(problem)) == 1 else None
        self.problem, self.problems = problem, each_setting(problem)
        self.together = backbones(problem.space) * len(self.problems) <= MOST_BACKBONES
        if most is not None and not self.together:
            raise Exceeded
        self._made = partial(SumsOfParts, metrics=metrics, checkpoint=checkpoint, most=most)
        self._held = {number: self._made(one) for number, one in enumerate(self.problems)} if self.together else {}

    def at(self, number: int) -> SumsOfParts:
        """Return the sums of one setting."""
        if not self.together:
            for other in self._held.keys() - {number}:
                self._held[other].forget()
        if number not in self._held:
            self._held[number] = self._made(self.problems[number])
        if self.good is not None:
            self._held[number].good, self.good = self.good[:FIRST], None
        return self._held[number]

    @property
    def effort(self) -> Effort:
        """The work of all answers."""
        total = Effort()
        for sums in self._held.values():
            total.add(sums.effort)
        return total

    def frontier(
        self,
        objectives: tuple[Objective, ...],
        budgets: tuple[Budget, ...],
        report: Callable[[int], None] = lambda covered: None,
    ) -> Evaluations | None:
        """Return the feasible frontier with all ties, in file order, with the metrics of objectives and budgets; None if nothing is feasible.

        Raises:
            Exceeded: `most` items did not suffice.
            BrokenSum: sums of parts prove nothing here.
            UsageError: no objective depends on the architecture.
        """
        names = (*(objective.name for objective in objectives), *(budget.metric for budget in budgets))
        order = self._order(tuple(objective.name for objective in objectives), budgets)
        found = self._joined(
            order, [names], lambda sums, known: [sums.frontier(objectives, budgets, report=report, elsewhere=known[0])]
        )[0]
        return None if found is None else found[frontier_rows(found)]

    def lowest(self, budgets: tuple[Budget, ...], least: str = "loss", *, margin: bool = True) -> Evaluations | None:
        """Return the pick within budgets, one row: the least of the loss or of another metric, with the usual tie-breaks."""
        return self.picks([PickRule(None, budgets, least=least, margin=margin)])[0]

    def picks(self, rules: Sequence[PickRule]) -> list[Evaluations | None]:
        """The pick by each rule among all architectures, whatever the problem's budgets, found in one pass; each one row.

        Those of which no design keeps its limits with a margin are found in a second pass, without.
        """
        strict = [rule.strict((), self.problem.columns) for rule in rules]
        found = self._picks(strict)
        free = [n for n, row in enumerate(found) if row is None and strict[n].within != rules[n].within]
        for n, row in zip(free, self._picks([rules[n] for n in free]), strict=True):
            found[n] = row
        return found

    def _picks(self, rules: Sequence[PickRule]) -> list[Evaluations | None]:
        """The pick by each rule as it stands."""
        if not rules:
            return []
        order = self._order((rules[0].least,), rules[0].limits)
        names = [(rule.least, "total_ms", *(limit.metric for limit in rule.limits)) for rule in rules]
        found = self._joined(order, names, lambda sums, known: _picks(sums, rules, known))
        return [_best(rows, rule) for rows, rule in zip(found, rules, strict=True)]

    def _order(self, objectives: tuple[str, ...], budgets: tuple[Budget, ...]) -> list[int]:
        """The settings' numbers: first, where all are at hand, those that hold most of the frontier of a few architectures, which prunes the others."""
        if len(self.problems) == 1 or not self.together:
            return list(range(len(self.problems)))
        names = tuple(dict.fromkeys([*objectives, *(budget.metric for budget in budgets)]))
        few = [np.concatenate([sums.good[:FEW], sums.random[:FEW]]) for sums in self._held.values()]
        evaluated = [one.evaluate(rows, names) for one, rows in zip(self.problems, few, strict=True)]
        every = replace(reduce(joined, evaluated), objectives=objectives, budgets=budgets)
        owner = np.repeat(np.arange(len(few)), [len(rows) for rows in few])
        members = np.bincount(owner[frontier_rows(every)], minlength=len(few))
        order: list[int] = np.argsort(-members, kind="stable").tolist()
        return order

    def _joined(
        self,
        order: list[int],
        names: Sequence[tuple[str, ...]],
        ask: Callable[[SumsOfParts, list[Evaluations | None]], list[Evaluations | None]],
    ) -> list[Evaluations | None]:
        """The settings' answers to some questions, each with some of its metrics; a setting is solved after those before it, from their designs."""
        found: list[Evaluations | None] = [None] * len(names)
        good = list[IntArray]()
        for number in order:
            sums = self.at(number)
            sums.good = np.concatenate([*good[::-1], sums.good])[:FIRST]
            for place, answer in enumerate(ask(sums, found)):
                if answer is None:
                    continue
                good.append(answer.genotypes)
                kept = replace(answer, metrics={name: answer.metrics[name] for name in dict.fromkeys(names[place])})
                part, before = in_all_settings(kept, number, self.problem), found[place]
                found[place] = part if before is None else joined(before, part)
        return found


def _best(rows: Evaluations | None, rule: PickRule) -> Evaluations | None:
    """The best of some rows within the rule's limits, ties broken as everywhere."""
    return None if rows is None else PickRule(rule.budget, least=rule.least).answer(rows)


def _picks(
    sums: SumsOfParts, rules: Sequence[PickRule], known: Sequence[Evaluations | None]
) -> list[Evaluations | None]:
    """One setting's picks, or None where the best known of others is better: each the frontier of what is minimised alone.

    Where all its architectures are the same in what is minimised, what breaks its ties decides first.
    """
    ties, questions = ("total_ms",) if sums.varies("total_ms") else (), []
    for rule, elsewhere in zip(rules, known, strict=True):
        first = next(metric for metric in rule.deciding if sums.varies(metric))
        others = None if elsewhere is None or first != rule.least else replace(elsewhere, objectives=(rule.least,))
        limits = (*rule.within, *([] if rule.budget is None else [rule.budget]))
        questions.append(Question((Objective(first),), limits, ties, others, rule.dense))
    found = sums.frontiers(questions, (*(rule.least for rule in rules), "total_ms"))
    return [_best(rows, rule) for rows, rule in zip(found, rules, strict=True)]
