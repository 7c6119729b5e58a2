"""Our nsga2 and optuna_nsga2 against the raw engines: CPU seconds per distinct evaluation, store included, paired runs in one process.

python benchmarks/overhead.py [--pairs 9] [--evaluations 500,1000,2000,5000] [--optuna-evaluations 1000] [--space fine]
python benchmarks/overhead.py --gaps 20 [--param offspring=33]     gaps to the exact frontier, ours and raw pymoo's, paired over seeds
"""

import argparse
import dataclasses
import gc
import tempfile
import time
from collections.abc import Callable, Iterable
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

from nas.exact.solution import solve
from nas.problem.dominance import frontier_rows
from nas.problem.evaluations import Evaluations
from nas.problem.indicators import Scale, distance
from nas.problem.problem import Problem
from nas.record.store import RunStore
from nas.search.assembly import Study, assemble
from nas.search.constraints import penalised
from nas.search.lifecycle import store_columns
from nas.search.loop import Limits, Search
from nas.study.layers import layered
from search_spaces.arrays import IntArray

METRICS = ("loss", "total_ms", "memory_gb")
CHECKPOINTS = (200, 500, 1000, 2000, 5000)


def study_of(algo: str, seed: int, parameters: Iterable[str] = (), space: str = "paper") -> Study:
    """The default study, or that in another space, with a strategy and a seed."""
    study = assemble(*layered({"algo": algo, "params": list(parameters), "space": space}, [], None))
    return dataclasses.replace(study, config=study.config.model_copy(update={"seed": seed}))


def ours(
    algo: str, seed: int, evaluations: int, parameters: Iterable[str] = (), space: str = "paper"
) -> tuple[float, Evaluations]:
    """CPU seconds of a search with its store on disk, and what it evaluated."""
    study = study_of(algo, seed, parameters, space)
    problem = study.problem
    names = tuple(objective.name for objective in problem.objectives)
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        store = RunStore(Path(folder) / "run.sqlite", problem.metric_names, names, problem.budgets)
        store.create({}, store_columns(problem))
        search = Search(problem, study.strategy(), store, shown=lambda e: penalised(e, study.handling, 10.0))
        search.run(Limits(evaluations))
        store.close()
        return time.process_time() - start, search.archive.all()


def timed(algo: str, seed: int, evaluations: int, space: str) -> tuple[float, int]:
    """CPU seconds and distinct evaluations of a search."""
    seconds, found = ours(algo, seed, evaluations, space=space)
    return seconds, len(found)


class RawProblem(PymooProblem):  # type: ignore[misc]
    """A study for pymoo alone; counts distinct architectures."""

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


def raw_pymoo(seed: int, evaluations: int, space: str) -> tuple[float, int]:
    """CPU seconds and distinct evaluations of `pymoo.minimize` with its usual integer operators."""
    seconds, problem = raw_nsga2(seed, evaluations, space)
    return seconds, len(problem.distinct)


def raw_nsga2(seed: int, evaluations: int, space: str = "paper") -> tuple[float, RawProblem]:
    """CPU seconds of `pymoo.minimize`, and the problem that it evaluated."""
    problem = RawProblem(study_of("nsga2", seed, space=space).problem)
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
    return time.process_time() - start, problem


def raw_optuna(seed: int, evaluations: int, space: str) -> tuple[float, int]:
    """CPU seconds and distinct evaluations of an ask/tell loop of the same number of trials."""
    problem = study_of("optuna_nsga2", seed, space=space).problem
    names, sizes = [f"g{i}" for i in range(len(problem.space.gene_sizes))], problem.space.gene_sizes.tolist()
    spaces: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.IntDistribution(0, size - 1) for name, size in zip(names, sizes, strict=True)
    }
    study = optuna.create_study(
        directions=["minimize"] * 2, sampler=optuna.samplers.NSGAIISampler(population_size=100, seed=seed)
    )
    distinct: set[int] = set()
    start = time.process_time()
    while len(distinct) < evaluations:
        trial = study.ask(spaces)
        genotype: IntArray = problem.space.repair(np.array([[trial.params[name] for name in names]], dtype=np.int64))
        distinct.add(int(problem.space.keys(genotype)[0]))
        found = problem.evaluate(genotype, METRICS)
        trial.set_constraint("memory_gb", float(found.violations[0, 0]))
        study.tell(trial, found.values[0].tolist())
    return time.process_time() - start, len(distinct)


def compare(
    name: str, first: Callable[[int], tuple[float, int]], second: Callable[[int], tuple[float, int]], pairs: int
) -> None:
    """Paired runs in alternation: milliseconds of CPU per distinct evaluation and their ratio."""
    ratios, ours_ms, raw_ms = [], [], []
    for seed in range(pairs):
        gc.collect()  # what the run before left behind is not counted to the next
        a, n_a = first(seed)
        gc.collect()
        b, n_b = second(seed)
        ours_ms.append(1e3 * a / n_a)
        raw_ms.append(1e3 * b / n_b)
        ratios.append(ours_ms[-1] / raw_ms[-1])
    p = wilcoxon(ours_ms, raw_ms).pvalue if pairs > 5 else float("nan")
    print(
        f"{name}: ours {np.median(ours_ms):.3f} ms, raw {np.median(raw_ms):.3f} ms per distinct evaluation, "
        f"ratio median {np.median(ratios):.3f} (min {min(ratios):.3f}, max {max(ratios):.3f}), Wilcoxon p {p:.3g}",
        flush=True,
    )


def gaps(problem: Problem, found: Evaluations) -> list[float]:
    """Gaps to the exact frontier after the first so many distinct evaluations, at each checkpoint."""
    exact = solve(problem).frontier
    scale, parts = Scale.from_frontier(problem.objectives, exact.values), [found[slice(0, n)] for n in CHECKPOINTS]
    return [distance(scale, part[frontier_rows(part)].values, exact.values, 0).gap for part in parts]


def raw_gaps(seed: int) -> list[float]:
    """The same of raw pymoo."""
    problem = raw_nsga2(seed, CHECKPOINTS[-1])[1]
    keys = np.array(list(problem.distinct))
    return gaps(problem.ours, problem.ours.evaluate(problem.ours.space.genotypes(keys)))


def compare_gaps(seeds: int, parameters: list[str]) -> None:
    """Median gaps of nsga2, of nsga2 with other parameters and of raw pymoo, and whether nsga2's are smaller."""
    problem = study_of("nsga2", 0).problem

    def of(given: list[str]) -> Any:
        return np.array([gaps(problem, ours("nsga2", seed, CHECKPOINTS[-1], given)[1]) for seed in range(seeds)])

    mine, others = of([]), {"raw pymoo": np.array([raw_gaps(seed) for seed in range(seeds)])}
    others |= {f"nsga2 with {' '.join(parameters)}": of(parameters)} if parameters else {}
    for name, theirs in others.items():
        for at, first, second in zip(CHECKPOINTS, mine.T, theirs.T, strict=True):
            p = [wilcoxon(first, second, alternative=side).pvalue for side in ("less", "greater")]
            print(
                f"{at:,} distinct, {seeds} seeds: median gap {100 * np.median(first):.3g} % nsga2, {100 * np.median(second):.3g} % {name}; "
                f"smaller in {(first < second).sum()}, larger in {(first > second).sum()}; Wilcoxon p {p[0]:.2g} smaller, {p[1]:.2g} larger",
                flush=True,
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--evaluations", default="500,1000,2000,5000")
    parser.add_argument("--optuna-evaluations", type=int, default=1000, help="0: not optuna_nsga2")
    parser.add_argument("--gaps", type=int, metavar="SEEDS")
    parser.add_argument("--param", action="append", default=[], help="of the nsga2 to compare gaps with; repeats")
    parser.add_argument("--space", default="paper", help="of up to 20,000 designs: priced whole, for both")
    arguments = parser.parse_args()
    if arguments.gaps:
        compare_gaps(arguments.gaps, arguments.param)
        return
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = arguments.space
    timed("nsga2", 0, 200, space), raw_pymoo(0, 200, space)  # what is imported late is not counted
    for n in map(int, arguments.evaluations.split(",")):
        first, second = (lambda s, n=n: timed("nsga2", s, n, space)), (lambda s, n=n: raw_pymoo(s, n, space))
        compare(f"nsga2 against pymoo.minimize, {n:,} distinct", first, second, arguments.pairs)
    if m := arguments.optuna_evaluations:
        compare(
            f"optuna_nsga2 against raw ask/tell, {m:,} distinct",
            lambda s: timed("optuna_nsga2", s, m, space),
            lambda s: raw_optuna(s, m, space),
            arguments.pairs,
        )


if __name__ == "__main__":
    main()
