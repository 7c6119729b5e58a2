"""Exact feasible frontiers from sums of parts, for any objectives and budgets of one problem."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.exact.checkpoint import SolverCheckpoint, section_of
from nas.exact.decomposition.additive_bounds import AdditiveBounds, largest_difference
from nas.exact.decomposition.branch_and_bound import AT_ONCE, BranchAndBound, Effort, Incumbents, Wanted
from nas.exact.decomposition.grid import Grid
from nas.exact.decomposition.needed_heads import needed_pairs, with_needed
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget, Objective
from nas.problem.problem import Problem
from objectives.metrics.perplexity import LARGEST_LOSS
from search_spaces.arrays import BoolArray, IntArray
from search_spaces.space import SearchSpace

MOST_BACKBONES = 10_000_000  # combinations of depth, width and KV heads that fit into memory
FIRST = 20_000  # random architectures, at most, that give branch and bound its first incumbents
STRIDES = (16, 4, 1)  # coarse grids sharpen the incumbents for the whole one
WORTH_STRIDES = 1_000_000
BLOCK = AT_ONCE // 2  # backbones, in boxes, that are settled between two notes
SEED = 20_260_101


def backbones(space: SearchSpace) -> int:
    """Return combinations of depth, width and KV heads, one row of the tables each."""
    return len(space.layer_plans) * int(space.kv_gene.counts[space.frame_heads].sum())


@dataclass(frozen=True, eq=False)
class Question:
    """Asks for a feasible frontier.

    Of tied members those may lack that others beat in the metrics `ties` and are no worse in any budget's. Members may lack, up
    to all of them, that are dominated by `elsewhere`: feasible architectures of other settings, with these objectives. `dense`
    asks for those without experts to choose from.
    """

    objectives: tuple[Objective, ...]
    budgets: tuple[Budget, ...]
    ties: tuple[str, ...] = ()
    elsewhere: Evaluations | None = None
    dense: bool = False


class SumsOfParts:
    """A problem's space by parts; each of `metrics` declares its parts.

    `usable` is the limit beyond which an architecture fails, where some do: so it can be told by bounds.
    `effort` counts the work of all answers; `most` limits the items of one grid of one answer. Every
    answer starts from the architectures of those before it.

    Raises:
        BrokenSum: parts that do not add up to the whole.
    """

    def __init__(
        self,
        problem: Problem,
        metrics: tuple[str, ...],
        checkpoint: SolverCheckpoint | None = None,
        most: int | None = None,
    ) -> None:
        self.problem, self.most, self.checkpoint = problem, most, checkpoint or SolverCheckpoint()
        size, generator = problem.space.size, np.random.default_rng(SEED)
        self.strides = STRIDES if size > WORTH_STRIDES else STRIDES[-1:]
        self.known = tuple(dict.fromkeys([*metrics, "loss"]))
        difference = largest_difference(self.sums[-1], metrics, generator)
        self.random = problem.space.sample(min(FIRST, size // 50), generator)
        all_usable = problem.evaluate(self.random, ()).ok.all() and not problem.scenario.law.partial
        self.usable = () if all_usable else (Budget("loss", LARGEST_LOSS),)
        self.good: IntArray = self.random[:0]
        self.effort = Effort(difference=difference)
        self.needed: dict[tuple[int, frozenset[str], frozenset[str]], BoolArray] = {}

    @cached_property
    def sums(self) -> list[AdditiveBounds]:
        """Sums of every grid, the coarsest first."""
        return [
            AdditiveBounds.for_metrics(self.problem, Grid(self.problem.space, stride), self.known)
            for stride in self.strides
        ]

    @cached_property
    def rated(self) -> Evaluations:
        """Random architectures with the metrics of all answers."""
        return self.problem.evaluate(self.random, self.known)

    def forget(self) -> None:
        """Free the memory of the tables, which are made again when needed."""
        self.__dict__.pop("sums", None)

    def frontier(
        self,
        objectives: tuple[Objective, ...],
        budgets: tuple[Budget, ...],
        besides: tuple[str, ...] = (),
        report: Callable[[int], None] = lambda covered: None,
        elsewhere: Evaluations | None = None,
    ) -> Evaluations | None:
        """Return the feasible frontier with all ties, in file order; None if nothing is feasible."""
        return self.frontiers([Question(objectives, budgets, elsewhere=elsewhere)], besides, report)[0]

    def frontiers(
        self,
        questions: Sequence[Question],
        besides: tuple[str, ...] = (),
        report: Callable[[int], None] = lambda covered: None,
    ) -> list[Evaluations | None]:
        """The feasible frontier of each question with all ties, in file order, found in one pass; None when nothing is feasible.

        Rows have the metrics of all objectives and budgets, and those `besides`.

        Raises:
            Exceeded: `most` items did not suffice.
            BrokenSum: sums of parts prove nothing here.
            UsageError: no objective depends on the architecture.
        """
        asked = [self._decisive(question) for question in questions]
        problems = [replace(self.problem, objectives=one.objectives, budgets=one.budgets) for one in asked]
        read = [[*(o.name for o in one.objectives), *(b.metric for b in one.budgets)] for one in asked]
        compared = tuple(dict.fromkeys(name for names in read for name in names))
        named = (o.name for question in questions for o in question.objectives)
        metrics = tuple(dict.fromkeys([*compared, *named, *besides]))
        kinds = ["dense" if one.dense else "parts" for one in asked]
        section = json.dumps([section_of(kind, problem) for kind, problem in zip(kinds, problems, strict=True)])
        page = self.checkpoint.read(section)
        wanted, effort = self._begun(asked, problems, metrics, page), Effort(**page.get("effort", {}))
        for number, sums in enumerate(self.sums[page.get("grid", 0) :], page.get("grid", 0)):
            kept = np.any([self._needed(number, one, names) for one, names in zip(asked, read, strict=True)], axis=0)
            own, left_out = with_needed(sums.restricted(compared), kept)
            search = BranchAndBound(self.problem, own, wanted, metrics, self.most, effort)
            self._settle(search, number, page, section, report, left_out)
        self.effort.add(effort)
        found = [one.known.settle() for one in wanted]
        self.good = np.concatenate([*(each.genotypes for each in found if each is not None), self.good])[:FIRST]
        return [
            None
            if each is None
            else replace(each, objectives=tuple(o.name for o in one.objectives), budgets=one.budgets)
            for one, each in zip(questions, found, strict=True)
        ]

    def _needed(self, number: int, question: Question, read: Sequence[str]) -> BoolArray:
        """Which heads and mixes of a grid the answer to a question that reads some metrics needs, found once.

        Heads are left out only for heads that beat them in the loss too: others may fail where they do not.
        """
        deciding = frozenset([*(o.name for o in question.objectives), *question.ties])
        key = number, frozenset([*read, *question.ties, "loss"]), deciding
        if key not in self.needed:
            self.needed[key] = needed_pairs(self.sums[number].restricted(tuple(sorted(key[1]))), deciding)
        return self.needed[key]

    def _decisive(self, question: Question) -> Question:
        """The question with the objectives alone that differ between architectures, and with what `usable` limits.

        Raises:
            UsageError: none does.
        """
        objectives = tuple(o for o in question.objectives if self.varies(o.name))
        if not objectives:
            named = " and ".join(o.name for o in question.objectives)
            raise UsageError(
                f"objectives: expected one that differs between architectures, got {named}, the same for all; add another objective"
            )
        elsewhere = question.elsewhere if objectives == question.objectives else None
        return replace(question, objectives=objectives, budgets=(*question.budgets, *self.usable), elsewhere=elsewhere)

    def varies(self, metric: str) -> bool:
        """Return True if a metric depends on the architecture; a constant metric decides nothing."""
        return self.sums[-1].varies(metric)

    def _begun(
        self, asked: Sequence[Question], problems: Sequence[Problem], metrics: tuple[str, ...], page: dict[str, Any]
    ) -> tuple[Wanted, ...]:
        """What is known before the first block: from the checkpoint, else good architectures, else random ones."""
        good = self.problem.evaluate(self.good, metrics)
        notes = page.get("known", [])
        wanted, space = [], self.problem.space

        def dense(genotypes: IntArray) -> BoolArray:
            found: BoolArray = space.experts[genotypes[:, space.place["n_experts"]]] == 1
            return found

        for number, (one, problem) in enumerate(zip(asked, problems, strict=True)):
            elsewhere = None if one.elsewhere is None else one.elsewhere.values
            evaluated = partial(_evaluated, problem, metrics)
            known = Incumbents.restored(notes[number], evaluated, elsewhere) if page else Incumbents(elsewhere)
            names = tuple(o.name for o in one.objectives)
            wanted.append(Wanted(names, one.budgets, known, dense if one.dense else None))
            if page:
                continue
            wanted[-1].add(good)
            if known.front is None:
                wanted[-1].add(replace(self.rated, metrics={metric: self.rated.metrics[metric] for metric in metrics}))
        return tuple(wanted)

    def _settle(
        self,
        search: BranchAndBound,
        number: int,
        page: dict[str, Any],
        section: str,
        report: Callable[[int], None],
        left_out: int,
    ) -> None:
        """One grid, block by block, `left_out` architectures apart; blocks that a note says are settled are passed over.

        A note holds all that decides how the search goes on, so that it goes on as if it had not been killed.
        """
        last = number == len(self.sums) - 1
        done = page["done"] if page.get("grid") == number else 0
        if not done:
            search.effort.covered = left_out
        report(search.effort.covered if last else 0)
        blocks = search.blocks(BLOCK if last else AT_ONCE)
        for block_number, block in enumerate(islice(blocks, done, None), done + 1):
            search.settle(block, report if last else lambda covered: None)
            if self.checkpoint.due:
                note = {"grid": number, "done": block_number, "effort": asdict(search.effort)}
                self.checkpoint.write(section, {**note, "known": [one.known.noted() for one in search.wanted]})
        for one in search.wanted:
            one.known.settle()


def _evaluated(problem: Problem, metrics: tuple[str, ...], keys: list[int]) -> Evaluations:
    """The architectures of keys, evaluated."""
    return problem.evaluate(problem.space.genotypes(np.array(keys, dtype=np.int64)), metrics)
