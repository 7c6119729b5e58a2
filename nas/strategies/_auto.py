"""Picks one of the others by objectives, priors, evaluations and space, and says why (docs/strategies.md)."""

from importlib.util import find_spec

from pydantic import BaseModel, ConfigDict

from nas.errors import UsageError
from nas.exact.solution import way_of
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.search.choice import Asked, Choice
from nas.search.strategy import Traits
from nas.strategies._auto_rules import RULES, Facts

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
        formulas=not own,
        bound=asked.bound or _uncovered(problem),
        designs=problem.space.size,
        objectives=len(problem.objectives),
        asked=asked.evaluations,
        priors=tuple((each.name, each.prior) for each in own if each.prior),
        costly=any(each.cost_s or each.fidelities or each.settings is not None for each in own),
        at_once=asked.at_once,
        gp=all(find_spec(name) is not None for name in ("torch", "threadpoolctl")),
    )


def _uncovered(problem: Problem) -> str:
    """A clause, why `exact` cannot cover a problem; "" where it can."""
    rules = dict.fromkeys([PickRule(None), *map(PickRule.for_query, problem.queries)])
    try:
        way_of(problem, tuple(rules))
    except UsageError:
        return "no sums of parts cover a space of this size"
    return ""
