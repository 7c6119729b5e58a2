"""What goes wrong inside pymoo does not reach the user of its strategies."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pymoo.core.population import Population

from nas.errors import UsageError
from nas.files.yaml_source import dump
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.search.discovery import strategy_module
from nas.search.strategy import StrategyContext
from nas.strategies._directions import directions
from nas.strategies.moead import Subproblems
from nas.strategies.rvea import AnglePenalised
from nas.strategies.smsemoa import least_removed
from search_spaces.arrays import IntArray

FAMILY = ["agemoea2", "moead", "nsga2", "nsga3", "rvea", "smsemoa", "spea2"]
Shown = Callable[[Evaluations], Evaluations]
each = pytest.mark.parametrize("algo", FAMILY)


@pytest.fixture(scope="module")
def problem(problem_of: Callable[..., Problem]) -> Problem:
    """Loss and latency over the tiny space under one budget."""
    return problem_of(default_budget="none", budgets={"total_ms": 30}, baselines=[], applications={})


@pytest.fixture(scope="module")
def minimising(problem_of: Callable[..., Problem]) -> Callable[..., Problem]:
    """The tiny space with these objectives and no budget, assembled once."""
    return cache(
        lambda *names: problem_of(objectives=list(names), default_budget="none", baselines=[], applications={})
    )


def build(algo: str, problem: Problem, evaluations: int | None = None, **parameters: Any) -> Any:
    """A strategy of population 12 from the second seed."""
    module = strategy_module(algo)
    given = module.Parameters.model_validate({"population": 12, **parameters})
    return module.build(
        StrategyContext(problem, 2, problem.space.genotypes(np.zeros(0, dtype=np.int64)), evaluations), given
    )


def asked(strategy: Any, problem: Problem, shown: Shown = lambda told: told, asks: int = 5) -> list[IntArray]:
    """What a strategy asks for when it is shown its answers so."""
    batches = []
    for _ in range(asks):
        batches.append(strategy.ask(problem.space.size))
        strategy.tell(shown(problem.evaluate(problem.space.repair(batches[-1]))))
    return batches


def constant(*names: str, value: float = 60.0) -> Shown:
    """Answers in which some metrics are the same for all."""
    return lambda told: replace(told, metrics={**told.metrics, **{name: np.full(len(told), value) for name in names}})


def same(first: list[IntArray], second: list[IntArray]) -> bool:
    """Whether two transcripts are equal."""
    return [batch.tolist() for batch in first] == [batch.tolist() for batch in second]


@each
def test_equal_violations_are_decided_by_the_run_s_seed(
    algo: str, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = np.random.default_rng

    def seeded(seed: Any = None) -> np.random.Generator:
        assert seed is not None, "a generator was made without a seed"
        return original(seed)

    monkeypatch.setattr(np.random, "default_rng", seeded)
    shown = constant("total_ms")
    assert same(asked(build(algo, problem), problem, shown), asked(build(algo, problem), problem, shown))


@each
def test_an_earlier_search_in_the_process_leaves_no_trace(algo: str, problem: Problem) -> None:
    expected = asked(build(algo, problem), problem)
    asked(build(algo, problem), problem, constant("loss", "total_ms", value=1e-6))
    assert same(asked(build(algo, problem), problem), expected)


@pytest.mark.slow
@each
def test_surplus_children_are_not_lost(algo: str, problem: Problem) -> None:
    strategy, seen = build(algo, problem, population=7), set[int]()
    for _ in range(200):
        batch = strategy.ask(problem.space.size)
        seen.update(problem.space.keys(batch).tolist())
        if len(seen) == problem.space.size:
            return
        assert len(batch)
        strategy.tell(problem.evaluate(batch))
    raise AssertionError(f"{len(seen)} of {problem.space.size} were asked for")


@pytest.mark.slow
@each
@pytest.mark.parametrize("objectives", [["loss"], ["loss", "total_ms"], ["loss", "total_ms", "memory_gb", "decode_ms"]])
@pytest.mark.parametrize("values", ["one objective", "every objective", "a step"])
def test_objectives_without_range_and_ties_are_no_trouble(
    algo: str, objectives: list[str], values: str, minimising: Callable[..., Problem]
) -> None:
    problem = minimising(*objectives)

    def step(told: Evaluations) -> Evaluations:
        return replace(told, metrics={**told.metrics, "loss": np.where(told.genotypes[:, 0] > 0, 2.0, 0.0)})

    shown = {
        "one objective": constant("loss"),
        "every objective": constant(*objectives, value=1.0),
        "a step": step,
    }[values]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches = asked(build(algo, problem), problem, shown, asks=6)
    keys = problem.space.keys(np.concatenate(batches))
    assert len(np.unique(keys)) == len(keys)


@each
def test_the_process_s_warning_filters_are_left_alone(algo: str, problem: Problem) -> None:
    with warnings.catch_warnings():
        filters = list(warnings.filters)
        asked(build(algo, problem), problem)
        assert list(warnings.filters) == filters


def test_spea2_keeps_finite_distances_where_an_objective_has_no_range(problem: Problem) -> None:
    strategy = build("spea2", problem)
    asked(strategy, problem, constant("loss"))
    found = strategy.algorithm.pop
    density = found[found.get("FEAS")[:, 0]].get("SPEA_D")
    assert len(density)
    assert np.isfinite(density.astype(np.float64)).all()


@pytest.mark.parametrize("algo", ["moead", "nsga2", "smsemoa"])
def test_units_of_objectives_do_not_matter(algo: str, minimising: Callable[..., Problem]) -> None:
    problem = minimising("loss", "total_ms")

    def scaled(told: Evaluations) -> Evaluations:
        return replace(told, metrics={**told.metrics, "total_ms": told.metrics["total_ms"] * 1024})

    assert same(asked(build(algo, problem), problem, scaled), asked(build(algo, problem), problem))


@each
def test_whatever_is_feasible_is_kept_before_what_is_not(algo: str, problem: Problem) -> None:
    strategy = build(algo, problem)
    told = [problem.evaluate(batch).feasible for batch in asked(strategy, problem)]
    kept = strategy.kept.violation <= 0 if algo == "nsga2" else strategy.algorithm.pop.get("FEAS")[:, 0]
    assert 0 < np.concatenate(told).mean() < 1
    assert kept.all() or kept.sum() >= min(np.concatenate(told).sum(), 5)


@each
def test_objectives_are_compared_on_the_scale_that_results_are_measured_on(algo: str, problem: Problem) -> None:
    strategy = build(algo, problem)
    asked(strategy, problem)
    if algo == "nsga2":
        genotypes, values = strategy.kept.genotypes, strategy.kept.values
    else:
        genotypes, values = strategy.algorithm.pop.get("X").astype(np.int64), strategy.algorithm.pop.get("F")
    loss, latency = problem.evaluate(genotypes).values.T
    assert np.array_equal(values, np.stack([loss, np.log(latency)], axis=1))


# Reference directions


@pytest.mark.parametrize("objectives", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("population", [6, 100, 133])
def test_directions_are_as_many_as_the_population_can_hold(objectives: int, population: int) -> None:
    found = directions(objectives, population, None)
    assert len(found) <= population
    assert len(np.unique(found, axis=0)) == len(found)
    assert (found >= 0).all()
    assert found.sum(axis=1) == pytest.approx(1)
    parts = round(1 / found[found > 0].min())
    assert len(found) == comb(parts + objectives - 1, objectives - 1)
    assert objectives == 1 or comb(parts + objectives, objectives - 1) > population


def test_more_directions_than_individuals_are_refused() -> None:
    assert len(directions(3, 100, 4)) == 15
    with pytest.raises(UsageError, match=r"params\.population: expected at least 105, .* got 100; raise it"):
        directions(3, 100, 13)
    with pytest.raises(UsageError, match="expected at least 6"):
        directions(6, 5, None)


@pytest.mark.parametrize("algo", ["nsga3", "rvea", "moead"])
def test_too_many_divisions_are_refused_before_anything_is_written(
    algo: str, inside: Callable[..., Any], tmp_path: Path
) -> None:
    answer = inside("run", "--algo", algo, "--param", "divisions=200")
    assert answer.code == 2
    assert "expected at least 201" in answer.err
    assert list(tmp_path.iterdir()) == []


# RVEA


def test_of_two_on_one_reference_vector_the_nearer_stays_whatever_rounding_makes_of_the_cosine(
    problem: Problem,
) -> None:
    strategy = build("rvea", problem)
    strategy.algorithm.evaluator.n_eval = strategy.algorithm.horizon
    for vector in AnglePenalised(directions(2, 100, None), 2.0).vectors:
        survival = AnglePenalised(directions(2, 100, None), 2.0)
        survival.ideal = np.zeros(2)
        values = np.outer([3.0, 1.1, 7.0], vector)
        pair = Population.new(F=values, G=np.full((3, 1), -1.0), X=np.zeros((3, 6)))
        assert survival.do(strategy.problem, pair, algorithm=strategy.algorithm).get("F").tolist() == [
            values[1].tolist()
        ]


def test_one_reference_vector_is_enough() -> None:
    survival = AnglePenalised(directions(1, 100, None), 2.0)
    assert np.isfinite(survival.gamma).all()
    assert survival.vectors.tolist() == [[1.0]]


def test_rvea_spreads_its_schedule_over_the_evaluations_asked_for(problem: Problem) -> None:
    runs = {horizon: build("rvea", problem, horizon) for horizon in (60, 160, None)}
    progress = {horizon: list[float]() for horizon in runs}
    for horizon, strategy in runs.items():
        for _ in range(8):
            asked(strategy, problem, asks=1)
            progress[horizon].append(strategy.algorithm.progress)
    assert progress[60] == pytest.approx([min(12 * k / 60, 1) for k in range(1, 9)])
    assert progress[160] == pytest.approx([12 * k / 160 for k in range(1, 9)])
    assert progress[None] == pytest.approx([12 * k / 162 for k in range(1, 9)]), "no more than the space holds"


@pytest.mark.slow
def test_an_extended_run_keeps_its_schedule_and_says_so(
    tiny: dict[str, Any], inside: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "study.yaml").write_text(dump({"space": tiny, "baselines": []}))
    line = ["run", "--config", "study.yaml", "--algo", "rvea", "--param", "population=10"]
    assert inside(*line, "--evaluations", 60, "--out", "once", "--quiet").code == 0
    assert inside(*line, "--evaluations", 60, "--out", "twice", "--quiet").code == 0
    answer = inside("run", "--resume", "once", "--evaluations", 110)
    assert "rvea was laid out for 60 evaluations and stays so (its schedule" in answer.err
    assert "schedule" in inside("run", "--resume", "twice", "--evaluations", 85).err
    assert inside("run", "--resume", "twice", "--evaluations", 110).code == 0
    logs = [(tmp_path / name / "evaluations.csv").read_bytes() for name in ("once", "twice")]
    assert len(logs[0].splitlines()) == 111
    assert logs[0] == logs[1]
    assert "schedule" not in inside("run", "--resume", "once", "--evaluations", 110, "--algo", "rvea").out


# MOEA/D


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_moead_breeds_one_new_child_for_each_subproblem(objectives: int, minimising: Callable[..., Problem]) -> None:
    names = ["loss", "total_ms", "memory_gb"][:objectives]
    problem = minimising(*names)
    strategy = build("moead", problem, population=15)
    first, *later = asked(strategy, problem)
    assert len(first) == 15
    assert {len(batch) for batch in later} == {len(strategy.algorithm.weights)} == {15}
    assert sorted(strategy.algorithm.served) == list(range(15))


def test_equal_subproblems_of_one_objective_have_neighbours_all_along() -> None:
    weights = np.ones((30, 1))
    parameters = strategy_module("moead").Parameters(neighbours=3)
    algorithm = Subproblems(weights, parameters, pop_size=30, sampling=None, crossover=None, mutation=None)
    assert (np.abs(algorithm.neighbours - np.arange(30)[:, None]) <= 2).all()


def test_a_failed_child_replaces_nothing_and_is_replaced(minimising: Callable[..., Problem]) -> None:
    problem = minimising("loss", "total_ms")

    def failing(told: Evaluations) -> Evaluations:
        failed = told.genotypes[:, 0] > 0
        along = told.keys / problem.space.size
        metrics = {"loss": 1.1 + along, "total_ms": 1.1 + 1 / 3 - along}  # near one, which failed rows are told as
        metrics = {name: np.where(failed, np.nan, column) for name, column in metrics.items()}
        return replace(
            told, metrics=told.metrics | metrics, reasons=tuple("no" if no else "" for no in failed.tolist())
        )

    strategy = build("moead", problem, population=15)
    asked(strategy, problem, failing)
    assert (strategy.algorithm.pop.get("X")[:, 0] == 0).all()
    assert np.isfinite(strategy.algorithm.ideal).all()
    assert (strategy.algorithm.ideal > [1.0, np.log(1.0)]).all(), "a failed row's placeholder became the ideal point"


# SMS-EMOA


def test_the_least_contributor_goes_first() -> None:
    values = np.array([[0.0, 1.0], [0.5, 0.5], [0.52, 0.49], [1.0, 0.0]])
    assert least_removed(values, 3, 1.1).tolist() == [0, 1, 3]
    assert least_removed(values * [1, 1e6], 3, 1.1).tolist() == [0, 1, 3]
    assert len(least_removed(np.array([[2.0], [2.0], [2.0]]), 1, 1.1)) == 1
    assert least_removed(np.array([[2.0, 5.0], [2.0, 5.0], [1.0, 7.0]]), 2, 1.1).tolist() in ([0, 2], [1, 2])


# numba


def test_without_numba_agemoea2_names_its_extra_and_is_listed(
    inside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "nas.strategies.agemoea2", raising=False)
    answer = inside("run", "--algo", "agemoea2")
    assert answer.code == 2
    assert (
        "expected the package numba for agemoea2, got none installed; pip install 'plas-codesign[numba]'" in answer.err
    )
    listed = inside("list", "strategies").out.splitlines()
    (line,) = [line for line in listed if "agemoea2" in line]
    assert "Unavailable: pip install 'plas-codesign[numba]'" in line
    assert not any("Unavailable" in line for line in listed if "nsga" in line)
