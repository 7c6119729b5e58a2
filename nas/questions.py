"""What is asked of a search: the pick within each application's budget and at each baseline's time."""

from dataclasses import dataclass
from typing import Any

from nas.objective import Budget
from search_spaces.architectures import SHAPE, Architectures


@dataclass(frozen=True)
class Question:
    """Which feasible architecture of lowest loss also satisfies this budget?

    `vocabulary` is the one that both sides of a comparison are given (None: the study's own);
    `baseline` names the model whose figure is the limit, "" for an application.
    """

    label: str
    budget: Budget | None
    vocabulary: int | None = None
    baseline: str = ""


@dataclass(frozen=True, eq=False)
class Baseline:
    """A published model, or any architecture, to compare with.

    `n_local` of its layers attend to the last `window` tokens only; costs do not know it.
    """

    label: str
    architecture: Architectures
    n_local: int = 0
    window: int = 0

    def mapping(self) -> dict[str, Any]:
        """The baseline as YAML content."""
        row = {name: getattr(self.architecture, name)[0].item() for name in SHAPE}
        further = {name: _plain(column[0]) for name, column in self.architecture.further_columns().items()}
        local = {"n_local": self.n_local, "window": self.window} if self.n_local else {}
        return {"name": self.label, **row, **further, **local}


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
