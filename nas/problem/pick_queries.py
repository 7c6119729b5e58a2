"""Questions to a search: the best within the study's own budgets, within each application's, beside each baseline."""

from dataclasses import dataclass
from typing import Any

from nas.problem.objective import Budget
from search_spaces.architectures import Architectures
from search_spaces.columns import SHAPE

OWN = "your budgets"


@dataclass(frozen=True)
class PickQuery:
    """Which feasible architecture of lowest loss also satisfies this budget, and those of `within`?

    No budget: the study's own are all that is asked. `vocabulary` is the one that both sides of a
    comparison are given (None: the study's own); `baseline` names the model whose figures are the
    limits, "" otherwise; `dense` asks for architectures without experts to choose from.
    """

    label: str
    budget: Budget | None
    vocabulary: int | None = None
    baseline: str = ""
    within: tuple[Budget, ...] = ()
    dense: bool = False

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """The budgets that it adds to the study's own."""
        return (*(() if self.budget is None else (self.budget,)), *self.within)


@dataclass(frozen=True, eq=False)
class Baseline:
    """A published model, or any architecture, to compare with."""

    label: str
    architecture: Architectures

    def mapping(self) -> dict[str, Any]:
        """The baseline as YAML content."""
        row = {name: getattr(self.architecture, name)[0].item() for name in SHAPE}
        further = {name: _plain(column[0]) for name, column in self.architecture.further_columns().items()}
        return {"name": self.label, **row, **further}


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
