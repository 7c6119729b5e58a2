"""Our nsga2 and optuna_nsga2 against the raw engines: seconds per distinct evaluation, store included, paired runs.

python benchmarks/overhead.py [--pairs 9] [--evaluations 5000]
"""

import argparse
import dataclasses
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.problem import Problem as PymooProblem
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM
from pymoo.operators.repair.rounding import RoundingRepair
from pymoo.operators.sampling.rnd import IntegerRandomSampling
from pymoo.optimize import minimize
from scipy.stats import wilcoxon

from nas.problem.problem import Problem
from nas.record.store import RunStore
from nas.search.assembly import Study, assemble
from nas.search.constraints import as_seen
from nas.search.loop import Limits, Search
from nas.study.layers import layered
from search_spaces.arrays import IntArray

METRICS = ("loss", "total_ms", "memory_gb")


def study_of(algo: str, seed: int) -> Study:
    """The default study with a strategy and a seed."""
    study = assemble(*layered({"algo": algo}, [], None))
    return dataclasses.replace(study, config=study.config.model_copy(update={"seed": seed}))


def ours(algo: str, seed: int, evaluations: int) -> tuple[float, int]:
    """Seconds and distinct evaluations of a search with its store on disk."""
    study = study_of(algo, seed)
    problem = study.problem
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        store = RunStore(
            Path(folder) / "run.sqlite",
            problem.metric_names,
            tuple(o.name for o in problem.objectives),
            problem.budgets,
        )
        columns = problem.architectures(problem.space.genotypes(np.zeros(1, dtype=np.int64))).columns()
        store.create({}, dict.fromkeys(columns, "REAL"))
        search = Search(problem, study.strategy(), store, shown=lambda e: as_seen(e, study.handling, 10.0))
        search.run(Limits(evaluations))
        store.close()
        return time.perf_counter() - start, len(search.archive)


class RawProblem(PymooProblem):  # type: ignore[misc]
    """The default study for pymoo alone; counts distinct architectures."""

    def __init__(self, problem: Problem) -> None:
        genes = len(problem.space.gene_sizes)
        super().__init__(
            n_var=genes, n_obj=2, n_ieq_constr=1, xl=np.zeros(genes), xu=problem.space.gene_sizes - 1, vtype=int
        )
        self.ours, self.distinct = problem, dict[int, None]()  # in order

    def _evaluate(self, x: Any, out: dict[str, Any], *_: Any, **__: Any) -> None:
        genotypes = self.ours.space.repair(np.asarray(x).astype(np.int64))
        self.distinct.update(dict.fromkeys(self.ours.space.keys(genotypes).tolist()))
        found = self.ours.evaluate(genotypes, METRICS)
        out["F"], out["G"] = found.values, found.violations


class Enough:
    """Stops pymoo once so many distinct architectures were evaluated."""

    def __init__(self, problem: RawProblem, evaluations: int) -> None:
        self.problem, self.evaluations = problem, evaluations

    def __call__(self, algorithm: Any) -> None:
        """Called after every generation."""
        if len(self.problem.distinct) >= self.evaluations or algorithm.n_gen > 2000:
            algorithm.termination.terminate()


def raw_pymoo(seed: int, evaluations: int) -> tuple[float, int]:
    """Seconds and distinct evaluations of `pymoo.minimize` with its usual integer operators."""
    seconds, problem = raw_nsga2(seed, evaluations)
    return seconds, len(problem.distinct)


def raw_nsga2(seed: int, evaluations: int) -> tuple[float, RawProblem]:
    """Seconds of `pymoo.minimize`, and the problem that it evaluated."""
    problem = RawProblem(study_of("nsga2", seed).problem)
    algorithm = NSGA2(
        pop_size=100,
        sampling=IntegerRandomSampling(),
        crossover=SBX(prob=0.9, eta=15, vtype=float, repair=RoundingRepair()),
        mutation=PM(eta=20, vtype=float, repair=RoundingRepair()),
        eliminate_duplicates=True,
    )
    start = time.perf_counter()
    minimize(
        problem, algorithm, ("n_gen", 10_000), seed=seed, callback=Enough(problem, evaluations), copy_algorithm=False
    )
    return time.perf_counter() - start, problem


def raw_optuna(seed: int, evaluations: int) -> tuple[float, int]:
    """Seconds and distinct evaluations of an ask/tell loop of the same number of trials."""
    problem = study_of("optuna_nsga2", seed).problem
    names, sizes = [f"g{i}" for i in range(len(problem.space.gene_sizes))], problem.space.gene_sizes.tolist()
    spaces: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.IntDistribution(0, size - 1) for name, size in zip(names, sizes, strict=True)
    }
    study = optuna.create_study(
        directions=["minimize"] * 2, sampler=optuna.samplers.NSGAIISampler(population_size=100, seed=seed)
    )
    distinct: set[int] = set()
    start = time.perf_counter()
    while len(distinct) < evaluations:
        trial = study.ask(spaces)
        genotype: IntArray = problem.space.repair(np.array([[trial.params[name] for name in names]], dtype=np.int64))
        distinct.add(int(problem.space.keys(genotype)[0]))
        found = problem.evaluate(genotype, METRICS)
        trial.set_constraint("memory_gb", float(found.violations[0, 0]))
        study.tell(trial, found.values[0].tolist())
    return time.perf_counter() - start, len(distinct)


def compare(
    name: str, first: Callable[[int], tuple[float, int]], second: Callable[[int], tuple[float, int]], pairs: int
) -> None:
    """Paired runs in alternation: milliseconds per distinct evaluation and their ratio."""
    ratios, ours_ms, raw_ms = [], [], []
    for seed in range(pairs):
        (a, n_a), (b, n_b) = first(seed), second(seed)
        ours_ms.append(1e3 * a / n_a)
        raw_ms.append(1e3 * b / n_b)
        ratios.append(ours_ms[-1] / raw_ms[-1])
    p = wilcoxon(ours_ms, raw_ms).pvalue if pairs > 5 else float("nan")
    print(
        f"{name}: ours {np.median(ours_ms):.3f} ms, raw {np.median(raw_ms):.3f} ms per distinct evaluation, "
        f"ratio median {np.median(ratios):.3f} (min {min(ratios):.3f}, max {max(ratios):.3f}), Wilcoxon p {p:.3g}",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--evaluations", type=int, default=5000)
    parser.add_argument("--optuna-evaluations", type=int, default=1000)
    arguments = parser.parse_args()
    n, m = arguments.evaluations, arguments.optuna_evaluations
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    compare(
        f"nsga2 against pymoo.minimize, {n:,} distinct",
        lambda s: ours("nsga2", s, n),
        lambda s: raw_pymoo(s, n),
        arguments.pairs,
    )
    compare(
        f"optuna_nsga2 against raw ask/tell, {m:,} distinct",
        lambda s: ours("optuna_nsga2", s, m),
        lambda s: raw_optuna(s, m),
        arguments.pairs,
    )


if __name__ == "__main__":
    main()
