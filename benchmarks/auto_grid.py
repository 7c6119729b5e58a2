"""Whether `--algo auto` picks well: its gap in every cell of a grid beside the gap of every other strategy there.

    OMP_NUM_THREADS=1 python benchmarks/auto_grid.py run --out FOLDER [--seeds 0,1,2] [--spaces paper,small] [--methods random,nsga2]
    python benchmarks/auto_grid.py table --out FOLDER [--write studies/strategies/results.md]

It needs plugins/bench, whose distorted laws it draws, and plugins/prior.

Fixed before the runs that the page shows. **Cells**: four spaces (`paper`, 13,120 designs; `fine`, 1.3 · 10⁹; `edge2026`; `small`, a user's own)
by four budgets (30, 100, 500 and 2,000 distinct evaluations) by what is minimised: `analytic`, the shipped loss and total_ms; `prior`, functions of one's own
with a PRIOR each (30 and 100 evaluations); `none`, the same functions without one (all four budgets). 40 cells, of which 16 are analytic: there `exact` has gap 0.

**Truth** of a seed: the law with every coefficient and exponent times exp(.2 z) and an aspect term of up to .3 nats per squared log; latency with other
efficiencies of compute (.35 to .7) and bandwidth (.6 to .9), 2 to 10 µs per operator, up to .2 ms more per pass for a layer with experts, up to 10 % more
where the width is no multiple of 256, up to 15 % where an expert is no multiple of 64; a factor of each design of 2 % (of latency) and 0.005 nats (of loss), fixed.
No strategy sees more than values. Budgets on metrics: none.

**Gap**: 1 − hypervolume over that of the reference on the scale that `compare` uses (log latency). The reference is the exact frontier of the truth in `paper` and `small`, in the
others the union of all that the runs of that seed found: gaps there are too small, of all strategies alike.

**Methods** are run to the budgets that they are meant for: `optuna_gp` and `prior_guided` to 100, `optuna_tpe` to 500, others to 2,000. A run is read on the way,
unless a method's parameters follow from the budget: then there is one run for each. Where the extra `gp` is not installed, auto's choices are those without it.
auto's gap in a cell is that of what it picks, with the parameters that it sets.

**Rule**: in nine of ten cells the median over seeds of auto's gap is at most 1.25 times the least median of any method; gaps of at most 0.1 % count as equal.
"""

import argparse
import json
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from plas_bench.smooth import aspect, jittered
from plas_bench.unrecorded import unrecorded
from pydantic import BaseModel

from nas.problem.evaluations import Scale, non_dominated
from nas.problem.objective import Objective
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from nas.search.discovery import ChosenStrategy, strategy_module
from nas.search.reading import Asked
from nas.search.strategy import StrategyContext
from objectives.device import Calibration
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

SMALL = {
    "name": "small",
    "axes": {
        "depth": [8, 12, 16, 24, 32],
        "width": {"from": 512, "to": 2048, "step": 256},
        "n_experts": [1, 4, 8],
        "top_k": [1, 2],
        "expert_ffn_ratio": [0.5, 1, 2, 4],
        "n_kv_heads": [1, 2, 4],
    },
}
SPACES: dict[str, Any] = {"small": SMALL, "paper": "paper", "fine": "fine", "edge2026": "edge2026"}
ENUMERATED = ("small", "paper")
BUDGETS = (30, 100, 500, 2000)
KINDS = {"analytic": BUDGETS, "prior": (30, 100), "none": BUDGETS}
METHODS: dict[str, tuple[int, dict[str, Any]]] = {  # run to, parameters
    "prior_guided": (100, {}),
    "optuna_gp": (100, {}),
    "optuna_tpe": (500, {}),
    "local_search": (2000, {}),
    "local_search:initial=20;explored=2": (100, {"initial": 20, "explored": 2}),
    "nsga2": (2000, {}),
    "nsga2:population=20": (2000, {"population": 20}),
    "nsga2:population=50": (2000, {"population": 50}),
    "spea2": (2000, {}),
    "adaptive_lhs": (2000, {}),
    "random": (2000, {}),
}
FLOOR, WITHIN, SHARE = 0.001, 1.25, 0.9
NATS, FACTOR = 0.005, 0.02


@cache
def analytic(space: str) -> Problem:
    """The default study in a space, without budgets."""
    keys = {"space": SPACES[space], "default_budget": "none", "baselines": [], "applications": {}}
    return assemble(keys, {}).problem


@dataclass(frozen=True, eq=False)
class Truth:
    """What is measured of designs, by seed: the module's docstring says how."""

    problem: Problem
    seed: int

    def columns(self, designs: Architectures) -> tuple[FloatArray, FloatArray]:
        """Loss, nats, and latency, ms, each (n,)."""
        draw, scenario = np.random.default_rng([self.seed, 42]), self.problem.scenario
        efficiency, bandwidth = draw.uniform(0.35, 0.7), draw.uniform(0.6, 0.9)
        calibration = Calibration(
            compute_efficiency=efficiency, bandwidth_efficiency=bandwidth, overhead=draw.uniform(2e-3, 1e-2)
        )
        slow = replace(self.problem, scenario=replace(scenario, calibration=calibration)).assess(designs)["total_ms"]
        slow = slow + designs.depth * (designs.n_experts > 1) * draw.uniform(0, 0.2) * (1 + scenario.output_tokens)
        slow = slow * np.where(designs.width % 256, 1 + draw.uniform(0, 0.1), 1.0)
        slow = slow * np.where(designs.expert_size % 64, 1 + draw.uniform(0, 0.15), 1.0)
        loss = jittered(scenario.law, 0.2, draw).loss(designs) + aspect(0.3, draw)(designs)
        own = noise(self.problem.space.find(designs), self.seed)
        return loss + NATS * own[0], slow * np.exp(FACTOR * own[1])

    def studied(self, *, prior: bool) -> Problem:
        """The study with measured loss and latency as functions of one's own."""

        def measured(index: int, name: str, unit: str) -> Objective:
            def function(designs: Architectures) -> FloatArray:
                return self.columns(designs)[index]

            return Objective(f"measured:{name}", unit, unit == "ms", function, prior=name if prior else "")

        own = (measured(0, "loss", "nats"), measured(1, "total_ms", "ms"))
        return replace(self.problem, objectives=own, functions=own)


def noise(keys: IntArray, seed: int) -> FloatArray:
    """Two standard normal numbers of each design's key and a seed, (2, n)."""
    mixed = keys.astype(np.uint64)[None, :] + np.uint64(seed + 1) * np.array(
        [[0x9E3779B97F4A7C15], [0xD1B54A32D192ED03]], dtype=np.uint64
    )
    uniform = []
    for _ in range(2):
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        uniform.append((mixed >> np.uint64(11)).astype(np.float64) / 2**53)
        mixed = mixed + np.uint64(0x9E3779B97F4A7C15)
    return np.sqrt(-2 * np.log1p(-uniform[0])) * np.cos(2 * np.pi * uniform[1])


def run(space: str, method: str, seed: int) -> dict[str, Any]:
    """What was evaluated, in order, as values of the truth, by the budgets that share it: parameters can follow from the budget."""
    most, given = METHODS[method]
    module = strategy_module(method.partition(":")[0])
    chosen = ChosenStrategy(module, module.Parameters.model_validate(given))
    problem, began = Truth(analytic(space), seed).studied(prior=True), time.process_time()
    asked: dict[str, tuple[BaseModel, list[int]]] = {}
    for n in (n for n in BUDGETS if n <= most):
        parameters = chosen.fitted(n, problem.space)
        asked.setdefault(parameters.model_dump_json(), (parameters, []))[1].append(n)
    values: dict[str, list[list[float]]] = {}
    for parameters, counts in asked.values():
        context = StrategyContext(problem, seed, problem.space.genotypes(np.zeros(0, dtype=np.int64)), max(counts))
        strategy = module.build(context, parameters)
        found = unrecorded(problem, strategy, min(max(counts), problem.space.size)).archive.all().values
        values |= {str(n): found[:n].tolist() for n in counts}
    return {"values": values, "seconds": time.process_time() - began}


def each(arguments: argparse.Namespace) -> list[tuple[str, str, int]]:
    """Runs that are asked for, quick ones first."""
    order = sorted(arguments.methods, key=lambda name: name in ("optuna_gp", "prior_guided", "optuna_tpe"))
    return [(space, method, seed) for seed in arguments.seeds for method in order for space in arguments.spaces]


def cell(folder: Path, space: str, method: str, seed: int) -> Path:
    """Where a run is kept."""
    return folder / f"{space}-{''.join(c if c.isalnum() or c == '_' else '-' for c in method)}-{seed}.json"


def fill(arguments: argparse.Namespace) -> None:
    """Run what is not there yet."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    for space, method, seed in each(arguments):
        path = cell(arguments.out, space, method, seed)
        if not path.exists():
            done = run(space, method, seed)
            path.write_text(json.dumps(done))
            print(f"{space} {method} {seed}: {done['seconds']:.0f} s", flush=True)


def gaps(folder: Path, space: str, seed: int) -> dict[str, dict[int, float]]:
    """Gaps by method and budget."""
    runs = {
        name: {int(n): np.array(values) for n, values in json.loads(path.read_text())["values"].items()}
        for name in METHODS
        if (path := cell(folder, space, name, seed)).exists()
    }
    problem = analytic(space)
    if space in ENUMERATED:
        designs = problem.architectures(problem.space.genotypes(np.arange(problem.space.size)))
        known = np.stack(Truth(problem, seed).columns(designs), axis=1)
    else:
        known = np.concatenate([values for by_budget in runs.values() for values in by_budget.values()])
    best = known[non_dominated(known)]
    scale = Scale.from_frontier(Truth(problem, seed).studied(prior=False).objectives, best)
    whole = scale.hypervolume(best)
    return {
        name: {
            n: max(1 - scale.hypervolume(values[non_dominated(values)]) / whole, 0.0) for n, values in by_budget.items()
        }
        for name, by_budget in runs.items()
    }


def medians(folder: Path, seeds: list[int]) -> dict[str, dict[str, dict[int, float]]]:
    """Median gaps over seeds, by space, method and budget."""
    found = {space: [gaps(folder, space, seed) for seed in seeds] for space in SPACES}
    return {
        space: {
            name: {n: float(np.median([one[name][n] for one in of])) for n in of[0][name]}
            for name in METHODS
            if all(name in one for one in of)
        }
        for space, of in found.items()
    }


@dataclass(frozen=True)
class Cell:
    """A cell of the grid: what auto takes, its median gap, the method of the least median and that, and whether the rule holds."""

    kind: str
    space: str
    evaluations: int
    taken: str
    gap: float
    best: str
    least: float

    @property
    def holds(self) -> bool:
        """Whether auto's gap is within the rule."""
        return self.gap <= max(WITHIN * self.least, FLOOR)

    def shown(self) -> str:
        """The cell as the page has it."""
        text = f"{label(self.taken)} {percent(self.gap)}"
        text += f"; {label(self.best)} {percent(self.least)}" if self.best != self.taken else ""
        return text if self.holds else f"**{text}**"


def percent(gap: float) -> str:
    """Two digits."""
    return f"{100 * gap:.2g} %"


def label(method: str) -> str:
    """A method with its parameters, for a reader."""
    name, _, given = method.partition(":")
    return f"`{name}`" + (f" ({given.replace(';', ', ')})" if given else "")


def taken(space: str, kind: str, evaluations: int) -> str:
    """The method that auto takes."""
    problem = analytic(space) if kind == "analytic" else Truth(analytic(space), 0).studied(prior=kind == "prior")
    choice = strategy_module("auto").choose(problem, Asked(evaluations))
    if choice.algo == "exact":
        return "exact"
    return next(
        name
        for name, (_, given) in METHODS.items()
        if name.partition(":")[0] == choice.algo and given == choice.parameters
    )


def cells(folder: Path, seeds: list[int]) -> list[Cell]:
    """Every cell of the grid."""
    found, made = medians(folder, seeds), []
    for kind, budgets in KINDS.items():
        for space in SPACES:
            for n in budgets:
                method = taken(space, kind, n)
                gaps_there = {
                    name: of[n]
                    for name, of in found[space].items()
                    if n in of and (kind == "prior" or name != "prior_guided")
                }
                best = min(gaps_there, key=gaps_there.__getitem__)
                if method == "exact":
                    made.append(Cell(kind, space, n, method, 0.0, method, 0.0))
                else:
                    made.append(Cell(kind, space, n, method, gaps_there[method], best, gaps_there[best]))
    return made


def page(found: list[Cell], seeds: list[int]) -> str:
    """The grid as Markdown."""
    searched = [cell for cell in found if cell.taken != "exact"]
    held = sum(cell.holds for cell in searched)
    lines = [
        f"Median gaps over {len(seeds)} seeds: of what auto takes and, where that is another, of the best method there. Bold: more than {WITHIN} times the least and above {percent(FLOOR)}.",
        f"It holds in {sum(cell.holds for cell in found)} of {len(found)} cells; in {held} of the {len(searched)} in which something is searched (in the other {len(found) - len(searched)}, formulas, `exact` covers the space: 0 %).",
        "",
        "| objectives | space | " + " | ".join(f"{n:,} evaluations" for n in BUDGETS) + " |",
        "|---|---|" + "---|" * len(BUDGETS),
    ]
    words = {"prior": "functions with a prior", "none": "functions without"}
    for kind in words:
        for space in SPACES:
            row = {cell.evaluations: cell.shown() for cell in found if (cell.kind, cell.space) == (kind, space)}
            lines.append(f"| {words[kind]} | {space} | " + " | ".join(row.get(n, "not run") for n in BUDGETS) + " |")
    return "\n".join(lines) + "\n"


def written(path: Path, text: str) -> None:
    """The grid between its marks on a page."""
    before, _, rest = path.read_text(encoding="utf-8").partition("<!-- grid -->\n")
    _, _, after = rest.partition("<!-- end of grid -->")
    path.write_text(f"{before}<!-- grid -->\n{text}<!-- end of grid -->{after}", encoding="utf-8")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=lambda text: [int(one) for one in text.split(",")], default=[0, 1, 2])
    parser.add_argument("--spaces", type=lambda text: text.split(","), default=list(SPACES))
    parser.add_argument("--methods", type=lambda text: text.split(","), default=list(METHODS))
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    if arguments.what == "run":
        fill(arguments)
        return
    for space, found in medians(arguments.out, arguments.seeds).items():
        print(space)
        for name, row in found.items():
            print(f"  {name:36}", *(f"{n}: {percent(gap)}" for n, gap in row.items()))
    text = page(cells(arguments.out, arguments.seeds), arguments.seeds)
    print(text)
    if arguments.write is not None:
        written(arguments.write, text)


if __name__ == "__main__":
    main()
