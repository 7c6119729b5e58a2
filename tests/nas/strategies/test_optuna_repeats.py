"""What Optuna's strategies do with a proposal that was evaluated before."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler

from nas.problem.problem import Problem
from nas.search.strategy import StrategyContext
from nas.strategies._optuna import DRAWS, GivenGenes, OneByOne, Repeats, gene_distributions
from search_spaces.arrays import IntArray

FIRST, OTHER = 0, 5


class Scripted(GivenGenes, RandomSampler):
    """Proposes the designs that it is given, in turn."""

    def __init__(self, genes: dict[str, BaseDistribution], designs: Iterator[IntArray]) -> None:
        super().__init__(0)
        self.genes, self.designs = genes, designs

    def sample_relative(self, study: Any, trial: Any, search_space: dict[str, BaseDistribution]) -> dict[str, Any]:
        """The next design."""
        return dict(zip(self.genes, next(self.designs).tolist(), strict=True))


def asked(problem: Problem, repeats: Repeats, proposals: list[int]) -> tuple[list[int], int]:
    """Keys of the designs asked for after the first, and how many proposals were left."""
    space = problem.space
    designs = iter(space.genotypes(np.array([FIRST, *proposals], dtype=np.int64)))
    sampler = Scripted(gene_distributions(space, "integers"), designs)
    context = StrategyContext(problem, 0, space.genotypes(np.zeros(0, dtype=np.int64)), None)
    strategy = OneByOne(context, "integers", repeats, 1, lambda seed: sampler)
    keys = []
    for _ in range(2):
        found = problem.evaluate(strategy.ask(1))
        strategy.tell(found)
        keys += found.keys.tolist()
    return keys[1:], len(list(designs))


def test_a_repeat_is_drawn_again_until_it_is_new(problem_of: Callable[..., Problem]) -> None:
    problem = problem_of(default_budget="none", baselines=[], applications={})
    assert asked(problem, "redraw", [FIRST, FIRST, OTHER, FIRST]) == ([OTHER], 1)
    near = problem.space.keys(problem.space.neighbours(problem.space.genotypes(np.array([FIRST]))))
    (key,), left = asked(problem, "redraw", [FIRST] * 9)
    assert (key in near, left) == (True, 9 - DRAWS["redraw"])
    (key,), left = asked(problem, "neighbour", [FIRST, OTHER])
    assert (key in near, left) == (True, 1)
