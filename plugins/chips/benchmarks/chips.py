"""The exact frontier of loss, total_ms and cost over 10,120 chips and the 1.27e9 architectures of `fine`, beside chips solved one by one.

python benchmarks/chips.py [--space fine] [--every N] [--alone]
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import replace
from itertools import product

import numpy as np
from plas_chips.solution import solve_chips

from nas.exact.solution import solve
from nas.problem.objective import Budget, built_in
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from objectives.device import Calibration
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray

MEMORY_GB = (4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64)
PRICES = (0.2, 1.0, 4.0)  # of a GB/s, of an INT8 TOPS (FP16 is half of it), of a GB: made up, so that all three matter
CASES = {"datasheet peaks": None, "launches of 5 us": Calibration(overhead=0.005)}
BUDGETS = (Budget("memory_share", 1.0), Budget("resident_share", 0.9))
FEW = 5  # classes of chips that are solved alone


def chips(problem: Problem, every: int) -> tuple[list[Scenario], FloatArray]:
    """Chips of 50 to 500 GB/s by 10, 10 to 200 INT8 TOPS by 10 and eleven sizes of memory, every N-th rate; what each costs."""
    genes = list(product(range(50, 501, 10 * every), range(10, 201, 10 * every), MEMORY_GB))
    scenarios = []
    for gb_per_s, tops, gb in genes:
        figures = {"bandwidth": gb_per_s * 1e9, "int8": tops * 1e12, "fp16": tops * 0.5e12, "memory": gb * 1e9}
        scenarios.append(replace(problem.scenario, device=problem.scenario.device.model_copy(update=figures)))
    return scenarios, np.array(genes, dtype=np.float64) @ np.array(PRICES)


def problem_of(space: str, case: str) -> Problem:
    """The study's problem, INT8 under the paper's law."""
    study = {
        "space": space,
        "law": "hw_codesign",
        "precision": "int8",
        "objectives": ["loss", "total_ms"],
        "algo": "exact",
    }
    problem = assemble(study, {}).problem
    return replace(problem, scenario=replace(problem.scenario, calibration=CASES[case]), budgets=())


def together(space: str, case: str, every: int) -> None:
    """Solve one case in this process and print it as JSON."""
    problem = problem_of(space, case)
    scenarios, cost = chips(problem, every)
    start, cpu = time.perf_counter(), time.process_time()
    found = solve_chips(problem, scenarios, {"cost": cost}, ("loss", "total_ms", "cost"), BUDGETS)
    said = {
        "s": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "rows": len(found),
        "chips": len(scenarios),
    }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**said, "mb": peak, "pairs": found.considered, "how": found.explanation}))


def alone(space: str, case: str, every: int) -> float:
    """Seconds of processor time for all classes of equal rates one by one, from a few of them: loss, total_ms and memory."""
    problem = problem_of(space, case)
    scenarios, _ = chips(problem, every)
    of_class = scenarios[len(MEMORY_GB) - 1 :: len(MEMORY_GB)]
    objectives = (*problem.objectives, built_in("resident_gb"))
    cpu = time.process_time()
    for scenario in of_class[:: max(1, len(of_class) // FEW)][:FEW]:
        limit = Budget("resident_gb", 0.9 * scenario.device.memory_gb)
        solve(replace(problem, scenario=scenario, objectives=objectives, budgets=(limit,)))
    return (time.process_time() - cpu) / FEW * len(of_class)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--space", default="fine")
    parser.add_argument("--every", type=int, default=1, help="every N-th rate")
    parser.add_argument("--alone", action="store_true", help="also solve a few classes alone")
    parser.add_argument("--case", choices=[*CASES])
    asked = parser.parse_args()
    if asked.case:
        together(asked.space, asked.case, asked.every)
        return
    print(
        f"{'case':<20}{'chips':>8}{'pairs':>22}{'seconds':>9}{'CPU s':>8}{'peak MB':>9}{'frontier':>10}{'one by one, CPU s':>20}"
    )
    for case in CASES:
        command = [sys.executable, __file__, "--space", asked.space, "--every", str(asked.every), "--case", case]
        r = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        one_by_one = f"{alone(asked.space, case, asked.every):>20,.0f}" if asked.alone else f"{'':>20}"
        print(
            f"{case:<20}{r['chips']:>8,}{r['pairs']:>22,}{r['s']:>9.1f}{r['cpu']:>8.1f}{r['mb']:>9.0f}{r['rows']:>10,}{one_by_one}"
        )


if __name__ == "__main__":
    main()
