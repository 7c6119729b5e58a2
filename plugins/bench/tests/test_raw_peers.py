"""Raw peers: the designs that pymoo's `minimize` and Optuna's `optimize` evaluate, in their order."""

from typing import Any

import numpy as np
import optuna
import plas_bench
import pytest
from plas_bench.for_pymoo import BenchPymoo
from plas_bench.instance import BenchProblem
from plas_bench.raw_optuna import SAMPLERS
from plas_bench.raw_pymoo import RECIPES
from plas_bench.running import searched, strategy_of
from pymoo.optimize import minimize

from nas.api.own_loops import OptunaObjective
from nas.problem.evaluations import Evaluations
from search_spaces.arrays import IntArray

NAMES = ["plas1-paper-loss-tpot-budgets", "plas1-kind-caches-1"]
EVALUATIONS = 150


def distinct(bench: BenchProblem, genotypes: IntArray) -> list[int]:
    """Keys of the first distinct designs."""
    return list(dict.fromkeys(bench.problem.space.keys(genotypes).tolist()))[:EVALUATIONS]


def asked(bench: BenchProblem, algo: str, **parameters: Any) -> list[int]:
    """Keys of what a raw peer evaluates as a strategy."""
    return distinct(bench, searched(bench, strategy_of(f"plas_bench.{algo}", parameters), 3, EVALUATIONS))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("recipe", RECIPES)
def test_pymoo_evaluates_what_minimize_does(name: str, recipe: str) -> None:
    bench, rows = plas_bench.problem(name), list[IntArray]()

    class Watched(BenchPymoo):
        """Keeps what it evaluates."""

        def evaluated(self, genotypes: IntArray) -> Evaluations:
            rows.append(genotypes)
            return super().evaluated(genotypes)

    minimize(Watched(bench), RECIPES[recipe](), ("n_eval", 400), seed=3)
    theirs = distinct(bench, np.concatenate(rows))
    assert len(theirs) == EVALUATIONS
    assert asked(bench, "raw_pymoo", recipe=recipe) == theirs


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_optuna_evaluates_what_optimize_does(name: str, sampler: str) -> None:
    bench = plas_bench.problem(name)
    objective, verbosity = OptunaObjective(bench.problem), optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(directions=objective.directions, sampler=SAMPLERS[sampler](3))
    study.optimize(objective, n_trials=EVALUATIONS)
    optuna.logging.set_verbosity(verbosity)
    rows = [[trial.params[f"gene_{gene}"] for gene in bench.genes] for trial in study.trials]
    theirs = distinct(bench, bench.repair(rows))
    assert asked(bench, "raw_optuna", sampler=sampler)[: len(theirs)] == theirs
