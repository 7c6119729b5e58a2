"""The theory's bound beside the exact optimum: single latency budgets, and pairs with a memory budget, on three devices.

python benchmarks/theory.py [--metrics decode_ms,total_ms,prefill_ms]
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from plas_paper.prediction import with_operators
from plas_paper.theory_problem import TheoryProblem

DEVICES = ("jetson_agx_orin_64gb", "jetson_orin_nano_super_8gb", "rtx_4090")
SINGLE = 45  # latency budgets alone
PAIRS = (9, 6)  # latency × memory budgets
MEMORIES = (0.2, 24.0)  # GB
COLUMNS = (
    "costs,device,latency,budgets,cases,bound_below_exact_least_nats,bound_below_exact_median_nats,"
    "time_of_budget_median,time_of_budget_largest"
)


@dataclass(frozen=True)
class Case:
    """One case with a feasible design: how far the certified bound lies below the best one, nats; the operator model's share of its budget."""

    slack: float
    share: float


def budgets(every: Evaluations, metric: str) -> Iterator[tuple[str, tuple[Budget, ...]]]:
    """Latencies from the 1st to the 90th percentile of the space, alone and with memory from 0.2 to 24 GB."""
    low, high = np.quantile(every.metrics[metric], [0.01, 0.9])
    for limit in np.geomspace(low, high, SINGLE).tolist():
        yield "one", (Budget(metric, limit),)
    for limit in np.geomspace(low, high, PAIRS[0]).tolist():
        for memory in np.geomspace(*MEMORIES, PAIRS[1]).tolist():
            yield "two", (Budget(metric, limit), Budget("memory_gb", memory))


def measure(problem: Problem, every: Evaluations, asked: tuple[Budget, ...]) -> Case | None:
    """The bound and the best design of some budgets; None where nothing meets them."""
    fits = np.logical_and.reduce([every.metrics[b.metric] <= b.limit for b in asked])
    if not fits.any():
        return None
    rows = np.flatnonzero(fits)
    best = every[rows[[np.argmin(every.metrics["loss"][rows])]]]
    lowest = with_operators(TheoryProblem(replace(problem, budgets=asked)), None)
    truth = replace(problem, scenario=replace(problem.scenario, latency="operator"))
    taken = truth.evaluate(best.genotypes, (asked[0].metric,)).metrics[asked[0].metric][0]
    return Case(
        np.nan if lowest is None else float(best.metrics["loss"][0]) - lowest.bound, float(taken) / asked[0].limit
    )


def line(head: tuple[str, ...], cases: list[Case]) -> str:
    """A row of the table."""
    slack, share = (np.array([getattr(case, name) for case in cases]) for name in ("slack", "share"))
    cells = [*head, len(cases), f"{slack.min():.4f}", f"{np.median(slack):.4f}"]
    return ",".join(map(str, [*cells, f"{np.nanmedian(share):.2f}", f"{np.nanmax(share):.2f}"]))


def main() -> None:
    """Measure and print benchmarks/theory.csv."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", default="decode_ms,prefill_ms,total_ms")
    metrics = parser.parse_args().metrics.split(",")
    print(COLUMNS)
    for latency in ("closed_form", "operator"):
        for device in DEVICES:
            raw: dict[str, Any] = {
                "algo": "exact",
                "latency": latency,
                "device": device,
                "baselines": [],
                "default_budget": "none",
            }
            problem = assemble(raw, {}).problem
            every = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
            for metric in metrics:
                answers = [(kind, measure(problem, every, asked)) for kind, asked in budgets(every, metric)]
                for kind in ("one", "two"):
                    cases = [case for name, case in answers if name == kind and case is not None]
                    print(line((latency, device, metric, kind), cases), flush=True)


if __name__ == "__main__":
    main()
