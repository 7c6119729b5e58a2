"""prior_guided: what it learns of a distorted analytic model, what it asks for, and when it lets its prior go."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from plas_prior.evidence import OFFSET, Evidence, Group, correlations, fitted
from plas_prior.prior_guided import Parameters, PriorGuided, build
from plas_prior.proposals import Volume, most_expected, most_improving
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from nas.errors import UsageError
from nas.exact.solution import solve
from nas.files import yaml_source
from nas.problem.evaluations import Evaluations, Scale, frontier_rows, non_dominated
from nas.problem.objective import Budget, Objective
from nas.problem.problem import Problem
from nas.search.discovery import penalised, penalised_problem
from nas.search.strategy import StrategyContext
from nas.search.successive_halving import STOPPED
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

Made = Callable[..., Problem]


def own(
    name: str, prior: str, function: Callable[[Architectures], FloatArray], *, log_scale: bool = False
) -> Objective:
    """A user's metric, and the shipped metric that approximates it."""
    return Objective(f"own:{name}", "ms" if log_scale else "", log_scale, function, prior=prior)


def with_own(
    problem: Problem, *functions: Objective, kept: tuple[str, ...] = (), limit: Budget | None = None
) -> Problem:
    """The problem with a user's metrics minimised instead of its own, but for those kept."""
    shipped = tuple(o for o in problem.objectives if o.name in kept)
    budgets = problem.budgets if limit is None else (*problem.budgets, limit)
    return replace(problem, objectives=(*functions, *shipped), functions=functions, budgets=budgets)


def distorted(problem: Problem, seed: int = 0) -> tuple[Objective, Objective]:
    """A loss whose depth counts for more than the law says and a latency at half the peaks with an overhead, both noisy."""
    noise = np.random.default_rng(seed).standard_normal((2, problem.space.size))

    def loss(a: Architectures) -> FloatArray:
        found: FloatArray = problem.assess(a)["loss"] + 3.0 / a.depth + 0.005 * noise[0, problem.space.find(a)]
        return found

    def total_ms(a: Architectures) -> FloatArray:
        found: FloatArray = (1.8 * problem.assess(a)["total_ms"] + 0.5 * a.depth) * np.exp(
            0.03 * noise[1, problem.space.find(a)]
        )
        return found

    return own("loss", "loss", loss), own("total_ms", "total_ms", total_ms, log_scale=True)


def started(problem: Problem, seed: int = 0, start: IntArray | None = None, **given: Any) -> PriorGuided:
    """A fresh search."""
    none = problem.space.genotypes(np.zeros(0, dtype=np.int64))
    return build(StrategyContext(problem, seed, none if start is None else start, None), Parameters(**given))


def searched(problem: Problem, most: int, strategy: PriorGuided | None = None, **given: Any) -> Evaluations:
    """Everything that a search of so many evaluations, or a few more, was told."""
    strategy = strategy or started(problem, **given)
    while len(strategy.told) < most:
        strategy.tell(problem.evaluate(strategy.ask(most)))
    return strategy.told


def every(problem: Problem) -> IntArray:
    """Genotypes of the whole space."""
    return problem.space.genotypes(np.arange(problem.space.size))


def rows_of(problem: Problem, functions: tuple[Objective, ...], found: Evaluations) -> FloatArray:
    """Values of own metrics at what was evaluated, (n, m)."""
    return np.stack([found.metrics[function.name] for function in functions], axis=1)


def nearness(variables: FloatArray) -> FloatArray:
    """Correlations of designs with one another that have no value in common, (r, n, n)."""
    values = np.sqrt(variables.shape[1]) * np.eye(len(variables))
    return correlations(variables, variables, values, values)


def test_the_evidence_is_the_marginal_likelihood_and_its_slope_is_right() -> None:
    draw = np.random.default_rng(0)
    columns, variables = draw.standard_normal((25, 6)), draw.uniform(-1, 1, (25, 2))
    kernels = np.stack([columns @ columns.T, nearness(variables)[0], np.eye(25)])
    evidence = Evidence(kernels, draw.standard_normal(25))
    logs = np.log([0.4, 0.7, 0.2])
    medians = logs.copy()
    covariance = np.tensordot(np.exp(2 * logs), kernels, 1) + OFFSET**2
    expected = multivariate_normal(np.zeros(25), covariance).logpdf(evidence.targets)
    assert -evidence.cost(logs, medians)[0] - 25 / 2 * np.log(2 * np.pi) == pytest.approx(expected, rel=1e-6)
    away = logs + 0.3
    slope = approx_fprime(away, lambda at: evidence.cost(at, medians)[0], 1e-6)
    assert evidence.cost(away, medians)[1] == pytest.approx(slope, abs=1e-4)


def test_what_is_learned_is_what_was_there_and_its_uncertainty_is_that_of_its_draws() -> None:
    draw = np.random.default_rng(1)
    columns = np.column_stack([np.ones(60), draw.standard_normal((60, 3))])
    variables = draw.uniform(-1, 1, (60, 2))
    values = 7.0 + columns[:, 1:] @ [2.0, -1.0, 0.0] + 0.1 * draw.standard_normal(60)
    among = nearness(variables)
    found = fitted(columns, (Group("three", 3, 0.3),), among, values)
    assert found.weights[1:] * found.scale == pytest.approx([2.0, -1.0, 0.0], abs=0.1)
    assert 0.05 < found.noise < 0.2
    drawn = np.std(found.drawn(columns[:5], among[:, :5], among[:, :5, :5], draw, 500), axis=0)
    assert drawn == pytest.approx(found.sd(columns[:5], among[:, :5]), rel=0.2)


@pytest.mark.parametrize("share", [0.0, 1e-12, 1e6])
def test_values_without_noise_or_spread_and_far_too_large_ones_are_learned(share: float, bare: Made) -> None:
    problem = bare()
    study = with_own(problem, own("odd", "loss", lambda a: 1.0 + share * problem.assess(a)["loss"]), kept=("total_ms",))
    found = searched(study, 60)
    assert len(np.unique(found.keys)) == len(found)


def test_greedy_improvement_is_that_of_measuring_every_gain_again() -> None:
    draw = np.random.default_rng(2)
    for objectives in (1, 2, 3):
        points, known = draw.uniform(0, 1.2, (30, objectives)), draw.uniform(0.4, 1.2, (5, objectives))
        volume, expected = Volume(known), list[int]()
        for _ in range(4):
            gains = [volume.gain(point) for point in points]
            if max(gains) > 1e-12:
                expected.append(int(np.argmax(gains)))
                volume.add(points[expected[-1]])
        assert most_improving(points, known, 4).tolist() == expected


def test_gains_of_many_points_are_those_of_each() -> None:
    draw = np.random.default_rng(5)
    for objectives in (1, 2, 3):
        for members in (0, 1, 7):
            points, volume = (
                draw.uniform(-0.2, 1.3, (40, objectives)),
                Volume(draw.uniform(0, 1.3, (members, objectives))),
            )
            points[3] = np.nan
            expected = [0.0 if np.isnan(point).any() else max(volume.gain(point), 0.0) for point in points]
            assert volume.gains(points) == pytest.approx(np.array(expected), abs=1e-12)


def test_an_expected_improvement_is_the_mean_over_states_of_affairs() -> None:
    none = np.array([[1.0, 1.0]])
    certain, risky = [0.5, 0.5], ([0.1, 0.1], [np.nan, np.nan], [np.nan, np.nan], [np.nan, np.nan])
    states = [(np.array([certain, of]), none) for of in risky]
    assert most_expected(states, 1).tolist() == [0]  # 0.36 always against 1 in one of four
    states = [(np.array([certain, of]), none) for of in risky[:2]]
    assert most_expected(states, 1).tolist() == [1]  # 1 in one of two
    assert most_expected(states, 5).tolist() == [1, 0]
    assert most_expected([(np.array([[2.0, 2.0]]), none)], 3).tolist() == []


def test_it_starts_from_the_ends_of_the_analytic_frontier_and_a_hypercube(bare: Made) -> None:
    problem = bare()
    found = problem.evaluate(every(problem))
    frontier = frontier_rows(found)
    first = problem.space.keys(started(with_own(problem, *distorted(problem))).ask(12))
    assert len(first) == 12
    of_frontier = np.isin(first, frontier)
    assert of_frontier[:9].all()
    for column in found.values[frontier].T:
        assert frontier[np.argmin(column)] in first


def test_given_designs_take_the_place_of_analytic_ones(bare: Made) -> None:
    problem = bare()
    start = problem.space.genotypes(np.arange(20, 27))
    first = started(with_own(problem, *distorted(problem)), start=start).ask(12)
    assert first[:7].tolist() == start.tolist()
    assert len(first) == 12


def test_of_shipped_formulas_alone_it_asks_for_the_exact_frontier(bare: Made) -> None:
    problem = bare(objectives=["loss", "prefill_ms"])
    frontier = solve(problem).frontier
    found = searched(problem, len(frontier) + 25)
    assert np.isin(frontier.keys, found.keys).all()


@pytest.mark.slow
@pytest.mark.parametrize("names", [("loss", "total_ms"), ("loss",), ("total_ms",)], ids="+".join)
def test_a_distorted_model_is_corrected_within_fifty_evaluations(names: tuple[str, ...], bare: Made) -> None:
    problem = bare(space="paper", objectives=["loss", "total_ms"])
    expensive = tuple(o for o in distorted(problem) if o.prior in names)
    exact = tuple(o for o in problem.objectives if o.name not in names)
    study = replace(problem, objectives=(*expensive, *exact), functions=expensive)
    truth = study.evaluate(every(study)).values
    scale = Scale.from_frontier(study.objectives, truth[non_dominated(truth)])
    most, draw = scale.hypervolume(truth), np.random.default_rng(3)
    gap = 1 - scale.hypervolume(searched(study, 50).values) / most
    by_chance = 1 - scale.hypervolume(truth[draw.choice(len(truth), 50, replace=False)]) / most
    assert gap < 0.025
    assert gap < by_chance / 4


def error_after(problem: Problem, prior: str, function: Callable[[Architectures], FloatArray], count: int) -> float:
    """Root mean square error over the whole space of what is learned from designs drawn at random, in sd of the truth."""
    study = with_own(problem, own("metric", prior, function))
    strategy, truth = started(study), function(problem.architectures(every(problem)))
    told = study.evaluate(problem.space.sample(count, np.random.default_rng(4)))
    expected = strategy.learned(told).guess(strategy.candidates.reference).values[:, 0]
    return float(np.sqrt(np.square(expected - truth).mean()) / truth.std())


def test_a_useless_prior_is_let_go(bare: Made) -> None:
    problem = bare(space="paper")

    def otherwise(a: Architectures) -> FloatArray:
        found: FloatArray = np.sin(2 * np.log(a.depth / 20)) + np.cos(np.log(a.n_kv_heads)) + 0.5 * np.log(a.top_k)
        return found

    alone, misled = (error_after(problem, prior, otherwise, 60) for prior in ("", "total_ms"))
    assert misled < 0.15  # of the truth's sd; by the prior alone it is 1
    assert alone < 0.15


@pytest.mark.parametrize("prior", ["loss", "total_ms"])
def test_a_good_prior_halves_the_error_of_a_few_evaluations(prior: str, bare: Made) -> None:
    problem = bare(space="paper")
    function = next(o.function for o in distorted(problem) if o.prior == prior)
    assert function is not None
    with_it, alone = (error_after(problem, name, function, 20) for name in (prior, ""))
    assert with_it < alone / 2


@pytest.mark.slow
def test_budgets_on_measured_metrics_hold_with_the_stated_probability(bare: Made) -> None:
    problem = bare(space="paper", objectives=["loss", "total_ms"])
    loss, total_ms = distorted(problem)
    study = with_own(problem, loss, total_ms, limit=Budget(total_ms.name, 80.0))
    for confidence in (0.5, 0.95):
        found = searched(study, 112, explored=0, confidence=confidence)
        held = found.feasible[32:]  # the rounds after the first few, in which nothing is drawn
        assert held.mean() >= confidence - 0.1


def test_it_goes_on_from_the_log_alone_and_from_no_other(bare: Made) -> None:
    problem = with_own(bare(), *distorted(bare()))
    strategy = started(problem)
    found = searched(problem, 30, strategy)
    again = started(problem)
    assert not again.restore(strategy.state(), found[: len(found) - 1])
    assert again.restore(strategy.state(), found)
    assert again.ask(5).tolist() == strategy.ask(5).tolist()


def with_stopped(found: Evaluations, rows: IntArray) -> Evaluations:
    """The same evaluations where a fidelity step stopped some designs."""
    metrics = {name: column.copy() for name, column in found.metrics.items()}
    for column in metrics.values():
        column[rows] = np.nan
    reasons = tuple(f"{STOPPED}own:loss 3 at 1 (place 4 of 9)" if row in rows else "" for row in range(len(found)))
    return replace(found, metrics=metrics, reasons=reasons)


def test_what_a_step_stopped_has_reached_nothing_and_counts_as_not_evaluated(bare: Made) -> None:
    """The best design of all was stopped: the next best is worth asking for, which it is not where the best was reached."""
    shipped = bare()
    problem = with_own(shipped, own("loss", "loss", lambda a: shipped.assess(a)["loss"]))
    order = np.argsort(problem.evaluate(every(problem)).values[:, 0])
    keys = np.concatenate([order[:1], np.random.default_rng(0).choice(order[5:], 29, replace=False)])
    found = problem.evaluate(problem.space.genotypes(keys))
    for stopped, asked in ((np.array([0]), True), (np.array([], dtype=np.int64), False)):
        strategy = started(problem, batch=2)
        strategy.tell(with_stopped(found, stopped))
        assert (order[1] in problem.space.keys(strategy.ask(2))) == asked
        lessons = strategy.lessons(strategy.told)
        assert lessons is not None
        best = problem.space.keys(lessons.genotypes).tolist().index(order[0])
        assert lessons.columns["evaluated"][best] == (not asked)


@pytest.mark.slow
@pytest.mark.parametrize("handling", ["penalty", "reject"])
def test_budgets_that_are_hidden_from_it_are_learned(handling: Any, bare: Made) -> None:
    problem = with_own(bare(budgets={"memory_gb": 0.5}), *distorted(bare()))
    strategy = started(penalised_problem(problem, handling))
    told: list[Evaluations] = []
    while sum(map(len, told)) < 60:
        told.append(problem.evaluate(strategy.ask(60)))
        strategy.tell(penalised(told[-1], handling, 10.0))
    share = np.mean([problem.evaluate(every(problem)).feasible.mean()])
    assert np.mean([part.feasible.mean() for part in told[3:]]) > share


@pytest.mark.slow
def test_a_space_too_large_to_enumerate_is_searched_by_a_pool(bare: Made) -> None:
    problem = bare(space="fine", objectives=["loss", "total_ms"])
    study = with_own(problem, *undisturbed(problem))
    found = searched(study, 40)
    assert len(np.unique(found.keys)) == len(found)
    scale = Scale.from_frontier(problem.objectives, solve(problem).frontier.values)
    draw = problem.evaluate(problem.space.sample(5000, np.random.default_rng(0)))
    assert scale.hypervolume(rows_of(study, study.functions, found)) > scale.hypervolume(draw.values)


def undisturbed(problem: Problem) -> tuple[Objective, Objective]:
    """Metrics of the user's that are what their priors say."""
    return (
        own("loss", "loss", lambda a: problem.assess(a)["loss"]),
        own("total_ms", "total_ms", lambda a: problem.assess(a)["total_ms"], log_scale=True),
    )


def test_a_prior_is_an_attribute_of_the_function(problem_of: Made, user_module: Callable[[str], str]) -> None:
    name = user_module("def slow(a):\n    return 2.0 * a.depth\nslow.PRIOR = 'total_ms'\n")
    problem = problem_of(objectives=["loss", f"{name}:slow"])
    assert [o.prior for o in problem.objectives] == ["", "total_ms"]
    assert problem.priors == ("total_ms",)


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        ("total", r"PRIOR of .*: expected a shipped metric .*, got 'total'; did you mean total_ms"),
        ("energy_j", "energy_j"),
    ],
)
def test_a_prior_that_is_none_is_refused(
    prior: str, expected: str, problem_of: Made, user_module: Callable[[str], str]
) -> None:
    name = user_module(f"def slow(a):\n    return 2.0 * a.depth\nslow.PRIOR = {prior!r}\n")
    with pytest.raises(UsageError, match=expected):
        problem_of(objectives=["loss", f"{name}:slow"])


MEASURED = """
def slow(a):
    return 3.0 + 0.7 * a.depth + a.depth * a.width * a.top_k * a.expert_size / 1e6


slow.UNIT, slow.LOG_SCALE, slow.PRIOR = "ms", True, "total_ms"
"""


def test_a_run_says_what_it_learned_and_a_resumed_one_the_same(
    tiny: dict[str, Any], inside: Callable[..., Any], user_module: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "study.yaml").write_text(yaml_source.dump({"space": tiny, "name": "tiny", "baselines": []}))
    name = f"{user_module(MEASURED)}:slow"
    line = ("run", "--config", "study.yaml", "--algo", "prior_guided", "--objectives", f"loss,{name}")
    at_once = inside(*line, "--evaluations", 40, "--verbose", "--out", "one")
    assert f"{name}: 40 evaluations; left out, one is predicted to " in at_once.out
    assert "Corrected frontier (corrected.csv): " in at_once.out
    assert inside(*line, "--evaluations", 19, "--out", "two").code == 0
    assert inside("run", "--resume", "two", "--evaluations", 40).code == 0
    for file in ("evaluations.csv", "frontier.csv", "corrected.csv"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    learned = json.loads((tmp_path / "one" / "summary.json").read_text())["learned"][name]
    assert learned["prior"] == "total_ms"
    assert learned["left_out_rmse"] < learned["prior_alone_rmse"] < learned["spread"]


def test_the_corrected_frontier_holds_what_is_expected_of_it(
    tiny: dict[str, Any], inside: Callable[..., Any], user_module: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "study.yaml").write_text(yaml_source.dump({"space": tiny, "name": "tiny", "baselines": []}))
    name = f"{user_module(MEASURED)}:slow"
    line = ("run", "--config", "study.yaml", "--algo", "prior_guided", "--objectives", f"loss,{name}")
    assert inside(*line, "--evaluations", 40, "--out", "run").code == 0
    found = pd.read_csv(tmp_path / "run" / "corrected.csv")
    assert (found[f"{name}_low"] <= found[name]).all()
    assert (found[name] <= found[f"{name}_high"]).all()
    told = pd.read_csv(tmp_path / "run" / "evaluations.csv")
    both = found[found.evaluated == 1].merge(
        told, on=["depth", "width", "n_experts", "top_k", "expert_size", "n_kv_heads"]
    )
    assert len(both) == found.evaluated.sum() > 0
    assert both[f"{name}_x"].to_numpy() == pytest.approx(both[f"{name}_y"].to_numpy(), rel=0.05)
    assert found.analytic.isin([0, 1]).all()


def test_of_shipped_formulas_alone_nothing_is_learned(bare: Made) -> None:
    problem = bare()
    strategy = started(problem)
    assert strategy.lessons(searched(problem, 20, strategy)) is None


@pytest.mark.slow
def test_of_one_expensive_objective_it_finds_the_best(bare: Made) -> None:
    problem = bare(space="paper")

    def weighed(a: Architectures) -> FloatArray:
        found: FloatArray = problem.assess(a)["loss"] + 0.3 * np.log(problem.assess(a)["total_ms"]) + 2.0 / a.depth
        return found

    study = with_own(problem, own("weighed", "loss", weighed))
    truth = weighed(problem.architectures(every(problem)))
    assert searched(study, 50).values.min() <= np.sort(truth)[len(truth) // 1000]
