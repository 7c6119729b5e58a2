"""One conformance suite that every strategy passes the moment its module exists."""

import importlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.exact import solution as exact_solution
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.record.store import FILE, RunStore
from nas.search.discovery import strategy_module
from nas.search.loop import Limits, Search
from nas.search.strategy import StrategyContext
from nas.testing import check_strategy
from objectives.plugins import importable
from search_spaces.arrays import IntArray

STRATEGIES = (*importable("nas.strategies"), "nas.strategies._template")  # the last one: what init writes
SECONDS_EACH = {"agemoea2", "moead", "optuna_nsga2", "optuna_nsga3", "optuna_tpe", "rvea", "smsemoa", "spea2"}
ASKS = 7
OWN: dict[
    str, dict[str, Any]
] = {  # what has tests of its own and takes minutes where a tiny space is full: models, repeats drawn again
    "optuna_gp": {"startup": 10_000},
    "optuna_tpe": {"repeats": "neighbour"},
}
OBJECTIVES = [
    ["loss"],
    ["loss", "total_ms"],
    ["loss", "prefill_ms", "memory_gb"],
    ["loss", "prefill_ms", "decode_ms", "resident_gb"],
]
BUDGETS: list[dict[str, float]] = [
    {},
    {"total_ms": 30},
    {"total_ms": 30, "memory_gb": 0.5},
    {"total_ms": 60, "memory_gb": 1, "decode_ms": 15},
    {"total_ms": 60, "memory_gb": 1, "decode_ms": 15, "params_active": 2e8},
]
Made = Callable[..., Problem]
Searched = Callable[..., Search]

pytestmark = pytest.mark.parametrize(
    "algo", [pytest.param(algo, marks=pytest.mark.slow) if algo in SECONDS_EACH else algo for algo in STRATEGIES]
)


@pytest.fixture(scope="module")
def made(problem_of: Made) -> Made:
    """Problems over the tiny space without the default budget, each assembled once."""
    known: dict[str, Problem] = {}

    def build(**raw: Any) -> Problem:
        if repr(raw) not in known:
            known[repr(raw)] = problem_of(**{"default_budget": "none", "baselines": [], "applications": {}, **raw})
        return known[repr(raw)]

    return build


def small(algo: str) -> dict[str, Any]:
    """Parameters with which a strategy is past its first population after 20 evaluations."""
    fields = strategy_module(algo).Parameters.model_fields
    return {name: 20 for name in ("population", "batch") if name in fields} | OWN.get(algo, {})


def build(algo: str, problem: Problem, seed: int = 0, **parameters: Any) -> Any:
    """A strategy as a study builds it, with a population that a tiny space can fill a few times."""
    module = strategy_module(algo)
    context = StrategyContext(problem, seed, problem.space.genotypes(np.zeros(0, dtype=np.int64)), None)
    return module.build(context, module.Parameters.model_validate({**small(algo), **parameters}))


def transcript(algo: str, problem: Problem, seed: int = 0, asks: int = ASKS, **parameters: Any) -> list[IntArray]:
    """What a strategy asks for, told true answers; it ends where the strategy or the space does."""
    strategy, asked, seen = build(algo, problem, seed, **parameters), list[IntArray](), set[int]()
    while len(asked) < asks and len(seen) < problem.space.size:
        genotypes = strategy.ask(problem.space.size)
        assert genotypes.dtype == np.int64
        assert genotypes.ndim == 2
        if len(genotypes) == 0:
            break
        assert genotypes.shape[1] == len(problem.space.gene_sizes)
        repaired = problem.space.repair(genotypes)
        assert problem.space.is_canonical(repaired).all()
        asked.append(genotypes.copy())
        seen.update(problem.space.keys(repaired).tolist())
        strategy.tell(problem.evaluate(repaired))
    return asked


def flat(asked: list[IntArray]) -> list[list[list[int]]]:
    """A transcript that compares."""
    return [batch.tolist() for batch in asked]


@pytest.fixture
def searched(tmp_path: Path) -> Searched:
    """A strategy run through the study's own loop."""

    def run(algo: str, problem: Problem, evaluations: int | None, seed: int = 0, **parameters: Any) -> Search:
        store = RunStore(
            tmp_path / f"{len(list(tmp_path.iterdir()))}-{FILE}",
            problem.metric_names,
            tuple(o.name for o in problem.objectives),
            problem.budgets,
        )
        columns = problem.architectures(problem.space.genotypes(np.zeros(1, dtype=np.int64))).columns()
        store.create({}, dict.fromkeys(columns, "REAL"))
        search = Search(problem, build(algo, problem, seed, **parameters), store)
        search.reason = search.run(Limits(evaluations))  # type: ignore[attr-defined]
        store.close()
        return search

    return run


def limit_of(algo: str, wanted: int) -> int | None:
    """A number of evaluations, for strategies that take one."""
    return wanted if strategy_module(algo).TRAITS.takes_evaluations else None


@pytest.mark.slow
def test_it_passes_what_users_check_their_own_with(algo: str) -> None:
    """Some of these laws are tried below on more problems."""
    check_strategy(algo, small(algo))


@pytest.mark.slow
@pytest.mark.parametrize("objectives", OBJECTIVES, ids=len)
@pytest.mark.parametrize("budgets", BUDGETS, ids=len)
def test_one_to_four_objectives_under_none_to_four_budgets(
    algo: str, objectives: list[str], budgets: dict[str, float], made: Made, searched: Searched
) -> None:
    problem = made(objectives=objectives, budgets=budgets)
    search = searched(algo, problem, limit_of(algo, 70))
    found = search.archive.all()
    assert len(found) == (70 if strategy_module(algo).TRAITS.takes_evaluations else problem.space.size)
    assert len(set(found.keys.tolist())) == len(found)
    assert problem.space.is_canonical(found.genotypes).all()
    assert (found.keys == problem.space.keys(found.genotypes)).all()
    again = problem.evaluate(found.genotypes)
    assert (again.values == found.values).all()
    assert (again.violations == found.violations).all()


def test_nothing_is_proposed_twice(algo: str, made: Made) -> None:
    problem = made()
    keys = np.concatenate([problem.space.keys(problem.space.repair(batch)) for batch in transcript(algo, problem)])
    assert len(np.unique(keys)) == len(keys)


def test_no_architecture_is_evaluated_twice(
    algo: str, problem_of: Made, user_module: Callable[[str], str], searched: Searched
) -> None:
    name = user_module(
        "SEEN = []\ndef fn(a):\n    SEEN.extend(zip(*(getattr(a, c).tolist() for c in "
        "('depth', 'width', 'n_experts', 'top_k', 'expert_size', 'n_kv_heads'))))\n    return a.depth / a.width\n"
    )
    problem = problem_of(objectives=["loss", f"{name}:fn"])
    search = searched(algo, problem, limit_of(algo, 100))
    seen = importlib.import_module(name).SEEN
    assert len(seen) == len(set(seen)) == len(search.archive)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2**32 - 1])
def test_the_same_seed_asks_the_same(algo: str, seed: int, made: Made) -> None:
    problem = made(budgets={"total_ms": 30})
    assert flat(transcript(algo, problem, seed)) == flat(transcript(algo, problem, seed))


def test_another_seed_asks_otherwise_or_the_strategy_has_no_randomness(algo: str, made: Made) -> None:
    problem = made()
    assert (flat(transcript(algo, problem, 1)) != flat(transcript(algo, problem, 2))) == strategy_module(
        algo
    ).TRAITS.takes_evaluations


@pytest.mark.slow
def test_global_generators_are_neither_read_nor_moved(algo: str, made: Made) -> None:
    problem, said = made(objectives=OBJECTIVES[2], budgets=BUDGETS[2]), []
    for poison in (1, 2):
        np.random.seed(poison)  # noqa: NPY002
        random.seed(poison)
        before = (repr(np.random.get_state()), random.getstate())  # noqa: NPY002
        said.append(flat(transcript(algo, problem, 7)))
        assert before == (repr(np.random.get_state()), random.getstate())  # noqa: NPY002
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "budgets",
    [
        {},
        pytest.param({"total_ms": 30, "memory_gb": 0.5}, marks=pytest.mark.slow),
        pytest.param({"total_ms": 0.001}, marks=pytest.mark.slow),
    ],
    ids=len,
)
def test_no_generator_is_made_without_a_seed(
    algo: str, budgets: dict[str, float], made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = np.random.default_rng

    def seeded(seed: Any = None) -> np.random.Generator:
        if seed is None:
            raise AssertionError("a generator was made without a seed")
        return original(seed)

    monkeypatch.setattr(np.random, "default_rng", seeded)
    assert transcript(algo, made(objectives=OBJECTIVES[1], budgets=budgets))


@pytest.mark.slow
def test_two_at_once_do_not_disturb_each_other(algo: str, made: Made) -> None:
    problem = made()
    alone = flat(transcript(algo, problem, 3, asks=3))
    pair = [build(algo, problem, 3), build(algo, problem, 3)]
    said: list[list[list[list[int]]]] = [[], []]
    for _ in range(len(alone)):
        for mine, strategy in zip(said, pair, strict=True):
            batch = strategy.ask(problem.space.size)
            mine.append(batch.tolist())
            strategy.tell(problem.evaluate(problem.space.repair(batch)))
    assert said == [alone, alone]


@pytest.mark.slow
def test_where_nothing_is_feasible_it_goes_on(algo: str, made: Made, searched: Searched) -> None:
    problem = made(budgets={"total_ms": 1e-6, "memory_gb": 1e-6})
    search = searched(algo, problem, limit_of(algo, 90))
    assert len(search.archive) >= 90
    assert not search.archive.all().feasible.any()


SMALL: dict[str, dict[str, Any]] = {
    "1": {"depth": [4], "width": [768], "expert_ffn_ratio": [1], "n_kv_heads": [1]},
    "2": {"depth": [4, 8], "width": [768], "expert_ffn_ratio": [1], "n_kv_heads": [1]},
    "6": {"depth": [4, 8, 12], "width": [768], "expert_ffn_ratio": [1, 2], "n_kv_heads": [1]},
    "24": {
        "depth": [4, 8],
        "width": [768, 1024],
        "n_experts": [1, 4],
        "top_k": [1, 2],
        "expert_ffn_ratio": [1],
        "n_kv_heads": [1, "n_heads"],
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize(
    "budgets", [{}, {"total_ms": 10}, {"total_ms": 1e-6}], ids=["no budget", "some feasible", "nothing feasible"]
)
def test_a_space_smaller_than_the_population_is_covered_and_the_search_stops(
    algo: str, size: str, budgets: dict[str, float], made: Made, searched: Searched
) -> None:
    problem = made(space={"axes": SMALL[size]}, budgets=budgets)
    search = searched(algo, problem, None)
    assert len(search.archive) == problem.space.size == int(size)
    assert search.reason in ("space exhausted", "nothing left to ask")  # type: ignore[attr-defined]


def test_an_exhausted_space_stops_the_search_below_its_evaluations(algo: str, made: Made, searched: Searched) -> None:
    search = searched(algo, made(), limit_of(algo, 100_000))
    assert len(search.archive) == 162
    assert search.reason == "space exhausted"  # type: ignore[attr-defined]


FAILING = {
    "some NaN": "return np.where(a.depth == 8, np.nan, a.depth / 7)",
    "some infinite": "return np.where(a.n_experts == 8, np.inf, 1.0 / a.depth)",
    "one raises": "if (a.width == 1024).any():\n        raise RuntimeError('too wide')\n    return a.depth / 7",
    "everything fails": "raise RuntimeError(f'{a.depth} {a.width} {a.expert_size}')",
}


@pytest.mark.parametrize("body", FAILING.values(), ids=FAILING)
@pytest.mark.parametrize(
    "budgets", [{}, pytest.param({"total_ms": 30}, marks=pytest.mark.slow)], ids=["free", "budget"]
)
def test_failed_rows_are_kept_charged_and_never_on_the_frontier(
    algo: str, body: str, budgets: dict[str, float], made: Made, user_module: Callable[[str], str], searched: Searched
) -> None:
    name = user_module(f"import numpy as np\ndef fn(a):\n    {body}\n")
    problem = made(objectives=["loss", f"{name}:fn"], budgets=budgets)
    search = searched(algo, problem, limit_of(algo, 100))
    found = search.archive.all()
    assert len(found) >= 100
    assert (~found.ok).any()
    assert np.isnan(found.values[~found.ok]).all()
    assert np.isfinite(found.values[found.ok]).all()
    assert found.ok[frontier_rows(found)].all()


def test_failed_rows_do_not_steer_the_search_into_failures(
    algo: str, made: Made, user_module: Callable[[str], str]
) -> None:
    name = user_module(
        "import numpy as np\ndef fn(a):\n    return np.where(a.depth == 4, np.nan, a.depth * a.width / 1e3)\n"
    )
    problem = made(objectives=["loss", f"{name}:fn"])
    batches = [problem.evaluate(problem.space.repair(batch)) for batch in transcript(algo, problem, 1, asks=5)]
    failed = [float((~batch.ok).mean()) for batch in batches]
    assert np.mean(failed) <= 1 / 3 + 0.1  # a third of the space fails


def whole(problem: Problem) -> Evaluations:
    """Every architecture, evaluated."""
    return problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))


def test_what_it_finds_is_never_better_than_exact_and_exact_in_the_end(
    algo: str, made: Made, searched: Searched
) -> None:
    problem = made(budgets={"decode_ms": 12})
    truth = whole(problem)
    expected = sorted(truth.keys[frontier_rows(truth)].tolist())
    found = searched(algo, problem, None).archive.all()
    assert sorted(found.keys[frontier_rows(found)].tolist()) == expected


def test_exact_above_its_limit_asks_for_the_frontier_and_the_picks_alone(
    algo: str, problem_of: Made, searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    if algo != "exact":
        pytest.skip("only exact solves before it asks")
    monkeypatch.setattr(importlib.import_module("nas.strategies.exact"), "SMALL", 10)
    monkeypatch.setattr(exact_solution, "SMALL", 10)
    problem = problem_of()
    truth = whole(problem)
    found = searched(algo, problem, None).archive.all()
    assert len(found) < problem.space.size
    assert found.keys[frontier_rows(found)].tolist() == truth.keys[frontier_rows(truth)].tolist()
    for question in problem.queries:
        variant = problem.with_vocabulary(question.vocabulary)
        picks = []
        for rows in (found, truth):
            with_head = variant.evaluate(rows.genotypes)
            row = PickRule.for_query(question).row(with_head)
            picks.append(None if row is None else int(with_head.keys[row]))
        assert picks[0] == picks[1], question.label
