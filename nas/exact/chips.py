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

By 1 no pair of the box and the cell is feasible; by 2 each is dominated by a pair that was evaluated. What is left goes to the halves of the
cell, or in halves of the box, until a box holds one architecture and a cell one class: then it is evaluated whole, and paired with those chips of
the class that hold it and that no other of these undercuts in the columns. Of chips of equal rates and equal columns the one of least memory
stands for all; other ties are all kept. Every pair is accounted for: architectures dropped and evaluated must add up to all of them on every class.

Where a metric depends on the chip otherwise (energy, quantiles of times, a cache tier, slow memory, own functions, the closed form) chips are
solved one after the other, each without what is dominated by pairs of those before it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from nas.errors import UsageError
from nas.exact.chip_cells import Cell, ChipTable
from nas.exact.chip_leaves import SHARES, Leaves
from nas.exact.chip_points import Known, Points
from nas.exact.chip_search import ChipSearch, refuse_uncovered
from nas.exact.chip_sums import TIMES, ChipSums
from nas.exact.decomposition.branch_and_bound import Effort
from nas.exact.decomposition.frontier import MOST_BACKBONES, SumsOfParts, backbones
from nas.exact.decomposition.grid import Grid
from nas.problem.dominance import rounded
from nas.problem.objective import Budget, built_in
from nas.problem.problem import Problem
from objectives.assessment import on_devices
from objectives.parts import OF_NO_DEVICE, composition
from objectives.scenario import Scenario
from objectives.serving import Serving
from search_spaces.arrays import FloatArray, IntArray

TYPICAL = 8  # classes, far from one another, that are solved on coarse grids first
SEEDS = 4000  # architectures of theirs that are evaluated on other classes
SEED = 20_260_102
SPREAD, FEW = 4, 100  # of more classes than a few every fourth
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


@dataclass(frozen=True, eq=False)
class ChipProblem:
    """Architectures and one scenario for each chip, columns of chips (n,), what is minimised, limits on metrics, columns and shares of memory.

    `problem` has the space and dresses architectures; its own scenario, objectives and budgets are not read.
    """

    problem: Problem
    scenarios: tuple[Scenario, ...]
    columns: Mapping[str, FloatArray]
    objectives: tuple[str, ...]
    budgets: tuple[Budget, ...] = ()

    @property
    def considered(self) -> int:
        """Pairs."""
        return len(self.scenarios) * self.problem.space.size

    @property
    def of_architectures(self) -> tuple[str, ...]:
        """Objectives that depend on the architecture."""
        return tuple(name for name in self.objectives if name not in self.columns)

    @property
    def costs(self) -> dict[str, FloatArray]:
        """Columns that are objectives."""
        return {name: self.columns[name] for name in self.objectives if name in self.columns}

    @property
    def limits(self) -> tuple[Budget, ...]:
        """Budgets on metrics of architectures."""
        return tuple(b for b in self.budgets if b.metric not in self.columns and b.metric not in SHARES)

    @property
    def shares(self) -> tuple[Budget, ...]:
        """Budgets on shares of a chip's memory."""
        return tuple(b for b in self.budgets if b.metric in SHARES)

    def allowed(self) -> IntArray:
        """Chips within the budgets on columns, (k,)."""
        within = np.ones(len(self.scenarios), dtype=bool)
        for budget in self.budgets:
            if budget.metric in self.columns:
                within &= budget.violation(self.columns[budget.metric]) <= 0.0
        return np.flatnonzero(within)


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


def uncovered(asked: ChipProblem) -> str:
    """Why chips cannot be covered together, a clause; "" where they can."""
    first, space = asked.scenarios[0], asked.problem.space
    limited = [SHARES.get(budget.metric, budget.metric) for budget in (*asked.limits, *asked.shares)]
    for name in dict.fromkeys([*asked.of_architectures, *limited]):
        if name not in (*OF_NO_DEVICE, *TIMES):
            return f"{name} depends on the chip otherwise than through its rates and memory"
        if composition(name, first) is None:
            return f"{name} does not say how it adds up from parts"
    if space.settings:
        return f"{' and '.join(space.settings)} as a gene is in no sum of parts"
    if backbones(space) > MOST_BACKBONES:
        return f"depth, width and KV heads alone have {backbones(space):,} combinations"
    if first.latency != "operator":
        return "the closed form of latency is not covered"
    if first.serving != Serving():
        return "serving with drafts, slow memory or two chips is not covered"
    if any(scenario.cached for scenario in asked.scenarios):
        return "a cache tier depends on the whole architecture"
    return (
        "" if all(_alike(first, other) for other in asked.scenarios) else "chips differ in more than rates and memory"
    )


def _alike(first: Scenario, other: Scenario) -> bool:
    """Whether scenarios differ in figures of their devices alone."""
    names = (field.name for field in fields(Scenario) if field.name not in ("device", "energy"))
    same = ((getattr(first, name), getattr(other, name)) for name in names)
    return all(a is b or a == b for a, b in same) and first.device.other_peaks.keys() == other.device.other_peaks.keys()


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
    for stride in parts.strides:
        sums = ChipSums(problem, Grid(problem.space, stride), leaves.metrics)
        search = ChipSearch(chips, sums, leaves, known)
        last = stride == parts.strides[-1]
        classes = np.arange(chips.classes) if last else typical(chips)
        if last and len(parts.strides) > 1:
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
    """Evaluate what is on the frontier of typical chips on many classes: a sharp beginning."""
    keys, generator = np.unique(known.settle().key), np.random.default_rng(SEED)
    keys = np.sort(generator.permutation(keys)[:SEEDS])
    genotypes = leaves.problem.space.genotypes(keys)
    every = range(0, leaves.chips.classes, SPREAD if leaves.chips.classes > FEW else 1)
    for start in range(0, len(every), AT_ONCE):
        numbers = every[start : start + AT_ONCE]
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
