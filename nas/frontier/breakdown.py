"""One architecture broken down by the formulas that the metrics use."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.problem.problem import Problem
from objectives import memory
from objectives.dimensions import Dimensions
from objectives.latency.operators import Phase, phases
from objectives.latency.roofline import OperatorTime, epilogue_seconds, launch_seconds, phase_times
from objectives.loss_law.features import feature
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.space import GENES

STEP_METRICS = ("loss", "prefill_ms", "decode_ms", "total_ms", "memory_gb", "resident_gb")
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
    """Explain a single architecture with the vocabulary that it carries.

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
        {name: float(values[0]) for name, values in memory.resident_parts_gb(chosen, scenario).items()},
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
        of_layers = [(t, part) for part in ("attention", "ffn") for t in getattr(times, part)]
        rows = [_row(t, part, layers, phase, scenario) for t, part in of_layers]
        rows += [_row(t, "head", 1.0, phase, scenario) for t in times.head]
        found[phase.name] = [row for row in rows if row.instances or row.ms]
    return found


def _row(time: OperatorTime, part: str, layers: float, phase: Phase, scenario: Scenario) -> OperatorRow:
    operator, compute, memory = time.operator, _first(time.compute), _first(time.memory)
    instances = layers * _first(operator.count)
    bound = instances * _first(time.bound) * 1e3
    by_kind = {
        "compute": bound if compute > memory else 0.0,
        "memory": 0.0 if compute > memory else bound,
        "launch": instances * _first(launch_seconds(operator, phase, scenario)) * 1e3,
        "epilogue": instances * _first(epilogue_seconds(operator, phase, scenario)) * 1e3,
        "constant": instances * operator.fixed_seconds * 1e3,
    }
    return OperatorRow(
        operator.name,
        part,
        instances * _first(operator.present),
        layers * compute / scenario.seconds_per_flop(operator.peak) / 1e9,
        layers * memory / scenario.seconds_per_byte / 1e6,
        layers * _first(time.seconds) * 1e3,
        by_kind,
        max(by_kind, key=by_kind.__getitem__),
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
