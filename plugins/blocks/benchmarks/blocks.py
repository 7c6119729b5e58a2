"""Time and memory of frontiers from large libraries of blocks: python plugins/blocks/benchmarks/blocks.py.

A random library of 62 layers with 54 blocks (all memory budgets at once, beside one integer program by HiGHS), and one of 100 layers
with 200 blocks and a further limit on time. One process; seconds are of the processor.
"""

import resource
import time
from collections.abc import Callable

import numpy as np
from plas_blocks.checking import Meaning, checked
from plas_blocks.library import Library, Row
from plas_blocks.problem import Limit, posed
from plas_blocks.solution import Frontier
from plas_blocks.solving import solved
from scipy.optimize import Bounds, LinearConstraint, milp


def library(layers: int, blocks: int, seed: int = 0) -> Library:
    """Blocks whose score falls as memory and time rise."""
    generator, rows = np.random.default_rng(seed), list[Row]()
    for layer in range(layers):
        slope = generator.random() * 2
        for number in range(blocks):
            memory = generator.random()
            values = {
                "score": (1 - memory) ** 2 * slope + generator.random() * 0.2,
                "memory_mib": 400 * memory,
                "runtime_ms": 0.6 * memory + 0.4 * generator.random(),
            }
            rows.append(Row(f"{layer}", (layer,), f"b{number:03}", number == 0, values))
    return checked("random", rows, Meaning())


def middle(of: Library, name: str) -> float:
    """A limit half way between the least and the mean total."""
    columns = [of.metrics[name][of.first == layer] for layer in range(of.layers)]
    return float(sum((column.min() + column.mean()) / 2 for column in columns))


def by_program(of: Library, limit: Limit) -> float:
    """The best score within one memory budget, by HiGHS."""
    covers = (of.first == np.arange(of.layers)[:, None]).astype(float)
    rows = [LinearConstraint(covers, 1, 1), LinearConstraint(of.metrics[limit.metric][None], -np.inf, limit.value)]
    options = {"mip_rel_gap": 0.0}
    found = milp(
        of.metrics["score"], constraints=rows, integrality=np.ones(len(of)), bounds=Bounds(0, 1), options=options
    )
    return float(of.metrics["score"][np.flatnonzero(found.x > 0.5)].sum())


def timed(what: str, work: Callable[[], Frontier]) -> Frontier:
    """Do something, and say what it took."""
    begin = time.process_time()
    found = work()
    seconds, peak = time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{what}: {len(found):,} mixtures, tolerance {found.tolerance:.3g}, {seconds:.2f} s, peak {peak:.0f} MiB",
        flush=True,
    )
    return found


def main() -> None:
    """Both libraries."""
    small = library(62, 54)
    everything, names = np.ones(len(small), dtype=bool), ("score", "memory_mib")
    found = timed("62 x 54, all budgets", lambda: solved(posed(small, names, [], everything)))
    begin, limit = time.process_time(), Limit("memory_mib", middle(small, "memory_mib"))
    wanted = by_program(small, limit)
    inside = found.metric("memory_mib") <= limit.value
    apart = abs(float(found.metric("score")[inside].min()) - wanted)
    print(f"one budget by HiGHS: {time.process_time() - begin:.2f} s, apart by {apart:.1e}", flush=True)
    large = library(100, 200)
    everything, within = np.ones(len(large), dtype=bool), [Limit("runtime_ms", middle(large, "runtime_ms"))]
    timed("100 x 200, all budgets", lambda: solved(posed(large, names, [], everything)))
    timed("100 x 200 within a time", lambda: solved(posed(large, names, within, everything)))


if __name__ == "__main__":
    main()
