"""What a search strategy is: ask for genotypes, be told what they are worth."""

from dataclasses import dataclass
from typing import Protocol

from nas.evaluations import Evaluations
from search_spaces.arrays import IntArray


@dataclass(frozen=True)
class Traits:
    """What the study must know about a strategy.

    default_evaluations: distinct architectures when the user says nothing (None: as many as it asks
    for); constraints: whether it handles budgets itself; horizon: whether its schedule depends on the
    number of evaluations, so that an extended run differs from a longer one.
    """

    default_evaluations: int | None = 5000
    takes_evaluations: bool = True
    constraints: bool = True
    horizon: bool = False


class Strategy(Protocol):
    """A search algorithm's state; it knows nothing of stores, limits or files.

    Laws: `ask` returns genotypes (k, 6), repaired by the caller; no rows mean that nothing more
    will come. `at_most` bounds strategies that propose one by one; a generation is asked whole.
    `tell` receives every row of the last ask, in order, failed ones with NaN metrics. The same seed
    and the same answers give the same questions.
    """

    def ask(self, at_most: int) -> IntArray:
        """The next genotypes to evaluate."""
        ...

    def tell(self, evaluations: Evaluations) -> None:
        """What the last asked genotypes are worth."""
        ...
