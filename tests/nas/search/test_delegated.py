"""Workers' results are kept as they arrive: what was paid for is asked for once, however often the driver ends."""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.problem.problem import Problem
from nas.record.database import Ask
from nas.record.store import FILE, BatchRecord, RunStore
from nas.search.delegated import Delegated
from nas.search.in_worker import Answer
from nas.search.lifecycle import store_columns
from nas.search.worker_pool import Arrival, Task, WorkerPool

COUNTED = """\
calls = []

def fn(a):
    calls.append(int(a.depth[0]))
    if a.width[0] > 1024:
        raise ValueError("too wide")
    return a.depth * a.width

def other(a):
    return a.depth
"""


class Here(WorkerPool):
    """Answers in this process, one task a call, the last one first; nobody may ask for more than it is allowed."""

    def __init__(self, most: int) -> None:
        super().__init__(1, None, lambda _: pytest.fail("an executor was made"))
        self.left = most

    def arrivals(self) -> list[Arrival]:
        """One answer."""
        if not self.waiting:
            return []
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        task = self.waiting.pop()
        return [(task, self.answer(task))]

    def answer(self, task: Task) -> Answer:
        """What a worker would say."""
        function, *what = self._sent(task)
        found: Answer = function(*what)
        return found


@pytest.fixture
def opened(tmp_path: Path, problem_of: Callable[..., Problem], user_module: Callable[[str], str]) -> Iterator[Any]:
    """A problem with two metrics of one's own, and its store, opened again each time."""
    module = user_module(COUNTED)
    problem = problem_of(objectives=["loss", f"{module}:fn", f"{module}:other"])
    stores: list[RunStore] = []

    def again() -> tuple[Problem, RunStore]:
        (tmp_path / "run").mkdir(exist_ok=True)
        new = not (tmp_path / "run" / FILE).exists()
        names = tuple(objective.name for objective in problem.objectives)
        stores.append(RunStore(tmp_path / "run" / FILE, problem.metric_names, names, problem.budgets))
        if new:
            stores[-1].create({}, store_columns(problem))
        return problem, stores[-1]

    yield again
    for store in stores:
        store.close()


def test_what_arrived_before_a_kill_is_not_asked_for_again(opened: Any) -> None:
    problem, store = opened()
    genotypes = problem.space.genotypes(np.arange(6))
    with pytest.raises(KeyboardInterrupt):
        Delegated(problem, Here(7), store)(genotypes)
    problem, store = opened()
    delegated = Delegated(problem, Here(5), store)
    assert len(delegated.answers) == 7
    found, expected = delegated(genotypes), problem.evaluate(genotypes)
    assert found.reasons == expected.reasons
    for name, values in expected.metrics.items():
        np.testing.assert_array_equal(found.metrics[name], values)


def test_what_is_logged_is_no_longer_kept_and_could_be_asked_anew(opened: Any) -> None:
    problem, store = opened()
    genotypes = problem.space.genotypes(np.arange(3))
    delegated = Delegated(problem, Here(12), store)
    found = delegated(genotypes)
    assert len(store.under_way.arrived()) == 6
    store.append(0, BatchRecord(0, 3, 0.0, 0.0), found, problem.architectures(genotypes))
    assert store.under_way.arrived() == {}
    assert delegated(genotypes).keys.tolist() == [0, 1, 2]
    assert delegated.pool.left == 0  # type: ignore[attr-defined]


def test_nothing_is_sent_twice_while_it_is_under_way(opened: Any) -> None:
    problem, store = opened()
    delegated = Delegated(problem, Here(20), store)
    genotypes = problem.space.genotypes(np.arange(4))
    delegated.expect(genotypes)
    delegated.expect(genotypes[1:3])
    assert len(delegated.pool.waiting) == 8
    delegated(genotypes[:1])
    assert delegated.pool.left == 12  # type: ignore[attr-defined]  # the last ones came first
    assert delegated.complete(3)
    assert not delegated.complete(0)


def test_failures_are_kept_and_forgotten_where_they_are_to_be_tried_again(opened: Any) -> None:
    _, store = opened()
    rows = [(1, "m", 2.5, ""), (2, "m", float("nan"), "m: timeout"), (3, "m", float("-inf"), "m: -inf")]
    store.under_way.arrive(rows)
    kept = opened()[1].under_way.arrived()
    assert kept[1, "m"] == (2.5, "")
    assert kept[3, "m"] == (float("-inf"), "m: -inf")
    assert np.isnan(kept[2, "m"][0])
    store.under_way.forget_failures()
    assert opened()[1].under_way.arrived() == {(1, "m"): (2.5, "")}


def test_a_result_that_was_altered_is_as_good_as_none(opened: Any) -> None:
    _, store = opened()
    store.under_way.arrive([(1, "m", 2.5, ""), (2, "m", 3.5, "")])
    with store.connection:
        store.connection.execute("UPDATE arrived SET value = 0.5 WHERE key = 1")
    assert opened()[1].under_way.arrived() == {(2, "m"): (3.5, "")}


def test_asks_are_read_in_order_up_to_the_first_that_was_altered(opened: Any) -> None:
    _, store = opened()
    asks = [Ask(0, 4, (5, 6)), Ask(0, 2, (7,)), Ask(3, 1, ())]
    for number, ask in enumerate(asks):
        store.under_way.ask(number, ask)
    assert opened()[1].under_way.asks() == asks
    with store.connection:
        store.connection.execute("UPDATE asks SET keys = '[8]' WHERE number = 1")
    assert opened()[1].under_way.asks() == asks[:1]


def test_a_store_of_before_has_nothing_under_way(opened: Any) -> None:
    _, store = opened()
    assert (store.under_way.arrived(), store.under_way.asks()) == ({}, [])
    store.under_way.forget_failures()


EXPENSIVE = """\
calls = []

def fn(a):
    calls.extend(a.depth.tolist())
    return a.depth * a.width

def cheap(a):
    return a.depth

fn.COST_S = 1800
"""


def test_what_formulas_exclude_is_never_evaluated_where_that_costs(
    tmp_path: Path, problem_of: Callable[..., Problem], user_module: Callable[[str], str]
) -> None:
    module = user_module(EXPENSIVE)
    metrics, limit = ["loss", f"{module}:fn", f"{module}:cheap"], {"total_ms": 30}
    problem = problem_of(objectives=metrics, budgets=limit)
    genotypes = problem.space.genotypes(np.arange(problem.space.size))
    over = np.flatnonzero(problem.assess(problem.architectures(genotypes))["total_ms"] > 30)
    assert 0 < len(over) < len(genotypes)
    here = problem.evaluate(genotypes)
    assert here.reasons is not None
    assert [row for row, reason in enumerate(here.reasons) if reason] == over.tolist()
    assert here.reasons[over[0]].startswith("screened: total_ms ")
    assert here.reasons[over[0]].endswith(" > 30")
    calls = len(importlib.import_module(module).calls)
    assert calls == len(genotypes) - len(over)
    names = tuple(objective.name for objective in problem.objectives)
    (tmp_path / "run").mkdir()
    store = RunStore(tmp_path / "run" / FILE, problem.metric_names, names, problem.budgets)
    store.create({}, store_columns(problem))
    delegated = Delegated(problem, Here(2 * calls), store)
    there = delegated(genotypes)
    assert there.reasons == here.reasons
    for name, values in here.metrics.items():
        np.testing.assert_array_equal(there.metrics[name], values)
    assert delegated.complete(int(over[0]))
    store.close()


def test_without_a_cost_everything_is_evaluated(
    problem_of: Callable[..., Problem], user_module: Callable[[str], str]
) -> None:
    module = user_module(EXPENSIVE.replace("1800", "0"))
    problem = problem_of(objectives=["loss", f"{module}:fn"], budgets={"total_ms": 30})
    found = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    assert found.reasons is None
    assert not np.isnan(found.values).any()


@pytest.mark.parametrize("cost", ["'1 h'", "-1", "True", "float('inf')", "None"])
def test_a_cost_that_is_no_number_of_seconds_is_refused(
    cost: str, problem_of: Callable[..., Problem], user_module: Callable[[str], str]
) -> None:
    module = user_module(EXPENSIVE.replace("1800", cost))
    with pytest.raises(UsageError, match=rf"COST_S of {module}:fn: expected seconds, 0 or more, got "):
        problem_of(objectives=["loss", f"{module}:fn"])
