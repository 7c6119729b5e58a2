"""Reads the cases and what is asked of a fleet, from flags, a file or a table."""

from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError

from nas.errors import UsageError
from nas.files.faults import Faults
from plas_fleet.question import FleetConfig
from plas_fleet.request import ASKED, FleetRequest
from plas_range.case_list import case_list
from plas_range.configuration import CaseList


class Written(BaseModel):
    """The key of a study of several devices that is ours."""

    fleet: dict[str, Any] | None = None


def asked_for(request: FleetRequest) -> tuple[CaseList, FleetConfig]:
    """The cases with their weights, and the question.

    Raises:
        UsageError: what was typed or written cannot be done.
    """
    wanted = case_list(request.of_cases)
    written = _written(wanted)
    origins = {place[1:]: origin for place, origin in wanted.origins.items() if place[:1] == ("fleet",)}
    faults = Faults({**origins, **{(name,): ASKED[name].name for name in request.asked}})
    try:
        asked = FleetConfig.model_validate({**written, **request.asked})
    except ValidationError as error:
        faults.add_validation(error, model=FleetConfig)
        faults.raise_if_any()
        raise
    return _weighted(wanted, asked), asked


def _written(wanted: CaseList) -> dict[str, Any]:
    """What the study itself asks."""
    try:
        return Written(fleet=wanted.of_packages.get("fleet")).fleet or {}
    except ValidationError as error:
        faults = Faults(wanted.origins)
        faults.add_validation(error, model=Written)
        faults.raise_if_any()
        raise


def _weighted(wanted: CaseList, asked: FleetConfig) -> CaseList:
    """Cases with the weights that the question gives, in order."""
    if asked.weights is None:
        return wanted
    if len(asked.weights) != len(wanted.rows):
        names = ", ".join(row.label for row in wanted.rows[:12])
        raise UsageError(
            f"--weights: expected one for each of {len(wanted.rows)} cases, got {len(asked.weights)}; they are {names}"
        )
    rows = tuple(replace(row, weight=weight) for row, weight in zip(wanted.rows, asked.weights, strict=True))
    return replace(wanted, rows=rows)
