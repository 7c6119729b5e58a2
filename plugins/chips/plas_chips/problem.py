"""What is asked of pairs of a chip and an architecture, and whether chips can be covered together."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nas.exact.decomposition.frontier import MOST_BACKBONES, backbones
from nas.exact.solution import alike
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from objectives.parts import OF_NO_DEVICE, composition
from objectives.scenario import Scenario
from objectives.serving import Serving
from plas_chips.leaves import SHARES
from plas_chips.sums import TIMES
from search_spaces.arrays import FloatArray, IntArray


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
    return "" if all(alike(first, other) for other in asked.scenarios) else "chips differ in more than rates and memory"
