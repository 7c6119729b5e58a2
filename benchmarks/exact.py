"""Exact frontiers of spaces of any size: seconds, memory, growth, and brute force over 10^8 beside it.

python benchmarks/exact.py [--only growth|goals|brute|tables]
python benchmarks/exact.py --against CHECKOUT    whole runs of large spaces in this checkout and in another, in turn
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from nas.exact.checkpoint import SolverCheckpoint
from nas.exact.decomposition.additive_bounds import AdditiveBounds
from nas.exact.decomposition.frontier import SumsOfParts
from nas.exact.decomposition.grid import Boxes, Grid
from nas.exact.gains import gains
from nas.exact.solution import enumerate_all, metrics_of, solve
from nas.problem.evaluations import non_dominated
from nas.problem.objective import Budget, built_in
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.space import SearchSpace

GOALS = {
    "paper, loss and total_ms": ("paper", ["loss", "total_ms"], {}),
    "fine, loss and total_ms": ("fine", ["loss", "total_ms"], {}),
    "fine, loss and memory_gb": ("fine", ["loss", "memory_gb"], {}),
    "fine, three objectives, two further budgets": (
        "fine",
        ["loss", "total_ms", "memory_gb"],
        {"decode_ms": 100, "resident_gb": 32},
    ),
    "fine, three objectives": ("fine", ["loss", "total_ms", "memory_gb"], {}),
    "fine, four objectives": ("fine", ["loss", "prefill_ms", "decode_ms", "memory_gb"], {}),
    "heads, loss and total_ms": ("heads", ["loss", "total_ms"], {}),
    "huge, loss and total_ms": ("huge", ["loss", "total_ms"], {}),
    "huge, three objectives": ("huge", ["loss", "total_ms", "memory_gb"], {}),
}


def problem_of(space: str, objectives: list[str], budgets: dict[str, float]) -> Problem:
    """A study's problem."""
    return assemble({"space": space, "objectives": objectives, "budgets": budgets, "algo": "exact"}, {}).problem


def goal(name: str) -> None:
    """Solve one goal in this process and print it as JSON."""
    problem = problem_of(*GOALS[name])
    start, cpu = time.perf_counter(), time.process_time()
    solution = solve(problem)
    said = {"s": time.perf_counter() - start, "cpu": time.process_time() - cpu, "frontier": len(solution.frontier)}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**said, "mb": peak, "size": problem.space.size}))


def goals() -> None:
    """Each goal in a process of its own on one core."""
    print(f"\n{'goal':<46}{'architectures':>20}{'seconds':>9}{'CPU s':>8}{'peak MB':>9}{'frontier':>10}")
    for name in GOALS:
        done = subprocess.run([sys.executable, __file__, "--goal", name], capture_output=True, text=True, check=True)
        r = json.loads(done.stdout)
        print(f"{name:<46}{r['size']:>20,}{r['s']:>9.2f}{r['cpu']:>8.2f}{r['mb']:>9.0f}{r['frontier']:>10,}")
    problem = problem_of("paper", ["loss", "total_ms"], {})
    print(f"paper space inside a process, again: {1e3 * least(lambda: solve(problem)):.1f} ms")
    fine = problem_of("fine", ["loss", "total_ms"], {})
    sums = SumsOfParts(fine, (*metrics_of(fine, (PickRule(None),)), "decode_ms", "resident_gb"))
    sums.frontier(fine.objectives, fine.budgets)
    for budget in (Budget("total_ms", 100), Budget("decode_ms", 20), Budget("resident_gb", 2), Budget("loss", 3.0)):
        cost = "loss" if budget.metric != "loss" else "memory_gb"
        seconds = least(lambda b=budget, c=cost: sums.frontier((built_in(c),), (*fine.budgets, b)))
        print(f"fine, re-solve least {cost} within {budget}: {1e3 * seconds:.0f} ms")
    print(f"fine, all gains of a pick at total_ms <= 100: {least(lambda: gains(within(fine, 100))):.2f} s")


def within(problem: Problem, total_ms: float) -> Problem:
    """The problem with a budget on total time."""
    return replace(problem, budgets=(*problem.budgets, Budget("total_ms", total_ms)))


def least(work: object, repeats: int = 3) -> float:
    """Seconds of the fastest repetition."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()  # type: ignore[operator]
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def thinned(step: int) -> SearchSpace:
    """The fine space with every `step`-th value of depth, width, experts and expert size."""
    mapping = SearchSpace.from_mapping(problem_of("fine", ["loss"], {}).space.mapping()).mapping()
    for axis in ("depth", "width", "expert_size", "n_experts"):
        values = mapping["axes"][axis]
        mapping["axes"][axis] = sorted({*values[::step], values[0]}) if axis != "n_experts" else [1, *values[1::step]]
    mapping["axes"]["top_k"] = [k for k in mapping["axes"]["top_k"] if k < max(mapping["axes"]["n_experts"])]
    return SearchSpace.from_mapping(mapping)


def growth() -> None:
    """Time by parts, by brute force over sums of parts, and by evaluating every architecture."""
    print(f"\n{'architectures':>20}{'by parts s':>12}{'sums s':>10}{'all s':>10}{'frontier':>10}")
    base = problem_of("fine", ["loss", "total_ms"], {})
    sizes = [replace(base, space=thinned(step)) for step in (16, 8, 4, 2, 1)]
    for problem in [*sizes, problem_of("huge", ["loss", "total_ms"], {})]:
        parts, n = timed(lambda p=problem: by_parts(p))
        brute = timed(lambda p=problem: len(brute_force(p)))[0] if problem.space.size < 2e8 else None
        every = timed(lambda p=problem: by_evaluation(p))[0] if problem.space.size < 2e7 else None
        shown = [f"{s:>10.2f}" if s is not None else f"{'–':>10}" for s in (brute, every)]
        print(f"{problem.space.size:>20,}{parts:>12.2f}{shown[0]}{shown[1]}{n:>10,}")


def timed(work: object) -> tuple[float, int]:
    """Seconds and result."""
    start = time.perf_counter()
    found: int = work()  # type: ignore[operator]
    return time.perf_counter() - start, found


def by_parts(problem: Problem) -> int:
    """Members of the frontier by branch and bound."""
    found = SumsOfParts(problem, metrics_of(problem, ())).frontier(problem.objectives, problem.budgets)
    return 0 if found is None else len(found)


def by_evaluation(problem: Problem) -> int:
    """Members of the frontier by evaluating everything."""
    frontier, _ = enumerate_all(problem, (), metrics_of(problem, ()), lambda done: None, SolverCheckpoint())
    return len(frontier)


def every_ffn(grid: Grid, width: int) -> Boxes:
    """A box for each FFN of a width."""
    group = np.repeat(np.arange(len(grid.group_counts)), grid.group_counts)
    expert = np.concatenate([np.arange(count) for count in grid.group_counts])
    size = np.arange(grid.size_counts[width])
    pairs, sizes = np.repeat(np.arange(len(group)), len(size)), np.tile(size, len(group))
    return Boxes(np.full(len(pairs), width), group[pairs], expert[pairs], expert[pairs], sizes, sizes)


def blocks(
    sums: AdditiveBounds, metrics: tuple[str, ...], chunk: int = 64
) -> Iterator[tuple[int, IntArray, list[FloatArray]]]:
    """Values of two-dimensional blocks (backbones, FFNs) of one width, metric by metric."""
    for width in sums.grid.widths.tolist():
        ffn, mine = sums.ffn(every_ffn(sums.grid, width)), np.flatnonzero(sums.backbones.width == width)
        for start in range(0, len(mine), chunk):
            rows = mine[start : start + chunk]
            values = []
            for metric in metrics:
                row = sums.bounds.index((metric, 1))
                per_layer, once = ffn[row]
                value = (
                    np.multiply.outer(sums.depth[rows], per_layer) if per_layer.any() else np.tile(once, (len(rows), 1))
                )
                value += sums.beside[row][rows][:, None]
                values.append(value)
            yield width, rows, values


def brute_force(problem: Problem) -> FloatArray:
    """Objective values of the frontier of two objectives by summing parts of every architecture."""
    names = tuple(o.name for o in problem.objectives)
    metrics = tuple(dict.fromkeys([*names, *(b.metric for b in problem.budgets)]))
    sums, front = AdditiveBounds.for_metrics(problem, Grid(problem.space), metrics), np.zeros((0, 2))
    for _, _, values in blocks(sums, metrics):
        column = dict(zip(metrics, values, strict=True))
        keep = np.ones(values[0].shape, dtype=bool)
        for budget in problem.budgets:
            keep &= column[budget.metric] <= budget.limit
        if len(front):
            place = np.searchsorted(front[:, 1], column[names[1]], side="right")
            keep &= column[names[0]] <= np.append(np.inf, front[:, 0])[place]
        points = np.stack([column[name][keep] for name in names], axis=1)
        both = np.concatenate([front, points])
        front = both[non_dominated(both)]
        front = front[np.argsort(front[:, 1])]
    return front


def brute() -> None:
    """The whole of a space of about 10^8, summed, against branch and bound: the same members."""
    problem = replace(problem_of("fine", ["loss", "total_ms"], {}), space=thinned(2))
    seconds, _ = timed(lambda: by_parts(problem))
    start = time.perf_counter()
    summed = brute_force(problem)
    found = SumsOfParts(problem, metrics_of(problem, ())).frontier(problem.objectives, problem.budgets)
    assert found is not None
    mine = found.values[np.argsort(found.values[:, 1])]
    same = len(mine) == len(summed) and bool(np.allclose(mine, summed, rtol=1e-12, atol=0))
    print(
        f"\n{problem.space.size:,} architectures: by parts {seconds:.2f} s, all summed {time.perf_counter() - start:.1f} s"
    )
    print(f"frontiers of {len(mine):,} and {len(summed):,} members, equal: {same}")


def tables() -> None:
    """Architectures per second through tables, beside the machine's memory fill rate."""
    problem = problem_of("fine", ["loss", "total_ms"], {})
    metrics = ("loss", "total_ms")
    sums, done, spent = AdditiveBounds.for_metrics(problem, Grid(problem.space), metrics), 0, 0.0
    widths = sums.grid.widths[:: len(sums.grid.widths) // 8]
    for width in widths.tolist():
        ffn, mine = sums.ffn(every_ffn(sums.grid, width)), np.flatnonzero(sums.backbones.width == width)
        rows = [sums.bounds.index((metric, 1)) for metric in metrics]
        n = len(mine) * ffn.shape[2]
        if n * 16 > 2e9:
            continue
        loss, total = np.empty((len(mine), ffn.shape[2])), np.empty((len(mine), ffn.shape[2]))
        loss.fill(0), total.fill(0)
        start = time.perf_counter()
        np.add(sums.beside[rows[0]][mine][:, None], ffn[rows[0]][1][None], out=loss)
        for i, backbone in enumerate(mine.tolist()):
            np.multiply(ffn[rows[1]][0], sums.depth[backbone], out=total[i])
            total[i] += sums.beside[rows[1]][backbone]
        spent += time.perf_counter() - start
        done += n
    buffer = np.empty(50_000_000)
    buffer.fill(0.0)
    fill = buffer.nbytes / least(lambda: buffer.fill(1.0))
    rate = done / spent
    print(
        f"\nenumeration, two metrics: {rate / 1e6:,.0f} M architectures/s ({16 * rate / 1e9:.1f} GB/s written; memory fill {fill / 1e9:.1f} GB/s, ratio {16 * rate / fill:.2f})"
    )
    print(f"random genotypes, two metrics: {random_rate(sums, metrics) / 1e6:,.1f} M architectures/s")


def random_rate(sums: AdditiveBounds, metrics: tuple[str, ...], n: int = 2_000_000) -> float:
    """Architectures per second of random pairs of an FFN and a backbone, in the table's order of widths."""
    generator = np.random.default_rng(0)
    parts = [every_ffn(sums.grid, width) for width in sums.grid.widths[:8].tolist()]
    boxes = Boxes(*(np.concatenate(columns) for columns in zip(*(p._columns for p in parts), strict=True)))
    ffn, box = sums.ffn(boxes), generator.integers(len(boxes), size=n)
    first = np.searchsorted(sums.backbones.width, np.arange(boxes.width.max() + 1))
    last = np.searchsorted(sums.backbones.width, np.arange(boxes.width.max() + 1), side="right")
    width = boxes.width[box]
    backbone = first[width] + (generator.random(n) * (last - first)[width]).astype(np.int64)
    return n / least(lambda: [sums.values(metric, ffn, box, backbone) for metric in metrics])


def whole_run(checkout: Path, space: str) -> tuple[float, IntArray]:
    """Processor seconds of `plas run --algo exact` in a checkout, and the sorted losses and times of its frontier in units of 1e-9, (n, 2).

    Kinds of layers cost nothing, as in checkouts that do not price them: with a price the frontier is another.
    """
    priced = (checkout / "objectives/layer_costs/pairs.yaml").exists()
    free = ["--set", "deltas=none"] if priced and space == "edge2026" else []
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "nas.run",
            "--algo",
            "exact",
            "--space",
            space,
            "--out",
            f"{folder}/run",
            *free,
        ]
        environment, before = {**os.environ, "PYTHONPATH": str(checkout)}, os.times()
        subprocess.run(command, cwd=checkout, env=environment, check=True, capture_output=True)
        after = os.times()
        front = pd.read_csv(f"{folder}/run/frontier.csv")[["loss", "total_ms"]].sort_values(["loss", "total_ms"])
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        return spent, np.rint(front.to_numpy() * 1e9).astype(np.int64)


def against(other: Path, repeats: int = 3) -> None:
    """Whole runs here and in another checkout in turn: median processor seconds, their ratio, and whether the frontiers are the same."""
    here = Path(__file__).resolve().parents[1]
    for space in ("huge", "edge2026"):
        pairs = [(whole_run(here, space), whole_run(other.resolve(), space)) for _ in range(repeats)]
        ours, theirs = (np.median([pair[side][0] for pair in pairs]) for side in (0, 1))
        same = all(np.array_equal(a[1], b[1]) for a, b in pairs)
        print(
            f"{space}: {ours:.1f} s here, {theirs:.1f} s there, ratio {ours / theirs:.2f}; frontiers {'the same' if same else 'DIFFER'}",
            flush=True,
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["growth", "goals", "brute", "tables"])
    parser.add_argument("--goal")
    parser.add_argument("--against", type=Path, help="another checkout, such as an older commit")
    asked = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if asked.goal:
        goal(asked.goal)
        return
    if asked.against:
        against(asked.against)
        return
    for name, part in (("goals", goals), ("growth", growth), ("brute", brute), ("tables", tables)):
        if asked.only in (None, name):
            part()


if __name__ == "__main__":
    main()
