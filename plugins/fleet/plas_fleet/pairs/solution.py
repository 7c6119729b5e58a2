"""The exact frontier over pairs of a target and a draft model that drafts tokens ahead of it, from the frontiers of either.

With an acceptance that depends on the draft alone, every metric of a pair rises with each of the target's (loss, prefill, its own
share of decoding, memory) and each of the draft's (loss, prefill, decode, memory): a pair of which one model is beaten in all of them
is beaten by the pair with the better one. So the frontier of pairs lies in the product of two frontiers, for each number of tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nas.errors import PlasError
from nas.exact.solution import ExactSolution, solve
from nas.problem.evaluations import Evaluations, non_dominated
from nas.problem.objective import Budget, built_in
from nas.problem.problem import Problem
from objectives.assessment import Assessment
from objectives.scenario import Scenario
from objectives.serving import Acceptance, Drafter, Serving, accepted_of
from plas_fleet.pairs.acceptance import AcceptanceOfDrafts
from plas_fleet.pairs.metrics import Shares, limits_of_drafts, limits_of_targets, metrics_of_pairs, needed
from plas_fleet.pairs.rows import Pairs, frontier, groups_of, joined
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

BLOCK = 262_144  # pairs that are composed at once
SAMPLE = 48  # members of the frontier so far that a block is compared with first
APART = 1e-9  # relative; sums of both models' shares and the time of the pair as a whole are the same but for rounding


@dataclass(frozen=True, eq=False)
class PairProblem:
    """Targets with their objectives and budgets, drafts of the same law and device, both as served alone; numbers of drafted tokens.

    serving: figures of how tokens are drafted, of no word yet.
    """

    targets: Problem
    drafts: Problem
    serving: Serving
    acceptance: AcceptanceOfDrafts
    drafted: tuple[int, ...]

    def at(self, drafted: int) -> Scenario:
        """The scenario of targets that verify so many tokens of which none is accepted, of a draft that is counted apart."""
        nothing: dict[Drafter, Acceptance] = {"draft": Acceptance(shares={drafted: 0.0})}
        word = f"draft:{drafted}"
        return self.targets.scenario.served(
            replace(self.serving, speculation=word, draft_apart=True, acceptance=nothing)
        )

    def whole(self, draft: Architectures, first: float, drafted: int) -> Scenario:
        """The scenario of targets with one draft (n = 1), of which the first token is accepted with this probability."""
        accepted: dict[Drafter, Acceptance] = {"draft": Acceptance(first)}
        return self.targets.scenario.served(
            replace(self.serving, speculation=f"draft:{drafted}", draft=draft, acceptance=accepted)
        )

    @property
    def asked(self) -> tuple[str, ...]:
        """Metrics of objectives and budgets."""
        return self.targets.asked


@dataclass(frozen=True, eq=False)
class PairSolution:
    """The exact frontier of pairs, of equal ones one at least; that of targets alone with all ties; and how it was found.

    both: the non-dominated rows of the two together. considered: pairs of the spaces; composed: those of the product of frontiers.
    difference: the largest relative one between a pair's composed time or memory and that of the pair priced as a whole.
    """

    pairs: Pairs
    alone: Pairs
    both: Pairs
    considered: int
    composed: int
    difference: float


def solve_pairs(problem: PairProblem, report: Callable[[str], None] = lambda text: None) -> PairSolution:
    """The exact frontier of pairs for each number of drafted tokens together; `report` receives what is under way.

    Raises:
        UsageError: a space that cannot be covered.
        PlasError: composed metrics are not those of the pairs as a whole, which proves nothing.
    """
    names = tuple(objective.name for objective in problem.targets.objectives)
    report("targets alone")
    alone = _alone(problem, solve(replace(problem.targets, queries=(), columns=())).frontier)
    found, composed = alone[np.zeros(0, dtype=np.int64)], 0
    for drafted in problem.drafted:
        report(f"pairs that draft {drafted}")
        product = _product(problem, drafted)
        if product is not None:
            composed += product.size
            found = frontier(joined(found, product.frontier(names)), names)
    difference = _checked(problem, found)
    both = frontier(joined(alone, found), names)
    considered = problem.targets.space.size * problem.drafts.space.size * len(problem.drafted)
    return PairSolution(found, alone, both, considered, composed, difference)


@dataclass(frozen=True, eq=False)
class Product:
    """Targets and drafts of which no better ones are, with the drafts' shares of a pair that drafts so many tokens."""

    problem: PairProblem
    drafted: int
    targets: Evaluations
    drafts: Evaluations
    shares: Shares

    @property
    def size(self) -> int:
        """Pairs."""
        return len(self.targets) * len(self.drafts)

    def frontier(self, names: tuple[str, ...]) -> Pairs:
        """The feasible pairs that no other dominates in these metrics; in blocks of targets, from the lowest loss."""
        kept = self._made(np.zeros((2, 0), dtype=np.int64))
        order = np.lexsort((self.targets.metrics["total_ms"], self.targets.metrics["loss"]))
        step = max(1, BLOCK // max(1, len(self.drafts)))
        for start in range(0, len(order), step):
            kept = frontier(joined(kept, self._made(self._good(order[start : start + step], kept, names))), names)
        return kept

    def _good(self, rows: IntArray, kept: Pairs, names: tuple[str, ...]) -> IntArray:
        """Pairs of some targets that are feasible and that a sample of the frontier so far does not dominate, (2, k)."""
        metrics = metrics_of_pairs(self.problem.asked, self.targets[rows], self.shares, self._scenario)
        good = np.ones((len(rows), len(self.drafts)), dtype=bool)
        for budget in self.problem.targets.budgets:
            good &= budget.violation(metrics[budget.metric]) <= 0.0
        objectives = [metrics[name] for name in names]
        for member in _sample(kept.values(names)):
            worse = [values > each * (1.0 + APART) for values, each in zip(objectives, member, strict=True)]
            good &= ~np.logical_and.reduce(worse)
        row, draft = np.nonzero(good)
        values = np.stack([each[row, draft] for each in objectives], axis=1)
        best = non_dominated(values) if len(values) else np.zeros(0, dtype=np.int64)
        return np.stack([rows[row[best]], draft[best]])

    @property
    def _scenario(self) -> Scenario:
        return self.problem.targets.scenario

    def _made(self, places: IntArray) -> Pairs:
        """Pairs of places among targets and drafts, (2, k), with every metric of a pair."""
        target, draft = places
        one_by_one = metrics_of_pairs(None, self.targets[target], self.shares[draft], self._scenario, paired=True)
        drafted = np.full(len(target), self.drafted)
        return Pairs(
            self.targets.genotypes[target],
            self.drafts.genotypes[draft],
            drafted,
            self.shares.first[draft],
            one_by_one,
        )


def _product(problem: PairProblem, drafted: int) -> Product | None:
    """The frontiers of drafts and targets for so many tokens within what the budgets leave of either; None where either is empty."""
    of_targets, of_drafts = needed(problem.asked, drafts_differ=not problem.acceptance.constant)
    most = float(accepted_of(float(problem.acceptance.points[0][1]), drafted))
    scenario, budgets = problem.targets.scenario, problem.targets.budgets
    drafts = _solved(problem.drafts, of_drafts, limits_of_drafts(budgets, drafted, most, scenario))
    if len(drafts) == 0:
        return None
    shares = Shares.of(drafts, problem.acceptance, drafted, problem.drafts.scenario.engine_memory[0])
    kept = non_dominated(shares.values(of_drafts)) if of_drafts else np.zeros(1, dtype=np.int64)
    drafts, shares = drafts[kept], shares[kept]
    limits = limits_of_targets(budgets, shares, scenario)
    if any(limit.limit <= 0.0 for limit in limits):
        return None
    targets = _solved(replace(problem.targets, scenario=problem.at(drafted)), of_targets, limits)
    return Product(problem, drafted, targets, drafts, shares) if len(targets) else None


def _solved(problem: Problem, names: tuple[str, ...], budgets: tuple[Budget, ...]) -> Evaluations:
    """The exact frontier in some metrics within budgets, with every metric; of no metric the whole space's in loss."""
    objectives = tuple(built_in(name) for name in names or ("loss",))
    found: ExactSolution = solve(replace(problem, objectives=objectives, budgets=budgets, queries=(), columns=()))
    return found.frontier


def _alone(problem: PairProblem, found: Evaluations) -> Pairs:
    """Targets alone as pairs that draft nothing."""
    metrics = metrics_of_pairs(None, found, Shares.none(len(found)), problem.targets.scenario, paired=True)
    none = np.zeros((len(found), len(problem.drafts.space.gene_sizes)), dtype=np.int64)
    zeros = np.zeros(len(found), dtype=np.int64)
    return Pairs(found.genotypes, none, zeros, zeros.astype(np.float64), metrics)


def _sample(values: FloatArray) -> FloatArray:
    """Some members of a frontier (n, m), evenly along it."""
    return values[np.unique(np.linspace(0, len(values) - 1, SAMPLE).astype(np.int64))] if len(values) else values


def priced_whole(problem: PairProblem, pairs: Pairs, rows: IntArray) -> Assessment:
    """The assessment of the targets of some rows, all of one draft and number of tokens, priced as any study prices them."""
    draft = problem.drafts.architectures(pairs.drafts[rows[:1]])
    scenario = problem.whole(draft, float(pairs.first[rows[0]]), int(pairs.drafted[rows[0]]))
    return Assessment(problem.targets.architectures(pairs.targets[rows]), scenario)


def _checked(problem: PairProblem, pairs: Pairs) -> float:
    """The largest relative difference between composed metrics and those of whole pairs, of all pairs.

    Raises:
        PlasError: it is more than rounding.
    """
    largest = 0.0
    for rows in groups_of(pairs):
        whole = priced_whole(problem, pairs, rows)
        for name in ("loss", "prefill_ms", "decode_ms", "memory_gb", "resident_gb"):
            composed = pairs.metrics[name][rows]
            gap = np.abs(composed - whole[name]) / np.maximum(np.abs(whole[name]), 1e-300)
            largest = max(largest, float(gap.max()))
    if largest > APART:
        raise PlasError(f"pairs: sums of target and draft differ from whole pairs by {largest:.1e}; nothing is proved")
    return largest
