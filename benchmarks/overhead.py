"""Our nsga2, optuna_nsga2 and optuna_tpe against the raw engines: CPU seconds per distinct evaluation, paired runs in one process.

Both price designs by the same call, all metrics of a study; what a run stores on disk, which the engines do not, is a ratio of its own.

python benchmarks/overhead.py [--pairs 9] [--evaluations 500,1000,2000,5000] [--optuna-evaluations 1000] [--tpe-evaluations 500] [--space fine]
`benchmarks/peers.py` compares what they find.
"""

import argparse
import dataclasses
import gc
import tempfile
import time
from collections.abc import Callable
from functools import partial
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
from nas.search.discovery import penalised
from nas.search.lifecycle import store_columns, store_of
from nas.search.loop import Limits, Search
from nas.study.layers import layered
from search_spaces.arrays import FloatArray, IntArray


def study_of(algo: str, seed: int, space: str = "paper") -> Study:
    """The default study, or that in another space, with a strategy and a seed."""
    study = assemble(*layered({"algo": algo, "space": space}, [], None))
    return dataclasses.replace(study, config=study.config.model_copy(update={"seed": seed}))


class NoStore(RunStore):
    """Keeps nothing."""

    def __init__(self) -> None:
        self.close = self.append = self.create = self.keep = self.kept = lambda *_: None  # type: ignore[method-assign]


def timed(algo: str, seed: int, evaluations: int, space: str, *, stored: bool = False) -> tuple[float, int]:
    """CPU seconds and distinct evaluations of a search, alone or with its store on disk."""
    study = study_of(algo, seed, space)
    problem = study.problem
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        store = store_of(problem, Path(folder)) if stored else NoStore()
        store.create({}, store_columns(problem))
        search = Search(problem, study.strategy(), store, shown=lambda e: penalised(e, study.handling, 10.0))
        search.run(Limits(evaluations))
        store.close()
        return time.process_time() - start, len(search.archive.all())


class RawProblem(PymooProblem):  # type: ignore[misc]
    """A study for pymoo alone; counts distinct architectures."""

    def __init__(self, problem: Problem) -> None:
        genes = len(problem.space.gene_sizes)
        super().__init__(
            n_var=genes, n_obj=2, n_ieq_constr=1, xl=np.zeros(genes), xu=problem.space.gene_sizes - 1, vtype=int
        )
        self.ours, self.distinct = problem, set[int]()

    def _evaluate(self, x: Any, out: dict[str, Any], *_: Any, **__: Any) -> None:
        genotypes = self.ours.space.repair(np.asarray(x).astype(np.int64))
        found = self.ours.evaluate(genotypes)
        self.distinct.update(found.keys.tolist())
        out["F"], out["G"] = found.values, found.violations


class Enough:
    """Stops pymoo once so many distinct architectures were evaluated."""

    def __init__(self, problem: RawProblem, evaluations: int) -> None:
        self.problem, self.evaluations = problem, evaluations

    def __call__(self, algorithm: Any) -> None:
        """Called after every generation."""
        if len(self.problem.distinct) >= self.evaluations or algorithm.n_gen > 2000:
            algorithm.termination.terminate()


def raw_pymoo(seed: int, evaluations: int, space: str) -> tuple[float, int]:
    """CPU seconds and distinct evaluations of `pymoo.minimize` with its usual integer operators."""
    problem = RawProblem(study_of("nsga2", seed, space).problem)
    algorithm = NSGA2(
        pop_size=100,
        sampling=IntegerRandomSampling(),
        crossover=SBX(prob=0.9, eta=15, vtype=float, repair=RoundingRepair()),
        mutation=PM(eta=20, vtype=float, repair=RoundingRepair()),
        eliminate_duplicates=True,
    )
    start = time.process_time()
    minimize(
        problem, algorithm, ("n_gen", 10_000), seed=seed, callback=Enough(problem, evaluations), copy_algorithm=False
    )
    return time.process_time() - start, len(problem.distinct)


def raw_optuna(
    sampler: Callable[[int], optuna.samplers.BaseSampler], seed: int, evaluations: int, space: str
) -> tuple[float, int]:
    """CPU seconds and distinct evaluations of an ask/tell loop with a sampler made from the seed."""
    problem = study_of("optuna_nsga2", seed, space).problem
    names, sizes = [f"g{i}" for i in range(len(problem.space.gene_sizes))], problem.space.gene_sizes.tolist()
    spaces: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.IntDistribution(0, size - 1) for name, size in zip(names, sizes, strict=True)
    }
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler(seed))
    distinct: set[int] = set()
    start = time.process_time()
    while len(distinct) < evaluations:
        trial = study.ask(spaces)
        genotype: IntArray = problem.space.repair(np.array([[trial.params[name] for name in names]], dtype=np.int64))
        found = problem.evaluate(genotype)
        distinct.add(int(found.keys[0]))
        trial.set_constraint("memory_gb", float(found.violations[0, 0]))
        study.tell(trial, found.values[0].tolist())
    return time.process_time() - start, len(distinct)


def genetic(seed: int) -> optuna.samplers.BaseSampler:
    """Optuna's NSGA-II with a population of 100."""
    return optuna.samplers.NSGAIISampler(population_size=100, seed=seed)


def parzen(seed: int) -> optuna.samplers.BaseSampler:
    """Optuna's multivariate TPE."""
    return optuna.samplers.TPESampler(multivariate=True, seed=seed)


Timed = Callable[[int], tuple[float, int]]


def compare(name: str, first: Timed, stored: Timed, raw: Timed, pairs: int) -> None:
    """Runs of a seed in turn: milliseconds of CPU per distinct evaluation of a search, of one that stores, of the raw engine; ratios."""
    ms: list[list[float]] = []
    for seed in range(pairs):
        ms.append([])
        for run in (first, raw, stored):
            gc.collect()  # what the run before left behind is not counted to the next
            seconds, n = run(seed)
            ms[-1].append(1e3 * seconds / n)
    alone, engine, with_store = np.array(ms).T
    p = wilcoxon(alone, engine).pvalue if pairs > 5 else float("nan")
    print(
        f"{name}: ours {np.median(alone):.3f} ms, raw {np.median(engine):.3f} ms per distinct evaluation, "
        f"ratio {spread(alone / engine)}, Wilcoxon p {p:.3g}; storing {np.median(with_store - alone):.3f} ms more, ratio {spread(with_store / engine)}",
        flush=True,
    )


def spread(ratios: FloatArray) -> str:
    """The median of ratios, the least and the greatest of them."""
    return f"{np.median(ratios):.3f} (min {ratios.min():.3f}, max {ratios.max():.3f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--evaluations", default="500,1000,2000,5000")
    parser.add_argument("--optuna-evaluations", type=int, default=1000, help="0: not optuna_nsga2")
    parser.add_argument("--tpe-evaluations", type=int, default=500, help="0: not optuna_tpe")
    parser.add_argument("--space", default="paper", help="one of up to 20,000 designs is priced whole, for both")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = arguments.space
    timed("nsga2", 0, 200, space, stored=True), raw_pymoo(0, 200, space)  # what is imported late is not counted
    for n in map(int, arguments.evaluations.split(",")):
        compare(f"nsga2 against pymoo.minimize, {n:,} distinct", *three("nsga2", raw_pymoo, n, space), arguments.pairs)
    optunas = (
        ("optuna_nsga2", genetic, arguments.optuna_evaluations),
        ("optuna_tpe", parzen, arguments.tpe_evaluations),
    )
    for algo, sampler, n in optunas:
        if n:
            name = f"{algo} against raw ask/tell, {n:,} distinct"
            compare(name, *three(algo, partial(raw_optuna, sampler), n, space), arguments.pairs)


def three(
    algo: str, raw: Callable[[int, int, str], tuple[float, int]], n: int, space: str
) -> tuple[Timed, Timed, Timed]:
    """Runs of a seed: of a strategy, of the same with its store, of the engine."""
    return (
        lambda seed: timed(algo, seed, n, space),
        lambda seed: timed(algo, seed, n, space, stored=True),
        lambda seed: raw(seed, n, space),
    )


if __name__ == "__main__":
    main()
