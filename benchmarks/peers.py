"""Our strategies beside pymoo and Optuna as their users run them, by distinct designs: median gaps, their ratio to the best peer's, and p (Mann and Whitney).

    OMP_NUM_THREADS=1 python benchmarks/peers.py run --out FOLDER [--problems chosen] [--methods nsga2,raw_pymoo] [--evaluations 1000] [--seeds 10] [--share 0/2]
    python benchmarks/peers.py table --out FOLDER

It needs plugins/bench, whose problems and peers it takes. A run is a file of FOLDER and is not run again; `--share 0/2` takes every second seed.

Fixed before the runs: rules of default parameters are chosen on the problems `chosen` and checked on `checked`: another space, other objectives, budgets and kinds.
A design counts once, where it first stands, for everybody. Gap: 1 - hypervolume over that of the exact front, as PLAS-Bench scores.
Held: the median gap over seeds is at most `MOST` times the least median of the peers named, or both are at most `FLOOR`.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from plas_bench.instance import bench_problem
from plas_bench.running import PEERS, searched, strategy_of
from scipy.stats import mannwhitneyu

from nas.compare.anytime import Replay

PROBLEMS = {
    "chosen": (
        "paper-loss-latency",
        "fine-loss-latency",
        "edge2026-loss-latency",
        "kind-caches-1",
        "kind-values-1",
        "kind-cliff-1",
        "kind-mirrored-1",
    ),
    "checked": (
        "huge-loss-latency",
        "edge2026-three",
        "fine-three",
        "fine-loss-decode-budgets",
        "kind-alignment-1",
        "kind-value-pairs-1",
        "kind-rough-wrong-1",
        "kind-wrong-sign-1",
    ),
}
COUNTS = (100, 200, 500, 1000, 2000)
TPE = ("raw_optuna_tpe", "raw_optuna_tpe_multivariate")
AGAINST = {
    "nsga2": ("raw_pymoo", "raw_pymoo_integers", "raw_pymoo_as_nsga2", "raw_optuna_nsga2"),
    "optuna_nsga2": ("raw_optuna_nsga2",),
    "optuna_tpe": TPE,
}
MOST, FLOOR = 1.1, 1e-4


def method_of(name: str) -> tuple[str, dict[str, Any]]:
    """Strategy and parameters of `nsga2:population=20;offspring=10`."""
    algo, _, given = name.partition(":")
    pairs = (text.partition("=") for text in given.split(";") if text)
    return algo, {parameter: json.loads(value) for parameter, _, value in pairs}


def gaps(problem: str, method: str, seed: int, evaluations: int) -> dict[str, Any]:
    """Gaps of one run by number of distinct designs, and what it took."""
    bench, began = bench_problem(f"plas1-{problem}"), time.process_time()
    genotypes = searched(bench, strategy_of(*method_of(method)), seed, evaluations)
    seconds = time.process_time() - began
    replay = Replay(bench.trace(genotypes, method, str(seed), seed, evaluations), bench.reference())
    by_count = {count: replay.gap(count) for count in COUNTS if count <= evaluations}
    return {"gaps": by_count, "designs": len(genotypes), "seconds": seconds}


def budgets(method: str, evaluations: int) -> list[int]:
    """Evaluations that a method is asked for: a peer and what has its parameters given once, another as often as they may follow from it."""
    given = method in PEERS or ":" in method
    return [evaluations] if given else [count for count in COUNTS if count <= evaluations]


def run(arguments: argparse.Namespace) -> None:
    """What is not there yet, of this share of the seeds."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    part, parts = map(int, arguments.share.split("/"))
    for problem in arguments.problems:
        for method in arguments.methods:
            for evaluations in budgets(method, arguments.evaluations):
                for seed in range(part, arguments.seeds, parts):
                    path = arguments.out / f"{problem}--{method}--{evaluations}--{seed}.json"
                    if not path.exists():
                        path.write_text(json.dumps(gaps(problem, method, seed, evaluations)), encoding="utf-8")
            print(problem, method, flush=True)


def measured(folder: Path) -> dict[tuple[str, int], dict[str, dict[int, float]]]:
    """Gaps by problem and count, method and seed; one whose parameters follow from the evaluations is read at its end."""
    cells: dict[tuple[str, int], dict[str, dict[int, float]]] = {}
    for path in sorted(folder.glob("*--*.json")):
        problem, method, evaluations, seed = path.stem.split("--")
        for count, gap in json.loads(path.read_text(encoding="utf-8"))["gaps"].items():
            if len(budgets(method, int(evaluations))) == 1 or count == evaluations:
                cells.setdefault((problem, int(count)), {}).setdefault(method, {})[int(seed)] = gap
    return cells


def table(folder: Path) -> None:
    """A row per strategy, problem and count: its median gap, the best peer's, their ratio, p; then in how many cells it holds."""
    cells = measured(folder)
    for method, peers in AGAINST.items():
        held = []
        for problem, count in sorted(cells, key=lambda cell: ([*sum(PROBLEMS.values(), ())].index(cell[0]), cell[1])):
            by_method = cells[problem, count]
            there = [peer for peer in peers if peer in by_method]
            if method not in by_method or not there:
                continue
            medians = {name: float(np.median([*by_method[name].values()])) for name in (method, *there)}
            best = min(there, key=medians.__getitem__)
            mine, theirs = ([*by_method[name].values()] for name in (method, best))
            p = mannwhitneyu(mine, theirs).pvalue
            ratio = medians[method] / medians[best] if medians[best] else float("inf") if medians[method] else 1.0
            held.append(ratio <= MOST or max(medians[method], medians[best]) <= FLOOR)
            print(
                f"{method} | {problem} | {count:,} | {len(mine)} seeds | {100 * medians[method]:.3g} % | "
                f"{100 * medians[best]:.3g} % {best} | ratio {ratio:.2f}{'' if held[-1] else ' MISSED'} | p {p:.2g}"
            )
        print(f"{method}: at most {MOST} times the best peer in {sum(held)} of {len(held)} cells\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--problems", default="chosen,checked", help="groups or names")
    parser.add_argument("--methods", type=lambda text: text.split(","), default=[*AGAINST, *PEERS])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--evaluations", type=int, default=1000)
    parser.add_argument("--share", default="0/1")
    arguments = parser.parse_args()
    names = arguments.problems.split(",")
    arguments.problems = [problem for name in names for problem in PROBLEMS.get(name, (name,))]
    run(arguments) if arguments.what == "run" else table(arguments.out)


if __name__ == "__main__":
    main()
