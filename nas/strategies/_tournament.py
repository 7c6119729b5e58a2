"""Binary tournaments whose every coin is tossed by the algorithm's own generator."""

from collections.abc import Callable
from typing import Any

import numpy as np
from pymoo.operators.selection.tournament import TournamentSelection

from search_spaces.arrays import IntArray

Criterion = Callable[[Any], Any]


def violation(pop: Any) -> Any:
    """Sum of positive constraint violations, (n,)."""
    return pop.get("CV")[:, 0]


def tournament(*criteria: Criterion) -> TournamentSelection:
    """Selection of the less violating of two, then of the lower by each criterion, (population) → (n,); else by a coin.

    pymoo's own ask a generator without a seed: NSGA-III's when both violate equally, AGE-MOEA's
    whenever ranks are compared. A criterion that one of the two lacks (None) decides nothing.
    """

    def winners(pop: Any, pairs: IntArray, *, random_state: np.random.Generator, **_: Any) -> IntArray:
        winner = random_state.integers(0, 2, size=len(pairs))
        for criterion in reversed((violation, *criteria)):
            first, second = np.asarray(criterion(pop), dtype=np.float64)[pairs].T
            winner = np.where(first < second, 0, np.where(second < first, 1, winner))
        return np.take_along_axis(pairs, winner[:, None], axis=1)

    return TournamentSelection(func_comp=winners)
