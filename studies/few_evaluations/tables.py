"""How far strategies come with 10, 25 and 50 evaluations of tables that somebody paid for: trained losses, measured times.

    PLAS_EXTERNAL_DATA=FOLDER python -m studies.few_evaluations.tables run --out FOLDER [--seeds 15] [--tables own,morph] [--methods prior_guided]
    python -m studies.few_evaluations.tables table --out FOLDER

A table's rows are the space; what a strategy proposes elsewhere is repaired to the nearest row, and a repeat is free. Regret: of five
limits spread over the true frontier's range, how much more the pick has (the least evaluated within the limit) than the least
there is; no pick counts as the table's most. "the prior alone" evaluates what the formulas like best, frontier after frontier, and learns nothing.
Every cell (table, method, seed) is a file of FOLDER; what is there already is not run again. Public tables are read from
PLAS_EXTERNAL_DATA; without it only the project's own is replayed.
"""

import argparse
import json
import os
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from plas_bench.unrecorded import unrecorded
from scipy.stats import spearmanr

from nas.problem.evaluations import non_dominated
from nas.search.discovery import strategy_module
from nas.search.strategy import StrategyContext
from nas.study.metrics import diverse
from search_spaces.arrays import FloatArray, IntArray
from studies.few_evaluations.table_sources import Case, cases

CHECKPOINTS = (10, 25, 50)
LIMITS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the true frontier's range of what is limited
ALONE, LAWS = "the prior alone", "prior_guided, two laws"
METHODS = ("prior_guided", LAWS, ALONE, "random", "nsga2", "optuna_tpe", "optuna_gp")
PARAMETERS: dict[str, dict[str, Any]] = {
    "nsga2": {"population": 10},
    "prior_guided": {"initial": 5, "drawn": 2, "batch": 3},
}


def evaluated(case: Case, method: str, seed: int) -> IntArray:
    """Keys of a table's rows in the order in which a method evaluates them."""
    most = min(max(CHECKPOINTS), case.problem.space.size)
    if method == ALONE:
        return by_prior(case)[:most]
    algo = "prior_guided" if method == LAWS else method
    module = strategy_module(algo)
    none = case.problem.space.genotypes(np.zeros(0, dtype=np.int64))
    context = StrategyContext(case.problem, seed, none, most, rivals=case.rivals if method == LAWS else ())
    strategy = module.build(context, module.Parameters.model_validate(PARAMETERS.get(algo, {})))
    return unrecorded(case.problem, strategy, most).archive.all().keys


def by_prior(case: Case) -> IntArray:
    """Every row, frontier after frontier of the formulas, each spread out."""
    problem = case.problem
    names = tuple(next((f.prior for f in problem.functions if f.name == o.name), o.name) for o in problem.objectives)
    known = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)), names).metrics
    values = np.stack([o.scaled(known[name]) for o, name in zip(problem.objectives, names, strict=True)], axis=1)
    left, found = np.arange(len(values)), list[int]()
    while len(left):
        rows = left[non_dominated(values[left])]
        points = (values[rows] - values.min(axis=0)) / np.ptp(values, axis=0)
        found += rows[diverse(points, len(rows))].tolist()
        left = np.setdiff1d(left, rows)
    return np.array(found)


def regret(case: Case, keys: IntArray) -> float:
    """Mean over the limits of what the pick among some rows loses, in the unit of what is least."""
    least, limited = case.values[case.least], np.log(case.values[case.limited])
    best = non_dominated(np.stack([least, limited], axis=1))
    low, high = limited[best].min(), limited[best].max()
    lost = []
    for share in LIMITS:
        limit = low + share * (high - low)
        within = keys[limited[keys] <= limit]
        pick = least[within].min() if len(within) else least.max()
        lost.append(pick - least[limited <= limit].min())
    return float(np.mean(lost))


def run(case: Case, method: str, seed: int) -> dict[str, Any]:
    """One cell."""
    started = time.process_time()
    keys = evaluated(case, method, seed)
    found = {str(n): regret(case, keys[:n]) for n in CHECKPOINTS}
    return {
        "table": case.name,
        "method": method,
        "seed": seed,
        "regret": found,
        "seconds": time.process_time() - started,
    }


def described(case: Case) -> dict[str, Any]:
    """A table: how many rows, how well its formulas rank it, the regret of the prior's own picks without any evaluation."""
    ranks = {}
    for metric in case.problem.functions:
        prior = case.problem.evaluate(case.problem.space.genotypes(np.arange(case.problem.space.size)), (metric.prior,))
        ranks[metric.prior] = float(spearmanr(prior.metrics[metric.prior], case.values[metric.name]).statistic)
    return {
        "table": case.name,
        "rows": case.problem.space.size,
        "spearman": ranks,
        "unit": case.unit,
        "spread": spread(case),
    }


def spread(case: Case) -> float:
    """The standard deviation of what is least over the table."""
    values: FloatArray = case.values[case.least]
    return float(values.std())


def table(folder: Path) -> list[str]:
    """Markdown: the tables, then median regrets, a row per table and number of evaluations."""
    cells = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*--*.json"))]
    about = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("about-*.json"))]
    lines = ["| table | rows | Spearman of the formulas | regret in |", "|---" * 4 + "|"]
    for known in about:
        ranks = ", ".join(f"{name} {value:.2f}" for name, value in known["spearman"].items())
        lines.append(f"| {known['table']} | {known['rows']} | {ranks} | {known['unit']} |")
    lines += ["", f"| table | after | {' | '.join(METHODS)} |", "|---" * (2 + len(METHODS)) + "|"]
    for known in about:
        by_method = {
            m: [c["regret"] for c in cells if (c["table"], c["method"]) == (known["table"], m)] for m in METHODS
        }
        for n in CHECKPOINTS:
            shown = [_median([found[str(n)] for found in by_method[method]], known["unit"]) for method in METHODS]
            lines.append(f"| {known['table']} | {n} | {' | '.join(shown)} |")
    counts = {
        m: {sum(c["method"] == m and c["table"] == known["table"] for c in cells) for known in about} for m in METHODS
    }
    said = (f"{method} {min(found)} to {max(found)}" for method, found in counts.items())
    return [*lines, "", f"Seeds: {', '.join(said)}."]


def _median(values: list[float], unit: str) -> str:
    if not values:
        return ""
    return f"{np.median(values):.4f}" if unit == "nats" else f"{np.median(values):.1f}"


def missing(arguments: argparse.Namespace) -> list[tuple[Case, str, int, Path]]:
    """Cells that are not there yet, seed after seed."""
    source = os.environ.get("PLAS_EXTERNAL_DATA")
    found = [
        case
        for case in cases(Path(source) if source else None)
        if not arguments.tables or case.name in arguments.tables
    ]
    for case in found:
        (arguments.out / f"about-{_plain(case.name)}.json").write_text(json.dumps(described(case)), encoding="utf-8")
    wanted = []
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for case in found:
            for method in arguments.methods:
                path = arguments.out / f"{_plain(case.name)}--{_plain(method)}--{seed}.json"
                once = (method == ALONE and seed > arguments.first) or (method == LAWS and not case.rivals)
                if not (path.exists() or once):
                    wanted.append((case, method, seed, path))
    return wanted


def _plain(name: str) -> str:
    return name.replace(" ", "_").replace(",", "")


def main() -> None:
    """Run what is missing, or print the table of what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=15)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--tables", type=lambda text: text.split(","), default=[])
    parser.add_argument(
        "--methods", type=lambda text: text.split(";"), default=list(METHODS), help="separated by semicolons"
    )
    arguments = parser.parse_args()
    if arguments.what == "run":
        arguments.out.mkdir(parents=True, exist_ok=True)
        if "optuna_gp" in arguments.methods and find_spec("torch") is None:
            print("optuna_gp is left out: it needs torch, which is not installed (pip install 'plas-codesign[gp]')")
            arguments.methods.remove("optuna_gp")
        for case, method, seed, path in missing(arguments):
            found = run(case, method, seed)
            path.write_text(json.dumps(found), encoding="utf-8")
            print(case.name, method, seed, {n: round(r, 4) for n, r in found["regret"].items()}, flush=True)
    print("\n".join(table(arguments.out)))


if __name__ == "__main__":
    main()
