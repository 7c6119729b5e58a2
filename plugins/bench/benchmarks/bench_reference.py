"""Reference results of PLAS-Bench: every strategy that ships, prior_guided of plugins/prior, and pymoo and Optuna as their users run them, with seeds, on every problem of version 1.

    python benchmarks/bench_reference.py run --out FOLDER [--seconds 480] [--problems plas1-paper-rare,…] [--algos nsga2,…]
    python benchmarks/bench_reference.py write --out FOLDER    plas_bench/reference.csv, of what is there; other strategies' rows stay

A cell (problem, strategy, seed) is a file of FOLDER; what is there is not run again, so that a run of any length goes on where the last one
ended. `run` ends after so many seconds.
"""

import argparse
import csv
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from plas_bench.definition import definition, names
from plas_bench.instance import BenchProblem, bench_problem
from plas_bench.measures import reported
from plas_bench.reference import COLUMNS, FILE
from plas_bench.running import searched, strategy_of

from nas.compare.anytime import Replay
from nas.errors import UsageError

CHEAP = (
    "random",
    "lhs",
    "sobol",
    "nsga2",
    "nsga3",
    "smsemoa",
    "spea2",
    "rvea",
    "moead",
    "agemoea2",
    "adaptive_lhs",
    "local_search",
    "raw_pymoo",
    "raw_pymoo_integers",
)
GENERATIONS = ("optuna_nsga2", "optuna_nsga3", "raw_optuna_nsga2")
ESTIMATORS = ("optuna_tpe", "raw_optuna_tpe", "raw_optuna_tpe_multivariate")
SEEDS, FIRST_SEEDS, FEW_SEEDS = 10, 3, 3  # of the cheap ones, of those before dearer ones are run, and of these
FEWER = {  # evaluations where the strategy itself takes long
    "optuna_tpe": 100,
    "raw_optuna_tpe": 100,
    "raw_optuna_tpe_multivariate": 100,
    "optuna_gp": 30,
    "prior_guided": 100,
}


def cells(problems: list[str], algos: list[str]) -> Iterator[tuple[str, str, int]]:
    """Problem, strategy and seed: some seeds of the cheap strategies, then the dearer ones, then the other seeds."""
    for group, seeds in (
        (CHEAP, range(FIRST_SEEDS)),
        (("prior_guided", *GENERATIONS, *ESTIMATORS), range(1)),
        (("prior_guided",), range(1, FEW_SEEDS)),
        (CHEAP, range(FIRST_SEEDS, SEEDS // 2)),
        ((*GENERATIONS, *ESTIMATORS), range(1, FEW_SEEDS)),
        (CHEAP, range(SEEDS // 2, SEEDS)),
        (("optuna_gp",), range(1)),
    ):
        for seed in seeds:
            for algo in (each for each in group if each in algos):
                yield from ((problem, algo, seed) for problem in problems if meets(problem, algo))


def meets(problem: str, algo: str) -> bool:
    """Whether a strategy is run on a problem: one that learns from priors where there are any, Gaussian processes where evaluations are dear."""
    family = definition(problem).family
    return family != "analytic" if algo in ("prior_guided", "optuna_gp") else True


def cell(bench: BenchProblem, algo: str, seed: int) -> dict[str, Any]:
    """One run, measured where results are reported."""
    begun = time.process_time()
    asked = min(bench.evaluations, FEWER.get(algo, bench.evaluations))
    genotypes = searched(bench, strategy_of(algo, {}), seed, asked)
    spent = time.process_time() - begun
    trace, reference = bench.trace(genotypes, algo, str(seed), seed, asked), bench.reference()
    replay = Replay(trace, reference)
    counts = [int(count) for count in reported(asked)]
    gaps = {str(count): replay.gap(count) for count in counts if count <= len(trace) or count == counts[-1]}
    rows = replay.front(len(trace))
    found = reference.distance(trace.values[rows], trace.keys[rows])
    last = {"share": found.share, "igd_plus": found.igd_plus, "epsilon": found.epsilon}
    return {
        "problem": bench.name,
        "algorithm": algo,
        "seed": seed,
        "evaluations": len(trace),
        "gap": gaps,
        **last,
        "cpu_s": spent,
    }


def run(arguments: argparse.Namespace) -> None:
    """Cells that are not there, until the time is over."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + arguments.seconds
    for problem, algo, seed in cells(arguments.problems, arguments.algos):
        path = arguments.out / f"{problem}--{algo}--{seed}.json"
        if path.exists():
            continue
        if time.monotonic() > ends:
            break
        try:
            found = cell(bench_problem(problem), algo, seed)
        except UsageError as error:
            found = {"problem": problem, "algorithm": algo, "seed": seed, "refused": str(error)}
        path.write_text(json.dumps(found), encoding="utf-8")
        print(problem, algo, seed, f"{found.get('cpu_s', 0):.1f} s", flush=True)


def write(out: Path) -> None:
    """The packaged table: a row per run, gaps to three digits, empty where a run ended before."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(out.glob("*--*--*.json"))]
    rows = [row(each) for each in found if "gap" in each]
    run_now = {each["algorithm"] for each in rows}
    with FILE.open(encoding="utf-8", newline="") as file:
        rows += [each for each in csv.DictReader(file) if each["algorithm"] not in run_now]
    rows.sort(key=lambda each: (names().index(each["problem"]), each["algorithm"], int(each["seed"])))
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} runs, {sum(each.get('cpu_s', 0) for each in found):.0f} CPU seconds")


def row(found: dict[str, Any]) -> dict[str, Any]:
    """A run as the packaged table has it."""
    gaps = {f"gap_{count}": f"{gap:.3g}" for count, gap in found["gap"].items()}
    end = {
        name: "" if not np.isfinite(found[name]) else f"{found[name]:.3g}" for name in ("share", "igd_plus", "epsilon")
    }
    return {**{name: found[name] for name in ("problem", "algorithm", "seed", "evaluations")}, **gaps, **end}


def main() -> None:
    """Run what is missing, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "write"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=480.0)
    parser.add_argument("--problems", type=lambda text: text.split(","), default=names())
    parser.add_argument(
        "--algos",
        type=lambda text: text.split(","),
        default=[*CHEAP, *GENERATIONS, *ESTIMATORS, "optuna_gp", "prior_guided"],
    )
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments)
    else:
        write(arguments.out)


if __name__ == "__main__":
    main()
