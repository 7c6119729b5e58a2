"""Fleets against brute force: every design in every case by itself, every partition of the cases."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plas_fleet import choice
from plas_fleet.answers import FleetAnswer

from nas.exact import solution as exact_solution
from nas.problem.problem import Problem
from nas.search.assembly import assemble

QUESTIONS = ("loss", "regret")
DEVICES = ("raspberry_pi_5", "jetson_agx_orin_64gb@15w", "rtx_4090", "jetson_agx_thor", "h100_sxm", "m4_10c")
WORKLOADS = ((1, 1024, 16), (8, 256, 32), (1, 8192, 256))
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
    """A random fleet problem: the space, a table of cases, and every design's loss, fits (n, cases), weights."""

    space: dict[str, Any]
    table: str
    problem: Problem
    loss: Any
    fits: Any
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
    served = [number for number, fit in enumerate(fits) if fit.any()]
    share = np.array(weights, dtype=float)[served]
    each = np.stack(fits, axis=1)[:, served]
    return Instance(space, "\n".join(lines), problem, found["loss"], each, share / share.sum() if len(share) else share)


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


def best_value(of: Instance, most: int, minimise: str) -> float:
    """The value of the best fleet; ∞ where none serves all cases."""
    own = np.array([of.loss[fit].min() for fit in of.fits.T])
    best, values = np.inf, dict[tuple[int, ...], float]()
    for groups in partitions(list(range(len(own))), most):
        for group in map(tuple, map(sorted, groups)):
            if group not in values:
                lowest = float(of.loss[of.fits[:, group].all(axis=1)].min(initial=np.inf))
                values[group] = (
                    lowest * of.weights[list(group)].sum() if minimise == "loss" else lowest - own[list(group)].min()
                )
        parts = [values[tuple(sorted(group))] for group in groups]
        best = min(best, sum(parts) if minimise == "loss" else max(parts))
    return best


def write_table(of: Instance, folder: Path) -> Path:
    """The cases as a table."""
    path = folder / "cases.csv"
    path.write_text(of.table)
    return path


def check(seed: int, minimise: str, fleet_of: Callable[..., FleetAnswer], folder: Path) -> None:
    """The value of one, two and three models, and who serves whom."""
    of = instance(seed)
    if len(of.weights) == 0:
        return
    asked: dict[str, Any] = {"models": "1..3", "minimise": minimise}
    found = fleet_of(table=write_table(of, folder), flags={"space": deepcopy(of.space), "preset": "paper"}, **asked)
    values = {fleet.most: fleet for fleet in found.fleets.fleets}
    for most in (1, 2, 3):
        fleet = values.get(most, found.fleets.fleets[-1])
        expected = best_value(of, most, minimise)
        assert fleet.value == pytest.approx(expected, abs=1e-9, rel=1e-9), (most, asked)
        if fleet.found:
            rows = fleet.keys
            assert of.fits[rows[fleet.serves], np.arange(len(fleet.serves))].all()
            np.testing.assert_allclose(of.loss[rows[fleet.serves]], fleet.loss, rtol=1e-12)
            assert len(rows) <= most


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
