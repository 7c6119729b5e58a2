"""Exact answers against brute force: random spaces, laws, devices, latency models, objectives and budgets."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from nas import exact_diagnosis, exact_solution
from nas.assemble import assemble
from nas.axis_steps import beyond
from nas.decomposition import frontier as frontier_module
from nas.decomposition import search as search_module
from nas.diagnosis import diagnose
from nas.dominance import frontier_rows
from nas.errors import UsageError
from nas.evaluations import Evaluations
from nas.exact_diagnosis import diagnosed
from nas.exact_solution import solve
from nas.gains import DIFFERENT, gains
from nas.objective import Budget, Objective, built_in
from nas.picks import PickRule, best_row
from nas.problem import METRIC_ORDER, Problem
from nas.sweeps import Sweep, swept
from objectives.features import OWNERS
from objectives.law import Law
from search_spaces.space import SearchSpace

FROM_LAW = {"loss", "perplexity"}
LARGEST_TERM = 3.0  # nats, over the space
SCENARIOS = st.fixed_dictionaries(
    {
        "device": st.sampled_from(
            [
                "jetson_agx_orin_64gb",
                "jetson_orin_nano_super_8gb",
                "rtx_4090",
                "h100_sxm",
                "m4_10c",
                "snapdragon_8_elite",
            ]
        ),
        "precision": st.sampled_from(["fp16", "int8", "int4"]),
        "attention": st.sampled_from(["unfused", "fused"]),
        "causal": st.booleans(),
        "complete": st.booleans(),
        "batch": st.sampled_from([1, 4]),
        "input_tokens": st.sampled_from([1, 2, 64, 1024]),
        "output_tokens": st.sampled_from([1, 16, 100]),
        "vocabulary": st.sampled_from([0, 32_000]),
    }
)
OTHER_SCENARIOS = st.sampled_from([{"latency": "closed_form"}, {"preset": "device"}])


def some(values: range, most: int) -> st.SearchStrategy[list[int]]:
    """A few distinct values of an axis, ascending."""
    return st.lists(st.sampled_from(values), min_size=1, max_size=most, unique=True).map(sorted)


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    """Spaces of up to some ten thousand architectures; sizes and experts are regular, so that ties abound."""
    head = draw(st.sampled_from([32, 64, 128]))
    step = draw(st.sampled_from([8, 32, 96]))
    experts = sorted({1, *draw(some(range(2, 33), 7))})
    axes = {
        "depth": draw(some(range(1, 61), 6)),
        "width": [heads * head for heads in draw(some(range(2, 33), 3))],
        "n_experts": experts,
        "top_k": sorted({1, *draw(some(range(1, 9), 3))}),
        "expert_size": list(range(step, step * draw(st.integers(2, 24)), step)),
        "n_kv_heads": "divisors",
    }
    conditions = draw(st.sampled_from([{}, {"max_expert_ffn_ratio": 4}, {"max_activation_rate": 0.5}]))
    return SearchSpace.from_mapping({"head_dim": head, "axes": axes, "conditions": conditions})


@st.composite
def terms(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, float]]:
    """A term of up to three quantities and its exponents: powers, logarithms, or both of one quantity, so that it turns."""
    names = draw(st.lists(st.sampled_from([n for n in OWNERS if n != "tokens"]), min_size=1, max_size=3, unique=True))
    powers, logs, exponents = {}, {}, {}
    for name in names:
        kind = draw(st.sampled_from(["power", "log", "both", "both"]))
        if kind != "log":
            powers[name] = f"a_{len(exponents)}"
            exponents[powers[name]] = draw(st.sampled_from([-2.0, -1.0, -0.3, 0.0, 0.17, 1.0]))
        if kind != "power":
            logs[name] = draw(st.sampled_from([0.25, 1.0, 8.0, 500.0, 2e7]))
    return {"powers": powers, "logs": logs, "sign": draw(st.sampled_from([-1, 1]))}, exponents


@st.composite
def laws(draw: st.DrawFn, problem: Problem) -> Law:
    """Up to four random terms, each of some nats over the space, above a constant that leaves a loss of half a nat or more."""
    form: dict[str, Any] = {"terms": {}, "of": draw(st.sampled_from(["loss", "log_loss"])), "residuals": "log_loss"}
    coefficients: dict[str, float] = {}
    for number, (term, exponents) in enumerate(draw(st.lists(terms(), min_size=0, max_size=4))):
        renamed = {name: f"{name}_{number}" for name in exponents}
        powers = {quantity: renamed[name] for quantity, name in term["powers"].items()}
        form["terms"][f"t{number}"] = {**term, "powers": powers, "scale": f"s{number}"}
        coefficients |= {f"s{number}": 1.0, **{renamed[name]: value for name, value in exponents.items()}}
    form["terms"]["constant"] = {"scale": "c", "any_sign": True}
    every = problem.architectures(problem.space.genotypes(np.arange(problem.space.size)))
    unscaled = Law.model_validate({"form": {**form, "of": "loss"}, "coefficients": {**coefficients, "c": 0.0}})
    total = np.zeros(problem.space.size)
    for name, values in unscaled.terms(every).items():
        most = np.abs(values).max()
        if name != "constant" and most > 0:
            scale = draw(st.floats(0.01, LARGEST_TERM)) / most
            coefficients[name.replace("t", "s")] = scale
            total += scale * values
    least = draw(st.sampled_from([0.5, 2.0]))
    coefficients["c"] = (least if form["of"] == "loss" else float(np.log(least))) - float(total.min())
    return Law.model_validate({"form": form, "coefficients": coefficients})


@st.composite
def problems(draw: st.DrawFn) -> tuple[Problem, Evaluations]:
    """A problem of one to four objectives and none to four budgets, and its whole space evaluated."""
    raw = {"default_budget": "none", "applications": {}, "baselines": [], **draw(SCENARIOS | OTHER_SCENARIOS)}
    problem = replace(assemble(raw, {}).problem, space=draw(spaces()))
    if draw(st.integers(0, 3)):
        law = draw(laws(problem))
        problem = replace(problem, scenario=replace(problem.scenario, law=law))
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    usable = np.flatnonzero(whole.ok)
    assume(len(usable))
    metrics = st.sampled_from(METRIC_ORDER)
    objectives = draw(st.lists(metrics, min_size=1, max_size=4, unique=True))
    limits = draw(st.dictionaries(metrics, st.integers(0, len(usable) - 1), max_size=4))
    budgets = tuple(Budget(name, float(whole.metrics[name][usable[row]])) for name, row in limits.items())
    problem = replace(problem, objectives=tuple(map(built_in, objectives)), budgets=budgets)
    return problem, replace(whole, objectives=tuple(objectives), budgets=budgets)


@contextmanager
def by_parts(*, small_steps: bool) -> Iterator[None]:
    """Sums of parts however small the space; in small steps every mechanism is at work: strides, blocks, pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_solution, "SMALL", 0)
        patch.setattr(exact_diagnosis, "QUICK", 0)
        if small_steps:
            patch.setattr(frontier_module, "WORTH_STRIDES", 300)
            patch.setattr(frontier_module, "BLOCK", 50)
            patch.setattr(frontier_module, "AT_ONCE", 200)
            patch.setattr(search_module, "AT_ONCE", 200)
        yield


def constant(problem: Problem) -> bool:
    """Whether the law gives every architecture the same loss."""
    terms = problem.scenario.law.law_form.terms
    return all(name == "constant" or problem.scenario.law.coefficients[t.scale] == 0 for name, t in terms.items())


def frontier_agrees(problem: Problem, whole: Evaluations) -> None:
    """Members in their order, and the picks: as brute force finds them, having covered everything."""
    names = {objective.name for objective in problem.objectives}
    rules = (PickRule(None), *(PickRule(budget) for budget in problem.budgets))
    if constant(problem) and names <= FROM_LAW:
        with pytest.raises(UsageError, match="expected one that differs between architectures"):
            solve(problem)
        return
    counted: list[int] = []
    solution = solve(problem, rules, counted.append)
    event(solution.way)
    assert solution.way == "parts"
    assert solution.frontier.keys.tolist() == whole.keys[frontier_rows(whole)].tolist()
    assert sum(counted) == problem.space.size
    for rule, pick in zip(rules, solution.picks, strict=True):
        row = best_row(whole, rule.budget)
        assert (None if pick is None else pick.keys.tolist()) == (None if row is None else [whole.keys[row]])


def gains_agree(problem: Problem, whole: Evaluations) -> None:
    """What each budget and each axis holds back, by brute force."""
    if not problem.budgets or (constant(problem) and FROM_LAW.intersection(b.metric for b in problem.budgets)):
        return
    found, row = gains(problem), best_row(whole, None)
    assert (found is None) == (row is None)
    if found is None or row is None:
        return
    assert found.pick.keys.tolist() == [whole.keys[row]]
    loss = float(whole.metrics["loss"][row])
    for gain in found.budgets:
        others = tuple(budget for budget in problem.budgets if budget is not gain.budget)
        free, values = replace(whole, budgets=others).feasible, whole.metrics[gain.budget.metric]
        equal = free & (whole.metrics["loss"] <= loss * (1.0 + DIFFERENT))
        better = free & (whole.metrics["loss"] <= loss * (1.0 - DIFFERENT))
        assert gain.tightest == pytest.approx(values[equal].min(), rel=1e-11)
        assert (gain.relaxed is None) == (not better.any())
        if gain.relaxed is not None:
            assert gain.relaxed.at == pytest.approx(values[better].min(), rel=1e-11)
            assert gain.relaxed.loss == whole.metrics["loss"][free & (values <= gain.relaxed.at)].min()
    expected = {}
    for axis, value, space in beyond(problem.space):
        further = replace(problem, space=space)
        rows = further.evaluate(space.genotypes(np.arange(space.size)))
        best = best_row(rows, None)
        if best is not None and rows.metrics["loss"][best] <= loss * (1.0 - DIFFERENT):
            expected[axis, value] = rows.metrics["loss"][best]
    assert {(gain.change, gain.at): gain.loss for gain in found.axes} == expected


def sweep_agrees(problem: Problem, whole: Evaluations, metric: str) -> None:
    """The pick at every limit from one exact frontier of the loss and the metric."""
    if constant(problem) and metric in FROM_LAW:
        return
    objectives = tuple(Objective(name) for name in dict.fromkeys(["loss", metric]))
    solution = solve(replace(problem, objectives=objectives))
    values = whole.metrics[metric][whole.ok]
    limits = np.linspace(values.min() * 0.99, values.max() * 1.01, 30)
    for limit, row in swept(Sweep(metric, limits), solution.frontier):
        expected = best_row(whole, Budget(metric, limit))
        assert (None if row is None else solution.frontier.keys[row]) == (
            None if expected is None else whole.keys[expected]
        )


def diagnosis_agrees(problem: Problem, whole: Evaluations, shares: list[float]) -> None:
    """The same budgets, or one below the least of all, tightened until nothing fits: what each of them would open."""
    ok = whole[whole.ok]
    limits = {b.metric: b.limit * share for b, share in zip(problem.budgets, shares, strict=False)}
    limits["total_ms"] = float(ok.metrics["total_ms"].min()) * shares[-1]
    budgets = tuple(Budget(metric, limit) for metric, limit in limits.items())
    hopeless, rows = replace(problem, budgets=budgets), replace(whole, budgets=budgets)
    if rows.feasible.any() or (constant(problem) and FROM_LAW & set(limits)):
        return
    expected, found = diagnose(rows), diagnosed(hopeless, rows[:0])
    assert found.examined == problem.space.size
    for mine, theirs in zip(found.relaxations, expected.relaxations, strict=True):
        assert mine.limit == theirs.limit
        if mine.limit is not None:
            others = replace(ok, budgets=tuple(b for b in budgets if b is not mine.budget)).feasible
            assert mine.opens == (others & (ok.metrics[mine.budget.metric] <= mine.limit * (1 + 1e-12))).sum()
    assert found.together == pytest.approx(expected.together, rel=1e-6)


SETTINGS: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
SHARES = st.lists(st.floats(0.3, 1.0, exclude_max=True), min_size=5, max_size=5)


def every_answer_agrees(case: tuple[Problem, Evaluations], metric: str, shares: list[float]) -> None:
    """Frontier, picks, gains, a sweep and a diagnosis of one problem."""
    with by_parts(small_steps=False):
        frontier_agrees(*case)
        gains_agree(*case)
        sweep_agrees(*case, metric)
        diagnosis_agrees(*case, shares)


@settings(max_examples=60, **SETTINGS)
@given(problems())
def test_frontiers_and_picks_are_those_of_brute_force(case: tuple[Problem, Evaluations]) -> None:
    with by_parts(small_steps=True):
        frontier_agrees(*case)


@settings(max_examples=25, **SETTINGS)
@given(problems(), st.sampled_from(METRIC_ORDER), SHARES)
def test_every_answer_is_that_of_brute_force(
    case: tuple[Problem, Evaluations], metric: str, shares: list[float]
) -> None:
    every_answer_agrees(case, metric, shares)


@pytest.mark.extended
@settings(max_examples=1000, **SETTINGS)
@given(problems())
def test_a_thousand_frontiers_are_those_of_brute_force(case: tuple[Problem, Evaluations]) -> None:
    with by_parts(small_steps=True):
        frontier_agrees(*case)


@pytest.mark.extended
@settings(max_examples=400, **SETTINGS)
@given(problems(), st.sampled_from(METRIC_ORDER), SHARES)
def test_every_answer_of_four_hundred_problems_is_that_of_brute_force(
    case: tuple[Problem, Evaluations], metric: str, shares: list[float]
) -> None:
    every_answer_agrees(case, metric, shares)
