"""Architectures per second per core, beside a Python loop over the same formulas, in one run.

python benchmarks/throughput.py [--architectures 1000000]
"""

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from nas.study.catalogue import load_device, load_law, load_space
from objectives.assessment import Assessment
from objectives.precision import precision
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.columns import SHAPE

ROOT = Path(__file__).resolve().parent.parent


def reference() -> Any:
    """The tests' scalar reference: one architecture, one operator, one decode pass at a time."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tests" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    return module


def rate(work: Callable[[], Any], n: int, repeats: int = 3) -> float:
    """Architectures per second of the fastest repetition."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return n / min(seconds)


def loop_rate(module: Any, architectures: Architectures, setting: Any, metric: str, n: int) -> float:
    """Architectures per second of the per-architecture loop."""
    rows = [module.Arch(**{name: int(getattr(architectures, name)[i]) for name in SHAPE}) for i in range(n)]
    return rate(lambda: [getattr(module, metric)(row, setting) for row in rows], n, repeats=1)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--architectures", type=int, default=1_000_000)
    n = parser.parse_args().architectures
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    space, law, device, module = (
        load_space("paper"),
        load_law("hw_codesign"),
        load_device("jetson_agx_orin_64gb"),
        reference(),
    )
    keys = np.random.default_rng(0).integers(0, space.size, n)
    architectures = space.architectures(space.genotypes(keys))
    peaks = {"fp16_peak": device.fp16, "int8_peak": device.int8, "bandwidth": device.bandwidth}
    print(f"{n:,} architectures, one core\n")
    print(f"{'fidelity':<44}{'vectorised /s':>16}{'loop /s':>12}{'ratio':>10}")
    for name, options in CASES.items():
        scenario = Scenario(
            law=law, device=device, **{**options, "precision": precision(options.get("precision", "fp16"))}
        )
        setting = module.Setting(**peaks, **{k: v for k, v in options.items() if k in asdict(module.Setting(**peaks))})
        fast = rate(lambda s=scenario: Assessment(architectures, s)["total_ms"], n)
        slow = loop_rate(
            module, architectures, setting, "total_ms", 20 if options.get("output_tokens", 16) > 100 else 300
        )
        print(f"{name:<44}{fast:>16,.0f}{slow:>12,.0f}{fast / slow:>10,.0f}")
    scenario = Scenario(law=law, device=device)
    fast = rate(lambda: Assessment(architectures, scenario)["loss"], n)
    rows = [module.Arch(**{name: int(getattr(architectures, name)[i]) for name in SHAPE}) for i in range(3000)]
    slow = rate(lambda: [module.loss(row) for row in rows], len(rows), repeats=1)
    print(f"{'loss law':<44}{fast:>16,.0f}{slow:>12,.0f}{fast / slow:>10,.0f}")


CASES: dict[str, dict[str, Any]] = {
    "closed form": {"latency": "closed_form"},
    "operator model": {},
    "operator model, int8": {"precision": "int8"},
    "operator model, fused, causal, complete": {"attention": "fused", "causal": True, "complete": True},
    "operator model, 4,096 output tokens": {"output_tokens": 4096},
}

if __name__ == "__main__":
    main()
