"""What is asked of a fleet: how many models, what to minimise, weights of cases, a limit on training, a family."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from nas.study.value_parsers import none_word
from objectives.quantities import scaled, split

MOST_MODELS = 64
RANGE = re.compile(r"^\s*(\d+)(?:\s*\.\.\s*(\d+))?\s*$")
FLOPS = {"FLOP": 1.0, "TFLOP": 1e12, "PFLOP": 1e15, "EFLOP": 1e18, "ZFLOP": 1e21}
HOURS = {"h": 1.0, "d": 24.0, "min": 1 / 60}


def written_range(value: Any) -> tuple[int, int]:
    """`3`, `1..4` or [1, 4] as the least and the largest number of models.

    Raises:
        ValueError: another form.
    """
    if isinstance(value, (list, tuple)) and len(value) == 2:
        value = f"{value[0]}..{value[1]}"
    form = RANGE.match(str(value))
    first, last = (int(form[1]), int(form[2] or form[1])) if form else (0, 0)
    if not 1 <= first <= last <= MOST_MODELS:
        raise ValueError(f"expected 3 or 1..4, from 1 to {MOST_MODELS}, got {value!r}; write for example 1..4")
    return first, last


def written_cost(value: Any) -> tuple[str, float] | None:
    """`5000 h` as hours of training, `2e21 FLOP` as FLOPs: the metric and the most of it.

    Raises:
        ValueError: another unit, or nothing positive.
    """
    value = none_word(value)
    if value is None:
        return None
    if isinstance(value, (list, tuple)) and len(value) == 2:
        value = f"{value[1]!r} {'h' if value[0] == 'train_hours' else 'FLOP'}"
    number, unit = split(str(value), 'a quantity like "5000 h" or "2e21 FLOP"')
    for metric, units in (("train_hours", HOURS), ("train_flops", FLOPS)):
        if unit in units:
            return metric, scaled(number, "", 1.0, "5000 h") * units[unit]
    raise ValueError(f'expected hours or FLOPs of training, "5000 h" or "2e21 FLOP", got {value!r}; use such a unit')


def written_weights(value: Any) -> Any:
    """`3,1,1` as numbers."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


class FleetConfig(BaseModel):
    """Key `fleet` of a study of several devices.

    models: least and largest number; minimise: weighted mean loss, or the worst loss over a case's own best; training_budget: of
    all models together; family: what alone its members may differ in; weights: one per case, in order; time_limit: seconds.
    """

    model_config = ConfigDict(extra="forbid")
    models: Annotated[tuple[int, int], BeforeValidator(written_range)] = (1, 4)
    minimise: Literal["loss", "regret"] = "loss"
    training_budget: Annotated[tuple[str, float] | None, BeforeValidator(written_cost)] = None
    family: Annotated[Literal["depth", "experts"] | None, BeforeValidator(none_word)] = None
    weights: Annotated[
        list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None, BeforeValidator(written_weights)
    ] = None
    time_limit: Annotated[float, Field(gt=0)] | None = None

    @property
    def cost(self) -> str | None:
        """The metric whose total over all models is limited."""
        return None if self.training_budget is None else self.training_budget[0]

    @property
    def most_cost(self) -> float:
        """The most that all models together may cost."""
        return np.inf if self.training_budget is None else self.training_budget[1]

    @property
    def written_budget(self) -> str:
        """The limit on training as it is typed, "" without one."""
        if self.training_budget is None:
            return ""
        metric, most = self.training_budget
        return f"{most:,g} h" if metric == "train_hours" else f"{most:g} FLOP"

    def mapping(self) -> dict[str, Any]:
        """The question as a study's file has it; weights stand at the cases."""
        content: dict[str, Any] = {"models": f"{self.models[0]}..{self.models[1]}", "minimise": self.minimise}
        if self.training_budget is not None:
            metric, most = self.training_budget
            content["training_budget"] = f"{most!r} {'h' if metric == 'train_hours' else 'FLOP'}"
        content |= {name: value for name in ("family", "time_limit") if (value := getattr(self, name)) is not None}
        return content


GENES: dict[str, Sequence[str]] = {"depth": ("depth",), "experts": ("n_experts", "top_k")}
