"""The exact frontier over many chips and all architectures of a space at once.

A pair is a chip and an architecture. Chips differ in peaks, bandwidth, memory and columns (cost, area, ...); columns are constants of a chip, and
what an architecture takes of memory is no matter of the chip. So chips of equal rates are one class, in which all times are the same.

The search is branch and bound over two things at once. A cell is a set of classes; its best imaginable chip has the largest of each rate,
and of every amount of memory the least of each column among its chips with so much or more. Every time falls weakly with every rate, so that an
architecture's time on that chip is no more than on any chip of the cell, and sums of parts on it bound a box of architectures on all of them.
A box with a backbone is dropped in a cell when

1. a budget is out of reach, or it needs more memory than any chip of the cell has, or
2. a known feasible pair costs no more in every column than this least, and is better in every objective of architectures, by more than
   1e-9 of the value.

By 1 no pair of the box and the cell is feasible; by 2 each is dominated. A pair is known by its whole values or, among architectures about to be
evaluated on one class, by sums, which wholes are held to agree with ten times as closely as the slack; who is beaten so is beaten by one that
is evaluated, since the better of two is beaten by nobody or by a better one still. What is left goes to the parts of the cell, or in halves of
the box, until a box holds one architecture and a cell one class: then it is evaluated whole, and paired with those chips of the class that hold it
and that no other of these undercuts in the columns. Of chips of equal rates and equal columns the one of least memory
stands for all; other ties are all kept. Every pair is accounted for: architectures dropped and evaluated must add up to all of them on every class.

Where a metric depends on the chip otherwise (energy, quantiles of times, a cache tier, slow memory, own functions, the closed form) this is refused
by name (`plas_chips.problem.uncovered`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nas.errors import UsageError
from nas.exact.decomposition.branch_and_bound import Effort
from nas.exact.decomposition.frontier import SumsOfParts
from nas.exact.decomposition.grid import Grid
from nas.problem.evaluations import rounded
from nas.problem.objective import Budget, built_in
from nas.problem.problem import Problem
from objectives.assessment import on_devices
from objectives.scenario import Scenario
from plas_chips.cells import Cell, ChipTable
from plas_chips.leaves import Leaves
from plas_chips.points import Known, Points
from plas_chips.problem import ChipProblem, uncovered
from plas_chips.search import ChipSearch, refuse_uncovered
from plas_chips.sums import ChipSums
from search_spaces.arrays import FloatArray, IntArray

STRIDES = (16, 4, 2, 1)  # grids; the coarse ones on typical chips alone
TYPICAL = 8  # classes, far from one another, that are solved on coarse grids first
SEEDS = 5000  # architectures of theirs that are evaluated on every class
SEED = 20_260_102
AT_ONCE = 32  # classes on which one batch is timed together


@dataclass(frozen=True, eq=False)
class ChipFrontier:
    """Non-dominated feasible pairs, in the order of their objectives: numbers of chips (n,), keys of architectures (n,), metrics asked for, (n,) each.

    considered: pairs of the space; explanation: how they were covered.
    """

    chips: IntArray
    keys: IntArray
    genotypes: IntArray
    metrics: dict[str, FloatArray]
    considered: int
    effort: Effort
    explanation: str

    def __len__(self) -> int:
        return len(self.chips)


def solve_chips(
    problem: Problem,
    scenarios: Sequence[Scenario],
    columns: Mapping[str, FloatArray],
    objectives: tuple[str, ...],
    budgets: tuple[Budget, ...] = (),
    report: Callable[[int], None] = lambda settled: None,
) -> ChipFrontier:
    """The exact frontier over all chips and architectures; `report` receives how many pairs of a class and an architecture are settled.

    Raises:
        UsageError: no objective depends on the architecture; nothing proves the frontier of a space this large.
    """
    asked = ChipProblem(problem, tuple(scenarios), columns, objectives, budgets)
    if not asked.of_architectures:
        raise UsageError(
            f"objectives: expected one that depends on the architecture, got {', '.join(objectives)}; add loss or a time"
        )
    chips = asked.allowed()
    if len(chips) == 0:
        return _none(asked, "no chip is within the budgets on columns")
    if obstacle := uncovered(asked):
        raise UsageError(f"chips: expected what sums of parts cover on all chips together, got one where {obstacle}")
    return _by_cells(asked, ChipTable.of(asked.scenarios, chips, asked.costs), report)


def _by_cells(asked: ChipProblem, chips: ChipTable, report: Callable[[int], None]) -> ChipFrontier:
    problem = replace(
        asked.problem, scenario=asked.scenarios[int(chips.numbers[0])], budgets=(), functions=(), queries=(), columns=()
    )
    problem = replace(problem, objectives=tuple(built_in(name) for name in asked.of_architectures))
    leaves = Leaves(problem, chips, asked.of_architectures, asked.limits, asked.shares)
    parts = SumsOfParts(problem, leaves.metrics)
    leaves = replace(leaves, budgets=(*leaves.budgets, *parts.usable))
    leaves.effort.difference = parts.effort.difference
    known = _begun(leaves, parts)
    strides = STRIDES if len(parts.strides) > 1 else STRIDES[-1:]
    for stride in strides:
        sums = ChipSums(problem, Grid(problem.space, stride), leaves.metrics)
        search = ChipSearch(chips, sums, leaves, known)
        last = stride == strides[-1]
        classes = np.arange(chips.classes) if last else typical(chips)
        if last and len(strides) > 1:
            _spread(leaves, known)
        search.settle(Cell.of(chips, classes, _least(chips)), report if last else lambda settled: None)
        leaves.effort.bounded += search.bounded
    leaves.effort.covered = search.covered
    refuse_uncovered(search.covered, problem.space.size * chips.classes)
    text = (
        f"{asked.considered:,} pairs of {len(asked.scenarios):,} chips and {problem.space.size:,} architectures were covered by sums of parts in "
        f"{chips.classes:,} classes of equal rates: {leaves.effort.bounded:,} bounds, {leaves.effort.evaluated:,} architectures evaluated whole; "
        f"sums and wholes differ by at most {leaves.effort.difference:.0e} of the value; "
        "of chips of equal rates and equal columns the one of least memory stands for all"
    )
    return _sorted(asked, known.settle(), chips.numbers, leaves.effort, text)


def typical(chips: ChipTable) -> IntArray:
    """A few classes whose rates are far from one another, ascending."""
    rates = np.log(chips.rates)
    chosen, far = [0], np.full(chips.classes, np.inf)
    while len(chosen) < min(TYPICAL, chips.classes):
        far = np.minimum(far, ((rates - rates[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(far.argmax()))
    return np.unique(chosen)


def _least(chips: ChipTable) -> FloatArray:
    """What orders classes: the least of the first column in each, or how slow it is."""
    if chips.costs.shape[1] == 0:
        slow: FloatArray = -np.log(chips.rates).sum(axis=1)
        return slow
    found = np.full(chips.classes, np.inf)
    np.minimum.at(found, chips.of_class, chips.costs[:, 0])
    return found


def _begun(leaves: Leaves, parts: SumsOfParts) -> Known:
    """What random architectures say on typical chips; they also span the axes of tables."""
    few = (
        parts.random
        if len(parts.random)
        else leaves.problem.space.genotypes(np.arange(min(leaves.problem.space.size, SEEDS)))
    )
    few, found, spans = few[:SEEDS], list[Points](), list[FloatArray]()
    for number in typical(leaves.chips).tolist():
        evaluated = leaves.at(number).evaluate(few, leaves.metrics)
        spans.append(evaluated.values[evaluated.ok])
        found.append(leaves.pairs(number, evaluated))
    return Known(Points.joined(found), np.concatenate(spans))


def _spread(leaves: Leaves, known: Known) -> None:
    """Evaluate what is on the frontier of typical chips on all classes: a sharp beginning."""
    keys, generator = np.unique(known.settle().key), np.random.default_rng(SEED)
    keys = np.sort(generator.permutation(keys)[:SEEDS])
    genotypes = leaves.problem.space.genotypes(keys)
    for start in range(0, leaves.chips.classes, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, leaves.chips.classes))
        problems = [leaves.at(number) for number in numbers]
        first = problems[0].assess(problems[0].architectures(genotypes))
        assessments = on_devices(first, [problem.scenario for problem in problems])
        for number, problem, assessment in zip(numbers, problems, assessments, strict=True):
            known.add(leaves.pairs(number, problem.evaluate(genotypes, leaves.metrics, assessment=assessment)))
        leaves.effort.evaluated += len(genotypes) * len(problems)


def _sorted(asked: ChipProblem, points: Points, numbers: IntArray, effort: Effort, text: str) -> ChipFrontier:
    """Pairs in the order of their objectives, then of chips and architectures."""
    values = dict(zip(asked.of_architectures, points.values.T, strict=True))
    values |= dict(zip(asked.costs, points.costs.T, strict=True))
    columns = [rounded(values[name]) for name in asked.objectives]
    order = np.lexsort((points.key, numbers[points.chip], *columns[::-1]))
    metrics = {name: values[name][order] for name in asked.objectives}
    keys, genotypes = points.key[order], asked.problem.space.genotypes(points.key[order])
    return ChipFrontier(numbers[points.chip][order], keys, genotypes, metrics, asked.considered, effort, text)


def _none(asked: ChipProblem, why: str) -> ChipFrontier:
    nothing, keys = np.zeros(0), np.zeros(0, dtype=np.int64)
    genotypes = asked.problem.space.genotypes(keys)
    metrics = dict.fromkeys(asked.objectives, nothing)
    return ChipFrontier(keys, keys, genotypes, metrics, asked.considered, Effort(), why)
