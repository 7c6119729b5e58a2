"""Building, asking and telling a strategy that may be anybody's: what it raises or returns wrongly is said in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

import numpy as np
from pydantic import BaseModel

from nas.errors import PlasError
from nas.problem.evaluations import Evaluations
from nas.search.strategy import Brief, Strategy
from search_spaces.arrays import IntArray


def built(module: ModuleType, brief: Brief, parameters: BaseModel) -> Strategy:
    """The strategy of a module.

    Raises:
        PlasError: a module that is not ours raised something, or built something else.
    """
    with _blamed(module.__name__, "build"):
        strategy: Strategy = module.build(brief, parameters)
    if not (callable(getattr(strategy, "ask", None)) and callable(getattr(strategy, "tell", None))):
        raise PlasError(
            f"{module.__name__}: build: expected a strategy with ask and tell, got {type(strategy).__name__}; return one"
        )
    return strategy


def asked(strategy: Strategy, at_most: int, genes: int) -> IntArray:
    """What a strategy asks for, integers (k, genes), repaired by the caller.

    Raises:
        PlasError: it is something else, or a strategy that is not ours raised something.
    """
    with _blamed(type(strategy).__module__, "ask"):
        genotypes: IntArray = strategy.ask(at_most)
    shape, kind = np.shape(genotypes), getattr(genotypes, "dtype", type(genotypes).__name__)
    if not isinstance(genotypes, np.ndarray) or genotypes.ndim != 2 or shape[1] != genes or genotypes.dtype.kind != "i":
        raise PlasError(
            f"{type(strategy).__module__}: ask: expected an array of integers (k, {genes}), got {kind} {shape}; "
            "return genotypes, as brief.problem.space.genotypes(keys) gives them"
        )
    return genotypes


def told(strategy: Strategy, evaluations: Evaluations) -> None:
    """Tell a strategy what it asked for is worth.

    Raises:
        PlasError: a strategy that is not ours raised something.
    """
    with _blamed(type(strategy).__module__, "tell"):
        strategy.tell(evaluations)


@contextmanager
def _blamed(module: str, what: str) -> Iterator[None]:
    """What a module from outside raises, with its place; what ours raises is our fault and keeps its traceback."""
    try:
        yield
    except PlasError:
        raise
    except Exception as error:
        if module.partition(".")[0] == "nas":
            raise
        last = extract_tb(error.__traceback__)[-1]
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise PlasError(
            f"{module}: {what} failed with {text} ({Path(last.filename).name}:{last.lineno}); correct the strategy"
        ) from error
