"""The exact front of a problem of two objectives by enumeration: every design is formed and compared, nothing of the solver used.

    python benchmarks/bench_enumeration.py plas1-fine-loss-latency --out FOLDER [--seconds 460]

Designs go by in blocks: the vectorised model prices each at two depths, from which times and memory follow at every other, affine in
depth, and the loss, whose difference between depths is one design's; a hundred thousand random designs are compared with the model first.
A block's staircase at each depth is found by sorting and merged with that of all before. What is done is kept in FOLDER, so that it goes on
where it ended. At the end the front is priced whole and compared with the digest and the members that the problem was frozen with.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from plas_bench.digests import canonical, sha256_of
from plas_bench.instance import BenchProblem, bench_problem

from nas.problem.evaluations import rounded
from search_spaces.arrays import BoolArray, FloatArray, IntArray

BLOCK = 1 << 14  # designs whose columns stay in a core's cache
CHECKED = 100_000
NEAR = 1e-11  # relative: what is beaten by less is kept until it is priced whole


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


class Depths:
    """Metrics of designs at every depth from those at the first two."""

    def __init__(self, bench: BenchProblem) -> None:
        self.problem = bench.problem
        self.depths = self.problem.space.depths.astype(np.float64)
        self.per_depth = bench.size // len(self.depths)
        asked = (*(o.name for o in self.problem.objectives), *(b.metric for b in self.problem.budgets))
        self.names = tuple(dict.fromkeys(asked))
        of_loss = self.priced(np.arange(len(self.depths)) * self.per_depth)["loss"]
        self.of_loss = of_loss - of_loss[0]

    def priced(self, keys: IntArray) -> dict[str, FloatArray]:
        """Metrics by the vectorised model, (n,)."""
        return self.problem.evaluate(self.problem.space.genotypes(keys), self.names).metrics

    def ends(self, rest: IntArray) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """Metrics of designs at the first two depths; `rest` are their numbers within a depth."""
        return self.priced(rest), self.priced(rest + self.per_depth)

    def at(
        self, place: int | IntArray, ends: tuple[dict[str, FloatArray], dict[str, FloatArray]]
    ) -> dict[str, FloatArray]:
        """Metrics at a depth, (n,)."""
        first, second = ends
        share = (self.depths[place] - self.depths[0]) / (self.depths[1] - self.depths[0])
        found = {name: first[name] + share * (second[name] - first[name]) for name in self.names if name != "loss"}
        return {**found, "loss": first["loss"] + self.of_loss[place]}

    def check(self) -> None:
        """Compare random designs with the model.

        Raises:
            SystemExit: depth is not what this takes it for.
        """
        draw = np.random.default_rng(0)
        rest, place = draw.integers(self.per_depth, size=CHECKED), draw.integers(len(self.depths), size=CHECKED)
        model, own = self.priced(rest + place * self.per_depth), self.at(place, self.ends(rest))
        worst = max(float(np.abs(own[name] / model[name] - 1).max()) for name in self.names)
        print(f"{CHECKED:,} random designs differ from the model by at most {worst:.0e}")
        if worst > NEAR / 10:
            raise SystemExit("metrics do not follow depth so")


def beaten(values: FloatArray, front: FloatArray) -> BoolArray:
    """Which rows of (n, 2) a staircase, ordered by its first column, dominates by more than `NEAR`."""
    if len(front) == 0:
        return np.zeros(len(values), dtype=bool)
    place = np.searchsorted(front[:, 0] * (1 + NEAR), values[:, 0], side="right") - 1
    found: BoolArray = (place >= 0) & (front[np.maximum(place, 0), 1] * (1 + NEAR) < values[:, 1])
    return found


class Front:
    """The staircase of everything so far, ordered by its first column: keys (n,), values (n, 2)."""

    def __init__(self, bench: BenchProblem, keys: IntArray) -> None:
        self.problem, self.keys = bench.problem, keys
        self.values = bench.evaluated(bench.problem.space.genotypes(keys)).values

    def take(self, keys: IntArray, metrics: dict[str, FloatArray]) -> None:
        """Merge designs: those within the limits that are not beaten, then what no other dominates to twelve digits."""
        within = [budget.violation(metrics[budget.metric]) <= 0 for budget in self.problem.budgets]
        values = np.stack([metrics[objective.name] for objective in self.problem.objectives], axis=1)
        rows = np.flatnonzero(np.logical_and.reduce([~beaten(values, self.values), *within]))
        if len(rows) == 0:
            return
        keys, values = np.concatenate([self.keys, keys[rows]]), np.concatenate([self.values, values[rows]])
        kept = staircase(rounded(values))
        self.keys, self.values = keys[kept], values[kept]


def enumerated(bench: BenchProblem, place: Path, seconds: float) -> tuple[int, Front]:
    """How many designs of one depth are done, each at every depth, and the front of these; what `place` holds is not done again."""
    depths = Depths(bench)
    depths.check()
    known = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {"done": 0, "keys": []}
    done, front = int(known["done"]), Front(bench, np.array(known["keys"], dtype=np.int64))
    ends = time.monotonic() + seconds
    while done < depths.per_depth and time.monotonic() < ends:
        rest = np.arange(done, min(done + BLOCK, depths.per_depth))
        both = depths.ends(rest)
        for number in range(len(depths.depths)):
            front.take(rest + number * depths.per_depth, depths.at(number, both))
        done += len(rest)
    place.write_text(json.dumps({"done": done, "keys": front.keys.tolist()}), encoding="utf-8")
    print(f"{done * len(depths.depths):,} of {bench.size:,} designs; front so far {len(front.keys):,}")
    return done * len(depths.depths), front


def compare(bench: BenchProblem, front: Front) -> None:
    """Price the front whole and hold it against the frozen one.

    Raises:
        SystemExit: they differ.
    """
    found, frozen = Front(bench, front.keys), bench.definition.front
    values = found.values[staircase(rounded(found.values))]
    digest = sha256_of(canonical(values))
    print(f"members {len(values):,}, frozen {frozen.members:,}; digest {digest[:12]}, frozen {frozen.sha256[:12]}")
    if (len(values), digest) != (frozen.members, frozen.sha256):
        raise SystemExit("the fronts differ")


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
    done, front = enumerated(bench, arguments.out / f"{bench.name}.json", arguments.seconds)
    print(f"{time.monotonic() - begun:.0f} s, {time.process_time() - spent:.0f} CPU seconds")
    if done == bench.size:
        compare(bench, front)


if __name__ == "__main__":
    main()
