"""Content of a page's panel for frontier members: `explain` for many architectures, as columns."""

from typing import Any

import numpy as np

from nas.pages.embedding import column
from nas.problem.breakdown import KINDS, by_format, operator_columns, resident_bytes, step_metrics, steps_from
from nas.problem.problem import Problem
from objectives.loss_law.law import Law
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

ENDS = (0.05, 0.95)
NORMAL = 1.645  # sds between which a normal variable lies nine times of ten


def details(problem: Problem, genotypes: IntArray) -> dict[str, Any]:
    """Loss terms, operators, resident bytes, neighbours and the loss's interval of each genotype (n, g)."""
    architectures = problem.architectures(genotypes)
    law = problem.scenario.law
    return {
        "n": len(genotypes),
        "kinds": [{"name": name, "words": words} for name, words in KINDS.items()],
        "lossTerms": _named(law.terms(architectures)),
        "phases": _phases(problem, architectures),
        "resident": _named(by_format(resident_bytes, architectures, problem.scenario)),
        "steps": _steps(problem, genotypes),
        "interval": interval(law, architectures),
        "extrapolates": column(law.extrapolates(architectures)),
    }


def _named(columns: dict[str, Any]) -> dict[str, Any]:
    return {"names": list(columns), "columns": [column(values) for values in columns.values()]}


def _phases(problem: Problem, architectures: Architectures) -> list[dict[str, Any]]:
    """Operators of prefill and decode: figures (n,), and milliseconds by what takes them."""
    found = by_format(_figures, architectures, problem.scenario)
    operators = {phase: dict.fromkeys(key[1:3] for key in found if key[0] == phase) for phase in ("prefill", "decode")}
    return [
        {
            "name": phase,
            "operators": [
                {
                    "name": name,
                    "part": part,
                    **{figure: column(found[phase, name, part, figure]) for figure in ("instances", "gflop", "mb")},
                    "ms": [column(found[phase, name, part, kind]) for kind in KINDS],
                }
                for name, part in rows
            ],
        }
        for phase, rows in operators.items()
    ]


def _figures(architectures: Architectures, scenario: Scenario) -> dict[tuple[str, str, str, str], FloatArray]:
    """Every figure of every operator, (n,), by phase, operator, part and its own name."""
    return {
        (phase, operator.operator, operator.part, figure): values
        for phase, found in operator_columns(scenario, architectures).items()
        for operator in found
        for figure, values in (
            *(("instances", operator.instances), ("gflop", operator.gflop), ("mb", operator.mb)),
            *operator.ms_by_kind.items(),
        )
    }


def _steps(problem: Problem, genotypes: IntArray) -> dict[str, Any]:
    """Neighbours one step away: how many each member has, their names, and the changes of each metric."""
    found = steps_from(problem, genotypes) if len(genotypes) else []
    every = [step for steps in found for step in steps]
    names, metrics = sorted({step.step for step in every}), step_metrics(problem)
    place = {name: i for i, name in enumerate(names)}
    return {
        "counts": column(np.array([len(steps) for steps in found], dtype=np.int64)),
        "names": names,
        "name": column(np.array([place[step.step] for step in every], dtype=np.int64)),
        "metrics": list(metrics),
        "changes": [column(np.array([step.change[metric] for step in every])) for metric in metrics],
    }


def interval(law: Law, architectures: Architectures) -> dict[str, Any] | None:
    """Between which losses nine of ten draws of the law lie, or nine of ten residuals; None where the law states neither."""
    if len(architectures) == 0:
        return None
    if law.draws:
        low, high = np.quantile(law.spread_losses(architectures), ENDS, axis=0)
        return {"low": column(low), "high": column(high), "of": "draws of the law"}
    if law.residual_sd is None:
        return None
    loss, half = law.loss(architectures), NORMAL * law.residual_sd
    return {"low": column(loss - half), "high": column(loss + half), "of": "residuals of the law's fit"}
