"""Whether short trainings first find more than whole ones, for the same number of tokens trained.

    python -m studies.fidelity_steps [--seeds 20] [--law joint_moe] [--keep 0.6] [--algo prior_guided]

The paper's space with K = 1, which the law prices; the loss after a fidelity's share of 10 B tokens is a law's that sees tokens, with one normal error of 0.005 nats per design
and fidelity; latency is the roofline's. Every search may train as many tokens as `--trainings` whole trainings. Gap: of the hypervolume of
what was trained to the end, by its true loss, to the true frontier's. Medians over seeds, and in how many of them steps had the smaller gap.
"""

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nas.problem.evaluations import Scale, non_dominated
from nas.problem.objective import KEEP, Objective
from nas.problem.problem import Problem
from nas.record.store import FILE, RunStore
from nas.search.assembly import assemble
from nas.search.delegated import Delegated
from nas.search.discovery import strategy_module
from nas.search.lifecycle import store_columns
from nas.search.loop import Limits, Search
from nas.search.strategy import StrategyContext
from nas.search.worker_pool import Arrival, WorkerPool
from nas.study.catalogue import load_law, load_space
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

TOKENS, NOISE = 10e9, 0.005  # tokens of a whole training; nats
STEPS = {"whole trainings": (), "0.1, 0.3, 1": (0.1, 0.3, 1.0), "0.3, 1": (0.3, 1.0)}
STRATEGIES: dict[str, dict[str, Any]] = {
    "random": {},
    "nsga2": {"population": 20},
    "local_search": {},
    "optuna_tpe": {},
    "prior_guided": {},
}


class Trained:
    """What a training would say: a law's loss and an error; tokens spent, in whole trainings, and how many of these they paid for."""

    def __init__(self, law: str, seed: int, paid: float = 0.0) -> None:
        self.law, self.seed, self.paid = load_law(law), seed, paid
        self.spent, self.whole = 0.0, 0

    def __call__(self, architectures: Architectures, *, fidelity: float = 1.0) -> FloatArray:
        """Loss of one architecture, nats, (1,)."""
        self.spent += fidelity
        self.whole += fidelity == 1.0 and self.spent <= self.paid + 1e-9
        key = [
            int(getattr(architectures, name)[0])
            for name in ("depth", "width", "n_experts", "top_k", "n_kv_heads", "expert_size")
        ]
        error = np.random.default_rng([self.seed, int(10 * fidelity), *key]).normal(0.0, NOISE)
        return self.true(architectures, fidelity) + error

    def true(self, architectures: Architectures, fidelity: float = 1.0) -> FloatArray:
        """The same without its error, (n,)."""
        return self.law.loss(architectures.with_tokens(int(fidelity * TOKENS)))


class Here(WorkerPool):
    """Trains in this process, in order."""

    def __init__(self) -> None:
        super().__init__(4, None)

    def arrivals(self) -> list[Arrival]:
        """One answer."""
        task = self.waiting.popleft()
        return [(task, (float(task.metric.values(task.architecture, None)[0]), ""))]


def searched(
    base: Problem, trained: Trained, algo: str, fidelities: tuple[float, ...], keep: float, seed: int, trainings: int
) -> IntArray:
    """Keys of what a search trained to the end, for so many whole trainings' tokens; what it trained after them is none of it."""
    metric = Objective("trained", "nats", False, trained, prior="loss", fidelities=fidelities, keep=keep, cost_s=60.0)
    problem = replace(base, objectives=(metric, base.objectives[1]), functions=(metric,))
    module, none = strategy_module(algo), problem.space.genotypes(np.zeros(0, dtype=np.int64))
    most = trainings * (5 if fidelities else 1)
    strategy = module.build(
        StrategyContext(problem, seed, none, most), module.Parameters.model_validate(STRATEGIES[algo])
    )
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder) / FILE, problem.metric_names, tuple(o.name for o in problem.objectives), ())
        store.create({}, store_columns(problem))
        search = Search(problem, strategy, store, evaluate=Delegated(problem, Here(), store))
        while trained.spent < trainings and not search.run(Limits(search.charged + 20)).startswith("nothing"):
            continue
        store.close()
    found = search.archive.all()
    return found.keys[found.ok][: trained.whole]


def gaps(law: str, algo: str, keep: float, seeds: int, trainings: int) -> Iterator[list[float]]:
    """Of every seed the gap of each kind of steps."""
    space = load_space("paper").mapping()
    space["axes"]["top_k"] = [1]
    keys: dict[str, Any] = {"space": space, "default_budget": "none", "baselines": [], "applications": {}}
    base = assemble({**keys, "objectives": ["loss", "total_ms"]}, {}).problem
    every = base.space.genotypes(np.arange(base.space.size))
    latency = base.evaluate(every, ("total_ms",)).metrics["total_ms"]
    values = np.stack([Trained(law, 0).true(base.architectures(every)), latency], axis=1)
    best = values[non_dominated(values)]
    scale = Scale.from_frontier(base.objectives, best)
    for seed in range(seeds):
        found = [
            searched(base, Trained(law, seed, trainings), algo, steps, keep, seed, trainings)
            for steps in STEPS.values()
        ]
        yield [1.0 - scale.hypervolume(values[kept]) / scale.hypervolume(best) for kept in found]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--law", default="joint_moe")
    parser.add_argument("--trainings", type=int, default=60)
    parser.add_argument("--keep", type=float, default=KEEP)
    parser.add_argument("--algo", choices=STRATEGIES, action="append", help="of the strategies only these")
    given = parser.parse_args()
    print("| strategy | " + " | ".join(STEPS) + " |\n" + "|---" * (len(STEPS) + 1) + "|")
    for algo in given.algo or STRATEGIES:
        found = 100 * np.array(list(gaps(given.law, algo, given.keep, given.seeds, given.trainings)))
        won = (found < found[:, :1]).sum(axis=0)
        cells = [
            f"{np.median(column):.2g} %" + (f" ({wins} of {len(found)})" if i else "")
            for i, (column, wins) in enumerate(zip(found.T, won, strict=True))
        ]
        print(f"| `{algo}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
