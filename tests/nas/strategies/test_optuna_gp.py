"""optuna_gp with models that are really fitted: the conformance suite keeps it to its random start."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.problem.problem import Problem
from nas.record.store import FILE, RunStore
from nas.search.discovery import strategy_module
from nas.search.loop import Limits, Search
from nas.search.strategy import StrategyContext
from nas.strategies._optuna import OneByOne
from search_spaces.arrays import IntArray

torch = pytest.importorskip("torch", reason="optuna_gp needs the extra gp, which is not installed")
pytestmark = pytest.mark.slow
STARTUP = 6
Made = Callable[..., Problem]


@pytest.fixture
def made(problem_of: Made) -> Made:
    """Problems over the tiny space without the default budget."""
    return lambda **raw: problem_of(**{"default_budget": "none", "baselines": [], "applications": {}, **raw})


def built(problem: Problem, seed: int = 0, start: tuple[int, ...] = (), **parameters: Any) -> Any:
    """The strategy with a short random start."""
    module = strategy_module("optuna_gp")
    context = StrategyContext(problem, seed, problem.space.genotypes(np.array(start, dtype=np.int64)), None)
    return module.build(context, module.Parameters.model_validate({"startup": STARTUP, **parameters}))


def keys_of(problem: Problem, evaluations: int, **given: Any) -> list[int]:
    """What it asks for, told true answers."""
    strategy, keys = built(problem, **given), list[int]()
    while len(keys) < evaluations:
        found = problem.evaluate(problem.space.repair(strategy.ask(evaluations - len(keys))))
        strategy.tell(found)
        keys += found.keys.tolist()
    assert len(set(keys)) == len(keys)
    return keys


@pytest.mark.parametrize(
    ("objectives", "budgets"),
    [
        (["loss"], {"total_ms": 30, "memory_gb": 0.5}),
        (["loss", "total_ms"], {}),
        (["loss", "prefill_ms", "memory_gb"], {"total_ms": 1e-6}),
        (["loss", "prefill_ms", "decode_ms", "memory_gb"], {"total_ms": 30}),
    ],
    ids=["one, budgets", "two, free", "three, nothing feasible", "four, a budget"],
)
def test_the_same_seed_asks_the_same_whatever_the_global_generators(
    objectives: list[str], budgets: dict[str, float], made: Made
) -> None:
    problem, said = made(objectives=objectives, budgets=budgets), []
    for poison in (1, 2):
        np.random.seed(poison)  # noqa: NPY002
        torch.manual_seed(poison)
        before = (repr(np.random.get_state()), torch.get_rng_state().tolist(), torch.get_num_threads())  # noqa: NPY002
        said.append(keys_of(problem, STARTUP + 2, seed=4))
        after = (repr(np.random.get_state()), torch.get_rng_state().tolist(), torch.get_num_threads())  # noqa: NPY002
        assert after == before
    assert said[0] == said[1]
    assert len(said[0]) == STARTUP + 2


def test_the_models_choose_otherwise_than_chance(made: Made) -> None:
    problem = made()
    fitted, drawn = keys_of(problem, STARTUP + 2), keys_of(problem, STARTUP + 2, startup=100)
    assert fitted[:STARTUP] == drawn[:STARTUP]
    assert fitted[STARTUP:] != drawn[STARTUP:]


def test_the_models_find_what_chance_misses(made: Made) -> None:
    problem = made(objectives=["loss"], budgets={"total_ms": 30})
    best = []
    for startup in (STARTUP, 100):
        found = [
            problem.evaluate(problem.space.genotypes(np.array(keys_of(problem, 16, seed=seed, startup=startup))))
            for seed in range(2)
        ]
        best.append([rows.values[rows.feasible].min() for rows in found])
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    assert min(best[0]) == whole.values[whole.feasible].min()
    assert np.mean(best[0]) < np.mean(best[1])


def test_latencies_are_modelled_as_logarithms(made: Made) -> None:
    problem = made(objectives=["loss", "total_ms"])
    strategy = built(problem)
    found = problem.evaluate(problem.space.repair(strategy.ask(1)))
    strategy.tell(found)
    assert strategy.study.trials[0].values == [found.values[0, 0], np.log(found.values[0, 1])]


def test_failed_rows_and_given_designs(made: Made, user_module: Callable[[str], str]) -> None:
    name = user_module("import numpy as np\ndef fn(a):\n    return np.where(a.depth == 8, np.nan, a.depth / 3)\n")
    problem = made(objectives=["loss", f"{name}:fn"])
    keys = keys_of(problem, 11, start=(3, 90, 60, 7), batch=3)
    assert keys[:4] == [3, 90, 60, 7]


def test_the_last_architectures_of_a_space_are_found(made: Made) -> None:
    axes = {"depth": [4, 8, 12], "width": [768], "expert_ffn_ratio": [1, 2], "n_kv_heads": [1, 2]}
    problem = made(space={"axes": axes})
    assert sorted(keys_of(problem, problem.space.size)) == list(range(problem.space.size))
    assert len(built(problem).ask(100)) == 1


def search(path: Path, problem: Problem, evaluations: int, **parameters: Any) -> list[int]:
    """A run to a number of evaluations, continued where the store holds one; its log."""
    new = not path.exists()
    store = RunStore(path, problem.metric_names, tuple(o.name for o in problem.objectives), problem.budgets)
    if new:
        columns = problem.architectures(problem.space.genotypes(np.zeros(1, dtype=np.int64))).columns()
        store.create({}, dict.fromkeys(columns, "REAL"))
    Search(problem, built(problem, **parameters), store, None if new else store.read()).run(Limits(evaluations))
    keys: list[int] = store.read().evaluations.keys.tolist()
    store.close()
    return keys


@pytest.mark.parametrize("parameters", [{"batch": 3}, {"repeats": "redraw", "deterministic": False}], ids=str)
def test_a_restored_run_goes_on_as_if_nothing_had_happened(
    parameters: dict[str, Any], made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = made(budgets={"total_ms": 30})
    whole = search(tmp_path / "whole.sqlite", problem, 10, **parameters)
    search(tmp_path / FILE, problem, 8, **parameters)
    counts, ask = list[int](), OneByOne.ask

    def counted(self: OneByOne, at_most: int) -> IntArray:
        found = ask(self, at_most)
        counts.append(len(found))
        return found

    monkeypatch.setattr(OneByOne, "ask", counted)
    assert search(tmp_path / FILE, problem, 10, **parameters) == whole
    assert sum(counts) <= 2 + 2 * parameters.get("batch", 1)
