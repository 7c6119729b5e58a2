"""One architecture taken apart by the formulas that the metrics use."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.problem import Problem
from objectives import parameters
from objectives.dimensions import Dimensions
from objectives.features import feature
from objectives.operators import phases
from objectives.roofline import OperatorTime, phase_times
from search_spaces.architectures import Architectures
from search_spaces.space import GENES

STEP_METRICS = ("loss", "prefill_ms", "decode_ms", "total_ms", "memory_gb", "resident_gb")
SHOWN = {"ffn": "expert_ffn_ratio"}


@dataclass(frozen=True)
class OperatorRow:
    """One operator over a whole phase: all layers, passes and instances together."""

    operator: str
    part: str
    instances: float
    gflop: float
    mb: float
    ms: float
    bound: str


@dataclass(frozen=True)
class Step:
    """A neighbour in the space and how its metrics differ."""

    step: str
    change: dict[str, float]


@dataclass(frozen=True)
class Explanation:
    """Everything `explain` shows; times in ms, memory in GB, loss in nats."""

    metrics: dict[str, float]
    outside_law: list[str]
    loss_terms: dict[str, float]
    operators: dict[str, list[OperatorRow]]
    resident_gb: dict[str, float]
    budgets: list[dict[str, Any]]
    steps: list[Step]


def explained(problem: Problem, chosen: Architectures) -> Explanation:
    """Explain a single architecture, dressed with its vocabulary.

    Raises:
        ValueError: the latency model does not cover it.
    """
    scenario, assessment = problem.scenario, problem.assess(chosen)
    shipped = [name for name in problem.metric_names if name not in {f.name for f in problem.functions}]
    metrics = {name: float(assessment[name][0]) for name in shipped}
    budgets = [
        {"metric": b.metric, "value": metrics[b.metric], "limit": b.limit, "violation": metrics[b.metric] / b.limit - 1}
        for b in problem.budgets
        if b.metric in metrics
    ]
    return Explanation(
        metrics,
        outside(problem, chosen),
        {name: float(values[0]) for name, values in scenario.law.terms(chosen).items()},
        operators(problem, chosen),
        {name: float(values[0]) for name, values in parameters.resident_parts_gb(chosen, scenario).items()},
        budgets,
        steps(problem, chosen, metrics),
    )


def outside(problem: Problem, chosen: Architectures) -> list[str]:
    """Where the loss prediction leaves the range that the law was fitted on."""
    law = problem.scenario.law
    said = []
    for name in law.outside(chosen):
        low, high = law.fitted_on[name]
        said.append(
            f"{name} {float(feature(chosen, name)[0]):g} is outside {low:g} to {high:g}, on which law {law.name} was fitted"
        )
    return said


def operators(problem: Problem, chosen: Architectures) -> dict[str, list[OperatorRow]]:
    """Rows per phase from the operator model; none under the closed form."""
    scenario = problem.scenario
    if scenario.latency == "closed_form":
        return {"prefill": [], "decode": []}
    x, found = Dimensions(chosen), dict[str, list[OperatorRow]]()
    for phase in phases(scenario):
        times = phase_times(x, phase, scenario)
        layers = float(chosen.depth[0])
        rows = [_row(t, part, layers, problem) for part in ("attention", "ffn") for t in getattr(times, part)]
        rows += [_row(t, "head", 1.0, problem) for t in times.head]
        found[phase.name] = [row for row in rows if row.instances or row.ms]
    return found


def _row(time: OperatorTime, part: str, layers: float, problem: Problem) -> OperatorRow:
    scenario, operator = problem.scenario, time.operator
    compute, memory = _first(time.compute), _first(time.memory)
    return OperatorRow(
        operator.name,
        part,
        layers * _first(operator.count) * _first(operator.present),
        layers * compute / scenario.seconds_per_flop(operator.peak) / 1e9,
        layers * memory / scenario.seconds_per_byte / 1e6,
        layers * _first(time.seconds) * 1e3,
        "constant" if operator.fixed_seconds else "compute" if compute > memory else "memory",
    )


def _first(value: Any) -> float:
    return float(np.ravel(value)[0])


def steps(problem: Problem, chosen: Architectures, metrics: dict[str, float]) -> list[Step]:
    """Every neighbour along one axis with its changes; none for an architecture outside the space."""
    space = problem.space
    key = space.find(chosen)
    if key[0] < 0:
        return []
    own = space.genotypes(key)
    near = space.neighbours(own)
    found = problem.evaluate(near, STEP_METRICS)
    return [
        Step(
            _step_name(problem, own[0], near[i]),
            {name: float(found.metrics[name][i]) - metrics[name] for name in STEP_METRICS},
        )
        for i in np.lexsort((space.keys(near), *(np.abs(near - own).T[::-1] == 0)))
    ]


def _step_name(problem: Problem, own: Any, other: Any) -> str:
    """`depth 16 -> 20`, naming every gene that a repair moved along."""
    before, after = (problem.space.architectures(np.array([genotype])) for genotype in (own, other))
    names = [SHOWN.get(GENES[gene], GENES[gene]) for gene in np.flatnonzero(own != other)]
    return ", ".join(f"{name} {getattr(before, name)[0]:g} -> {getattr(after, name)[0]:g}" for name in names)
