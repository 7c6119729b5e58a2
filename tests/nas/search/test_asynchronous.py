"""Strategies that need not wait: told in the order of arrival, killed, replayed exactly, never paid for twice."""

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.files.yaml_source import dump
from nas.problem.problem import Problem
from nas.record.store import FILE, RunStore
from nas.search.assembly import Study, assemble
from nas.search.delegated import AsynchronousSearch, Delegated
from nas.search.discovery import able_to, penalised
from nas.search.lifecycle import store_columns
from nas.search.loop import Limits
from nas.search.worker_pool import Arrival, WorkerPool

Inside = Callable[..., Any]
ABLE = able_to("asynchronous")
OWN = """\
def cost(a):
    if ((a.depth == 8) & (a.width == 768)).any():
        raise RuntimeError("no such board")
    return a.depth * a.width / 1e4 + 1 / a.n_kv_heads
"""
SMALL = {"population": 12, "batch": 12, "initial": 8, "restart": 6, "startup": 6}
FEW_MODELS = {"optuna_gp": {"startup": 10_000}}  # a model takes a second


class Uneven(WorkerPool):
    """Workers in this process: what is under way comes back in any order, and once the driver is killed."""

    def __init__(self, workers: int, seed: int, kill_after: int | None = None) -> None:
        super().__init__(workers, None, lambda _: pytest.fail("an executor was made"))
        self.random, self.left, self.calls = random.Random(seed), kill_after, Counter[tuple[int, str]]()

    def arrivals(self) -> list[Arrival]:
        """One or two answers of those that workers have."""
        if self.left == 0:
            raise KeyboardInterrupt
        found: list[Arrival] = []
        for _ in range(min(self.random.choice([1, 1, 2]), len(self.waiting), self.left or 2)):
            self.left = None if self.left is None else self.left - 1
            task = self.waiting[self.random.randrange(min(len(self.waiting), self.workers))]
            self.waiting.remove(task)
            self.calls[task.key] += 1
            function, *what = self._sent(task)
            found.append((task, function(*what)))
        return found


@pytest.fixture
def study(user_module: Callable[[str], str], tiny: dict[str, Any]) -> Callable[..., Study]:
    """A study with an objective of one's own, which fails here and there."""
    name = f"{user_module(OWN)}:cost"

    def build(algo: str, **raw: Any) -> Study:
        return assemble(
            {
                "space": tiny,
                "objectives": ["loss", name],
                "budgets": {"total_ms": 40},
                "algo": algo,
                "workers": 4,
                "asynchronous": True,
                **raw,
            },
            {},
        )

    return build


def small(study: Callable[..., Study], algo: str, **raw: Any) -> Study:
    """The study with small batches."""
    known = type(study(algo).parameters).model_fields
    params = {name: value for name, value in SMALL.items() if name in known} | FEW_MODELS.get(algo, {})
    return study(algo, params=params, **raw)


def opened(folder: Path, problem: Problem) -> RunStore:
    """The store of a problem in a run's folder, made on first use."""
    (run := folder / "run").mkdir(exist_ok=True)
    new = not (run / FILE).exists()
    store = RunStore(run / FILE, problem.metric_names, tuple(o.name for o in problem.objectives), problem.budgets)
    if new:
        store.create({}, store_columns(problem))
    return store


def searched(study: Study, folder: Path, pool: WorkerPool, evaluations: int | None) -> AsynchronousSearch:
    """A search from the beginning or from what is recorded; a kill is what the pool raises."""
    store = opened(folder, study.problem)
    try:
        recorded = store.read() if len(store.batches()) or store.under_way.asks() else None
        search = AsynchronousSearch(
            study.problem,
            study.strategy(),
            store,
            recorded,
            Delegated(study.problem, pool, store),
            lambda found: penalised(found, study.handling, study.config.penalty_weight),
        )
        search.run(Limits(evaluations))
        return search
    finally:
        store.close()


@pytest.mark.parametrize(
    "algo", [algo if algo == "nsga2" else pytest.param(algo, marks=pytest.mark.slow) for algo in ABLE]
)
def test_killed_again_and_again_it_replays_and_pays_only_for_what_was_in_flight(
    algo: str, study: Callable[..., Study], tmp_path: Path
) -> None:
    kills, calls = (9, 14, 1, 0, 17), Counter[tuple[int, str]]()
    made = small(study, algo)
    for seed, after in enumerate(kills):
        pool = Uneven(4, seed, after)
        with pytest.raises(KeyboardInterrupt):
            searched(made, tmp_path, pool, 60)
        calls += pool.calls
    last = Uneven(3, 99)
    search = searched(made, tmp_path, last, 60)
    calls += last.calls
    found = search.archive.all()
    assert len(found) == 60
    assert sorted(calls.values()) == [1] * 60  # what had arrived is never asked for again, what had not was not called
    expected = made.problem.evaluate(found.genotypes.astype(int))
    assert found.reasons == expected.reasons
    np.testing.assert_array_equal(found.values, expected.values)
    longer = searched(small(study, algo), tmp_path, Uneven(5, 7), 70)
    assert longer.progress.replayed == 60
    assert longer.archive.all().keys[:60].tolist() == found.keys.tolist()


@pytest.mark.parametrize("algo", ["local_search", pytest.param("optuna_tpe", marks=pytest.mark.slow)])
def test_the_same_order_of_arrival_is_the_same_search(algo: str, study: Callable[..., Study], tmp_path: Path) -> None:
    made = small(study, algo)
    keys = []
    for name, seed in (("one", 3), ("two", 3), ("other", 4)):
        (tmp_path / name).mkdir()
        keys.append(searched(made, tmp_path / name, Uneven(4, seed), 50).archive.all().keys.tolist())
    assert keys[0] == keys[1]
    assert keys[0] != keys[2]


@pytest.mark.slow
@pytest.mark.parametrize("algo", [name for name in ABLE if name == "optuna_gp"])
def test_models_of_what_is_under_way_are_replayed_exactly(
    algo: str, study: Callable[..., Study], tmp_path: Path
) -> None:
    made = study(algo, params={"startup": 5})
    with pytest.raises(KeyboardInterrupt):
        searched(made, tmp_path, Uneven(3, 0, 10), 14)
    assert len(searched(made, tmp_path, Uneven(3, 1), 14).archive) == 14


def test_it_never_has_more_under_way_than_workers_and_one(study: Callable[..., Study], tmp_path: Path) -> None:
    most = list[int]()

    class Watched(Uneven):
        def arrivals(self) -> list[Arrival]:
            most.append(len(self.waiting))
            return super().arrivals()

    searched(small(study, "nsga2"), tmp_path, Watched(4, 1), 40)
    steady = [count for count in most if count <= 5]
    assert most[0] == 12  # the first generation is asked for whole
    assert set(steady[:12]) == {5}


@pytest.mark.parametrize("algo", ["nsga2", "local_search", "random"])
def test_a_small_space_is_covered_and_ends(
    algo: str, study: Callable[..., Study], tiny: dict[str, Any], tmp_path: Path
) -> None:
    axes = {**{name: values[-1:] for name, values in tiny["axes"].items()}, "depth": tiny["axes"]["depth"]}
    made = study(algo, space={"name": "few", "axes": axes})
    search = searched(made, tmp_path, Uneven(4, 2), None)
    assert len(search.archive) == made.problem.space.size


def test_a_record_that_the_strategy_does_not_repeat_is_refused(study: Callable[..., Study], tmp_path: Path) -> None:
    searched(small(study, "nsga2"), tmp_path, Uneven(4, 0), 30)
    with pytest.raises(
        UsageError, match=r"^resume: batch \d+, row \d+: expected .* recorded, got architectures .*; code or"
    ):
        searched(small(study, "nsga2", seed=1), tmp_path, Uneven(4, 0), 40)


def test_what_must_wait_or_has_nobody_to_wait_for_is_refused(study: Callable[..., Study]) -> None:
    with pytest.raises(
        UsageError, match=r"^asynchronous: expected a strategy that need not wait \(.*nsga2.*\), got spea2"
    ):
        study("spea2")
    for raw in ({"workers": "none"}, {"objectives": ["loss", "total_ms"]}):
        with pytest.raises(UsageError, match=r"^asynchronous: expected an objective of your own and workers"):
            study("nsga2", **raw)


@pytest.mark.slow
def test_the_command_keeps_to_it_when_it_goes_on(
    inside: Inside, tmp_path: Path, tiny: dict[str, Any], user_module: Callable[[str], str]
) -> None:
    name = f"{user_module(OWN)}:cost"
    (tmp_path / "study.yaml").write_text(dump({"space": tiny, "objectives": ["loss", name], "baselines": []}))
    line = ("run", "--config", "study.yaml", "--algo", "nsga2", "--param", "population=8", "--workers", 2)
    answer = inside(*line, "--set", "asynchronous=true", "--evaluations", 20, "--out", "run", "--quiet")
    assert answer.code == 0, answer
    answer = inside("run", "--resume", "run", "--evaluations", 26, "--set", "asynchronous=false")
    assert "asynchronous" in answer.err
    assert answer.code == 2
    assert inside("run", "--resume", "run", "--evaluations", 26, "--quiet").code == 0
    assert "asynchronous: true\n" in (tmp_path / "run" / "config.yaml").read_text()
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["evaluations"]["distinct"] == 26
