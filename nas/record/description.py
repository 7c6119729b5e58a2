"""A store's description of its study, checked before it is used: who can write a store can write its digest."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from nas.errors import PlasError
from nas.study.configuration import StudyConfig
from objectives.device import Device
from objectives.loss_law.law import Law
from objectives.quantities import Name
from search_spaces.specification import SpaceSpecification

LONGEST_UNIT = 200  # characters


class _Parts(BaseModel):
    """The parts of a resolved study that are embedded as a whole."""

    space: SpaceSpecification
    law: Law
    device: Device
    objectives: Annotated[list[Name], Field(min_length=1)]
    budgets: dict[Name, Annotated[float, Field(gt=0, allow_inf_nan=False)]]


class _Description(BaseModel):
    """Metrics in the order of their columns, which objectives count by their logarithm, units of metrics that do not ship."""

    metrics: Annotated[list[Name], Field(min_length=1)]
    log_scale: dict[str, Annotated[bool, Field(strict=True)]]
    units: dict[str, Annotated[str, Field(max_length=LONGEST_UNIT)]] = {}  # of a user's own metrics


def check_description(path: Path, meta: Mapping[str, Any], keys: Sequence[str]) -> None:
    """See that a store describes a study that could have been run; `keys` are what it must resolve.

    Raises:
        PlasError: it does not, with the first thing that is wrong.
    """
    try:
        StudyConfig.model_validate(meta["resolved"])
        parts, described = _Parts.model_validate(meta["resolved"]), _Description.model_validate(meta)
        _agree(parts, described)
        if missing := [key for key in keys if key not in meta["resolved"]]:
            raise ValueError(f"{missing[0]}: expected a value, got nothing")
    except ValueError as error:
        reason = " ".join(str(error).partition("[type=")[0].split())[:200]
        raise PlasError(f"{path}: describes no study ({reason}); it was altered, start a new run") from None


def _agree(parts: _Parts, described: _Description) -> None:
    wanted = {*parts.objectives, *parts.budgets}
    if len(set(described.metrics)) < len(described.metrics) or not wanted <= set(described.metrics):
        raise ValueError(f"metrics: expected each once and {', '.join(sorted(wanted))}, got {described.metrics}")
    if not set(parts.objectives) <= described.log_scale.keys():
        raise ValueError(f"log_scale: expected {', '.join(parts.objectives)}, got {described.log_scale}")
