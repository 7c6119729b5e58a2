"""Fleets against brute force: every design in every case by itself, every partition of the cases, every combination of a family."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plas_fleet import choice
from plas_fleet.answers import FleetAnswer

from nas.exact import solution as exact_solution
from nas.problem.problem import Problem
from nas.search.assembly import assemble

QUESTIONS: tuple[tuple[str, str | None, bool], ...] = (
    ("loss", None, False),
    ("regret", None, False),
    ("loss", None, True),
    ("regret", None, True),
    ("loss", "depth", False),
    ("regret", "depth", True),
    ("loss", "experts", True),
    ("regret", "experts", False),
)
DEVICES = ("raspberry_pi_5", "jetson_agx_orin_64gb@15w", "rtx_4090", "jetson_agx_thor", "h100_sxm", "m4_10c")
WORKLOADS = ((1, 1024, 16), (8, 256, 32), (1, 8192, 256))
SHARED = {
    "depth": ("width", "n_heads", "n_kv_heads", "n_experts", "top_k", "expert_size"),
    "experts": ("depth", "width", "n_heads", "n_kv_heads", "expert_size"),
}
AXES = {
    "depth": (4, 6, 8, 12, 16, 24),
    "width": (512, 768, 1024, 1536, 2048),
    "n_experts": (1, 4, 8, 16),
    "top_k": (1, 2),
    "expert_ffn_ratio": (0.5, 1, 2, 4),
    "n_kv_heads": (1, 2, 8),
}


@dataclass(frozen=True, eq=False)
class Instance:
    """A random fleet problem: the space, a table of cases, and every design's loss, fits (n, cases), FLOPs of training, weights."""

    space: dict[str, Any]
    table: str
    problem: Problem
    loss: Any
    fits: Any
    flops: Any
    weights: Any


def instance(seed: int) -> Instance:
    """A random space of at most 2,000 designs and up to 8 cases, each with a limit on a time and often one on memory."""
    rng = np.random.default_rng(seed)
    space = {"name": "random", "axes": {name: _some(rng, values) for name, values in AXES.items()}}
    space["axes"]["n_experts"] = sorted({1, *space["axes"]["n_experts"]})
    space["axes"]["top_k"] = sorted({1, *space["axes"]["top_k"]})
    lines, fits, weights = ["case,device,precision,batch,input_tokens,output_tokens,budget,units"], [], []
    for number in range(int(rng.integers(2, 9))):
        device, precision = str(rng.choice(DEVICES)), str(rng.choice(["fp16", "int8", "int4"]))
        batch, read, written = WORKLOADS[rng.integers(len(WORKLOADS))]
        metric = str(rng.choice(["decode_ms", "total_ms", "prefill_ms"]))
        keys = {
            "device": device,
            "precision": precision,
            "batch": batch,
            "input_tokens": read,
            "output_tokens": written,
        }
        problem = assemble(
            {"space": deepcopy(space), **keys, "algo": "random", "baselines": [], "applications": {}}, {}
        ).problem
        found = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size))).metrics
        limit = float(np.quantile(found[metric], rng.uniform(0.02, 0.9)))
        limit = float(found[metric].min() / 2) if rng.random() < 0.08 else limit
        memory = float(np.quantile(found["memory_gb"], rng.uniform(0.2, 1.0)))
        unit = int(rng.integers(1, 6))
        lines.append(
            f"c{number},{device},{precision},{batch},{read},{written},{metric}={limit!r} memory_gb={memory!r},{unit}"
        )
        fits.append((found[metric] <= limit) & (found["memory_gb"] <= memory))
        weights.append(unit)
    flops = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)), ("train_flops",)).metrics[
        "train_flops"
    ]
    served = [number for number, fit in enumerate(fits) if fit.any()]
    share = np.array(weights, dtype=float)[served]
    each = np.stack(fits, axis=1)[:, served]
    return Instance(
        space, "\n".join(lines), problem, found["loss"], each, flops, share / share.sum() if len(share) else share
    )


def _some(rng: Any, values: Sequence[Any]) -> list[Any]:
    count = int(rng.integers(2, min(len(values), 4) + 1)) if len(values) > 2 else int(rng.integers(1, 3))
    return sorted(rng.choice(values, size=count, replace=False).tolist())


def partitions(cases: list[int], most: int) -> Iterator[list[list[int]]]:
    """Every way to cut cases into at most so many groups."""
    if not cases:
        yield []
        return
    first, *rest = cases
    for groups in partitions(rest, most):
        for place in range(len(groups)):
            yield [*groups[:place], [first, *groups[place]], *groups[place + 1 :]]
        if len(groups) < most:
            yield [[first], *groups]


def best_value(of: Instance, most: int, minimise: str, family: str | None, budget: float) -> float:
    """The value of the best fleet; ∞ where none serves all cases within the budget."""
    own = np.array([of.loss[fit].min() for fit in of.fits.T])
    return _of_family(of, own, most, minimise, family, budget) if family else _of_all(of, own, most, minimise, budget)


def _of_all(of: Instance, own: Any, most: int, minimise: str, budget: float) -> float:
    steps: dict[tuple[int, ...], list[tuple[float, float]]] = {}
    best = np.inf
    for groups in partitions(list(range(len(own))), most):
        known = [(0.0, 0.0)]
        for group in groups:
            key = tuple(sorted(group))
            if key not in steps:
                steps[key] = _steps(of, own, key, minimise)
            known = _front(
                [
                    (cost + c, value + v if minimise == "loss" else max(value, v))
                    for cost, value in known
                    for c, v in steps[key]
                    if cost + c <= budget
                ]
            )
        best = min([best, *(value for _, value in known)])
    return best


def _steps(of: Instance, own: Any, group: tuple[int, ...], minimise: str) -> list[tuple[float, float]]:
    """Cost and value of the designs that may serve a group, those that none beats."""
    rows = np.flatnonzero(of.fits[:, group].all(axis=1))
    if minimise == "loss":
        values = of.loss[rows] * of.weights[list(group)].sum()
    else:
        values = of.loss[rows] - own[list(group)].min()
    return _front(list(zip(of.flops[rows].tolist(), values.tolist(), strict=True)))


def _front(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    kept, least = [], np.inf
    for cost, value in sorted(points):
        if value < least:
            kept.append((cost, value))
            least = value
    return kept


def _of_family(of: Instance, own: Any, most: int, minimise: str, family: str, budget: float) -> float:
    shape = of.problem.space.architectures(of.problem.space.genotypes(np.arange(of.problem.space.size)))
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(zip(*(getattr(shape, name).tolist() for name in SHARED[family]), strict=True)):
        groups.setdefault(key, []).append(row)
    best = np.inf
    for members in groups.values():
        able = [row for row in members if of.flops[row] <= budget and of.fits[row].any()]
        for size in range(1, most + 1):
            for chosen in combinations(able, size):
                loss = np.where(of.fits[list(chosen)], of.loss[list(chosen)][:, None], np.inf).min(axis=0)
                best = min(best, float(loss @ of.weights if minimise == "loss" else (loss - own).max()))
    return best


def write_table(of: Instance, folder: Path) -> Path:
    """The cases as a table."""
    path = folder / "cases.csv"
    path.write_text(of.table)
    return path


def check(
    seed: int, question: tuple[str, str | None, bool], fleet_of: Callable[..., FleetAnswer], folder: Path
) -> None:
    """The value of one, two and three models, what a fleet says of itself, and that it is proved."""
    of, (minimise, family, budgeted) = instance(seed), question
    rng = np.random.default_rng(seed)
    fitting = of.flops[of.fits.any(axis=1)]
    if len(of.weights) == 0:
        return
    budget = float(np.quantile(fitting, rng.uniform(0.1, 1.0)) * rng.uniform(1.0, 2.0)) if budgeted else np.inf
    asked: dict[str, Any] = {"models": "1..3", "minimise": minimise, "family": family}
    asked |= {"training_budget": f"{budget!r} FLOP"} if budgeted else {}
    found = fleet_of(table=write_table(of, folder), flags={"space": deepcopy(of.space), "preset": "paper"}, **asked)
    values = {fleet.most: fleet for fleet in found.fleets.fleets}
    for most in (1, 2, 3):
        fleet = values.get(most, found.fleets.fleets[-1])
        expected = best_value(of, most, minimise, family, budget)
        assert fleet.proved
        assert fleet.value == pytest.approx(expected, abs=1e-9, rel=1e-9), (most, asked)
        if fleet.found:
            rows = fleet.keys
            assert of.fits[rows[fleet.serves], np.arange(len(fleet.serves))].all()
            np.testing.assert_allclose(of.loss[rows[fleet.serves]], fleet.loss, rtol=1e-12)
            assert len(rows) <= most
            spent = of.flops[rows].max() if family else of.flops[rows].sum()
            assert spent <= budget * (1 + 1e-12)


@pytest.mark.parametrize("few", [choice.FEW, 0])
@pytest.mark.parametrize("seed", range(12))
def test_a_random_fleet_is_the_best(
    seed: int, few: int, fleet_of: Callable[..., FleetAnswer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "FEW", few)
    monkeypatch.setattr(exact_solution, "SMALL", 50 if few == 0 else exact_solution.SMALL)
    check(seed, QUESTIONS[seed % len(QUESTIONS)], fleet_of, tmp_path)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(200))
def test_200_random_fleets_are_the_best_by_every_objective(
    seed: int, fleet_of: Callable[..., FleetAnswer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "FEW", choice.FEW if seed % 2 else 0)
    monkeypatch.setattr(exact_solution, "SMALL", exact_solution.SMALL if seed % 4 < 2 else 50)
    for question in QUESTIONS:
        check(1000 + seed, question, fleet_of, tmp_path)
