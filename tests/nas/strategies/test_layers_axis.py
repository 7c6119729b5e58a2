"""Strategies on a space with an axis of layers: every law of conformance that a genotype of seven genes could break."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nas.problem.evaluations import frontier_rows
from nas.problem.problem import Problem
from nas.search.discovery import strategy_module
from nas.search.strategy import StrategyContext
from search_spaces.arrays import IntArray

SPACE: dict[str, Any] = {
    "name": "layered",
    "axes": {
        "depth": [4, 8, 12],
        "layers": ["full", {"period": [2, 4], "local": [128, 512]}, {"period": 2, "conv": 3}, {"period": 4, "linear": "mamba2"}],
        "width": [256, 512],
        "n_experts": [1, 4],
        "expert_size": [512, 1024],
        "n_kv_heads": [1, 2],
    },
    "conditions": {"min_full_layers": 1},
}  # fmt: skip
DELTAS = {"conv": 0.05, "local": 0.01, "mamba2": 0.03}
ALGORITHMS = ("local_search", "nsga2", "lhs")
Made = Callable[..., Problem]


@pytest.fixture(scope="module")
def problem(problem_of: Made) -> Problem:
    """Every kind of layer at a price in loss."""
    return problem_of(space=SPACE, deltas=DELTAS, default_budget="none", baselines=[], applications={})


def transcript(algo: str, problem: Problem, seed: int, most: int) -> list[IntArray]:
    """What a strategy asks for, told true answers, until `most` designs are known, or the strategy ends."""
    module = strategy_module(algo)
    given = {name: 20 for name in ("population", "batch") if name in module.Parameters.model_fields}
    context = StrategyContext(problem, seed, problem.space.genotypes(np.zeros(0, dtype=np.int64)), most)
    strategy, asked, seen = module.build(context, module.Parameters.model_validate(given)), list[IntArray](), set[int]()
    while len(seen) < most and len(asked) < 200:
        genotypes = strategy.ask(most - len(seen))
        if len(genotypes) == 0:
            break
        assert genotypes.shape[1] == len(problem.space.gene_sizes) == 7
        repaired = problem.space.repair(genotypes)
        assert problem.space.is_canonical(repaired).all()
        asked.append(genotypes.copy())
        seen.update(problem.space.keys(repaired).tolist())
        strategy.tell(problem.evaluate(repaired))
    return asked


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_the_same_seed_asks_the_same_of_every_rule_and_another_seed_asks_otherwise(algo: str, problem: Problem) -> None:
    first, again, other = ([batch.tolist() for batch in transcript(algo, problem, seed, 100)] for seed in (1, 1, 2))
    assert first == again
    assert first != other
    keys = problem.space.repair(np.array([row for batch in first for row in batch]))
    rules = set(keys[:, problem.space.genes.index("layers")].tolist())
    assert len(rules) == problem.space.gene_sizes[1]


@pytest.mark.parametrize("algo", ["local_search", "nsga2"])
def test_half_of_the_space_holds_most_of_the_frontier(algo: str, problem: Problem) -> None:
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    best = set(whole.keys[frontier_rows(whole)].tolist())
    asked = np.concatenate(transcript(algo, problem, 0, problem.space.size // 2))
    found = set(problem.space.keys(problem.space.repair(asked)).tolist())
    assert len(best & found) >= 0.8 * len(best)
    of_kinds = problem.architectures(whole.genotypes[frontier_rows(whole)])
    assert (of_kinds.n_full < of_kinds.depth).any()
