"""The loop: what it charges, logs and tells, when it stops, and that replay continues as if nothing had happened."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.record.store import FILE, STRATEGY, Recorded, RunStore
from nas.search.archive import Archive
from nas.search.assembly import Study
from nas.search.discovery import penalised, penalised_problem, strategy_module
from nas.search.lifecycle import store_columns, store_of
from nas.search.loop import STALLED_ASKS, Limits, Search
from nas.search.strategy import StrategyContext
from nas.strategies._optuna import OneByOne
from search_spaces.arrays import IntArray

Row = tuple[int, int, list[float]]


class Scripted:
    """Asks for given keys, batch by batch, and notes what it is told."""

    def __init__(self, problem: Problem, batches: list[list[int]]) -> None:
        self.problem, self.batches = problem, list(batches)
        self.told: list[Evaluations] = []
        self.bounds: list[int] = []

    def ask(self, at_most: int) -> IntArray:
        """The next batch, then nothing."""
        self.bounds.append(at_most)
        keys = self.batches.pop(0) if self.batches else []
        return self.problem.space.genotypes(np.array(keys, dtype=np.int64)).reshape(-1, 6)

    def tell(self, evaluations: Evaluations) -> None:
        """Note it."""
        self.told.append(evaluations)


@pytest.fixture
def problem(problem_of: Callable[..., Problem]) -> Problem:
    """The tiny space under a budget."""
    return problem_of(budgets={"total_ms": 30})


@contextmanager
def stored(path: Path, problem: Problem) -> Iterator[RunStore]:
    """The store of a problem, made on first use."""
    new = not path.exists()
    store = RunStore(path, problem.metric_names, tuple(o.name for o in problem.objectives), problem.budgets)
    if new:
        columns = problem.architectures(problem.space.genotypes(np.zeros(1, dtype=np.int64))).columns()
        store.create({}, dict.fromkeys(columns, "REAL"))
    yield store
    store.close()


def log_of(recorded: Recorded) -> list[Row]:
    """A log that compares: batch, key and every metric."""
    found = recorded.evaluations
    values = np.stack(list(found.metrics.values()), axis=1).tolist()
    return list(zip(recorded.batches.tolist(), found.keys.tolist(), values, strict=True))


def scripted(
    tmp_path: Path, problem: Problem, batches: list[list[int]], evaluations: int | None = None
) -> tuple[Search, Scripted, str, list[Row]]:
    """A search with a scripted strategy in a store of its own; its log."""
    strategy = Scripted(problem, batches)
    with stored(tmp_path / f"{len(list(tmp_path.iterdir()))}.sqlite", problem) as store:
        search = Search(problem, strategy, store)
        reason = search.run(Limits(evaluations))
        return search, strategy, reason, log_of(store.read())


def test_repeats_are_free_answered_from_the_log_and_told_in_order(tmp_path: Path, problem: Problem) -> None:
    search, strategy, reason, log = scripted(tmp_path, problem, [[5, 3, 5], [3, 9], [5, 3]])
    assert [key for _, key, _ in log] == [5, 3, 9]
    assert [batch for batch, _, _ in log] == [0, 0, 1]
    assert [told.keys.tolist() for told in strategy.told] == [[5, 3, 5], [3, 9], [5, 3]]
    assert (len(search.archive), search.progress.repeats, reason) == (3, 4, "nothing left to ask")
    expected = problem.evaluate(problem.space.genotypes(np.array([5, 3, 5])))
    assert (strategy.told[0].values == expected.values).all()
    assert (strategy.told[0].violations == expected.violations).all()


def test_genotypes_are_repaired_before_they_are_evaluated(tmp_path: Path, problem: Problem) -> None:
    wild = np.array([[99, -5, 1, 1, 50, 9], [0, 0, 0, 1, 0, 0]])
    strategy = Scripted(problem, [[]])
    strategy.ask = lambda at_most: wild if not strategy.told else wild[:0]  # type: ignore[method-assign]
    with stored(tmp_path / FILE, problem) as store:
        search = Search(problem, strategy, store)
        search.run(Limits())
    found = search.archive.all().genotypes
    assert problem.space.is_canonical(found).all()
    assert (found == problem.space.repair(wild)).all()


def test_the_limit_counts_distinct_ones_and_an_unfinished_batch_is_not_told(tmp_path: Path, problem: Problem) -> None:
    search, strategy, reason, log = scripted(tmp_path, problem, [[1, 2, 3], [3, 2, 7, 8, 9], [4]], evaluations=5)
    assert [key for _, key, _ in log] == [1, 2, 3, 7, 8]
    assert [told.keys.tolist() for told in strategy.told] == [[1, 2, 3]]
    assert reason == "5 distinct evaluations"
    assert strategy.bounds == [5, 2]
    assert len(search.archive) == 5


def test_a_limit_met_at_the_end_of_a_batch_is_told(tmp_path: Path, problem: Problem) -> None:
    _, strategy, reason, _ = scripted(tmp_path, problem, [[1, 2, 3], [4]], evaluations=3)
    assert [told.keys.tolist() for told in strategy.told] == [[1, 2, 3]]
    assert reason == "3 distinct evaluations"


def test_it_stalls_after_20_asks_and_500_rows_without_anything_new(tmp_path: Path, problem: Problem) -> None:
    _, strategy, reason, _ = scripted(tmp_path, problem, [[1, 2], *[[1, 2] * 20] * 60])
    assert reason == "stalled"
    assert len(strategy.told) == 1 + STALLED_ASKS
    _, strategy, reason, _ = scripted(tmp_path, problem, [[1, 2], *[[1, 2]] * 300])
    assert reason == "stalled"
    assert len(strategy.told) == 1 + 250


def test_anything_new_ends_a_stall(tmp_path: Path, problem: Problem) -> None:
    repeats = [[1, 2] * 20] * 19
    _, _, reason, log = scripted(tmp_path, problem, [[1, 2], *repeats, [3], *repeats, [4], *repeats])
    assert reason == "nothing left to ask"
    assert [key for _, key, _ in log] == [1, 2, 3, 4]


def test_an_exhausted_space_stops(tmp_path: Path, problem: Problem) -> None:
    everything = list(range(problem.space.size))
    _, strategy, reason, _ = scripted(tmp_path, problem, [everything, [0]])
    assert reason == "space exhausted"
    assert len(strategy.told) == 1


def test_a_time_limit_that_is_over_asks_nothing(tmp_path: Path, problem: Problem) -> None:
    strategy = Scripted(problem, [[1], [2], [3]])
    with stored(tmp_path / FILE, problem) as store:
        search = Search(problem, strategy, store)
        assert search.run(Limits(time_s=1e-9)) == "time limit of 1e-09 s"
    assert len(search.archive) == 0


def test_a_batch_is_logged_before_it_is_told(tmp_path: Path, problem: Problem) -> None:
    strategy, logged = Scripted(problem, [[1, 2], [3]]), list[int]()
    with stored(tmp_path / FILE, problem) as store:
        strategy.tell = lambda evaluations: logged.append(len(store.batches()))  # type: ignore[method-assign]
        Search(problem, strategy, store).run(Limits())
    assert logged == [2, 3]


# Replay


def run(
    path: Path,
    problem: Problem,
    algo: str,
    evaluations: int | None,
    recorded: Recorded | None = None,
    **parameters: Any,
) -> tuple[Search, list[Row]]:
    """A strategy's search in a store, new or continued; its log."""
    module = strategy_module(algo)
    context = StrategyContext(problem, 3, problem.space.genotypes(np.zeros(0, dtype=np.int64)), evaluations)
    strategy = module.build(context, module.Parameters.model_validate(parameters))
    with stored(path, problem) as store:
        search = Search(problem, strategy, store, recorded)
        search.run(Limits(evaluations))
        return search, log_of(store.read())


def recorded(path: Path, problem: Problem) -> Recorded:
    """What a store holds."""
    with stored(path, problem) as store:
        return store.read()


@pytest.mark.parametrize(("algo", "parameters"), [("nsga2", {"population": 16}), ("random", {"batch": 16})])
@pytest.mark.parametrize("stops", [(1,), (7,), (16,), (17,), (40, 41, 47), (5, 5, 33), (48, 64)])
def test_a_truncated_run_extended_equals_one_long_run(
    algo: str, parameters: dict[str, int], stops: tuple[int, ...], tmp_path: Path, problem: Problem
) -> None:
    _, long = run(tmp_path / "long.sqlite", problem, algo, 80, **parameters)
    run(tmp_path / "short.sqlite", problem, algo, stops[0], **parameters)
    for stop in (*stops[1:], 80):
        before = recorded(tmp_path / "short.sqlite", problem)
        search, log = run(tmp_path / "short.sqlite", problem, algo, stop, before, **parameters)
        assert log[: len(before.batches)] == log_of(before)
    assert log == long
    assert search.progress.replayed == stops[-1]


@pytest.mark.parametrize("algo", ["nsga2", "random", "exact"])
def test_replay_calls_no_objective_for_what_is_recorded(
    algo: str, tmp_path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = None if algo == "exact" else 130
    _, first = run(tmp_path / FILE, problem, algo, limit)
    monkeypatch.setattr(Problem, "evaluate", lambda *_: pytest.fail("an objective was called"))
    search, again = run(tmp_path / FILE, problem, algo, limit, recorded(tmp_path / FILE, problem))
    assert again == first
    assert search.progress.replayed == len(first)


def test_a_limit_below_what_is_recorded_loses_nothing(tmp_path: Path, problem: Problem) -> None:
    _, first = run(tmp_path / FILE, problem, "random", 30, batch=8)
    search, again = run(tmp_path / FILE, problem, "random", 10, recorded(tmp_path / FILE, problem), batch=8)
    assert again == first
    assert len(search.archive) == 30


def replayed(tmp_path: Path, problem: Problem, first: list[list[int]], then: list[list[int]]) -> str:
    """The message of a replay in which the strategy asks for other keys."""
    path = tmp_path / "mismatch.sqlite"
    with stored(path, problem) as store:
        Search(problem, Scripted(problem, first), store).run(Limits())
    with stored(path, problem) as store, pytest.raises(UsageError) as caught:
        Search(problem, Scripted(problem, then), store, store.read()).run(Limits())
    assert len(recorded(path, problem).batches) == sum(map(len, first)), "a replay that differs wrote something"
    return str(caught.value)


@pytest.mark.parametrize(
    ("then", "batch", "row"),
    [
        ([[1, 2, 3], [4, 9, 6]], 1, 1),
        ([[9, 2, 3], [4, 5, 6]], 0, 0),
        ([[1, 2], [3, 4, 5, 6]], 0, 2),
        ([[1, 2, 3, 7], [4, 5, 6]], 0, 3),
        ([[1, 2, 3], [5, 4, 6]], 1, 0),
        ([[1, 2, 3]], 1, 0),
        ([[1, 2, 3], [3, 2], [4, 5, 6]], 1, 0),
    ],
    ids=["row", "first", "shorter", "longer", "order", "ends early", "ask of repeats"],
)
def test_a_replay_that_differs_stops_and_names_batch_and_row(
    then: list[list[int]], batch: int, row: int, tmp_path: Path, problem: Problem
) -> None:
    said = replayed(tmp_path, problem, [[1, 2, 3], [4, 5, 6]], then)
    assert said.startswith(f"resume: batch {batch}, row {row}: expected "), said
    assert "start a new run" in said


def test_asking_for_more_in_the_last_recorded_batch_is_its_rest(tmp_path: Path, problem: Problem) -> None:
    with stored(tmp_path / FILE, problem) as store:
        Search(problem, Scripted(problem, [[1, 2, 3], [4, 5, 6]]), store).run(Limits(5))
    with stored(tmp_path / FILE, problem) as store:
        strategy = Scripted(problem, [[1, 2, 3], [4, 5, 6], [7]])
        Search(problem, strategy, store, store.read()).run(Limits(7))
        assert [(batch, key) for batch, key, _ in log_of(store.read())] == [
            (0, 1),
            (0, 2),
            (0, 3),
            (1, 4),
            (1, 5),
            (1, 6),
            (2, 7),
        ]
    assert [told.keys.tolist() for told in strategy.told] == [[1, 2, 3], [4, 5, 6], [7]]


def test_failed_rows_replay_with_their_reasons(
    tmp_path: Path, problem_of: Callable[..., Problem], user_module: Callable[[str], str]
) -> None:
    name = user_module("import numpy as np\ndef fn(a):\n    return np.where(a.depth == 8, np.nan, a.depth / 3)\n")
    problem = problem_of(objectives=["loss", f"{name}:fn"])
    first, _ = run(tmp_path / FILE, problem, "nsga2", 60, population=16)
    again, _ = run(tmp_path / FILE, problem, "nsga2", 90, recorded(tmp_path / FILE, problem), population=16)
    assert first.archive.all().reasons == again.archive.all()[slice(0, 60)].reasons
    assert any(first.archive.all().reasons or ())


def test_the_archive_grows_past_its_first_size(problem_of: Callable[..., Problem]) -> None:
    problem = problem_of(space="paper")
    archive, keys = Archive(problem), np.random.default_rng(0).permutation(5000)
    for part in np.split(keys, [3, 1020, 1030, 4000]):
        archive.add(problem.evaluate(problem.space.genotypes(part)))
    found = archive.all()
    assert found.keys.tolist() == keys.tolist()
    assert (found.values == problem.evaluate(problem.space.genotypes(keys)).values).all()
    assert archive.rows(archive.index.rows(keys[[7, 4999]])).keys.tolist() == keys[[7, 4999]].tolist()


# Stored state

RESTORABLE: dict[str, dict[str, Any]] = {
    "one by one": {"startup": 8},
    "batches": {"startup": 8, "batch": 7},
    "redrawn": {"startup": 8, "batch": 3, "repeats": "redraw", "encoding": "integers"},
}
OFTEN = (("one by one", (9, 15)), ("batches", (1,)))  # the others are slow


def asked_by(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Notes how many rows optuna_tpe proposes."""
    counts, ask = list[int](), OneByOne.ask

    def counted(self: OneByOne, at_most: int) -> IntArray:
        found = ask(self, at_most)
        counts.append(len(found))
        return found

    monkeypatch.setattr(OneByOne, "ask", counted)
    return counts


STOPPED = [
    pytest.param(parameters, stops, id=f"{stops}-{name}", marks=() if (name, stops) in OFTEN else pytest.mark.slow)
    for name, parameters in RESTORABLE.items()
    for stops in ((1,), (9, 15), (30, 34))
]


@pytest.mark.parametrize(("parameters", "stops"), STOPPED)
def test_a_stored_state_shortens_the_replay_and_changes_nothing(
    parameters: dict[str, Any],
    stops: tuple[int, ...],
    tmp_path: Path,
    problem: Problem,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long_search, long = run(tmp_path / "long.sqlite", problem, "optuna_tpe", 40, **parameters)
    path, asked = tmp_path / "short.sqlite", asked_by(monkeypatch)
    run(path, problem, "optuna_tpe", stops[0], **parameters)
    for stop in (*stops[1:], 40):
        asked.clear()
        before = recorded(path, problem)
        search, log = run(path, problem, "optuna_tpe", stop, before, **parameters)
        again = sum(asked) - (stop - len(before.batches))
        assert again <= 2 * parameters.get("batch", 1), "what the state covers was asked again"
    assert log == long
    assert (search.progress.batch, search.progress.repeats) == (
        long_search.progress.batch,
        long_search.progress.repeats,
    )
    assert search.progress.replayed == stops[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM notes",
        "UPDATE notes SET text = replace(text, '\"rows\": ', '\"rows\": 1')",
        "UPDATE notes SET text = 'nothing'",
        "UPDATE notes SET digest = text",
        "DROP TABLE notes",
        "other library",
        "other counters",
    ],
)
def test_a_state_that_does_not_fit_is_replayed_instead(
    change: str, tmp_path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, long = run(tmp_path / "long.sqlite", problem, "optuna_tpe", 24, startup=8)
    run(tmp_path / FILE, problem, "optuna_tpe", 20, startup=8)
    with stored(tmp_path / FILE, problem) as store, store.connection:
        saved = store.kept(STRATEGY) or {}
        if change == "other counters":
            store.keep(STRATEGY, {name: value for name, value in saved.items() if name != "stalled_rows"})
        elif change == "other library":
            store.keep(STRATEGY, {**saved, "strategy": {**saved["strategy"], "versions": {"optuna": "99"}}})
        else:
            store.connection.execute(change)
    asked = asked_by(monkeypatch)
    _, log = run(tmp_path / FILE, problem, "optuna_tpe", 24, recorded(tmp_path / FILE, problem), startup=8)
    assert log == long
    assert sum(asked) == 24


def test_a_state_of_rows_that_the_log_lacks_is_replayed_instead(tmp_path: Path, problem: Problem) -> None:
    _, long = run(tmp_path / "long.sqlite", problem, "optuna_tpe", 24, startup=8)
    run(tmp_path / FILE, problem, "optuna_tpe", 20, startup=8)
    with stored(tmp_path / FILE, problem) as store, store.connection:
        for table, column in (("evaluations", '"index"'), ("batches", "start")):
            store.connection.execute(f"DELETE FROM {table} WHERE {column} >= 13")
    _, log = run(tmp_path / FILE, problem, "optuna_tpe", 24, recorded(tmp_path / FILE, problem), startup=8)
    assert log == long


def test_a_state_survives_failures_given_designs_and_a_penalty(
    tmp_path: Path, problem_of: Callable[..., Problem], user_module: Callable[[str], str]
) -> None:
    name = user_module("import numpy as np\ndef fn(a):\n    return np.where(a.depth == 8, np.nan, a.depth / 3)\n")
    problem = problem_of(objectives=["loss", f"{name}:fn"], budgets={"total_ms": 30})
    given = problem.space.genotypes(np.array([3, 77, 20, 5, 1]))
    logs = []
    for path, stops in ((tmp_path / "long.sqlite", [40]), (tmp_path / "short.sqlite", [4, 12, 40])):
        for stop in stops:
            module = strategy_module("optuna_tpe")
            context = StrategyContext(penalised_problem(problem, "penalty"), 3, given, 40)
            strategy = module.build(context, module.Parameters(startup=8, batch=3))
            with stored(path, problem) as store:
                search = Search(problem, strategy, store, store.read(), shown=lambda e: penalised(e, "penalty", 10.0))
                search.run(Limits(stop))
                logs.append(store.read().evaluations.keys.tolist())
                assert bool(store.kept(STRATEGY)) == (stop > 4)
    assert logs[0] == logs[-1]


@pytest.mark.parametrize("longest", [100, 40_000])
def test_the_archive_keeps_every_gene_of_long_axes(longest: int, problem_of: Callable[..., Problem]) -> None:
    axes = {"depth": [4], "width": [768], "expert_size": {"from": 1, "to": longest, "step": 1}, "n_kv_heads": [1]}
    problem = problem_of(space={"name": "long", "axes": axes}, baselines=[])
    archive, genotypes = Archive(problem), problem.space.genotypes(np.arange(longest)[::-1])
    archive.add(problem.evaluate(genotypes))
    assert (archive.all().genotypes == genotypes).all()
    assert (problem.space.keys(archive.all().genotypes) == np.arange(longest)[::-1]).all()
    assert archive.rows(np.array([0, 5])).genotypes.tolist() == genotypes[[0, 5]].tolist()


@pytest.mark.parametrize("space", ["fine", "edge2026"])
def test_killed_between_and_within_batches_a_large_space_gives_the_same_bits(
    tmp_path: Path, studied: Callable[..., Study], space: str
) -> None:
    """Whatever a process had at hand before it was killed, times of mixers among it, its successor computes anew."""

    def searched(name: str, *ends: int) -> list[Row]:
        folder, recorded, log = tmp_path / name, None, list[Row]()
        folder.mkdir()
        for end in ends:
            study = studied(space=space, algo="nsga2", params={"population": 20})
            store = store_of(study.problem, folder)
            if recorded is None:
                store.create({}, store_columns(study.problem))
            Search(study.problem, study.strategy(), store, recorded).run(Limits(end))
            recorded = store.read()
            log = log_of(recorded)
            store.close()
        return log

    assert searched("killed", 30, 145, 200, 400) == searched("whole", 400)
