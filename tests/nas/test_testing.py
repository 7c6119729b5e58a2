"""The check that users run on strategies of their own: each law is broken once and named."""

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from nas.errors import UsageError
from nas.search.strategy import StrategyContext, Traits
from nas.strategies import _template as template
from nas.strategies.conformance.laws import LAWS
from nas.testing import BrokenLawError, check_strategy

Genotypes = Any


class Careless(template.FrontierMutation):
    """The template, with one thing done wrongly."""

    context: StrategyContext


def asking(change: Callable[[Careless, Genotypes], Genotypes]) -> type[Careless]:
    """The template with another answer to `ask`."""

    class Changed(Careless):
        def ask(self, at_most: int) -> Genotypes:
            return change(self, super().ask(at_most))

    return Changed


def made(kind: type[Careless] = Careless, **others: Any) -> ModuleType:
    """A strategy's module around a class."""
    module = ModuleType("careless", "Something done wrongly.")

    def build(context: StrategyContext, parameters: template.Parameters) -> Careless:
        strategy = kind(context, parameters)
        strategy.context = context
        return strategy

    vars(module).update({"TRAITS": template.TRAITS, "Parameters": template.Parameters, "build": build, **others})
    return module


class Loose(BaseModel):
    """Takes anything."""

    batch: int = 20


class Unsteady(Careless):
    """Seeds itself."""

    def __init__(self, context: StrategyContext, parameters: template.Parameters) -> None:
        super().__init__(context, parameters)
        self.generator = np.random.default_rng()


class Shared(Careless):
    """Draws from the generator of whichever search began last."""

    latest: np.random.Generator

    def __init__(self, context: StrategyContext, parameters: template.Parameters) -> None:
        super().__init__(context, parameters)
        Shared.latest = self.generator

    def ask(self, at_most: int) -> Genotypes:
        self.generator = Shared.latest
        return super().ask(at_most)


class Proud(Careless):
    """Cannot stand that nothing is feasible."""

    def tell(self, evaluations: Any) -> None:
        super().tell(evaluations)
        if (self.excess > 0).all():
            raise RuntimeError("nothing feasible")


class Trusting(Careless):
    """Takes every value for a number."""

    def tell(self, evaluations: Any) -> None:
        if np.isnan(evaluations.values).any():
            raise RuntimeError("not a number")
        super().tell(evaluations)


def drawn(self: Careless, rows: Genotypes) -> Genotypes:
    """Moves the process's generator."""
    random.random()
    return rows


def steered(self: Careless, rows: Genotypes) -> Genotypes:
    """Lets the process's generator decide."""
    state = random.getstate()
    order = random.sample(range(len(rows)), len(rows))
    random.setstate(state)
    return rows[order] if self.context.seed == 7 else rows


def beyond(self: Careless, rows: Genotypes) -> Genotypes:
    """One gene too far."""
    rows[-1:, 0] = self.space.gene_sizes[0]
    return rows


def few(self: Careless, rows: Genotypes) -> Genotypes:
    """Gives up after 40."""
    return rows if len(self.seen) <= 40 else rows[:0]


def endless(self: Careless, rows: Genotypes) -> Genotypes:
    """Never proposes the first architecture of the space, and the last one again and again."""
    rest = one_missing(self, rows)
    return rest if len(rest) else self.space.genotypes(np.full(50, self.space.size - 1))


def one_missing(self: Careless, rows: Genotypes) -> Genotypes:
    """Never proposes the first architecture of the space."""
    return rows[self.space.keys(rows) != 0]


def unasked(self: Careless, rows: Genotypes) -> Genotypes:
    """Given designs come last."""
    return rows[::-1]


class Forgetful(Careless):
    """Says that it is restored, and is not."""

    def state(self) -> dict[str, Any]:
        return {"told": 1}

    def restore(self, state: Any, evaluations: Any) -> bool:
        return True


class Unkept(Careless):
    """Keeps what JSON does not hold."""

    def state(self) -> dict[str, Any]:
        return {"members": np.zeros(3)}

    def restore(self, state: Any, evaluations: Any) -> bool:
        return False


class Stumbling(Forgetful):
    """Fails while it is restored."""

    def restore(self, state: Any, evaluations: Any) -> bool:
        raise KeyError("members")


BROKEN: dict[str, tuple[ModuleType, str]] = {
    "forgets": (
        made(Forgetful),
        "asks what it would have asked at once. resume: batch 1, row 0: expected",
    ),
    "keeps no JSON": (
        made(Unkept),
        "state: expected what JSON holds, got dict (Object of type ndarray is not JSON serializable)",
    ),
    "restore fails": (made(Stumbling), "restore failed with KeyError: 'members' (test_testing.py:"),
    "no docstring": (made(__doc__=None), "expected a first docstring line"),
    "anything goes": (made(Parameters=Loose), "expected ConfigDict(extra='forbid')"),
    "another build": (made(build=lambda context: None), "build: expected ['context', 'parameters']"),
    "builds nothing": (made(build=lambda context, parameters: None), "expected a strategy with ask and tell"),
    "a list": (made(asking(lambda self, rows: rows.tolist())), "expected an array of integers (k, 6), got list"),
    "five genes": (made(asking(lambda self, rows: rows[:, :5])), "expected an array of integers (k, 6), got int64"),
    "out of range": (made(asking(beyond)), "expected genes below"),
    "nothing": (made(asking(lambda self, rows: rows[:0])), "the first ask held nothing"),
    "no seed": (made(Unsteady), "two searches of seed 0 differ"),
    "moves the process's generator": (made(asking(drawn)), "numpy.random or random was used"),
    "reads the process's generator": (made(asking(steered)), "numpy.random or random decides"),
    "shares a generator": (made(Shared), "two searches at once disturb each other"),
    "stops early": (made(asking(few)), "expected 70 evaluations, got "),
    "nothing feasible": (made(Proud), "tell failed with RuntimeError: nothing feasible"),
    "no number": (made(Trusting), "tell failed with RuntimeError: not a number"),
    "never ends": (made(asking(endless)), "expected all 2, got 1 and the end 'stalled'"),
    "leaves one out": (made(asking(one_missing)), "expected designs when first asked, got none"),
    "given designs last": (made(asking(unasked)), "expected [["),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_a_law_is_named(name: str) -> None:
    module, said = BROKEN[name]
    with pytest.raises(BrokenLawError) as caught:
        check_strategy(module)
    assert said in str(caught.value)


@pytest.mark.slow
def test_the_template_holds_every_law_whatever_its_parameters() -> None:
    check_strategy(made())
    check_strategy("nas.strategies._template", {"batch": 1, "genes": 6})
    check_strategy(template, {"batch": 500})


def test_parameters_that_are_none_and_names_of_nothing_are_refused() -> None:
    with pytest.raises(BrokenLawError, match="batch"):
        check_strategy(template, {"batch": 0})
    with pytest.raises(UsageError, match="expected a strategy"):
        check_strategy("nsga9")
    assert all(law.__doc__ for law in LAWS)


@pytest.mark.slow
def test_one_objective_alone_and_no_constraints_are_taken_as_stated() -> None:
    check_strategy(made(TRAITS=Traits(objectives=1, constraints=False, seedable=True)))
