"""A problem for people's own loops: as pymoo's, and as an objective of Optuna's."""

from typing import Any

import numpy as np
from optuna.exceptions import TrialPruned
from optuna.trial import Trial
from pymoo.core.problem import Problem as PymooBase

from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from search_spaces.arrays import FloatArray, IntArray

FAILED = 1e9


class PymooProblem(PymooBase):  # type: ignore[misc]
    """The space's integer genes; the study's objectives, all minimised; `value/limit − 1` per budget, feasible at ≤ 0.

    A proposal is rounded and repaired to the architecture it stands for; a failed one has 1e9 everywhere.
    """

    def __init__(self, problem: Problem, vtype: type = float) -> None:
        self.problem = problem
        super().__init__(
            vtype=vtype,
            n_var=len(problem.space.genes),
            n_obj=len(problem.objectives),
            n_ieq_constr=len(problem.budgets),
            xl=np.zeros(len(problem.space.genes)),
            xu=(problem.space.gene_sizes - 1).astype(np.float64),
        )

    def _evaluate(self, x: FloatArray, out: dict[str, Any], *_: Any, **__: Any) -> None:
        found = self.evaluated(self.problem.space.repair(np.rint(np.asarray(x, dtype=np.float64)).astype(np.int64)))
        failed = ~found.ok[:, None]
        out["F"] = np.where(failed, FAILED, found.values)
        out["G"] = np.where(failed, FAILED, found.violations)

    def evaluated(self, genotypes: IntArray) -> Evaluations:
        """Evaluations of canonical genotypes (n, g)."""
        return self.problem.evaluate(genotypes)


class OptunaObjective:
    """`study.optimize(objective)`: suggests the space's genes as integers, returns the objectives, sets each budget's constraint.

    Make the study with `optuna.create_study(directions=objective.directions)`; a trial is feasible where every
    constraint, `value/limit − 1` under the name of its metric, is at most 0.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.directions = ["minimize"] * len(problem.objectives)

    def __call__(self, trial: Trial) -> tuple[float, ...]:
        """Objective values of one trial.

        Raises:
            optuna.TrialPruned: a metric failed.
        """
        space = self.problem.space
        sizes = zip(space.genes, space.gene_sizes.tolist(), strict=True)
        genes = [trial.suggest_int(name, 0, size - 1) for name, size in sizes]
        found = self.problem.evaluate(space.repair(np.array([genes])))
        if not found.ok[0]:
            raise TrialPruned((found.reasons or ("failed",))[0])
        for budget, violation in zip(self.problem.budgets, found.violations[0].tolist(), strict=True):
            trial.set_constraint(budget.metric, violation)
        return tuple(found.values[0].tolist())
