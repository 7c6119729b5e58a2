"""A strategy of ours, or a raw peer, on a problem, in memory: what it evaluates, in order."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files.faults import Faults
from nas.files.faults import Path as FaultPath
from nas.search.discovery import ChosenStrategy, ConstraintHandling, chosen_strategy, penalised, penalised_problem
from nas.search.strategy import StrategyContext, build_strategy, refuse_more_objectives
from plas_bench.instance import BenchProblem
from plas_bench.unrecorded import unrecorded
from search_spaces.arrays import IntArray

PENALTY = 10.0  # the weight that a study has by default
PEERS: dict[str, tuple[str, dict[str, Any]]] = {  # engines as their users run them, by name: module and parameters
    "raw_pymoo": ("plas_bench.raw_pymoo", {}),
    "raw_pymoo_integers": ("plas_bench.raw_pymoo", {"recipe": "integers"}),
    "raw_pymoo_as_nsga2": ("plas_bench.raw_pymoo", {"recipe": "as_nsga2"}),
    "raw_optuna_nsga2": ("plas_bench.raw_optuna", {"sampler": "nsga2"}),
    "raw_optuna_tpe": ("plas_bench.raw_optuna", {}),
    "raw_optuna_tpe_multivariate": ("plas_bench.raw_optuna", {"sampler": "tpe_multivariate"}),
}
TYPED: dict[FaultPath, str] = {("algo",): "--algo"}


def strategy_of(algo: str, params: Mapping[str, Any]) -> ChosenStrategy:
    """A strategy that searches, or one of `PEERS`, by name, with its parameters.

    Raises:
        UsageError: unknown, wrong parameters, or one that covers the whole space.
    """
    faults, (module, own) = Faults(TYPED), PEERS.get(algo, (algo, {}))
    found = chosen_strategy(module, {**own, **params}, faults)
    faults.raise_if_any()
    assert found is not None
    if not found.traits.takes_evaluations:
        raise UsageError(f"algo: expected a strategy that searches, got {algo}, which the others are measured against")
    return found


def searched(bench: BenchProblem, chosen: ChosenStrategy, seed: int, evaluations: int) -> IntArray:
    """Genotypes (n, g) of at most `evaluations` distinct designs, in the order in which a strategy evaluates them.

    Budgets reach it as constraints where it has any, else as a penalty, as in a study.

    Raises:
        UsageError: more objectives than it can take.
    """
    problem = bench.problem
    refuse_more_objectives(chosen.module.__name__.rpartition(".")[2], chosen.traits, len(problem.objectives))
    native = chosen.traits.constraints or not problem.budgets
    handling: ConstraintHandling = "native" if native else "penalty"
    none = problem.space.genotypes(np.zeros(0, dtype=np.int64))
    context = StrategyContext(penalised_problem(problem, handling), seed, none, evaluations)
    strategy = build_strategy(chosen.module, context, chosen.fitted(evaluations, problem.space))
    shown = partial(penalised, handling=handling, weight=PENALTY)
    search = unrecorded(problem, strategy, min(evaluations, bench.size), shown)
    return search.archive.all().genotypes.astype(np.int64)
