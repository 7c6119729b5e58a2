"""Fidelity steps: who goes on, what is kept of it, and that nobody is asked twice."""

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.record.database import Step
from nas.record.store import FILE, BatchRecord, RunStore
from nas.search.delegated import Delegated
from nas.search.lifecycle import store_columns
from nas.search.successive_halving import STOPPED, SuccessiveHalving, best_first
from tests.nas.search.test_delegated import Here

STEPPED = """\
calls = []

def fn(a, *, fidelity):
    calls.append((int(a.depth[0]), int(a.width[0]), fidelity))
    if fidelity == 2.0 and a.n_experts[0] > 1 and a.depth[0] == 4:
        raise ValueError("diverged")
    return a.depth * a.width * a.expert_ffn_ratio / fidelity

fn.FIDELITIES = (1, 2, 4.0)
"""


def test_places_go_by_budget_then_rank_then_crowding_then_age() -> None:
    points = np.array([[0.0, 4.0], [1.0, 3.0], [1.1, 2.9], [4.0, 0.0], [9.0, 9.0], [-1.0, -1.0], [9.0, 9.0]])
    within = np.array([True, True, True, True, True, False, True])
    assert best_first(points, within).tolist() == [0, 3, 2, 1, 4, 6, 5]


def test_places_of_one_objective_are_their_order() -> None:
    values = np.random.default_rng(0).permutation(20).astype(float)
    assert best_first(values[:, None], np.ones(20, dtype=bool)).tolist() == values.astype(int).tolist()


@pytest.fixture
def problem(problem_of: Callable[..., Problem], user_module: Callable[[str], str]) -> Problem:
    """Two objectives, one with three fidelities."""
    return problem_of(objectives=[f"{user_module(STEPPED)}:fn", "total_ms"])


def opened(problem: Problem, folder: Path) -> RunStore:
    """The store of a run, laid out where it is new."""
    new = not (folder / FILE).exists()
    store = RunStore(folder / FILE, problem.metric_names, tuple(o.name for o in problem.objectives), problem.budgets)
    if new:
        store.create({}, store_columns(problem))
    return store


def calls_of(problem: Problem) -> list[Any]:
    return list(importlib.import_module(problem.functions[0].place.partition(":")[0]).calls)


def log(store: RunStore, problem: Problem, found: Evaluations, start: int) -> None:
    store.append(start, BatchRecord(0, len(found), 0.0, 0.0), found, problem.architectures(found.genotypes))


def test_the_best_third_of_each_step_goes_on(problem: Problem, tmp_path: Path) -> None:
    store, genotypes = opened(problem, tmp_path), problem.space.genotypes(np.arange(0, 54, 3))
    found = Delegated(problem, Here(99), store)(genotypes)
    steps = store.steps.read()
    first = [step for step in steps if step.fidelity == 1.0]
    second = [step for step in steps if step.fidelity == 2.0]
    reasons = found.reasons or ()
    failed = [reason for reason in reasons if "diverged" in reason]
    assert len(first) == 18
    assert sum(step.goes_on for step in first) == 6 == len(second) + len(failed)
    assert sum(step.goes_on for step in second) == math.ceil(len(second) / 3) == found.ok.sum()
    assert sum(reason.startswith(STOPPED) for reason in reasons) == 18 - found.ok.sum() - len(failed)
    full = problem.evaluate(genotypes)
    for name, values in found.metrics.items():
        np.testing.assert_array_equal(values[found.ok], full.metrics[name][found.ok])
        assert (np.isnan(values) == (~found.ok & (name == problem.functions[0].name))).all()
    called = [fidelity for *_, fidelity in calls_of(problem)][: 18 + 6 + int(found.ok.sum())]
    assert called.count(1.0) == 18
    assert called.count(2.0) == 6


def test_earlier_designs_count_and_a_stopped_one_says_where(problem: Problem, tmp_path: Path) -> None:
    store, space = opened(problem, tmp_path), problem.space
    delegated = Delegated(problem, Here(99), store)
    log(store, problem, delegated(space.genotypes(np.arange(9))), 0)
    later = Delegated(problem, Here(99), store, set(range(9)))
    found = later(space.genotypes(np.arange(9, 12)))
    (last,) = [step for step in store.steps.read() if step.key == 11 and step.fidelity == 1.0]
    assert last.designs == 12
    expected = f"{STOPPED}{problem.functions[0].name} {last.value:.6g} at 1 (place {last.place} of 12)"
    assert last.goes_on or (found.reasons or ())[2] == expected
    assert not later.designs
    assert not later.answers


def test_a_killed_driver_asks_for_no_step_again_and_decides_alike(problem: Problem, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    genotypes = problem.space.genotypes(np.arange(0, 54, 3))
    expected_store = opened(problem, whole)
    expected = Delegated(problem, Here(99), expected_store)(genotypes)
    asked = 99 - 0
    for most in (7, 12, 3, 99):
        store = opened(problem, killed)
        pool = Here(most)
        try:
            found = Delegated(problem, pool, store)(genotypes)
        except KeyboardInterrupt:
            asked -= most
            continue
        asked -= most - pool.left
    assert found.reasons == expected.reasons
    assert [(s.key, s.fidelity, s.place) for s in store.steps.read()] == [
        (s.key, s.fidelity, s.place) for s in expected_store.steps.read()
    ]
    spent = len(store.steps.read()) + int(found.ok.sum())
    spent += sum("diverged" in reason for reason in found.reasons or ())
    assert 99 - asked == spent


def test_a_damaged_step_is_as_good_as_none(problem: Problem, tmp_path: Path) -> None:
    store = opened(problem, tmp_path)
    assert store.steps.read() == []
    steps = [Step(key, 1.0, 2.5, (2.5, -1.0), True, key + 1, 2, key == 0) for key in range(2)]
    store.steps.add(steps)
    assert store.steps.read() == steps
    store.connection.execute("UPDATE steps SET value = 0.1 WHERE key = 0")
    store.connection.commit()
    assert store.steps.read() == steps[1:]


def test_alone_a_design_is_judged_when_its_answers_are_there(problem: Problem, tmp_path: Path) -> None:
    """As a search that does not wait does it: the first one always goes on."""
    store = opened(problem, tmp_path)
    delegated = Delegated(problem, Here(99), store)
    delegated.expect(problem.space.genotypes(np.array([30])))
    for fidelity in (1.0, 2.0, 4.0):
        assert not delegated.complete(30)
        assert [label for _, label in delegated.receive()] == [f"{problem.functions[0].name}@{fidelity!r}"]
    assert delegated.complete(30)
    assert delegated(problem.space.genotypes(np.array([30]))).ok.all()


def test_steps_of_designs_that_the_log_lacks_are_no_history(problem: Problem, tmp_path: Path) -> None:
    store = opened(problem, tmp_path)
    store.steps.add([Step(key, 1.0, 2.5, (2.5, 1.0), True, 1, 1, True) for key in (3, 4)])
    halving = SuccessiveHalving(problem.functions[0], store.steps, {4})
    assert [step.key for step in halving.ended[1.0]] == [4]
