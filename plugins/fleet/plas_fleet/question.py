"""What is asked of a fleet: how many models, what to minimise, weights of cases."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MOST_MODELS = 64
RANGE = re.compile(r"^\s*(\d+)(?:\s*\.\.\s*(\d+))?\s*$")


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


def written_weights(value: Any) -> Any:
    """`3,1,1` as numbers."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


class FleetConfig(BaseModel):
    """Key `fleet` of a study of several devices.

    models: least and largest number; minimise: weighted mean loss, or the worst loss over a case's own best; weights: one per
    case, in order.
    """

    model_config = ConfigDict(extra="forbid")
    models: Annotated[tuple[int, int], BeforeValidator(written_range)] = (1, 4)
    minimise: Literal["loss", "regret"] = "loss"
    weights: Annotated[
        list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None, BeforeValidator(written_weights)
    ] = None

    def mapping(self) -> dict[str, Any]:
        """The question as a study's file has it; weights stand at the cases."""
        return {"models": f"{self.models[0]}..{self.models[1]}", "minimise": self.minimise}
