"""Calls a strategy that may be a user's own: what it raises or returns wrongly is reported in one line."""

import json
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

import numpy as np
from pydantic import BaseModel

from nas.problem.evaluations import Evaluations
from nas.search.strategy import ReportSection, Restorable, Strategy, StrategyContext
from nas.study import entry_points
from nas.study.user_code_errors import ForeignError, naming_user_code
from search_spaces.arrays import IntArray


def build_strategy(module: ModuleType, context: StrategyContext, parameters: BaseModel) -> Strategy:
    """The strategy of a module.

    Raises:
        PlasError: a module that is not ours raised something, or built something else.
    """
    with _blamed(module.__name__, "build"):
        strategy: Strategy = module.build(context, parameters)
    if not (callable(getattr(strategy, "ask", None)) and callable(getattr(strategy, "tell", None))):
        raise ForeignError(
            f"{_owner(module.__name__)}: build: expected a strategy with ask and tell, got {type(strategy).__name__}; return one"
        )
    return strategy


def ask_strategy(strategy: Strategy, at_most: int, genes: int) -> IntArray:
    """Ask a strategy for genotypes, integers (k, genes); the caller repairs them.

    Raises:
        PlasError: it is something else, or a strategy that is not ours raised something.
    """
    with _blamed(type(strategy).__module__, "ask"):
        genotypes: IntArray = strategy.ask(at_most)
    shape, kind = np.shape(genotypes), getattr(genotypes, "dtype", type(genotypes).__name__)
    if not isinstance(genotypes, np.ndarray) or genotypes.ndim != 2 or shape[1] != genes or genotypes.dtype.kind != "i":
        raise ForeignError(
            f"{_owner(type(strategy).__module__)}: ask: expected an array of integers (k, {genes}), got {kind} {shape}; "
            "return genotypes, as context.problem.space.genotypes(keys) gives them"
        )
    return genotypes


def tell_strategy(strategy: Strategy, evaluations: Evaluations) -> None:
    """Tell a strategy the values of its proposals.

    Raises:
        PlasError: a strategy that is not ours raised something.
    """
    with _blamed(type(strategy).__module__, "tell"):
        strategy.tell(evaluations)


def state_of(strategy: Restorable) -> dict[str, Any]:
    """The state that a strategy wants stored.

    Raises:
        PlasError: it is no JSON, or a strategy that is not ours raised something.
    """
    module = type(strategy).__module__
    with _blamed(module, "state"):
        state = strategy.state()
    try:
        if not _ours(module):
            json.dumps(state, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ForeignError(
            f"{_owner(module)}: state: expected what JSON holds, got {type(state).__name__} ({error}); "
            "return numbers, texts, lists and dictionaries"
        ) from None
    return state


def restored(strategy: Restorable, state: Mapping[str, Any], evaluations: Evaluations) -> bool:
    """Whether a strategy is now where a kept state was taken.

    Raises:
        PlasError: a strategy that is not ours raised something.
    """
    with _blamed(type(strategy).__module__, "restore"):
        return bool(strategy.restore(state, evaluations))


def finished_of(strategy: Strategy) -> str:
    """Why a strategy stopped by itself, "" where it does not say.

    Raises:
        PlasError: a strategy that is not ours raised something.
    """
    with _blamed(type(strategy).__module__, "finished"):
        return str(getattr(strategy, "finished", "") or "")


def sections_of(strategy: Strategy, evaluations: Evaluations) -> tuple[ReportSection, ...]:
    """What a strategy says of everything evaluated, where it says anything.

    Raises:
        PlasError: a strategy that is not ours raised something.
    """
    sections = getattr(strategy, "sections", None)
    with _blamed(type(strategy).__module__, "sections"):
        found = sections(evaluations) if callable(sections) else None
        return tuple(section for section in found or () if isinstance(section, ReportSection))


def _blamed(module: str, what: str) -> AbstractContextManager[None]:
    """Name the place of an error raised by a user's module; an error of our own keeps its traceback."""
    return nullcontext() if _ours(module) else naming_user_code(_owner(module), what, sys.modules.get(module))


def _ours(module: str) -> bool:
    return module.partition(".")[0] == "nas"


def _owner(module: str) -> str:
    """A strategy of an installed package by its name and distribution, any other by its module."""
    theirs = (plug_in for plugs in entry_points.offered("strategies").values() for plug_in in plugs)
    return next((str(plug_in) for plug_in in theirs if plug_in.place == module), module)
