"""The exact front of a problem of two objectives by plain enumeration: every design priced, nothing of the solver used.

    python benchmarks/bench_enumeration.py plas1-fine-loss-latency --out FOLDER [--seconds 460]

Designs are priced in the order of their numbers, in blocks, by the vectorised model; a block's staircase is found by sorting, and merged with
that of all before. What is done is kept in FOLDER, so that it goes on where it ended; at the end the front is compared with the digest and the
number of members that the problem was frozen with. One core prices about a million designs a second: 1.27 billion take some twenty minutes.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from nas.bench.digests import canonical, sha256_of
from nas.bench.instance import BenchProblem, bench_problem
from nas.problem.dominance import rounded
from search_spaces.arrays import FloatArray, IntArray

BLOCK = 1 << 14  # designs whose columns stay in a core's cache


def staircase(values: FloatArray) -> IntArray:
    """Rows of (n, 2) that no other dominates, equal ones all: sorted by the first, then the second, each lower than all before it."""
    order = np.lexsort((values[:, 1], values[:, 0]))
    first, second = values[order].T
    before = np.concatenate([[np.inf], np.minimum.accumulate(second)[:-1]])
    lower = second < before
    start = np.maximum.accumulate(
        np.where(lower, np.arange(len(order)), 0)
    )  # the last row that was lower than all before
    same = (first == first[start]) & (second == second[start])
    return order[lower | same]


def block_front(bench: BenchProblem, start: int, ideal: FloatArray) -> tuple[IntArray, FloatArray]:
    """Keys and values of one block's feasible designs that are on its own staircase and not dominated by `ideal`, (k, 2)."""
    keys = np.arange(start, min(start + BLOCK, bench.size))
    found = bench.evaluated(bench.problem.space.genotypes(keys))
    values = found.values
    kept = np.flatnonzero(found.feasible & ~beaten(values, ideal))
    kept = kept[staircase(values[kept])] if len(kept) else kept
    return keys[kept], values[kept]


def beaten(values: FloatArray, front: FloatArray) -> np.ndarray:
    """Which rows of (n, 2) a staircase dominates by more than the last digits, so that ties stay."""
    if len(front) == 0:
        return np.zeros(len(values), dtype=bool)
    ordered = front[np.argsort(front[:, 0])]
    place = np.searchsorted(ordered[:, 0] * (1 + 1e-11), values[:, 0], side="right") - 1
    lowest = np.minimum.accumulate(ordered[:, 1])
    return (place >= 0) & (lowest[np.maximum(place, 0)] * (1 + 1e-11) < values[:, 1])


def enumerated(bench: BenchProblem, place: Path, seconds: float) -> tuple[int, IntArray]:
    """How many designs are done, and keys of the front of these; what `place` holds is not done again."""
    done, keys, values = 0, np.zeros(0, dtype=np.int64), np.zeros((0, 2))
    if place.exists():
        known = json.loads(place.read_text(encoding="utf-8"))
        done, keys = known["done"], np.array(known["keys"], dtype=np.int64)
        values = bench.evaluated(bench.problem.space.genotypes(keys)).values
    ends, begun = time.monotonic() + seconds, done
    while done < bench.size and time.monotonic() < ends:
        more, found = block_front(bench, done, values)
        if len(more):
            keys, values = np.concatenate([keys, more]), np.concatenate([values, found])
            kept = staircase(rounded(values))
            keys, values = keys[kept], values[kept]
        done = min(done + BLOCK, bench.size)
    place.write_text(json.dumps({"done": done, "keys": keys.tolist()}), encoding="utf-8")
    print(f"{done:,} of {bench.size:,} designs priced, {done - begun:,} now; front so far {len(keys):,}")
    return done, keys


def main() -> None:
    """Go on with an enumeration, and compare when it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=460.0)
    arguments = parser.parse_args()
    bench = bench_problem(arguments.problem)
    arguments.out.mkdir(parents=True, exist_ok=True)
    begun, spent = time.monotonic(), time.process_time()
    done, keys = enumerated(bench, arguments.out / f"{bench.name}.json", arguments.seconds)
    print(f"{time.monotonic() - begun:.0f} s, {time.process_time() - spent:.0f} CPU seconds")
    if done < bench.size:
        return
    values, frozen = bench.evaluated(bench.problem.space.genotypes(keys)).values, bench.definition.front
    digest = sha256_of(canonical(values))
    print(f"members {len(keys):,}, frozen {frozen.members:,}; digest {digest[:12]}, frozen {frozen.sha256[:12]}")
    if (len(keys), digest) != (frozen.members, frozen.sha256):
        raise SystemExit("the fronts differ")


if __name__ == "__main__":
    main()
