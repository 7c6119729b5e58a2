"""Fleets over small spaces, solved as the command solves them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plas_fleet.answers import FleetAnswer
from plas_fleet.command import answer_of
from plas_fleet.inputs import asked_for
from plas_fleet.request import FleetRequest

from plas_range.cases import priced_cases


@pytest.fixture(scope="session")
def fleet_of() -> Callable[..., FleetAnswer]:
    """A fleet from what is asked, keys of cases, a table, and flags of the study."""

    def solve(
        *,
        study: str | None = None,
        table: Path | None = None,
        flags: dict[str, Any] | None = None,
        own: dict[str, Any] | None = None,
        **asked: Any,
    ) -> FleetAnswer:
        request = FleetRequest(study, asked, own or {}, table=table, flags=flags or {}, plots=False, quiet=True)
        wanted, question = asked_for(request)
        return answer_of(priced_cases(wanted), question)

    return solve
