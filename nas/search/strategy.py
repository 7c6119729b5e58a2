"""The interface of a search strategy: ask for genotypes, tell their values."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from pydantic import BaseModel

from nas.errors import UsageError
from nas.exact.checkpoint import SolverCheckpoint
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem, printed_aside
from nas.search.archive import KeyIndex
from nas.study import entry_points
from nas.study.user_code import ForeignError, naming_user_code
from objectives.loss_law.law import Law
from search_spaces.arrays import IntArray


@dataclass(frozen=True)
class Traits:
    """Properties of a strategy that the study must know; a module states them as `TRAITS`.

    evaluations: distinct architectures when the user says nothing (None: as many as it asks for);
    takes_evaluations: whether a number of evaluations means anything to it;
    cap: distinct evaluations beyond which it is not worth its own cost (None: no cap);
    constraints: whether it handles budgets itself; seedable: whether it starts from given designs;
    horizon: whether its schedule depends on the number of evaluations, so that an extended run
    differs from one asked for at once; objectives: how many it can handle at most (None: any);
    informed: whether it knows shipped metrics of the whole space beforehand, so that `all` of a comparison leaves it out;
    asynchronous: whether it may be asked again before it was told everything (the laws are `Strategy`'s); learns: whether what
    it is told changes what it asks.
    """

    evaluations: int | None = 5000
    takes_evaluations: bool = True
    cap: int | None = None
    constraints: bool = True
    seedable: bool = False
    horizon: bool = False
    objectives: int | None = None
    informed: bool = False
    asynchronous: bool = False
    learns: bool = True


@dataclass(frozen=True, eq=False)
class StrategyContext:
    """The context of a strategy: the problem as it sees it, its seed, designs to start from, the horizon.

    start: canonical genotypes (k, g), distinct, possibly none; evaluations: the distinct
    evaluations that the run is asked for, if any; a strategy that solves before it asks keeps its progress in `checkpoint` and
    tells `report` how many more architectures it has settled.
    known: evaluations from before the run, none of them failed, as `tell` would bring them; what is asked of them again is
    answered and costs nothing. rivals: laws that the study asks besides the problem's own; asynchronous: whether it will be
    asked again before it was told everything.
    """

    problem: Problem
    seed: int
    start: IntArray
    evaluations: int | None
    checkpoint: SolverCheckpoint = field(default_factory=SolverCheckpoint)
    report: Callable[[int], None] = lambda settled: None
    known: Evaluations | None = None
    rivals: tuple[Law, ...] = ()
    asynchronous: bool = False

    @property
    def known_rows(self) -> int:
        """How many evaluations are known."""
        return 0 if self.known is None else len(self.known)

    def seen(self) -> KeyIndex:
        """A fresh index of known results, to which a strategy adds what it proposes."""
        index = KeyIndex()
        if self.known is not None:
            index.add(self.known.keys)
        return index

    @property
    def generator(self) -> np.random.Generator:
        """A fresh generator of the seed."""
        return np.random.default_rng(self.seed)


@dataclass(frozen=True, eq=False)
class ReportSection:
    """What a strategy says of a search besides its evaluations.

    sentences: end the printed answer, `lessons` of summary.json; figures: the same in numbers, its `learned`; files: content by
    name, columns of a CSV file or a mapping as YAML.
    """

    title: str
    sentences: tuple[str, ...]
    figures: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Strategy(Protocol):
    """A search algorithm's state; it knows nothing of stores, limits or files.

    Laws: `ask` returns genotypes (k, g), repaired by the caller; no rows mean that nothing more
    will come. `at_most` bounds strategies that propose one by one; a generation is asked whole.
    `tell` receives every row of the last ask, in order, failed ones with NaN values. The same seed
    and the same answers give the same questions. A strategy that stops by itself says why in
    `finished` (an attribute, absent or empty otherwise). One with the trait `asynchronous` may be asked again before everything
    asked was told, and is then told rows in any order and grouping, each once; it never proposes what it proposed before, and
    `at_most` is how many workers have nothing to do. One that has more to say than its evaluations may have a method `sections`,
    which gives `ReportSection`s of everything evaluated.
    """

    def ask(self, at_most: int) -> IntArray:
        """The next genotypes to evaluate.

        Args:
            at_most: designs that may still be charged.
        """
        ...

    def tell(self, evaluations: Evaluations) -> None:
        """Take the values of the genotypes that were asked last.

        Args:
            evaluations: rows of the last ask, (n,), in its order.
        """
        ...


@runtime_checkable
class Restorable(Strategy, Protocol):
    """A strategy whose replay takes long, so that a resumed run skips it.

    Law: after `restore` it asks what it would ask after having asked for and been told the same rows.
    """

    def state(self) -> dict[str, Any]:
        """The state that the log does not hold, as JSON; called when every asked genotype has its values."""
        ...

    def restore(self, state: Mapping[str, Any], evaluations: Evaluations) -> bool:
        """Restore the state where `state` was taken, in a fresh strategy; `evaluations` are the distinct rows until then.

        False, and nothing done, when they are not.
        """
        ...


def refuse_more_objectives(name: str, traits: Traits, count: int) -> None:
    """Say so when a strategy cannot take this many objectives.

    Raises:
        UsageError: with the limit.
    """
    if traits.objectives is not None and count > traits.objectives:
        raise UsageError(
            f"objectives: expected at most {traits.objectives} with {name}, got {count}; choose another strategy"
        )


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


def refuse_silence(strategy: Strategy, evaluated: Sized) -> None:
    """Say so when a strategy asks for nothing at all, and not why.

    Raises:
        PlasError: nothing was evaluated either.
    """
    if not len(evaluated) and not finished_of(strategy):
        raise ForeignError(
            f"{_owner(type(strategy).__module__)}: ask: expected designs when first asked, got none; return genotypes (k, g)"
        )


def sections_of(strategy: Strategy, evaluations: Evaluations) -> tuple[ReportSection, ...]:
    """What a strategy says of everything evaluated, where it says anything.

    Raises:
        PlasError: a strategy that is not ours raised something.
    """
    sections = getattr(strategy, "sections", None)
    with _blamed(type(strategy).__module__, "sections"):
        found = sections(evaluations) if callable(sections) else None
        return tuple(section for section in found or () if isinstance(section, ReportSection))


@contextmanager
def _blamed(module: str, what: str) -> Iterator[None]:
    """Name the place of an error raised by a user's module, and print what it prints aside; an error of our own keeps its traceback."""
    if _ours(module):
        yield
        return
    with naming_user_code(_owner(module), what, sys.modules.get(module)), printed_aside():
        yield


def _ours(module: str) -> bool:
    return module.partition(".")[0] == "nas"


def _owner(module: str) -> str:
    """A strategy of an installed package by its name and distribution, any other by its module."""
    theirs = (plug_in for plugs in entry_points.offered("strategies").values() for plug_in in plugs)
    return next((str(plug_in) for plug_in in theirs if plug_in.place == module), module)
