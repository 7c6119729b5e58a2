"""What fidelity steps stopped teaches, though it reached nothing: an offset and a slope for every step."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Objective
from nas.problem.problem import Problem
from nas.search.strategy import StrategyContext
from nas.search.successive_halving import STOPPED
from nas.strategies._corrected import step_columns, steps_of
from nas.strategies.prior_guided import Parameters, PriorGuided, build
from search_spaces.arrays import FloatArray, IntArray

Made = Callable[..., Problem]


def trained(problem: Problem) -> Problem:
    """The study with a trained loss in the place of the law's, of another form than it."""
    law = problem.scenario.law

    def loss(architectures: Any) -> FloatArray:
        bent = 0.1 * np.sin(2.0 * np.log(architectures.width)) + 0.05 * np.log(architectures.depth) ** 2
        return law.loss(architectures) + bent

    own = Objective("own:loss", "nats", False, loss, prior="loss")
    return replace(problem, objectives=(own, problem.objectives[1]), functions=(own,))


def started(problem: Problem) -> PriorGuided:
    return build(StrategyContext(problem, 0, problem.space.genotypes(np.zeros(0, dtype=np.int64)), 100), Parameters())


def stopped(found: Evaluations, rows: IntArray, fidelity: float, values: FloatArray) -> Evaluations:
    """The same evaluations where a step stopped some designs at a fidelity, with other values there."""
    metrics = {name: column.copy() for name, column in found.metrics.items()}
    reasons = [""] * len(found)
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        reasons[row] = f"{STOPPED}own:loss {value:.6g} at {fidelity:.12g} (place 4 of 9)"
        for column in metrics.values():
            column[row] = np.nan
    return replace(found, metrics=metrics, reasons=tuple(reasons))


def test_reasons_say_where_a_step_stopped_a_design(bare: Made) -> None:
    problem = trained(bare(space="paper", objectives=["loss", "total_ms"]))
    found = problem.evaluate(problem.space.sample(4, np.random.default_rng(0)))
    told = stopped(found, np.array([1, 3]), 0.1, np.array([3.25, 4.5]))
    fidelities, values = steps_of(told, "own:loss")
    assert np.isnan(fidelities).tolist() == [True, False, True, False]
    assert fidelities[[1, 3]].tolist() == [0.1, 0.1]
    assert values[[1, 3]].tolist() == [3.25, 4.5]
    assert np.isnan(steps_of(told, "own:other")[0]).all()
    columns = step_columns(np.array([np.nan, 0.1, 0.3, 0.1]), np.array([[1.0], [2.0], [3.0], [4.0]]))
    assert columns.tolist() == [[0, 0, 0, 0], [1, 2, 0, 0], [0, 0, 1, 3], [1, 4, 0, 0]]
    assert step_columns(np.full(3, np.nan), np.ones((3, 1))).shape == (3, 0)


def test_what_a_step_stopped_teaches_though_it_is_offset_and_stretched(bare: Made) -> None:
    problem = trained(bare(space="paper", objectives=["loss", "total_ms"]))
    strategy, draw = started(problem), np.random.default_rng(1)
    reference = strategy.candidates.reference
    truth = problem.functions[0].values(reference.architectures, None)
    found = problem.evaluate(problem.space.sample(50, draw))
    rows, loss = np.arange(14, 50), found.metrics["own:loss"]
    errors = []
    for told in (found[:14], stopped(found, rows, 0.1, 0.9 + 1.15 * (loss[rows] - 3.0) + 3.0)):
        learned = strategy.learned(told)
        model = learned.models["own:loss"]
        assert len(model.values) == len(model.posterior.left_out) == 14
        expected = model.mean(reference, learned.nearness(reference, learned.told))
        errors.append(float(np.sqrt(np.square(expected - truth).mean())))
    assert errors[1] < 0.7 * errors[0]


def test_what_is_said_of_it_counts_whole_values_alone(bare: Made) -> None:
    problem = trained(bare(space="paper", objectives=["loss", "total_ms"]))
    strategy = started(problem)
    found = problem.evaluate(problem.space.sample(30, np.random.default_rng(2)))
    strategy.tell(stopped(found, np.arange(20, 30), 0.3, found.metrics["own:loss"][20:] + 0.4))
    lessons = strategy.lessons(strategy.told)
    assert lessons is not None
    assert lessons.said[0].startswith("own:loss: 20 evaluations; left out, one is predicted to ")
    assert lessons.figures["own:loss"]["evaluations"] == 20


def test_steps_teach_from_four_whole_values_on(bare: Made) -> None:
    problem = trained(bare(space="paper", objectives=["loss", "total_ms"]))
    strategy = started(problem)
    found = problem.evaluate(problem.space.sample(12, np.random.default_rng(3)))
    for whole, taught in ((3, 3), (4, 12)):
        rows = np.arange(whole, 12)
        told = stopped(found, rows, 0.3, found.metrics["own:loss"][rows] + 0.4)
        assert len(strategy.learned(told).models["own:loss"].posterior.alpha) == taught
