"""Device studies over the paper's space or a smaller one, solved as the command solves them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plas_range.case_list import case_list
from plas_range.cases import priced_cases
from plas_range.request import DevicesRequest
from plas_range.result import DeviceStudy, studied


@pytest.fixture(scope="session")
def request_for() -> Callable[..., DevicesRequest]:
    """A request from its own keys; `flags`, `settings`, `config`, `table`, `applications` as the command has them."""

    def build(
        *,
        flags: dict[str, Any] | None = None,
        settings: list[str] | None = None,
        config: str | None = None,
        table: Path | None = None,
        applications: str | None = None,
        **own: Any,
    ) -> DevicesRequest:
        return DevicesRequest(
            own,
            applications,
            table,
            flags=flags or {},
            config=config,
            settings=tuple(settings or ()),
            plots=False,
            quiet=True,
        )

    return build


@pytest.fixture(scope="session")
def solved(request_for: Callable[..., DevicesRequest]) -> Callable[..., DeviceStudy]:
    """A device study, solved."""

    def solve(**given: Any) -> DeviceStudy:
        return studied(priced_cases(case_list(request_for(**given))), lambda more: None)

    return solve
