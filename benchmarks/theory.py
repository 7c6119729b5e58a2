"""The theory's designs against the exact optimum: single latency budgets, and pairs with a memory budget, on three devices.

python benchmarks/theory.py [--metrics decode_ms,total_ms,prefill_ms]
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from plas_paper.rounding import Rounded, round_off
from plas_paper.theory_problem import TheoryProblem

DEVICES = ("jetson_agx_orin_64gb", "jetson_orin_nano_super_8gb", "rtx_4090")
SINGLE = 45  # latency budgets alone
PAIRS = (9, 6)  # latency × memory budgets
MEMORIES = (0.2, 24.0)  # GB
COLUMNS = (
    "costs,device,latency,budgets,cases,no_design,closed,regret_median_nats,regret_p90_nats,regret_largest_nats,"
    "bound_below_exact_least_nats,bound_below_exact_median_nats,time_of_budget_median,time_of_budget_largest,relaxations,ms"
)


@dataclass(frozen=True)
class Case:
    """One case with a feasible design: the answer, the exact optimum's loss, the operator model's share of the budget, seconds."""

    rounded: Rounded
    exact: float
    share: float
    seconds: float

    @property
    def regret(self) -> float:
        """Loss above the exact optimum's, nats; infinite without a design."""
        design = self.rounded.design
        return np.inf if design is None else float(design.metrics["loss"][0]) - self.exact

    @property
    def slack(self) -> float:
        """How far the program's certified bound, before any branching, lies below the exact optimum, nats."""
        lowest = self.rounded.lowest
        return np.nan if lowest is None else self.exact - lowest.bound


def budgets(every: Evaluations, metric: str) -> Iterator[tuple[str, tuple[Budget, ...]]]:
    """Latencies from the 1st to the 90th percentile of the space, alone and with memory from 0.2 to 24 GB."""
    low, high = np.quantile(every.metrics[metric], [0.01, 0.9])
    for limit in np.geomspace(low, high, SINGLE).tolist():
        yield "one", (Budget(metric, limit),)
    for limit in np.geomspace(low, high, PAIRS[0]).tolist():
        for memory in np.geomspace(*MEMORIES, PAIRS[1]).tolist():
            yield "two", (Budget(metric, limit), Budget("memory_gb", memory))


def measure(problem: Problem, every: Evaluations, asked: tuple[Budget, ...]) -> Case | None:
    """The theory's answer to some budgets; None where nothing meets them."""
    fits = np.logical_and.reduce([every.metrics[b.metric] <= b.limit for b in asked])
    if not fits.any():
        return None
    start = time.perf_counter()
    rounded = round_off(TheoryProblem(replace(problem, budgets=asked)))
    seconds = time.perf_counter() - start
    share = np.nan
    if rounded.design is not None:
        truth = replace(problem, scenario=replace(problem.scenario, latency="operator"))
        taken = truth.evaluate(rounded.design.genotypes, (asked[0].metric,))
        share = float(taken.metrics[asked[0].metric][0]) / asked[0].limit
    return Case(rounded, float(every.metrics["loss"][fits].min()), share, seconds)


def line(head: tuple[str, ...], cases: list[Case]) -> str:
    """A row of the table."""
    regret = np.array([case.regret for case in cases])
    slack, share = (np.array([getattr(case, name) for case in cases]) for name in ("slack", "share"))
    found = regret[np.isfinite(regret)]
    closed, relaxations = sum(c.rounded.complete for c in cases), np.median([c.rounded.relaxations for c in cases])
    cells = [*head, len(cases), len(cases) - len(found), closed]
    cells += [f"{value:.4f}" for value in (np.median(found), np.quantile(found, 0.9), found.max())]
    cells += [f"{slack.min():.4f}", f"{np.median(slack):.4f}", f"{np.nanmedian(share):.2f}", f"{np.nanmax(share):.2f}"]
    cells += [f"{relaxations:.0f}", f"{1e3 * np.median([c.seconds for c in cases]):.0f}"]
    return ",".join(map(str, cells))


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
