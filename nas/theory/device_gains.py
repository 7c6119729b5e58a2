"""What more of a device buys in the continuous problem, beside what it buys among the designs of a space."""

from collections.abc import Iterable

from nas.errors import InfeasibleError, UsageError
from nas.exact.device_gains import STEP, with_more
from nas.problem.problem import Problem
from nas.theory.costs import COSTS
from nas.theory.relaxation import relaxed
from nas.theory.theory_problem import TheoryProblem
from search_spaces.architectures import Architectures


def relaxed_gains(
    problem: Problem, design: Architectures, resources: Iterable[str], step: float = STEP
) -> dict[str, float]:
    """Nats that a share more of each resource takes off the optimum of the continuous problem with a design's (E, K); none of a study that the theory does not cover."""
    pair = int(design.n_experts[0]), int(design.top_k[0])
    try:
        base = _optimum(problem, pair)
        more = {name: _optimum(with_more(problem, name, 1.0 + step), pair) for name in resources}
    except (UsageError, InfeasibleError):
        return {}
    if base is None:
        return {}
    return {name: max(0.0, base - loss) for name, loss in more.items() if loss is not None}


def _optimum(problem: Problem, pair: tuple[int, int]) -> float | None:
    theory = TheoryProblem(problem)
    if not theory.limits or any(metric not in COSTS for metric in theory.limits):
        return None
    found = relaxed(theory, theory.box(pair=pair), pair)
    return None if found is None else found.loss
