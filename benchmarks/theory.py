"""The theory's rounded designs against the exact optimum, over budget pairs on three devices.

python benchmarks/theory.py [--metrics decode_ms,total_ms,prefill_ms]
"""

import argparse
import time
from dataclasses import dataclass, replace

import numpy as np

from nas.assemble import assemble
from nas.closed_forms.frame import Frame
from nas.closed_forms.rounding import round_off
from nas.evaluations import Evaluations
from nas.objective import Budget
from nas.problem import Problem

DEVICES = ("jetson_agx_orin_64gb", "jetson_orin_nano_super_8gb", "rtx_4090")
PAIRS = (9, 6)  # latency × memory budgets
MEMORIES = (0.2, 24.0)  # GB


@dataclass(frozen=True)
class Row:
    """One budget pair with a feasible design: regret and slack of the bound in nats, seconds of the answer."""

    regret: float
    slack: float
    seconds: float


def pairs(every: Evaluations, metric: str) -> list[tuple[float, float]]:
    """Budgets from the 1st to the 90th percentile of the metric, with memory from 0.2 to 24 GB."""
    low, high = np.quantile(every.metrics[metric], [0.01, 0.9])
    return [(t, m) for t in np.geomspace(low, high, PAIRS[0]) for m in np.geomspace(*MEMORIES, PAIRS[1])]


def measure(problem: Problem, every: Evaluations, metric: str) -> tuple[list[Row], int]:
    """Rows of the pairs that some design meets, and how many of these the theory left without one."""
    rows, missed = [], 0
    for latency, memory in pairs(every, metric):
        fits = (every.metrics[metric] <= latency) & (every.metrics["memory_gb"] <= memory)
        if not fits.any():
            continue
        exact = float(every.metrics["loss"][fits].min())
        start = time.perf_counter()
        rounded = round_off(
            Frame(replace(problem, budgets=(Budget(metric, float(latency)), Budget("memory_gb", float(memory)))))
        )
        seconds = time.perf_counter() - start
        if rounded.design is None:
            missed += 1
            continue
        rows.append(Row(float(rounded.design.metrics["loss"][0]) - exact, exact - rounded.bound, seconds))
    return rows, missed


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", default="decode_ms,prefill_ms,total_ms")
    metrics = parser.parse_args().metrics.split(",")
    print(
        "| costs | device | latency | pairs | no design | regret median | 90th pct. | largest | bound below exact: least | median | ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for latency in ("closed_form", "operator"):
        for device in DEVICES:
            raw = {"algo": "exact", "latency": latency, "device": device, "baselines": [], "default_budget": "none"}
            problem = assemble(raw, {}).problem
            every = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
            for metric in metrics:
                rows, missed = measure(problem, every, metric)
                regret, slack = (np.array([getattr(row, name) for row in rows]) for name in ("regret", "slack"))
                median_ms = 1e3 * np.median([row.seconds for row in rows])
                print(
                    f"| {latency} | {device} | {metric} | {len(rows)} | {missed} | {np.median(regret):.4f} | "
                    f"{np.quantile(regret, 0.9):.4f} | {regret.max():.4f} | {slack.min():.4f} | {np.median(slack):.4f} | {median_ms:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
