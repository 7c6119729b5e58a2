"""The message where nothing meets the budgets: the least value of each budgeted cost."""

import numpy as np

from nas.errors import InfeasibleError
from nas.problem.objective import unit_of
from nas.terminal.program import command
from nas.theory.cells import genotypes
from nas.theory.costs import COSTS
from nas.theory.program import Box
from nas.theory.theory_problem import TheoryProblem


def nothing_fits(theory: TheoryProblem) -> InfeasibleError:
    """No design of the space: the least value of each cost over all designs."""
    return InfeasibleError(
        f"theory: no design meets the budgets {_against(theory, least_costs(theory))}; "
        f"{command('run')} --algo exact says which to relax"
    )


def nothing_between(theory: TheoryProblem, box: Box, width: float) -> InfeasibleError:
    """No point of one width: the least closed-form costs between the bounds."""
    least = {metric: float(COSTS[metric](theory.setting)(box.cheapest)) for metric in theory.limits}
    return InfeasibleError(
        f"theory: nothing of width {width:g} meets the budgets, closed-form costs, {_against(theory, least)}; "
        "choose a smaller width, or leave --width out"
    )


def least_costs(theory: TheoryProblem) -> dict[str, float]:
    """The least of each budgeted metric over the whole space, in its unit, designs whose loss gives no perplexity included.

    At one width and (E, K) every cost rises with depth, FFN size and KV heads, so that the smallest of each has the least of all.
    """
    first = np.zeros(1, dtype=np.int64)
    rows = [
        genotypes(theory, (experts, top_k), width, first, first, first)
        for width in range(len(theory.problem.space.widths))
        for experts, top_k in theory.pairs.tolist()
    ]
    priced = theory.problem.priced(np.concatenate(rows))
    return {metric: float(priced[metric].min()) for metric in theory.limits}


def _against(theory: TheoryProblem, least: dict[str, float]) -> str:
    lines = [
        f"{metric} <= {limit:g} (least {least[metric]:.4g} {unit_of(metric)})"
        for metric, limit in theory.limits.items()
    ]
    together = ", each met by some but not all by one" if all(least[m] <= v for m, v in theory.limits.items()) else ""
    return ", ".join(lines) + together
