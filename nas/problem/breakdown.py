"""One architecture broken down by the formulas that the metrics use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from nas.problem.law_caveats import leaves
from nas.problem.objective import EXTRAPOLATION, INSIDE, energies, unit_of
from nas.problem.problem import Problem
from nas.problem.quantiles import measured_at, own_factors, share_of, time_ranges
from nas.problem.steps import HeadStep, head_steps
from objectives import memory
from objectives.counts import count
from objectives.dimensions import Dimensions
from objectives.latency.operator import passes
from objectives.latency.roofline import OperatorTime, PhaseTimes, epilogue_seconds, launch_seconds, phase_times, rates
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray, brief
from search_spaces.columns import WORDED, worded
from search_spaces.mixes import in_words
from search_spaces.space import SearchSpace
from search_spaces.specification import OF_LAYERS

BESIDES = ("ttft_ms", "tokens_per_second")  # what people ask of a device, whatever the study computes
STEP_METRICS = ("loss", "prefill_ms", "decode_ms", "total_ms", "memory_gb", "resident_gb")
KINDS = {  # what an operator's time goes to, in words
    "compute": "compute-bound",
    "memory": "memory-bound",
    "launch": "launch overhead",
    "epilogue": "epilogues",
    "constant": "a constant",
}
SHOWN = {"ffn": "expert_ffn_ratio"}


@dataclass(frozen=True)
class OperatorRow:
    """One operator over a whole phase: all layers, passes and instances together.

    `ms_by_kind` adds up to `ms`; of compute and memory the larger side has all of their time. `bound` is the
    kind that takes most.
    """

    operator: str
    part: str
    instances: float
    gflop: float
    mb: float
    ms: float
    ms_by_kind: dict[str, float]
    bound: str


@dataclass(frozen=True, eq=False)
class OperatorColumns:
    """The same for many architectures: every figure is a column (n,)."""

    operator: str
    part: str
    instances: FloatArray
    gflop: FloatArray
    mb: FloatArray
    ms: FloatArray
    ms_by_kind: dict[str, FloatArray]

    def row(self, i: int) -> OperatorRow:
        """One architecture's operator."""
        by_kind = {kind: float(column[i]) for kind, column in self.ms_by_kind.items()}
        instances, gflop, mb, ms = (float(column[i]) for column in (self.instances, self.gflop, self.mb, self.ms))
        bound = max(by_kind, key=by_kind.__getitem__)
        return OperatorRow(self.operator, self.part, instances, gflop, mb, ms, by_kind, bound)


@dataclass(frozen=True)
class Step:
    """A neighbour in the space and how its metrics differ."""

    step: str
    change: dict[str, float]


@brief
@dataclass(frozen=True)
class Explanation:
    """Everything `explain` shows; times in ms, memory in GB, loss in nats.

    time_ranges: where `time_ranges_percent` of what was held out lies, of each time and rate (`nas/problem/quantiles.py`).
    """

    metrics: dict[str, float]
    time_ranges: dict[str, tuple[float, float]]
    time_ranges_percent: int
    outside_law: list[str]
    loss_terms: dict[str, float]
    operators: dict[str, list[OperatorRow]]
    resident_gb: dict[str, float]
    budgets: list[dict[str, Any]]
    steps: list[Step]
    head_steps: list[HeadStep]


def explained(problem: Problem, chosen: Architectures) -> Explanation:
    """Explain a single architecture with the vocabulary that it carries.

    Raises:
        ValueError: the latency model does not cover it, or the law says nothing of it.
    """
    scenario, assessment = problem.pricing(chosen), problem.assess(chosen)
    if scenario.law.unpriced(chosen):
        name, designs = scenario.law.name, scenario.law.priced_designs
        raise ValueError(
            f"law: expected one that prices this architecture, got {name}, which prices {designs}; choose another"
        )
    shipped = [name for name in problem.metric_names if name not in {f.name for f in problem.functions}]
    metrics = {name: float(assessment[name][0]) for name in dict.fromkeys([*shipped, *BESIDES, *energies(scenario)])}
    budgets = [
        {
            "metric": b.metric,
            "value": metrics[b.metric],
            "limit": b.limit,
            "violation": metrics[b.metric] / b.limit - 1,
            **({"unit": b.unit} if b.unit == "date" else {}),
            **({} if b.rate is None else {"rate": b.rate.name, "least": b.rate.at(b.limit)}),
            **(own_factors(b.metric, scenario, chosen) if measured_at([b.metric]) else {}),
        }
        for b in problem.limits
        if b.metric in metrics
    ]
    return Explanation(
        metrics,
        time_ranges(scenario, chosen, metrics),
        share_of(scenario, chosen),
        outside(problem, chosen),
        _numbers(scenario.law.terms(chosen)),
        operators(problem, chosen),
        _numbers(memory.resident_parts_gb(assessment.dimensions, assessment.parameters, scenario)),
        budgets,
        steps(problem, chosen),
        head_steps(problem, chosen),
    )


def _numbers(columns: Mapping[str, FloatArray]) -> dict[str, float]:
    """Columns of a single architecture as numbers."""
    return {name: float(values[0]) for name, values in columns.items()}


def outside(problem: Problem, chosen: Architectures) -> list[str]:
    """Where the loss prediction leaves the range that the law was fitted on."""
    law = problem.scenario.law
    lines = [f"outside of what law {law.name} was fitted on: {text}" for text in leaves(law, chosen)]
    (own, _), *_ = chosen.in_formats()
    cost = None if law.few_bits is None else law.few_bits.penalty(own)
    if law.few_bits is not None and cost is not None and law.few_bits.extrapolates(chosen)[0]:
        ends = " and ".join(f"{name} {low:.3g} to {high:.3g}" for name, (low, high) in cost.ranges.items())
        lines.append(f"what its format costs extrapolates: precision law {cost.law} was fitted on {ends}")
    return lines


def operators(problem: Problem, chosen: Architectures) -> dict[str, list[OperatorRow]]:
    """Rows per phase from the operator model; none under the closed form."""
    columns = operator_columns(problem.pricing(chosen), chosen)
    rows = {phase: [column.row(0) for column in found] for phase, found in columns.items()}
    return {phase: [row for row in found if row.instances or row.ms] for phase, found in rows.items()}


def operator_columns(scenario: Scenario, chosen: Architectures) -> dict[str, list[OperatorColumns]]:
    """Every operator per phase, prefill and decode, of many architectures at once; none under the closed form."""
    if scenario.latency == "closed_form":
        return {"prefill": [], "decode": []}
    x, found = Dimensions(chosen), dict[str, list[OperatorColumns]]()
    for one in passes(scenario):
        times, once = phase_times(x, one), np.ones(len(chosen))
        layers = one.depth(x)
        of_layers = [(t, part) for part in ("attention", "ffn") for t in getattr(times, part)]
        columns = found.setdefault(one.phase.name, [])
        columns += [_columns(t, part, layers, times) for t, part in of_layers]
        columns += [_columns(t, "head", once, times) for t in times.head]
    return found


def _columns(time: OperatorTime, part: str, layers: FloatArray, times: PhaseTimes) -> OperatorColumns:
    """The columns of an operator; its name says what its pass is for."""
    operator, one = time.operator, times.one
    phase, scenario, taken = one.phase, one.scenario, 1e3 * one.time_share
    per_flop, per_byte = rates(operator, phase, scenario, times.hits)
    instances, compute_bound = layers * operator.count, time.compute > time.memory
    bound = instances * time.bound * taken
    by_kind = {
        "compute": np.where(compute_bound, bound, 0.0),
        "memory": np.where(compute_bound, 0.0, bound),
        "launch": instances * launch_seconds(operator, phase, scenario) * taken,
        "epilogue": instances * epilogue_seconds(operator, phase, scenario) * taken,
        "constant": instances * operator.fixed_seconds * taken,
    }
    figures = (
        np.where(one.share > 0.0, instances * operator.present, 0.0),
        one.share * layers * time.compute / per_flop / 1e9,
        one.share * layers * time.memory / per_byte / 1e6,
        layers * time.seconds * taken,
    )
    present, gflop, mb, ms = (np.broadcast_to(column, layers.shape) for column in figures)
    kinds = {name: np.broadcast_to(column, layers.shape) for name, column in by_kind.items()}
    name = f"{one.name}: {operator.name}" if one.name else operator.name
    return OperatorColumns(name, part, present, gflop, mb, ms, kinds)


def resident_bytes(architectures: Architectures, scenario: Scenario) -> dict[str, FloatArray]:
    """Resident memory, GB by part, each (n,): the parts of `memory.resident_parts_gb` with the linear weights split.

    `experts` are all E experts, shared ones and dense FFNs, `attention` the projections of whatever mixes tokens.
    """
    x, groups = Dimensions(architectures), count(architectures)
    parts = memory.resident_parts_gb(x, groups, scenario)
    mixing, ffn = memory.weights_by_part(x, groups, scenario.precision)
    split = {"experts": ffn / memory.GB, "attention": mixing / memory.GB}
    return split | {name: column for name, column in parts.items() if name != "linear weights"}


def steps(problem: Problem, chosen: Architectures) -> list[Step]:
    """Every neighbour along one axis with its changes; none for an architecture outside the space."""
    key = problem.space.find(chosen)
    return [] if key[0] < 0 else steps_from(problem, problem.space.genotypes(key))[0]


def step_metrics(problem: Problem) -> tuple[str, ...]:
    """What a step may change: loss, times and bytes, and the formulas and figures that the study minimises or limits; dates have no difference to show."""
    figures, own = problem.scenario.figures, {function.name for function in problem.functions}
    further = (name for name in problem.asked if name not in (*own, EXTRAPOLATION) and unit_of(name, figures) != "date")
    return tuple(dict.fromkeys((*STEP_METRICS, *further)))


def steps_from(problem: Problem, genotypes: IntArray) -> list[list[Step]]:
    """Every neighbour of each genotype (n, g) with its changes, all evaluated at once; NaN of a loss that the law does not give.

    Where the study keeps designs inside of the law's evidence, neighbours outside are left out.
    """
    space = problem.space
    owner, near = space.neighbours_of_each(genotypes)
    before, after = (problem.priced(rows) for rows in (genotypes, near))
    order = np.lexsort((space.keys(near), *(np.abs(near - genotypes[owner]).T[::-1] == 0), owner))
    if problem.limits != problem.budgets:
        order = order[after[EXTRAPOLATION][order] <= INSIDE]
    owner, near = owner[order], near[order]
    changes = {}
    for name in step_metrics(problem):
        with np.errstate(invalid="ignore"):
            change = after[name][order] - before[name][owner]
        changes[name] = np.where(np.isfinite(change), change, np.nan).tolist()
    names = step_names(space, genotypes[owner], near)
    found: list[list[Step]] = [[] for _ in genotypes]
    for i, at in enumerate(owner.tolist()):
        found[at].append(Step(names[i], {name: column[i] for name, column in changes.items()}))
    return found


def step_names(space: SearchSpace, own: IntArray, other: IntArray) -> list[str]:
    """`depth 16 -> 20` of each pair, naming every gene that a repair moved along."""
    if len(own) == 0:
        return []
    sides = [space.architectures(genotypes) for genotypes in (own, other)]
    shown = [SHOWN.get(gene, gene) for gene in space.genes]
    before, after = ({name: _shown(side, name) for name in shown} for side in sides)
    moved = [[name for name, here in zip(shown, row, strict=True) if here] for row in (own != other).tolist()]
    return [
        ", ".join(f"{name} {before[name][i]} -> {after[name][i]}" for name in names) for i, names in enumerate(moved)
    ]


def _shown(side: Architectures, name: str) -> list[str]:
    if name == OF_LAYERS:
        return in_words(side)
    values = getattr(side, name)
    return worded(name, values).tolist() if name in WORDED else [f"{value:g}" for value in values.tolist()]


Named = TypeVar("Named")


def by_format(
    of: Callable[[Architectures, Scenario], dict[Named, FloatArray]], designs: Architectures, scenario: Scenario
) -> dict[Named, FloatArray]:
    """Values of a function for the designs of each format and vocabulary in its own scenario, put together, each (n,)."""
    groups = scenario.by_design(designs)
    if not groups:
        return of(designs, scenario)
    found: dict[Named, FloatArray] = {}
    for rows, its_own in groups:
        for column, values in of(designs[rows], its_own).items():
            found.setdefault(column, np.zeros(len(designs)))[rows] = values
    return found
