"""Picks one of the others by objectives, priors, evaluations and space, and says why (docs/strategies.md)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from pydantic import BaseModel, ConfigDict

from nas.errors import UsageError
from nas.exact.solution import way_of
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.search.reading import Asked, Choice
from nas.search.strategy import Traits
from nas.study.entry_points import offered

FEW = 150  # evaluations up to which a Gaussian process is worth its time
LEARNED = 500  # evaluations up to which models over priors are
ESTIMATED = 300  # evaluations up to which a tree-structured Parzen estimator finds more than a local search
SMALL = 100_000  # designs that are evaluated rather than searched
MODELLED = 4  # objectives that models are made of
UNSAID = 5_000  # evaluations of a run that says no number and nothing of what one costs
COSTLY, WITH_PRIOR = 150, 100  # the same where a function says that one is dear, or has a prior
GROUP = 5  # designs that `prior_guided` asks for at once


@dataclass(frozen=True)
class Facts:
    """What is known of a study before anything is evaluated.

    formulas: whether every metric is a shipped formula, which nobody tells otherwise; bound: a clause, why the space is not to be covered whole ("" where it may be); designs: of
    the space; asked: evaluations (None: not said); priors: functions with the formula that approximates each; costly: whether a function says that an evaluation is dear;
    at_once: designs that are evaluated together; gp: whether the extra of `optuna_gp` is installed; prior: whether the package of `prior_guided` is.
    """

    formulas: bool
    bound: str
    designs: int
    objectives: int
    asked: int | None
    priors: tuple[tuple[str, str], ...] = ()
    costly: bool = False
    at_once: int = 1
    gp: bool = True
    prior: bool = True

    @property
    def evaluations(self) -> int:
        """Those asked for, or what stands in for them."""
        return self.asked or (WITH_PRIOR if self.priors else COSTLY if self.costly else UNSAID)

    @property
    def guided(self) -> bool:
        """Whether functions have priors, and `prior_guided` is there to use them."""
        return bool(self.priors) and self.prior

    @property
    def spent(self) -> str:
        """`60 evaluations are asked`."""
        return f"{self.evaluations:,} evaluations are asked" if self.asked else "no number of evaluations is asked"

    @property
    def space(self) -> str:
        """`the space has 13,120 designs`."""
        return f"the space has {self.designs:,} designs"


def none(facts: Facts) -> Mapping[str, Any]:
    """No parameters but the strategy's own."""
    return {}


def batch(beyond: int) -> Callable[[Facts], Mapping[str, Any]]:
    """As many designs at once as are evaluated together, where these are more than a strategy's own."""

    def parameters(facts: Facts) -> Mapping[str, Any]:
        return {"batch": facts.at_once} if facts.at_once > beyond else {}

    return parameters


@dataclass(frozen=True)
class Rule:
    """A row of the table: `when` and `evidence` as pages say them, `because` as a run says it, in the figures of its study."""

    when: str
    algo: str
    holds: Callable[[Facts], bool]
    because: Callable[[Facts], str]
    evidence: str
    parameters: Callable[[Facts], Mapping[str, Any]] = none
    with_parameters: str = ""


def _missing(facts: Facts) -> str:
    """A clause, what would have been taken and is not installed."""
    if facts.formulas or facts.guided or facts.objectives > MODELLED:
        return ""
    if facts.priors:
        return " and plas-prior is not installed" if facts.evaluations <= LEARNED else ""
    return " and the extra gp is not installed" if facts.evaluations <= FEW and not facts.gp else ""


def _unbound(facts: Facts) -> str:
    """Why formulas are searched rather than solved."""
    if not facts.formulas:
        return (
            " without a prior" if not facts.priors else f", more than {LEARNED}" if facts.evaluations > LEARNED else ""
        )
    return f" and {facts.bound}" if facts.bound else f" of {facts.objectives} objectives"


def _prior(facts: Facts) -> str:
    name, formula = facts.priors[0]
    return f"{formula} is a prior of {name} and {facts.spent}"


RULES: tuple[Rule, ...] = (
    Rule(
        f"shipped formulas alone; up to {MODELLED} objectives, or {SMALL:,} designs",
        "exact",
        lambda f: f.formulas and not f.bound and (f.objectives <= MODELLED or f.designs <= SMALL),
        lambda f: f"objectives and limits are shipped formulas, of which all {f.designs:,} designs are covered",
        "gap 0, proven: [exact](exact.md)",
    ),
    Rule(
        f"functions of your own, and no more designs than evaluations (at most {SMALL:,})",
        "exact",
        lambda f: not f.formulas and not f.bound and f.designs <= min(f.evaluations, SMALL),
        lambda f: f"{f.space}, no more than evaluations",
        "gap 0: everything is evaluated",
    ),
    Rule(
        f"a function with a `PRIOR`, up to {LEARNED} evaluations and {MODELLED} objectives, `plas-prior` installed",
        "prior_guided",
        lambda f: f.guided and f.evaluations <= LEARNED and f.objectives <= MODELLED,
        _prior,
        "first in [eight studies](../studies/few_evaluations/results.md) and [four spaces](../studies/strategies/results.md#how-well-auto-picks)",
        batch(GROUP),
        "with `batch` = workers, if more than 5",
    ),
    Rule(
        f"no prior or no `plas-prior`, up to {FEW} evaluations and {MODELLED} objectives, the extra `gp` installed",
        "optuna_gp",
        lambda f: not f.guided and f.gp and f.evaluations <= FEW and f.objectives <= MODELLED,
        lambda f: f.spent + _missing(f) if f.priors else f"no function has a prior and {f.spent}",
        "first in [twelve studies](compare-results.md) and [four spaces](../studies/strategies/results.md#how-well-auto-picks)",
        batch(1),
        "with `batch` = workers",
    ),
    Rule(
        f"no prior or no `plas-prior`, up to {ESTIMATED} evaluations and {MODELLED} objectives",
        "optuna_tpe",
        lambda f: not f.guided and f.evaluations <= ESTIMATED and f.objectives <= MODELLED,
        lambda f: f.spent + (_missing(f) or _unbound(f)),
        "a smaller median gap than `local_search` in [five problems of six](../studies/strategies/results.md#beside-pymoo-and-optuna)",
        batch(1),
        "with `batch` = workers",
    ),
    Rule(
        "anything else",
        "local_search",
        lambda f: True,
        lambda f: f.spent + (_missing(f) or _unbound(f)),
        "first or level from 500 evaluations on in [sixteen smooth studies](compare-results.md)",
    ),
)


TRAITS = Traits(seedable=True, horizon=True, informed=True, asynchronous=True)


class Parameters(BaseModel):
    """The strategy has no parameters: it sets those of what it picks."""

    model_config = ConfigDict(extra="forbid")


def choose(problem: Problem, asked: Asked) -> Choice:
    """The first rule that holds, with its reason in the figures of this study."""
    facts = facts_of(problem, asked)
    rule = next(rule for rule in RULES if rule.holds(facts))
    return Choice(rule.algo, rule.because(facts), rule.parameters(facts))


def facts_of(problem: Problem, asked: Asked) -> Facts:
    """What the rules read; nothing is evaluated for it."""
    own = problem.functions
    return Facts(
        formulas=not own and not asked.told,
        bound=asked.bound or _uncovered(problem),
        designs=problem.space.size,
        objectives=len(problem.objectives),
        asked=asked.evaluations,
        priors=tuple((each.name, each.prior) for each in own if each.prior),
        costly=any(each.cost_s or each.fidelities or each.settings is not None for each in own),
        at_once=asked.at_once,
        gp=all(find_spec(name) is not None for name in ("torch", "threadpoolctl")),
        prior="prior_guided" in offered("strategies"),
    )


def _uncovered(problem: Problem) -> str:
    """A clause, why `exact` cannot cover a problem; "" where it can."""
    rules = dict.fromkeys([PickRule(None), *map(PickRule.for_query, problem.queries)])
    try:
        way_of(problem, tuple(rules))
    except UsageError:
        return "no sums of parts cover a space of this size"
    return ""
