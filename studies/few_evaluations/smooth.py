"""How far strategies come with 25, 50, 100 and 200 expensive evaluations: gap of the frontier, regret of picks.

    python -m studies.few_evaluations.smooth run --out FOLDER [--seeds 15] [--studies two-strong,two-wrong] [--methods prior_guided,random]
    python -m studies.few_evaluations.smooth table --out FOLDER
    python -m studies.few_evaluations.smooth judge --out FOLDER
    python -m studies.few_evaluations.smooth ask

Every cell (study, method, seed) is a file of FOLDER; what is there already is not run again. What is taken for the truth is
drawn by truths.py, whose rules were fixed before the first search. A method sees measured values alone;
the gap is that of the true values of everything it evaluated to the true frontier. Regret: of five latency limits spread over
the true frontier's range, how much more the true loss of the pick is (the lowest measured loss within the limit, as measured)
than the least possible; no pick counts 0.5 nats. `judge` holds the medians against what is claimed of `prior_guided`, over the seeds that every
method of a comparison has; `ask` times one ask after 200 evaluations.
"""

import argparse
import json
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from plas_bench.unrecorded import unrecorded

from nas.problem.evaluations import Evaluations, Scale, non_dominated
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from nas.search.discovery import strategy_module
from nas.search.strategy import StrategyContext
from nas.study.metrics import select
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from studies.few_evaluations.truths import Truth, expensive, truth_of

CHECKPOINTS = (25, 50, 100, 200)
SEEDED = 20  # designs of the analytic frontier that a seeded method starts from
NO_PICK = 0.5  # nats
LIMITS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the true frontier's range of log latency
GP_MOST = 100  # optuna_gp takes a minute or two: to 100 evaluations, then carried forward
METHODS = (
    *("prior_guided", "random", "nsga2", "local_search", "optuna_tpe", "optuna_gp"),
    *("nsga2+seeds", "local_search+seeds", "optuna_tpe+seeds"),
)
PARAMETERS: dict[str, dict[str, Any]] = {"nsga2": {"population": 20}}  # of 100 it would breed once
TWO, THREE = ["loss", "total_ms"], ["loss", "total_ms", "memory_gb"]
STUDIES: dict[str, tuple[str, list[str], bool]] = {
    **{f"two-{kind}": (kind, TWO, False) for kind in ("mild", "strong", "wrong", "useless")},
    **{f"three-{kind}": (kind, THREE, False) for kind in ("strong", "wrong")},
    **{f"budgets-{kind}": (kind, TWO, True) for kind in ("strong", "wrong")},
}


@dataclass(frozen=True, eq=False)
class Case:
    """A study of a seed: what a method works on, and what is true; values (n, m) of the whole space in key order."""

    problem: Problem
    truth: Truth
    values: FloatArray
    feasible: BoolArray


@cache
def analytic(names: tuple[str, ...]) -> Problem:
    """The paper's study with some objectives and no budget."""
    keys = {"objectives": list(names), "default_budget": "none", "baselines": [], "applications": {}}
    return assemble(keys, {}).problem


@cache
def case_of(study: str, seed: int) -> Case:
    """The case of a study's name and a seed; with budgets, half of the true frontier's latencies and 4 GB are too much."""
    kind, names, limited = STUDIES[study]
    problem = analytic(tuple(names))
    truth = truth_of(kind, seed, problem)
    memory = problem.evaluate(every(problem), ("memory_gb",)).metrics["memory_gb"]
    known = {"loss": truth.loss, "total_ms": truth.total_ms, "memory_gb": memory}
    values = np.stack([known[name] for name in names], axis=1)
    feasible = np.ones(len(values), dtype=bool)
    if limited:
        median = float(np.median(truth.total_ms[non_dominated(values)]))
        problem = replace(problem, budgets=(Budget("total_ms", median), Budget("memory_gb", 4.0)))
        feasible = (truth.total_ms <= median) & (memory <= 4.0)
    return Case(expensive(problem, truth), truth, values, feasible)


def every(problem: Problem) -> IntArray:
    """Genotypes of the whole space."""
    return problem.space.genotypes(np.arange(problem.space.size))


def run(study: str, method: str, seed: int) -> dict[str, Any]:
    """One cell: gap and regret at every checkpoint, seconds of the strategy."""
    case, (name, *_) = case_of(study, seed), method.partition("+")
    algo, _, given = name.partition(":")
    module = strategy_module(algo)
    parameters = (pair.split("=") for pair in given.split(";") if pair)
    raw = {**PARAMETERS.get(algo, {}), **{key: json.loads(value) for key, value in parameters}}
    start = seeds_of(study) if "+" in method else np.zeros(0, dtype=np.int64)
    most = GP_MOST if algo == "optuna_gp" else max(CHECKPOINTS)
    context = StrategyContext(case.problem, seed, case.problem.space.genotypes(start), most)
    search = unrecorded(case.problem, module.build(context, module.Parameters.model_validate(raw)), most)
    found = search.archive.all()
    figures = {str(n): figures_of(case, found[: min(n, len(found))]) for n in CHECKPOINTS}
    return {"study": study, "method": method, "seed": seed, "figures": figures, "seconds": search.progress.seconds}


@cache
def seeds_of(study: str) -> IntArray:
    """Keys of designs spread along the analytic frontier."""
    problem = analytic(tuple(STUDIES[study][1]))
    found = problem.evaluate(every(problem))
    scale = Scale.from_frontier(problem.objectives, found.values[non_dominated(found.values)])
    return found.keys[select(found, f"diverse:{SEEDED}", scale, problem.scenario)]


def figures_of(case: Case, found: Evaluations) -> dict[str, float]:
    """Gap and regret of what was evaluated."""
    values = case.values[case.feasible]
    best = values[non_dominated(values)]
    scale = Scale.from_frontier(case.problem.objectives, best)
    kept = found.keys[case.feasible[found.keys]]
    gap = 1.0 - scale.hypervolume(case.values[kept]) / scale.hypervolume(best)
    return {"gap": gap, "regret": regret(case, found, best)}


def regret(case: Case, found: Evaluations, best: FloatArray) -> float:
    """Mean over the limits of what the pick loses, nats."""
    names = found.objectives
    loss, spent = (found.metrics[name] for name in names[:2])
    ends = np.log([best[:, 1].min(), best[:, 1].max()])
    lost = []
    for limit in np.exp(ends[0] + np.array(LIMITS) * (ends[1] - ends[0])):
        within = np.flatnonzero(found.feasible & (spent <= limit))
        least = case.values[case.feasible & (case.values[:, 1] <= limit), 0].min()
        pick = found.keys[within[np.argmin(loss[within])]] if len(within) else -1
        lost.append(max(case.values[pick, 0] - least, 0.0) if pick >= 0 else NO_PICK)
    return float(np.mean(lost))


def cells(arguments: argparse.Namespace) -> Iterator[tuple[str, str, int, Path]]:
    """Cells that are wanted and not there, seed by seed."""
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for study in arguments.studies.split(","):
            for method in arguments.methods.split(","):
                path = arguments.out / f"{study}--{method.replace(':', '_')}--{seed}.json"
                if not path.exists():
                    yield study, method, seed, path


def kept(study: str, method: str, seed: int, path: Path) -> str:
    """Run a cell and write it whole."""
    started = time.time()
    found = run(study, method, seed)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found), encoding="utf-8")
    part.rename(path)
    gaps = " ".join(f"{100 * figures['gap']:.2f}" for figures in found["figures"].values())
    return f"{study} {method} seed {seed}: gap % {gaps}; {time.time() - started:.1f} s"


def table(folder: Path) -> list[str]:
    """Markdown: medians over seeds by study and method, gap in percent and regret in nats."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    lines = []
    for study in [name for name in STUDIES if any(cell["study"] == name for cell in found)]:
        head = " | ".join(f"gap {n}" for n in CHECKPOINTS), " | ".join(f"regret {n}" for n in CHECKPOINTS)
        lines += [f"### {study}", "", f"| method | seeds | {head[0]} | {head[1]} | s / 100 |", "|---" * 11 + "|"]
        for method in dict.fromkeys([*METHODS, *(cell["method"] for cell in found)]):
            rows = [cell for cell in found if cell["study"] == study and cell["method"] == method]
            if rows:
                lines.append(_row(method, rows))
        lines.append("")
    return lines


def _row(method: str, rows: list[dict[str, Any]]) -> str:
    def median(what: str, n: int) -> float:
        return float(np.median([row["figures"][str(n)][what] for row in rows]))

    gaps = " | ".join(f"{100 * median('gap', n):.2f}" for n in CHECKPOINTS)
    regrets = " | ".join(f"{median('regret', n):.4f}" for n in CHECKPOINTS)
    spent = np.median([row["seconds"]["strategy"] for row in rows]) / max(CHECKPOINTS) * 100
    return f"| `{method}` | {len(rows)} | {gaps} | {regrets} | {spent:.1f} |"


def judged(folder: Path) -> Iterator[str]:
    """Of each claim in each study whether the median gap of prior_guided is at most a share of another method's least."""
    cells = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    gaps = {(c["study"], c["method"], c["seed"]): c["figures"] for c in cells}
    seeded = tuple(name for name in METHODS if "+" in name)
    unseeded = ("random", "nsga2", "local_search", "optuna_tpe")
    fair = [name for name in STUDIES if "useless" not in name]
    claims = [
        *((study, n, unseeded, 0.25) for study in fair for n in (50, 100)),
        *((study, n, ("optuna_gp",), 1.0) for study in fair for n in (50, 100)),
        *((study, n, seeded, 0.5) for study in fair if "wrong" not in study for n in (50, 100)),
        *((study, n, ("optuna_tpe",), 0.5) for study in fair if "wrong" in study for n in (50, 100)),
        ("two-useless", 100, ("optuna_tpe",), 1.1),
    ]
    for study, n, others, share in claims:
        every = [{seed for s, m, seed in gaps if (s, m) == (study, method)} for method in ("prior_guided", *others)]
        if seeds := sorted(set.intersection(*every)):
            own, *theirs = (
                float(np.median([gaps[study, method, seed][str(n)]["gap"] for seed in seeds]))
                for method in ("prior_guided", *others)
            )
            said = f"{100 * own:.2f} % against {share:g} x {100 * min(theirs):.2f} % ({others[int(np.argmin(theirs))]})"
            yield f"{'holds' if own <= share * min(theirs) else 'FAILS'}  {study} at {n}, {len(seeds)} seeds: {said}"


def ask_times(told: int = 200, asks: int = 9) -> Iterator[str]:
    """Seconds of processor time of an ask after so many evaluations, five new ones before each."""
    module = strategy_module("prior_guided")
    for study in ("two-strong", "three-strong", "budgets-strong"):
        problem = case_of(study, 1000).problem
        strategy = module.build(
            StrategyContext(problem, 0, problem.space.genotypes(np.zeros(0, dtype=np.int64)), told), module.Parameters()
        )
        keys = np.random.default_rng(0).choice(problem.space.size, told + 5 * asks, replace=False)
        spent = []
        for end in range(told, len(keys), 5):
            strategy.tell(problem.evaluate(problem.space.genotypes(keys[len(strategy.told) : end])))
            started = time.process_time()
            strategy.ask(5)
            spent.append(time.process_time() - started)
        yield f"{study}: an ask at {told} evaluations takes {np.median(spent[1:]):.3f} s ({min(spent[1:]):.3f} to {max(spent[1:]):.3f})"


def main() -> None:
    """Run what is missing, or print the table of what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table", "judge", "ask"))
    parser.add_argument("--out", type=Path, default=Path("few-evaluations"))
    parser.add_argument("--seeds", type=int, default=15)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--studies", default=",".join(STUDIES))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.what == "run":
        arguments.out.mkdir(parents=True, exist_ok=True)
        if "optuna_gp" in arguments.methods and find_spec("torch") is None:
            print("optuna_gp is left out: it needs torch, which is not installed (pip install 'plas-codesign[gp]')")
            arguments.methods = ",".join(m for m in arguments.methods.split(",") if m != "optuna_gp")
        with ProcessPoolExecutor(arguments.processes) as pool:
            for done in [pool.submit(kept, *cell) for cell in cells(arguments)]:
                print(done.result(), flush=True)
    answers = {"run": table, "table": table, "judge": judged, "ask": lambda folder: ask_times()}
    for line in answers[arguments.what](arguments.out):
        print(line, flush=True)


if __name__ == "__main__":
    main()
