from __future__ import annotations

from typing import Any

import numpy as np
import optuna
import optunahub
import pandas as pd

import plas_bench


class Problem(optunahub.benchmarks.BaseProblem):
    """A problem of PLAS-Bench.

    Args:
        name: Name of the problem, one of ``Problem.names()``.
        logger: A ``plas_bench.Logger`` that receives every evaluation.
    """

    def __init__(self, name: str, logger: plas_bench.Logger | None = None) -> None:
        self.bench = plas_bench.problem(name)
        self._logger = logger
        self._known: tuple[tuple[int, ...], Any] | None = None

    @staticmethod
    def names() -> list[str]:
        """Names of the problems, version 1."""
        return plas_bench.names()

    @property
    def search_space(self) -> dict[str, optuna.distributions.BaseDistribution]:
        """An integer for each gene; a gene whose values have no order is categorical."""
        space: dict[str, optuna.distributions.BaseDistribution] = {}
        for gene, upper in zip(self.bench.genes, self.bench.upper.tolist(), strict=True):
            if gene in self.bench.categorical:
                space[gene] = optuna.distributions.CategoricalDistribution(list(range(upper + 1)))
            else:
                space[gene] = optuna.distributions.IntDistribution(0, upper)
        return space

    @property
    def directions(self) -> list[optuna.study.StudyDirection]:
        return [optuna.study.StudyDirection.MINIMIZE] * len(self.bench.objectives)

    @property
    def metric_names(self) -> list[str]:
        """Names of the objectives."""
        return list(self.bench.objectives)

    def evaluate(self, params: dict[str, Any]) -> list[float]:
        """Objective values of one architecture; integers that no architecture has are repaired."""
        values = self._values(params)
        if self._logger is not None:
            self._logger.log(self.bench.repair([self._genes(params)]), values)
        return values.objectives[0].tolist()

    def evaluate_constraints(self, params: dict[str, Any]) -> dict[str, float]:
        """``value / limit - 1`` of every constraint, met where at most 0."""
        return dict(zip(self.bench.constraints, self._values(params).violations[0].tolist(), strict=True))

    def _genes(self, params: dict[str, Any]) -> tuple[int, ...]:
        return tuple(int(params[gene]) for gene in self.bench.genes)

    def _values(self, params: dict[str, Any]) -> Any:
        """Both of the last design: ``BaseProblem`` asks for constraints and objectives of a trial apart."""
        genes = self._genes(params)
        if self._known is None or self._known[0] != genes:
            self._known = (genes, self.bench.evaluate([genes]))
        return self._known[1]

    def score(self, study: optuna.Study) -> pd.DataFrame:
        """Gap to the exact front, share of it, IGD+ and epsilon after 10, 30, 100 ... distinct designs of a study."""
        trials = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.COMPLETE]
        return self.bench.score(np.array([self._genes(trial.params) for trial in trials]))
