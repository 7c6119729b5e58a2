"""The continuous problem of a box: solved with closed-form costs at once, with operator costs by cuts; what more of a device buys in it."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nas.errors import InfeasibleError, UsageError
from nas.exact.device_gains import STEP, with_more
from nas.problem.problem import Problem
from plas_paper.costs import COSTS, LATENCIES, Sides, cost_of
from plas_paper.program import Box, Optimum, Posynomial, Program, solve
from plas_paper.theory_problem import TheoryProblem
from search_spaces.architectures import Architectures

ROUNDS, CLOSE = 30, 1e-9


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The optimum of a box: no design in it has a loss below `bound`, nats; prices are nats per unit of a limit's log."""

    optimum: Optimum
    prices: dict[str, float]

    @property
    def loss(self) -> float:
        """Loss at the optimum."""
        return self.optimum.value

    @property
    def bound(self) -> float:
        """A lower bound of every design in the box."""
        return self.optimum.bound


def relaxed(theory: TheoryProblem, box: Box, pair: tuple[int, int] | None = None) -> Relaxation | None:
    """The optimum of a box within the problem's budgets; None where not even its cheapest point meets them.

    Operator latencies need (E, K).
    """
    setting = theory.setting if pair is None else theory.setting_of(pair)
    by_operator = pair is not None and theory.problem.scenario.latency == "operator"
    curved = {m: theory.sides(m, pair) for m in theory.limits if by_operator and pair and m in LATENCIES}
    limits = {m: cost_of(m, setting).times(1.0 / v) for m, v in theory.limits.items() if m not in curved}
    cuts = _first_cuts(theory, box, curved)
    for number in range(1, ROUNDS + 1):
        program = Program(theory.loss, {**limits, **cuts}, box)
        if not program.feasible:
            return None
        optimum = solve(program)
        fresh = _cuts(theory, curved, optimum, number)
        if not fresh:
            break
        cuts |= fresh
    return Relaxation(optimum, _by_metric(optimum))


def _first_cuts(theory: TheoryProblem, box: Box, curved: dict[str, Sides]) -> dict[str, Posynomial]:
    """Cuts at the cheapest corner, which decide whether anything fits, and in the middle of the box."""
    places = {"": 0.5 * (np.log(box.lower) + np.log(box.upper)), " (corner)": box.cheapest}
    return {
        f"{m}{word}": side.cut(x).times(1.0 / theory.limits[m])
        for m, side in curved.items()
        for word, x in places.items()
    }


def _cuts(theory: TheoryProblem, curved: dict[str, Sides], optimum: Optimum, number: int) -> dict[str, Posynomial]:
    """Cuts of the latencies that the optimum exceeds."""
    cuts = {}
    for metric, side in curved.items():
        cut = side.cut(optimum.logs).times(1.0 / theory.limits[metric])
        if float(cut(optimum.logs)) > 1.0 + CLOSE:
            cuts[f"{metric} ({number})"] = cut
    return cuts


def _by_metric(optimum: Optimum) -> dict[str, float]:
    prices: dict[str, float] = defaultdict(float)
    for name, price in optimum.prices.items():
        prices[name.partition(" (")[0]] += price
    return dict(prices)


def relaxed_gains(problem: Problem, design: Architectures, resources: Iterable[str]) -> dict[str, float]:
    """Nats that a share more of each resource takes off the optimum of the continuous problem with a design's (E, K); none of a study that the theory does not cover."""
    pair = int(design.n_experts[0]), int(design.top_k[0])
    try:
        base = _optimum(problem, pair)
        more = {name: _optimum(with_more(problem, name, 1.0 + STEP), pair) for name in resources}
    except (UsageError, InfeasibleError):
        return {}
    if base is None:
        return {}
    return {name: max(0.0, base - loss) for name, loss in more.items() if loss is not None}


def _optimum(problem: Problem, pair: tuple[int, int]) -> float | None:
    theory = TheoryProblem(problem)
    if not theory.limits or any(metric not in COSTS for metric in theory.limits):
        return None
    relaxation = relaxed(theory, theory.box(pair=pair), pair)
    return None if relaxation is None else relaxation.loss
