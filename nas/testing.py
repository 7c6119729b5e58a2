"""The check of a search strategy of one's own: `check_strategy` tries every law of `nas.strategies.conformance` on it."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from nas.errors import PlasError
from nas.search.discovery import strategy_module
from nas.strategies.conformance.laws import LAWS, Subject


class BrokenLawError(AssertionError):
    """A strategy does not hold a law of the protocol."""


def check_strategy(strategy: str | ModuleType, parameters: Mapping[str, Any] | None = None) -> None:
    """Try every law on a strategy: its name, its module's dotted name, or the module; `parameters` as --param gives them.

    Raises:
        BrokenLawError: the first law that it does not hold, with what was seen.
        UsageError: no such strategy, or the module is none.
    """
    module = strategy_module(strategy) if isinstance(strategy, str) else strategy
    with TemporaryDirectory() as folder:
        subject = Subject(module, parameters or {}, Path(folder))
        for law in LAWS:
            try:
                law(subject)
            except (AssertionError, PlasError, ValidationError) as error:
                law_text = (law.__doc__ or "").partition("\n")[0]
                raise BrokenLawError(f"{module.__name__}: {law_text} {error}") from error
