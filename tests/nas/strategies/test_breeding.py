"""Breeding on arrays is pymoo's own breeding to the last bit, from the same random numbers."""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pymoo.algorithms.moo.nsga2 import NSGA2, binary_tournament
from pymoo.core.mating import Mating
from pymoo.core.population import Population
from pymoo.core.problem import Problem as PymooProblem
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM
from pymoo.operators.survival.rank_and_crowding import RankAndCrowding
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.search.discovery import strategy_module
from nas.search.strategy import StrategyContext
from nas.strategies._pymoo import NewOnly, PymooStrategy
from nas.strategies._variation import polynomial, simulated_binary
from nas.strategies.nsga2 import Individuals

SIZES = np.array([8.0, 12.0, 0.0, 4.0, 7.0, 5.0])  # an axis of one value is never varied
VARYING = PymooProblem(n_var=len(SIZES), n_obj=2, xl=np.zeros(len(SIZES)), xu=SIZES)
seeds = st.integers(0, 2**32 - 1)


def genes(seed: int, *shape: int) -> Any:
    """Random genes (…, 6)."""
    return np.random.default_rng(seed).integers(0, SIZES + 1, size=(*shape, len(SIZES))).astype(np.float64)


@given(seed=seeds, n=st.integers(1, 40), eta=st.floats(0.01, 1000))
@example(seed=0, n=7, eta=1.0)  # roots and squares
def test_crossover_is_pymoo_s(seed: int, n: int, eta: float) -> None:
    sbx, parents = SBX(prob=0.9, eta=eta), genes(seed, 2, n)
    mine, pymoos = np.random.default_rng(seed), np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        found = simulated_binary(parents, SIZES, eta, mine)
        expected = sbx._do(VARYING, parents.copy(), random_state=pymoos)
    assert np.array_equal(found, expected)
    assert mine.bit_generator.state == pymoos.bit_generator.state


@given(seed=seeds, n=st.integers(1, 40), eta=st.floats(0.01, 1000))
@example(seed=0, n=7, eta=1.0)  # roots and squares
def test_mutation_is_pymoo_s(seed: int, n: int, eta: float) -> None:
    mutation, children = PM(eta=eta), genes(seed, n)
    mine, pymoos = np.random.default_rng(seed), np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        found = polynomial(children, SIZES, eta, mine)
        expected = mutation._do(VARYING, children.copy(), random_state=pymoos)
    assert np.array_equal(found, expected)
    assert mine.bit_generator.state == pymoos.bit_generator.state


class Algorithm:
    """What pymoo's tournament reads of an algorithm."""

    tournament_type = "comp_by_dom_and_crowding"

    def __init__(self, seed: int) -> None:
        self.random_state = np.random.default_rng(seed)


@given(seed=seeds, n=st.integers(2, 30), violated=st.booleans())
def test_nsga2_s_tournament_is_pymoo_s(seed: int, n: int, violated: bool) -> None:
    generator = np.random.default_rng(seed)
    population = Population.new(
        X=genes(seed, n),
        F=generator.integers(0, 4, size=(n, 2)).astype(float),
        G=generator.integers(-1, 2 if violated else 1, size=(n, 1)).astype(float),
        H=np.zeros((n, 0)),
        crowding=generator.choice([0.5, 1.0, np.inf], size=n),
        rank=np.zeros(n),
    )
    for individual in population:
        individual.evaluated.update({"F", "G", "H"})
    pairs = np.stack([generator.permutation(n), generator.permutation(n)], axis=1)
    individuals = Individuals(
        population.get("X").astype(np.int64),
        population.get("F"),
        population.get("CV")[:, 0],
        population.get("crowding"),
    )
    mine, pymoos = np.random.default_rng(seed), Algorithm(seed)
    found = individuals.winners(pairs, mine)
    assert found.tolist() == binary_tournament(population, pairs, algorithm=pymoos)[:, 0].tolist()
    assert mine.bit_generator.state == pymoos.random_state.bit_generator.state


class Counted(NewOnly):
    """The filter as pymoo's mating needs it: it is told how far the generation is bred."""

    generation = 0

    def do(self, pop: Any, *others: Any, **_: Any) -> Any:
        room = self.generation - len(others[-1]) if others else len(pop)
        return pop[self.fresh(pop.get("X"), room)]


def bred_by_pymoo(strategy: Any) -> Any:
    """The same strategy with pymoo's own mating."""
    strategy = copy.deepcopy(strategy)
    ours = strategy.algorithm.mating
    known = Counted(strategy.space, strategy.seen)
    known.generation = strategy.algorithm.n_offsprings
    strategy.algorithm.mating = Mating(
        ours.selection,
        ours.crossover,
        ours.mutation,
        repair=ours.repair,
        eliminate_duplicates=known,
        n_max_iterations=ours.n_max_iterations,
    )
    return strategy


def brief_of(problem: Problem) -> StrategyContext:
    """The fifth seed, nothing to start from."""
    return StrategyContext(problem, 5, problem.space.genotypes(np.zeros(0, dtype=np.int64)), None)


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["nsga3", "rvea", "smsemoa", "spea2"])
def test_generations_are_pymoo_s(algo: str, problem_of: Callable[..., Problem]) -> None:
    problem = problem_of(default_budget="none", budgets={"total_ms": 30}, baselines=[], applications={})
    module = strategy_module(algo)
    ours = module.build(brief_of(problem), module.Parameters.model_validate({"population": 12}))
    theirs = bred_by_pymoo(ours)
    for _ in range(12):
        batch = ours.ask(problem.space.size)
        assert batch.tolist() == theirs.ask(problem.space.size).tolist()
        for strategy in (ours, theirs):
            strategy.tell(problem.evaluate(batch))


class InOrder(NonDominatedSorting):  # type: ignore[misc]
    """pymoo's, each front by row number in every version."""

    def do(self, *arguments: Any, **options: Any) -> Any:
        return [np.sort(front) for front in super().do(*arguments, **options)]


def failing(told: Evaluations) -> Evaluations:
    """Every fifth architecture fails."""
    failed = told.keys % 5 == 0
    metrics = {name: np.where(failed, np.nan, column) for name, column in told.metrics.items()}
    return replace(told, metrics=metrics, reasons=tuple("no" if no else "" for no in failed.tolist()))


def tied(told: Evaluations) -> Evaluations:
    """Objectives so coarse that many are equal."""
    return replace(told, metrics=told.metrics | {name: np.rint(told.metrics[name]) for name in ("loss", "total_ms")})


@pytest.mark.parametrize(
    ("objectives", "budgets", "shown"),
    [
        (["loss", "total_ms"], {"total_ms": 30}, failing),
        (["loss", "total_ms", "memory_gb"], {"total_ms": 10, "memory_gb": 0.5}, tied),
        pytest.param(["loss"], {}, tied, marks=pytest.mark.slow),
        pytest.param(["loss", "total_ms"], {"total_ms": 1e-6}, failing, marks=pytest.mark.slow),
        pytest.param(["loss", "total_ms", "memory_gb", "decode_ms"], {}, failing, marks=pytest.mark.slow),
    ],
)
def test_nsga2_is_pymoo_s(
    objectives: list[str],
    budgets: dict[str, float],
    shown: Callable[[Evaluations], Evaluations],
    problem_of: Callable[..., Problem],
) -> None:
    problem = problem_of(default_budget="none", objectives=objectives, budgets=budgets, baselines=[], applications={})
    module = strategy_module("nsga2")
    parameters = module.Parameters.model_validate({"population": 12, "offspring": 5, "rare": 0})
    ours = module.build(brief_of(problem), parameters)
    pymoos = partial(NSGA2, survival=RankAndCrowding(nds=InOrder()), n_offsprings=parameters.offspring)
    theirs = bred_by_pymoo(PymooStrategy(brief_of(problem), parameters, pymoos))
    asked = 0
    while asked < problem.space.size:
        batch = ours.ask(problem.space.size)
        assert batch.tolist() == theirs.ask(problem.space.size).tolist()
        asked += len(batch)
        for strategy in (ours, theirs):
            strategy.tell(shown(problem.evaluate(batch)))
