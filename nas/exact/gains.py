"""Gains of relaxing a budget or of one step beyond an axis, and budgets that can be tightened for free."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from nas.errors import UsageError
from nas.exact import solution
from nas.exact.setting_by_setting import SettingBySetting
from nas.exact.solution import Enumerated
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget, built_in
from nas.problem.picks import MARGIN, PickRule
from nas.problem.problem import Problem
from search_spaces.arrays import IntArray
from search_spaces.space import SearchSpace
from search_spaces.specification import OF_HEADS, SpaceSpecification, expert_faults, ffn_faults, heads_faults, kv_faults

Whole = Enumerated | SettingBySetting  # exact answers of a space
DIFFERENT = 1e-11  # relative; less is a tie at 12 digits


@dataclass(frozen=True, eq=False)
class Gain:
    """A better design after a change: the change, the limit or value that it needs, the loss that it reaches."""

    change: str
    at: float
    loss: float
    gain: float
    design: dict[str, Any]
    extrapolates: bool


@dataclass(frozen=True)
class BudgetGain:
    """One budget of a pick: free down to `tightest`; `relaxed` is the smallest relaxation that helps, if any does."""

    budget: Budget
    tightest: float
    relaxed: Gain | None


@dataclass(frozen=True, eq=False)
class Gains:
    """The pick (one row) within the budgets, and what each budget and each axis costs it."""

    pick: Evaluations
    budgets: tuple[BudgetGain, ...]
    axes: tuple[Gain, ...]


def gains(problem: Problem) -> Gains | None:
    """Return exact gains for the lowest loss within a problem's budgets; None if nothing is feasible.

    Raises:
        UsageError: exact answers are impossible.
        Exceeded: they would take more than seconds.
    """
    whole = covered(problem)
    pick = best_within(whole, problem.budgets, margin=True)
    if pick is None:
        return None
    return Gains(pick, tuple(_budget_gain(whole, pick, b) for b in problem.limits), tuple(_axis_gains(problem, pick)))


def margins_of(pick: Evaluations) -> tuple[Budget, ...]:
    """Return its budgets on times at the quantile that picks keep, where the pick keeps all of them."""
    return PickRule(None).as_answered(pick).within


def covered(problem: Problem, rules: tuple[PickRule, ...] = (PickRule(None),), good: IntArray | None = None) -> Whole:
    """Return exact answers for a space: from evaluating it if that is quicker, else from sums of parts; never calls a user's own metrics.

    rules: picks whose metrics will be asked for. good: genotypes from which answers are found sooner. An answer that would take more than a few seconds raises `Exceeded`.
    """
    metrics = solution.metrics_of(problem, rules)
    if problem.space.size <= solution.SMALL and not problem.functions:
        return Enumerated(problem, metrics)
    _, obstacle = solution.way_of(problem, rules)
    if obstacle:
        raise UsageError(obstacle)
    return SettingBySetting(problem, metrics, most=solution.SECONDS, good=good)


def best_within(whole: Whole, budgets: tuple[Budget, ...], *, margin: bool = False) -> Evaluations | None:
    """Return the pick within budgets, with every metric; `margin`: see `PickRule`."""
    found = whole.lowest(budgets, margin=margin)
    return None if found is None else whole.problem.evaluate(found.genotypes)


def _loss(pick: Evaluations) -> float:
    return float(pick.metrics["loss"][0])


def _budget_gain(whole: Whole, pick: Evaluations, budget: Budget) -> BudgetGain:
    every = (*whole.problem.budgets, *margins_of(pick))
    own = [limit.metric for limit in every if limit.metric in (budget.metric, budget.metric + MARGIN)]
    others, deciding = tuple(limit for limit in every if limit.metric not in own), own[-1]
    equal, better = (Budget("loss", _loss(pick) * (1.0 + sign * DIFFERENT)) for sign in (1, -1))
    least = _cheapest(whole, deciding, (*others, equal))
    tightest = float((pick if least is None else least).metrics[deciding][0])
    opened = _cheapest(whole, deciding, (*others, better))
    if opened is None:
        return BudgetGain(budget, tightest, None)
    priced = whole.problem.evaluate(opened.genotypes, tuple(own)).metrics
    limit = float(max(priced[metric].max() for metric in own))  # of ties at 12 digits the last
    found = best_within(whole, (*others, *(Budget(metric, limit) for metric in own)))
    relaxed = None if found is None else gain(whole.problem, pick, found, budget.metric, limit)
    return BudgetGain(budget, tightest, relaxed)


def _cheapest(whole: Whole, metric: str, budgets: tuple[Budget, ...]) -> Evaluations | None:
    """Designs within budgets that are least in a metric; one of them where it is a device's figure, the same for all designs on it."""
    if metric in whole.problem.scenario.figures:
        return whole.lowest(budgets, least=metric, margin=False)
    return whole.frontier((built_in(metric),), budgets)


def _axis_gains(problem: Problem, pick: Evaluations) -> Iterator[Gain]:
    """The best of every space that holds one further value of one axis, where it beats the pick."""
    better = Budget("loss", _loss(pick) * (1.0 - DIFFERENT))
    for axis, value, space in beyond(problem.space):
        further = replace(problem, space=space, queries=())
        found = best_within(covered(further), (*problem.budgets, *margins_of(pick), better))
        if found is not None:
            yield gain(further, pick, found, axis, value)


def gain(problem: Problem, pick: Evaluations, found: Evaluations, change: str, at: float) -> Gain:
    """Return an evaluated design against the pick, marked if it extrapolates the law."""
    design = problem.architectures(found.genotypes)
    shape = {name: column.tolist()[0] for name, column in design.columns().items()}
    outside = bool(problem.scenario.law.extrapolates(design)[0])
    return Gain(change, at, _loss(found), _loss(pick) - _loss(found), shape, outside)


MOST_BACKBONES = {  # the axes whose values a value of this one can exclude
    "depth": (),
    "width": ("expert_ffn_ratio",),
    "head_dim": ("width",),
    "n_heads": ("width",),
    "n_experts": ("top_k",),
    "top_k": ("n_experts",),
    "expert_size": ("width",),
    "expert_ffn_ratio": ("width",),
    "n_kv_heads": ("n_heads", "width"),
}


def beyond(space: SearchSpace) -> Iterator[tuple[str, float, SearchSpace]]:
    """Yield axis, further value and space for the value below and above each axis, if such a space exists.

    Values of other axes that cannot stand beside the further one are left out. A further FFN beyond
    `max_expert_ffn_ratio` at every width raises that limit just so far that one width takes it.
    """
    for axis in MOST_BACKBONES:
        values = getattr(space.specification.axes, axis)
        for value in _steps(axis, values, space) if isinstance(values, list) else ():
            further = _with(space, axis, value)
            if further is not None:
                yield axis, value, further


def _steps(axis: str, values: list[Any], space: SearchSpace) -> Iterator[float]:
    """The values before the first and after the last, as far apart as the nearest two."""
    numbers = [value for value in values if not isinstance(value, str)]
    if not numbers:
        return
    least = space.specification.head_dims[0] if axis in ("width", "head_dim") else 1
    low = numbers[1] - numbers[0] if len(numbers) > 1 else least
    high = numbers[-1] - numbers[-2] if len(numbers) > 1 else least
    if numbers[0] - low > 0:
        yield numbers[0] - low
    yield numbers[-1] + high


def _with(space: SearchSpace, axis: str, value: float) -> SearchSpace | None:
    """The space that holds one value of an axis and what its backbones allow; None where no architecture has it."""
    mapping, changed = space.mapping(), _changed(_raised(space.specification, axis, value), axis, [value])
    mapping["axes"][axis] = [value]
    mapping["conditions"] = changed.conditions.model_dump(exclude_none=True)
    for backbone in MOST_BACKBONES[axis]:
        others = mapping["axes"].get(backbone)
        if others is not None:
            new = [other for other in others if not _held(space, axis, value, backbone, other)]
            mapping["axes"][backbone] = [other for other in new if _taken(changed, backbone, other)]
            changed = _changed(changed, backbone, mapping["axes"][backbone])
    try:
        return SearchSpace.from_mapping(mapping)
    except ValidationError:
        return None


def _changed(specification: SpaceSpecification, axis: str, values: list[Any]) -> SpaceSpecification:
    axes = specification.axes.model_copy(update={axis: values})
    return specification.model_copy(update={"axes": axes})


def _raised(specification: SpaceSpecification, axis: str, value: float) -> SpaceSpecification:
    """The specification with `max_expert_ffn_ratio` where the widest layers can take a further FFN."""
    limit = specification.conditions.max_expert_ffn_ratio
    if limit is None or axis not in ("expert_size", "expert_ffn_ratio"):
        return specification
    needed = value if axis == "expert_ffn_ratio" else value / max(specification.axes.width)
    raised = max(limit, needed * (1 + 1e-12))  # rounded, its product with the width must not fall below the value
    conditions = specification.conditions.model_copy(update={"max_expert_ffn_ratio": raised})
    return specification.model_copy(update={"conditions": conditions})


def _taken(specification: SpaceSpecification, backbone: str, other: Any) -> bool:
    """Whether a space with this value of the backbone alone is one; numbers of heads are left out by themselves."""
    if backbone == "n_heads":
        return True
    alone = _changed(specification, backbone, [other])
    axes, conditions = alone.axes, alone.conditions
    faults = (expert_faults(axes.n_experts, axes.top_k, conditions), ffn_faults(axes, conditions))
    return not any((*faults, heads_faults(alone), kv_faults(alone)))


def _held(space: SearchSpace, axis: str, value: float, backbone: str, other: Any) -> bool:
    """Whether a number of heads, or a width that has but one, has the further number of KV heads already, as `n_heads`."""
    if axis != "n_kv_heads" or "n_heads" not in space.specification.axes.n_kv_heads:
        return False
    of_width = [] if space.place.keys() & set(OF_HEADS) else [value * space.specification.head_dims[0]]
    return bool(other == value if backbone == "n_heads" else other in of_width)
