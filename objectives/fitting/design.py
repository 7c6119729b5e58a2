"""Which architectures to train next: optimal designs of a fitted law over a space's candidates.

D-optimal designs make the coefficients' joint interval small (log det of JᵀJ), V-optimal ones the
predictions' variance at chosen targets, cost-aware ones log det per training FLOP. Source: Fedorov 1972.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import qmc

from objectives.fitting.diagnostics import FACTORS
from objectives.fitting.fit import Fit
from objectives.fitting.model import compiled
from objectives.fitting.table import Table
from search_spaces.architectures import SHAPE, Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray

Goal = Literal["coefficients", "frontier", "cost"]
RIDGE = 1e-8
PASSES = 3
FILLING = 0.25  # share that fills the space: an optimal design sits in corners and cannot see a wrong form
REPLICATED = 0.1


@dataclass(frozen=True, eq=False)
class Plan:
    """Rows of the candidates to train, why each, its seed, and what they do to standard errors (geometric mean)."""

    rows: IntArray
    purpose: tuple[str, ...]
    seed: IntArray
    shrink: float


def table_of(architectures: Architectures, tokens: float | None) -> Table:
    """Candidates as a table; their loss is unknown and 1."""
    numbers = {name: np.asarray(getattr(architectures, name), dtype=np.float64) for name in SHAPE}
    n = len(architectures)
    training = {} if tokens is None else {"tokens": np.full(n, tokens)}
    return Table({**numbers, **training, "loss": np.ones(n)}, np.arange(n))


def sensitivities(fit: Fit, architectures: Architectures, tokens: float | None) -> FloatArray:
    """Derivatives of each candidate's prediction by the free coefficients, in units of those of the data, (n, p)."""
    model = compiled(fit.model.form, table_of(architectures, tokens), fit.model.fixed, fit.model.reference)
    _, jacobian = model.derivatives(fit.vector[None])
    own = _own(fit)
    scale = np.maximum(np.linalg.norm(own, axis=0), 1e-300)
    found: FloatArray = jacobian[0].T / scale
    return found[:, np.linalg.norm(own, axis=0) > 1e-9]


def information(fit: Fit) -> FloatArray:
    """JᵀJ of the rows that were fitted, in the same units, (p, p)."""
    own = _own(fit)
    norms = np.linalg.norm(own, axis=0)
    scaled = own[:, norms > 1e-9] / norms[norms > 1e-9]
    found: FloatArray = scaled.T @ scaled
    return found


def _own(fit: Fit) -> FloatArray:
    _, jacobian = fit.model.derivatives(fit.vector[None])
    return np.asarray(jacobian[0].T * np.sqrt(fit.model.weight)[:, None])


def plan(
    fit: Fit,
    architectures: Architectures,
    n: int,
    goal: Goal,
    targets: Architectures | None,
    tokens: float | None,
    generator: np.random.Generator,
) -> Plan:
    """n trainings: optimal designs, a space-filling quarter, a tenth repeated with another seed.

    Raises:
        ValueError: fewer candidates than designs.
    """
    repeated = max(1, round(REPLICATED * n)) if n >= 5 else 0
    filling = round(FILLING * n)
    designs = n - repeated - filling
    if len(architectures) < designs + filling:
        raise ValueError(
            f"next: expected at most {len(architectures):,} designs, the space's size, got {n}; ask for fewer"
        )
    candidates, known = sensitivities(fit, architectures, tokens), information(fit)
    aims = None if targets is None else sensitivities(fit, targets, tokens)
    cost = training_flops(architectures, tokens) if goal == "cost" else None
    chosen = optimal(candidates, designs, known, aims if goal == "frontier" else None, cost)
    filled = filling_rows(fit, architectures, chosen, filling, generator)
    rows = np.concatenate([chosen, filled, chosen[:repeated]]).astype(np.int64)
    purpose = (goal,) * len(chosen) + ("space_filling",) * len(filled) + ("replicate",) * repeated
    seed = np.concatenate([np.zeros(len(chosen) + len(filled), dtype=np.int64), np.ones(repeated, dtype=np.int64)])
    after = known + candidates[rows].T @ candidates[rows]
    return Plan(rows, purpose, seed, shrunk(known, after))


def training_flops(architectures: Architectures, tokens: float | None) -> FloatArray:
    """6 · active parameters · tokens (1 where tokens are unknown: then only ratios mean something), FLOP, (n,)."""
    return np.asarray(6.0 * table_of(architectures, tokens).feature("active_parameters") * (tokens or 1.0))


def shrunk(before: FloatArray, after: FloatArray) -> float:
    """Geometric mean over coefficients of the standard error after, relative to before."""
    ridge = RIDGE * float(np.trace(after)) / len(after) * np.eye(len(after))
    old, new = np.diag(np.linalg.inv(before + ridge)), np.diag(np.linalg.inv(after + ridge))
    return float(np.exp(0.5 * np.log(new / old).mean()))


def optimal(
    candidates: FloatArray, n: int, known: FloatArray, targets: FloatArray | None = None, cost: FloatArray | None = None
) -> IntArray:
    """Rows of candidates (m, p), greedily, then exchanged one by one while that helps, (n,)."""
    p = candidates.shape[1]
    start = known + RIDGE * max(float(np.trace(known)), float((candidates**2).sum(axis=1).mean())) / p * np.eye(p)
    inverse, chosen, free = np.linalg.inv(start), list[int](), np.ones(len(candidates), dtype=bool)
    for _ in range(n):
        best = _best(candidates, inverse, targets, cost, free)
        inverse = _added(inverse, candidates[best])
        chosen.append(best)
        free[best] = False
    for _ in range(PASSES):
        before = list(chosen)
        for i, row in enumerate(before):
            free[row] = True
            inverse = _added(inverse, candidates[row], -1.0)
            chosen[i] = _best(candidates, inverse, targets, cost, free)
            inverse = _added(inverse, candidates[chosen[i]])
            free[chosen[i]] = False
        if chosen == before:
            break
    return np.array(chosen, dtype=np.int64)


def _best(
    candidates: FloatArray, inverse: FloatArray, targets: FloatArray | None, cost: FloatArray | None, free: BoolArray
) -> int:
    """The free candidate that gains most."""
    solved = candidates @ inverse
    spread = np.einsum("np,np->n", solved, candidates)
    if targets is not None:
        gain = ((solved @ targets.T) ** 2).sum(axis=1) / (1.0 + spread)
    else:
        gain = np.log1p(np.maximum(spread, 0.0))
    gain = gain if cost is None else gain / cost
    return int(np.argmax(np.where(free, gain, -np.inf)))


def _added(inverse: FloatArray, row: FloatArray, sign: float = 1.0) -> FloatArray:
    """(M + sign · x xᵀ)⁻¹ from M⁻¹ (Sherman and Morrison 1950)."""
    solved = inverse @ row
    return np.asarray(inverse - sign * np.outer(solved, solved) / (1.0 + sign * float(row @ solved)))


def filling_rows(
    fit: Fit, architectures: Architectures, chosen: IntArray, n: int, generator: np.random.Generator
) -> IntArray:
    """Candidates nearest the points of a Latin hypercube in the logarithms of the factors, none chosen twice, (n,)."""
    table = table_of(architectures, None)
    names = [name for name in FACTORS if name in table.levels and fit.table.has(name)]
    names = [name for name in names if not name.endswith("parameters")] or names
    if n == 0 or not names:
        return np.zeros(0, dtype=np.int64)
    candidates = _logs(table, names)
    points = (candidates - candidates.min(axis=0)) / np.maximum(np.ptp(candidates, axis=0), 1e-300)
    free, found = np.ones(len(points), dtype=bool), []
    free[chosen] = False
    for aim in qmc.LatinHypercube(len(names), rng=generator).random(n):
        found.append(int(np.argmin(np.where(free, ((points - aim) ** 2).sum(axis=1), np.inf))))
        free[found[-1]] = False
    return np.array(found, dtype=np.int64)


def _logs(table: Table, names: Sequence[str]) -> FloatArray:
    return np.stack([np.log(table.feature(name)) for name in names], axis=1)
