"""What no evaluation of a problem could answer, refused when it is assembled."""

import numpy as np

from nas.errors import UsageError
from nas.problem.problem import Problem


def refuse_impossible(problem: Problem) -> None:
    """Say options that a problem's models lack, before anything is evaluated.

    Raises:
        UsageError: the first of them.
    """
    axes = [name for name in ("layers", "n_heads") if name in problem.space.genes]
    if axes and problem.scenario.latency == "closed_form":
        raise UsageError(
            f"latency: expected operator for {axes[0]} as an axis of {problem.space.name}, got closed_form; use --latency operator"
        )
    if problem.scenario.formats and any(function.wants_scenario for function in problem.functions):
        raise UsageError(
            f"objectives: expected functions of architectures alone where precision is an axis of {problem.space.name}, got one "
            "that takes the scenario; read the column precision instead"
        )
    first = problem.architectures(problem.space.genotypes(np.zeros(1, dtype=np.int64)))
    try:
        for name in dict.fromkeys(("total_ms", *problem.asked_besides, *problem.priors)):
            problem.assess(first)[name]
    except ValueError as error:
        raise UsageError(str(error)) from None
