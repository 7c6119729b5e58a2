"""Which strategies begin with the same designs for one seed: what docs/compare.md says, found by asking them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.compare.anytime import FIRST
from nas.compare.result import prefix
from nas.problem.problem import Problem
from nas.search.discovery import strategy_module
from nas.search.strategy import StrategyContext
from objectives.plugins import importable
from search_spaces.arrays import IntArray

PAGE = Path(__file__).parents[3] / "docs" / "compare.md"
TOGETHER = [  # with their population, or the designs before an estimate
    (["agemoea2", "moead", "nsga2", "nsga3", "rvea", "smsemoa", "spea2"], 100),
    (["optuna_gp", "optuna_tpe"], 10),
    (["optuna_nsga2", "optuna_nsga3"], 100),
]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def problem(problem_of: Callable[..., Problem]) -> Problem:
    pytest.importorskip("numba", reason="agemoea2 needs the extra numba, which is not installed")
    return problem_of(space="paper", default_budget="none", baselines=[], applications={})


def first_designs(algo: str, problem: Problem, least: int) -> IntArray:
    """Keys of so many first designs of a strategy's seed 0, distinct, or of all that it asks for in so many rounds."""
    module = strategy_module(algo)
    context = StrategyContext(problem, 0, problem.space.genotypes(np.zeros(0, dtype=np.int64)), 1000)
    strategy: Any = module.build(context, module.Parameters())
    found: dict[int, None] = {}
    while len(found) < least:
        genotypes = problem.space.repair(np.asarray(strategy.ask(least)))
        found.update(dict.fromkeys(problem.space.keys(genotypes).tolist()))
        strategy.tell(problem.evaluate(genotypes))
    return np.array(list(found))


def test_strategies_that_begin_alike_are_those_that_the_page_names(problem: Problem) -> None:
    searching = [name for name in importable("nas.strategies") if strategy_module(name).TRAITS.takes_evaluations]
    starts = {name: first_designs(name, problem, FIRST) for name in searching}
    groups: dict[bytes, list[str]] = {}
    for name, keys in starts.items():
        groups.setdefault(keys[:FIRST].tobytes(), []).append(name)
    expected = [[name for name in names if name in starts] for names, _ in TOGETHER]
    assert sorted(names for names in groups.values() if names[1:]) == [names for names in expected if names[1:]]
    said = " ".join(PAGE.read_text(encoding="utf-8").split())
    for names, count in TOGETHER:
        listed = f"{', '.join(f'`{name}`' for name in names[:-1])} and `{names[-1]}`"
        assert f"{listed} (the first {count})" in said


@pytest.mark.parametrize(("names", "count"), TOGETHER)
def test_they_do_for_as_long_as_the_page_says(problem: Problem, names: list[str], count: int) -> None:
    """Optuna's two may breed the same children of the same parents for a while longer."""
    assert prefix([first_designs(name, problem, count) for name in names]) >= count
    assert prefix([first_designs(name, problem, 3 * count) for name in names]) < 3 * count
