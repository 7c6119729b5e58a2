"""Strategies by name: their modules, traits and parameters."""

import importlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ValidationError

from nas.errors import UsageError
from nas.files.faults import Faults, unknown
from nas.study.configuration import StudyConfig
from objectives.plugins import importable

EXTRAS = {"torch": "gp", "numba": "numba"}


def strategy_module(algo: str) -> Any:
    """The module of a strategy.

    Raises:
        UsageError: unknown name, with the nearest.
    """
    if algo not in importable("nas.strategies"):
        raise UsageError(unknown("a strategy", algo, importable("nas.strategies")))
    try:
        return importlib.import_module(f"nas.strategies.{algo}")
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(error.name or "")
        if extra is None:
            raise
        raise UsageError(
            f"expected the package {error.name} for {algo}, got none installed; pip install 'plas-codesign[{extra}]'"
        ) from None


def able_to(trait: str) -> list[str]:
    """Strategies with a trait; those whose extra is missing are left out."""
    found = []
    for name in importable("nas.strategies"):
        with suppress(UsageError):
            if getattr(strategy_module(name).TRAITS, trait):
                found.append(name)
    return found


def parameters_of(raw: Mapping[str, Any], faults: Faults) -> BaseModel | None:
    """The strategy's own parameters, checked; the strategy itself is built later."""
    algo = raw.get("algo", StudyConfig.model_fields["algo"].default)
    if not isinstance(algo, str):
        return None
    try:
        model: type[BaseModel] = strategy_module(algo).Parameters
        return model.model_validate(raw.get("params", {}))
    except UsageError as error:
        faults.add(("algo",), str(error))
    except ValidationError as error:
        faults.add_validation(error, ("params",), model)
    return None
