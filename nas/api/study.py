"""A study from Python: the keys, presets and defaults of the command line."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nas.answer.outcome import Outcome
from nas.api.frames import Given, architectures_of, metrics_table, units
from nas.api.frontier import Frontier, within
from nas.errors import UsageError
from nas.exact.solution import solve
from nas.frontier.breakdown import Explanation, explained
from nas.problem.problem import Problem
from nas.search import assembly
from nas.study.layers import layered
from nas.work.run import ran
from nas.work.run_request import Request
from search_spaces.architectures import Architectures

if TYPE_CHECKING:
    from nas.api.loops import OptunaObjective, PymooProblem


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """What to search, on which device, for which objectives, within which budgets; made by `load_study`.

    `config` and `keys` are what it was made from.
    """

    assembled: assembly.Study
    config: str | Path | None
    keys: Mapping[str, Any]

    @property
    def problem(self) -> Problem:
        """Space, scenario, objectives and budgets."""
        return self.assembled.problem

    @property
    def units(self) -> dict[str, str]:
        """The unit of every metric; "" of a pure number."""
        return units(self.problem)

    @property
    def notices(self) -> tuple[str, ...]:
        """What the command line prints as warnings."""
        return self.assembled.notices

    def replace(self, **keys: Any) -> "Study":
        """The same study with other keys."""
        return load_study(self.config, **{**self.keys, **keys})

    def evaluate(self, architectures: Given) -> pd.DataFrame:
        """Every metric of any architectures, one row each, then `feasible`, `extrapolates` and `reason`.

        Architectures without a vocabulary of their own get the study's. A metric that fails leaves NaN in its
        row and says why in `reason` ("" where all is well). `extrapolates` marks losses outside the law's range.

        Raises:
            UsageError: rows that are no architectures, or that the latency model does not cover.
        """
        problem, chosen = self.problem, self._with_vocabulary(architectures_of(architectures))
        try:
            metrics, reasons = problem.metrics(chosen)
        except ValueError as error:
            raise UsageError(str(error)) from None
        reasons = reasons or [""] * len(chosen)
        met = [np.asarray(budget.violation(metrics[budget.metric]) <= 0) for budget in problem.budgets]
        feasible = np.logical_and.reduce([np.array([not reason for reason in reasons]), *met])
        extrapolates = problem.scenario.law.extrapolates(chosen)
        return metrics_table(problem, chosen, metrics, feasible=feasible, extrapolates=extrapolates, reason=reasons)

    def _with_vocabulary(self, given: Architectures) -> Architectures:
        return given if given.vocabulary.any() else self.problem.with_own_vocabulary(given)

    def sample(self, n: int, *, seed: int = 0) -> pd.DataFrame:
        """n distinct architectures of the space (all, if it has fewer), drawn uniformly, evaluated."""
        problem = self.problem
        return self.evaluate(problem.architectures(problem.space.sample(n, np.random.default_rng(seed))))

    def solve(self) -> Frontier:
        """The exact frontier of the whole space.

        Raises:
            UsageError: a space too large to enumerate with a metric that declares no parts.
        """
        found = solve(self.problem)
        return Frontier(self.problem, found.frontier, exact=True, how=found.explanation)

    def search(self, *, out: str | Path | None = None, **keys: Any) -> Frontier:
        """The frontier that a strategy finds, as `plas run` does it; `out` keeps the run folder.

        Keys are the study's (`algo="nsga2"`, `evaluations=2000`, `seed=1`, `params={"population": 50}`).

        Raises:
            UsageError: anything that cannot be done as asked, before anything is evaluated; a metric that always fails.
        """
        study = self.replace(**keys) if keys else self
        study._refuse_unimportable()
        if out is not None:
            return study._searched(Path(out), Path(out), pictures=True)
        with TemporaryDirectory() as folder:
            return study._searched(Path(folder) / "run", None, pictures=False)

    def _refuse_unimportable(self) -> None:
        """Worker processes import a user's function; one of a notebook or of the script itself has no module."""
        here = [metric.name for metric in self.problem.functions if metric.name.startswith("__main__:")]
        if self.assembled.config.workers and here:
            raise UsageError(
                f"workers: expected functions of a module, got {here[0]}; write it into a file and import it"
            )

    def _searched(self, place: Path, folder: Path | None, *, pictures: bool) -> Frontier:
        outcome: Outcome = ran(self.assembled, Request(out=place, quiet=True, pictures=pictures))[0]
        config, problem = self.assembled.config, self.problem
        covers = config.algo == "exact" or len(outcome.evaluations) == problem.space.size
        how = (
            outcome.how
            if config.algo == "exact"
            else (
                f"{config.algo}, seed {config.seed}, {len(outcome.evaluations):,} architectures evaluated, {outcome.stop_reason}"
            )
        )
        evaluated = None if config.algo == "exact" else outcome.evaluations
        return Frontier(problem, outcome.frontier, exact=covers, how=how, evaluated=evaluated, folder=folder)

    def explain(self, architecture: Given) -> Explanation:
        """One architecture taken apart: operators, bytes, terms of the loss, budgets, steps along each axis.

        Raises:
            UsageError: none or several, or one that the latency model does not cover.
        """
        chosen = self._with_vocabulary(architectures_of(architecture))
        if len(chosen) != 1:
            raise UsageError(f"explain: expected one architecture, got {len(chosen)}; choose a row")
        try:
            return explained(self.problem, chosen)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def as_pymoo(self) -> "PymooProblem":
        """The problem for pymoo's own loops: `minimize(study.as_pymoo(), NSGA2(), ("n_gen", 40))`."""
        found: PymooProblem = importlib.import_module("nas.api.loops").PymooProblem(self.problem)
        return found

    def as_optuna_objective(self) -> "OptunaObjective":
        """The problem for Optuna's own loop: `study.optimize(objective, n_trials=200)`, with its directions."""
        found: OptunaObjective = importlib.import_module("nas.api.loops").OptunaObjective(self.problem)
        return found

    def __repr__(self) -> str:
        scenario, space = self.problem.scenario, self.problem.space
        names = " and ".join(o.name for o in self.problem.objectives)
        return (
            f"Study of {space.size:,} architectures ({space.name} space) on {scenario.device.name}, "
            f"{scenario.precision.name}: {names} within {within(self.problem.budgets)}"
        )


def load_study(config: str | Path | None = None, **keys: Any) -> Study:
    """A study from a file, a run folder or a shipped name (None: the paper's), with any of its keys over it.

    Keys are those of a study file (`plas schema study`), which are the flags' names: `device="jetson_agx_orin_64gb"`,
    `preset="device"`, `budgets={"decode_ms": 20}`, `objectives=["loss", my_function]`. A preset stands beneath the
    file and the keys, as on the command line. Functions, laws and paths are taken as they are.

    Raises:
        UsageError: every fault at once.
    """
    plain = {key: _plain(value) for key, value in keys.items()}
    raw, origins = layered(plain, [], None if config is None else str(config))
    placed = {path: origin for path, origin in origins.items() if not origin.startswith("--")}
    return Study(assembly.assemble(raw, placed), config, keys)


def _plain(value: Any) -> Any:
    """A key's value as a study file would hold it."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "mapping"):
        return value.mapping()
    return f"{value.__module__}:{value.__qualname__}" if callable(value) else value
