"""Peak memory of whole runs, store, files and pictures included, at few and at many distinct evaluations.

python benchmarks/memory.py [--few 10000] [--many 1000000] [--algos random,lhs,nsga2,local_search]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from search_spaces.space import SearchSpace

MB = 1e6
SPACE = {
    "name": "large",
    "axes": {
        "depth": {"from": 1, "to": 128, "step": 1},
        "width": {"from": 512, "to": 4096, "step": 64},
        "n_experts": [1, 2, 4, 8, 16, 32, 64],
        "top_k": [1, 2, 4, 8],
        "expert_size": {"from": 64, "to": 16384, "step": 64},
        "n_kv_heads": [1, 2, 4, 8, "n_heads"],
    },
}


def measured(algo: str, evaluations: int) -> tuple[float, float]:
    """Peak resident memory, MB, and seconds of a run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        space = Path(folder) / "space.yaml"
        space.write_text(yaml.safe_dump(SPACE), encoding="utf-8")
        line = ["--algo", algo, "--space", str(space), "--evaluations", str(evaluations), "--out", f"{folder}/run"]
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "nas.run", *line, "--quiet"])
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{algo}: the run failed")
        return usage.ru_maxrss * 1024 / MB, time.perf_counter() - start


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", type=int, default=10_000)
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--algos", default="random,lhs,nsga2,local_search")
    given = parser.parse_args()
    print(f"space of {SearchSpace.from_mapping(SPACE).size:,} architectures")
    print("| strategy | evaluations | peak MB | seconds | difference MB |\n|---|---|---|---|---|")
    for algo in given.algos.split(","):
        few, few_s = measured(algo, given.few)
        print(f"| {algo} | {given.few:,} | {few:.0f} | {few_s:.1f} | |", flush=True)
        many, many_s = measured(algo, given.many)
        print(f"| {algo} | {given.many:,} | {many:.0f} | {many_s:.0f} | {many - few:+.0f} |", flush=True)


if __name__ == "__main__":
    main()
