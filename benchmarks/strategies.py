"""How strategies compare at equal numbers of distinct evaluations: gap, share of the exact frontier, IGD+.

python benchmarks/strategies.py [--seeds 10] [--algos nsga2,local_search] [--out docs/strategies-benchmark.md]
python benchmarks/strategies.py --pymoo 20     our nsga2 against raw pymoo, paired over seeds
"""

import argparse
import dataclasses
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from overhead import raw_nsga2
from scipy.stats import wilcoxon

from nas.errors import UsageError
from nas.exact.solution import solve
from nas.frontier.dominance import frontier_rows
from nas.frontier.indicators import Scale, distance
from nas.record.store import RunStore
from nas.search.assembly import Study, assemble
from nas.search.constraints import as_seen
from nas.search.loop import Limits, Search
from nas.study.layers import layered
from objectives.plugins import importable

CHECKPOINTS = (200, 500, 1000, 2000, 5000)
STUDIES: dict[str, dict[str, Any]] = {
    "default: loss, total_ms; memory_gb <= 64": {},
    "constrained: loss, total_ms, resident_gb; decode_ms <= 50, resident_gb <= 8 on Orin Nano Super, int8, preset device, datasheet peaks": {
        "preset": "device",
        "device": "jetson_orin_nano_super_8gb",
        "precision": "int8",
        "calibration": "none",
        "objectives": "loss,total_ms,resident_gb",
        "budgets": ["decode_ms=50", "resident_gb=8"],
    },
}
Figures = tuple[float, float, float]


def study_of(flags: dict[str, Any], algo: str) -> Study:
    """An assembled study of the benchmark; `optuna_tpe:encoding=integers` gives a parameter."""
    name, *parameters = algo.split(":")
    return assemble(*layered({**flags, "algo": name}, [f"params.{parameter}" for parameter in parameters], None))


def run(
    flags: dict[str, Any], algo: str, seed: int, most: int = max(CHECKPOINTS)
) -> tuple[list[Figures | None], float]:
    """One seed: figures at every checkpoint (None beyond what was evaluated), ms of strategy per evaluation."""
    study = study_of(flags, algo)
    study = dataclasses.replace(study, config=study.config.model_copy(update={"seed": seed}))
    problem, cap = study.problem, study.traits.cap or max(CHECKPOINTS)
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(
            Path(folder) / "run.sqlite",
            problem.metric_names,
            tuple(o.name for o in problem.objectives),
            problem.budgets,
        )
        columns = problem.architectures(problem.space.genotypes(np.zeros(1, dtype=np.int64))).columns()
        store.create({}, dict.fromkeys(columns, "REAL"))
        shown = lambda found: as_seen(found, study.handling, study.config.penalty_weight)  # noqa: E731
        search = Search(problem, study.strategy(), store, shown=shown)
        search.run(Limits(min(cap, most)))
        store.close()
    exact = solve(problem).frontier
    scale, found = Scale.of(problem.objectives, exact.values), search.archive.all()
    figures: list[Figures | None] = []
    for checkpoint in CHECKPOINTS:
        if checkpoint > len(found) and (study.traits.cap or 0) < len(found):
            checkpoint = len(found)  # a strategy that stopped by itself keeps what it has
        if checkpoint > len(found):
            figures.append(None)
            continue
        part = found[slice(0, checkpoint)]
        front = part[frontier_rows(part)]
        d = distance(scale, front.values, exact.values, len(np.intersect1d(front.keys, exact.keys)))
        figures.append((d.gap, d.share, d.igd_plus))
    return figures, 1e3 * search.progress.seconds["strategy"] / max(len(found), 1)


def table(flags: dict[str, Any], algos: list[str], seeds: int, most: int, pool: ProcessPoolExecutor) -> list[str]:
    """Markdown rows: median gap, share and IGD+ per strategy and checkpoint."""
    lines = [
        "| strategy | " + " | ".join(f"{c:,}" for c in CHECKPOINTS) + " | ms per evaluation |",
        "|---" * (len(CHECKPOINTS) + 2) + "|",
    ]
    for algo in algos:
        try:
            study_of(flags, algo)
        except UsageError as error:
            lines.append(f"| {algo} | left out: {error} |" + " |" * len(CHECKPOINTS))
            continue
        results = list(pool.map(run, [flags] * seeds, [algo] * seeds, range(seeds), [most] * seeds))
        cells = [_cell([figures[i] for figures, _ in results]) for i in range(len(CHECKPOINTS))]
        lines.append(f"| {algo} | " + " | ".join(cells) + f" | {np.median([ms for _, ms in results]):.2f} |")
        print(lines[-1], flush=True)
    return lines


def against_pymoo(seeds: int, pool: ProcessPoolExecutor) -> None:
    """Gaps of our nsga2 and of raw pymoo at 1,000 and 2,000 distinct evaluations, scored on everything evaluated."""
    ours = list(pool.map(run, [{}] * seeds, ["nsga2"] * seeds, range(seeds)))
    theirs = list(pool.map(raw_gaps, range(seeds)))
    for i, checkpoint in enumerate((1000, 2000)):
        mine = np.array([figures[CHECKPOINTS.index(checkpoint)][0] for figures, _ in ours])  # type: ignore[index]
        raw = np.array([gaps[i] for gaps in theirs])
        p = wilcoxon(mine, raw, alternative="less").pvalue
        print(
            f"{checkpoint:,} distinct, {seeds} seeds: median gap {100 * np.median(mine):.3g} % ours, "
            f"{100 * np.median(raw):.3g} % raw pymoo; smaller in {(mine < raw).sum()}; Wilcoxon p = {p:.2g}"
        )


def raw_gaps(seed: int) -> list[float]:
    """Gaps of raw pymoo NSGA-II after 1,000 and 2,000 distinct evaluations."""
    _, raw = raw_nsga2(seed, 2000)
    problem, keys = raw.ours, np.array(list(raw.distinct))
    exact = solve(problem).frontier
    scale, gaps = Scale.of(problem.objectives, exact.values), []
    for checkpoint in (1000, 2000):
        part = problem.evaluate(problem.space.genotypes(keys[:checkpoint]))
        front = part[frontier_rows(part)]
        gaps.append(distance(scale, front.values, exact.values, 0).gap)
    return gaps


def _cell(figures: list[Figures | None]) -> str:
    known = [f for f in figures if f is not None]
    if not known:
        return "beyond its cap"
    gap, share, igd = np.median(np.array(known), axis=0)
    return f"{100 * gap:.2g} % / {100 * share:.0f} % / {igd:.1e}"


def main() -> None:
    """Run all and print or write Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--algos", default=",".join(a for a in importable("nas.strategies") if a != "exact"))
    parser.add_argument("--most", type=int, default=max(CHECKPOINTS), help="evaluations at most")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pymoo", type=int, metavar="SEEDS")
    arguments = parser.parse_args()
    start, lines = time.time(), []
    if arguments.pymoo:
        with ProcessPoolExecutor(2) as pool:
            against_pymoo(arguments.pymoo, pool)
        return
    with ProcessPoolExecutor(2) as pool:
        for name, flags in STUDIES.items():
            lines += [
                f"### {name[0].upper()}{name[1:]}",
                "",
                *table(flags, arguments.algos.split(","), arguments.seeds, arguments.most, pool),
                "",
            ]
    lines.append(f"{arguments.seeds} seeds, {time.time() - start:.0f} s.")
    print("\n".join(lines))
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
