"""Designs to train to check a prediction: the predicted ones, and the best that differ in one respect."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from nas.problem.evaluations import Evaluations, joined
from nas.problem.picks import best_row
from nas.problem.problem import Problem
from nas.theory.prediction import Prediction
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, BoolArray, FloatArray

DIFFERENCES: dict[str, Callable[[Architectures, Architectures], BoolArray]] = {
    "another sparsity": lambda all_, one: all_.activation_rate != one.activation_rate[0],
    "another width": lambda all_, one: all_.width != one.width[0],
    "another depth": lambda all_, one: all_.depth != one.depth[0],
}


def worth_training(prediction: Prediction) -> tuple[list[str], Evaluations] | None:
    """Three to five designs with why each: the rounded one, the exact pick, the best of another sparsity, width, depth.

    None where nothing feasible was found. The last three are the best among all that the rounding tried.
    """
    rounded = prediction.rounded
    if rounded.design is None or rounded.tried is None:
        return None
    reasons, chosen = ["predicted"], rounded.design
    exact = prediction.exact
    if exact is not None:
        if int(exact.pick.keys[0]) == int(chosen.keys[0]):
            reasons = ["predicted; the exact optimum"]
        else:
            reasons, chosen = [*reasons, "the exact optimum"], joined(chosen, exact.pick)
    problem = prediction.theory.problem
    shapes, first = problem.architectures(rounded.tried.genotypes), problem.architectures(chosen.genotypes[:1])
    for reason, differs in DIFFERENCES.items():
        others = differs(shapes, first) & ~np.isin(rounded.tried.keys, chosen.keys)
        pool = rounded.tried[others]
        row = best_row(pool, None)
        if row is not None:
            reasons, chosen = [*reasons, reason], joined(chosen, pool[row : row + 1])
    return reasons, chosen


def by_operators(problem: Problem, chosen: Evaluations, metric: str) -> FloatArray:
    """A latency of some designs under the operator model, ms, (n,)."""
    truth = replace(problem, scenario=replace(problem.scenario, latency="operator"))
    return truth.evaluate(chosen.genotypes, (metric,)).metrics[metric]


def candidate_columns(prediction: Prediction) -> Mapping[str, AnyArray]:
    """The designs worth training as a candidate file: id, why, architecture, metrics; empty where there is none."""
    found = worth_training(prediction)
    if found is None:
        return {}
    reasons, chosen = found
    shapes = prediction.theory.problem.architectures(chosen.genotypes)
    ids = [f"theory-{number}" for number in range(1, len(reasons) + 1)]
    return {"id": np.array(ids), "reason": np.array(reasons), **shapes.columns(), **chosen.metrics}
