"""Device studies over the paper's space or a smaller one, solved as the command solves them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.devices.asking import asked
from nas.devices.cases import built
from nas.devices.request import Request
from nas.devices.result import DeviceStudy, studied


@pytest.fixture(scope="session")
def request_for() -> Callable[..., Request]:
    """A request from its own keys; `flags`, `settings`, `config`, `table`, `applications` as the command has them."""

    def build(
        *,
        flags: dict[str, Any] | None = None,
        settings: list[str] | None = None,
        config: str | None = None,
        table: Path | None = None,
        applications: str | None = None,
        **own: Any,
    ) -> Request:
        return Request(own, applications, table, False, config, settings or [], flags or {}, None, False, True, False)

    return build


@pytest.fixture(scope="session")
def solved(request_for: Callable[..., Request]) -> Callable[..., DeviceStudy]:
    """A device study, solved."""

    def solve(**given: Any) -> DeviceStudy:
        return studied(built(asked(request_for(**given))), lambda more: None)

    return solve
