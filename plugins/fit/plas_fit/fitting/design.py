"""Optimal designs to train next: of a fitted law, over a space's candidates.

D-optimal designs make the coefficients' joint interval small (log det of JᵀJ), V-optimal ones the
predictions' variance at chosen targets, cost-aware ones log det per training FLOP. Source: Fedorov 1972.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import qmc

from objectives import training
from objectives.loss_law.form import Form
from objectives.loss_law.law import Law
from plas_fit.fitting.columns import beside_kinds, coefficient
from plas_fit.fitting.diagnostics import FACTORS
from plas_fit.fitting.estimate import Fit
from plas_fit.fitting.model import Model, compiled
from plas_fit.fitting.trained_models import Table
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from search_spaces.columns import SHAPE
from search_spaces.layer_kinds import KIND_DEFAULTS

Tokens = float | FloatArray | None  # training tokens of all candidates, of each, or unknown
Goal = Literal["coefficients", "cost"]
RIDGE = 1e-8
PASSES = 3
FILLING = 0.25  # share that fills the space: an optimal design sits in corners and cannot see a wrong form
REPLICATED = 0.1
RANDOM_SETS = 20
NOTHING = 1e-9  # length of a column that says nothing


@dataclass(frozen=True, eq=False)
class Plan:
    """Rows of the candidates to train, why each, its seed, and what they do to standard errors (geometric mean).

    shrink: relative to those before or, where nothing is known yet, to those of as many random designs.
    """

    rows: IntArray
    purpose: tuple[str, ...]
    seed: IntArray
    shrink: float


@dataclass(frozen=True, eq=False)
class Knowledge:
    """A form at coefficients, and what trained models already say of these.

    information (p, p): JᵀJ of what was trained, each column of J divided by its `scale` (p,), which is 0
    for a coefficient without effect. varying: factors that a filling may spread over.
    """

    form: Form
    fixed: Mapping[str, float]
    reference: Mapping[str, float]
    vector: FloatArray
    scale: FloatArray
    information: FloatArray
    varying: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing was trained yet."""
        return not self.information.any()

    def sensitivities(self, architectures: Architectures, tokens: Tokens) -> FloatArray:
        """Derivatives of each candidate's prediction by the coefficients that have an effect, scaled, (n, p)."""
        model = compiled(self.form, table_of(architectures, tokens), self.fixed, self.reference)
        used = self.scale > NOTHING
        return _columns(model, self.vector)[:, used] / self.scale[used]


def known_by(fit: Fit) -> Knowledge:
    """The information matrix and coefficients of a fit."""
    model = fit.model
    own = _columns(model, fit.vector) * np.sqrt(model.weight)[:, None]
    scale = np.linalg.norm(own, axis=0)
    own = own[:, scale > NOTHING] / scale[scale > NOTHING]
    varying = tuple(name for name in FACTORS if fit.table.has(name))
    return Knowledge(model.form, model.fixed, model.reference, fit.vector, scale, own.T @ own, varying)


def assumed_by(law: Law, fixed: Mapping[str, float], architectures: Architectures) -> Knowledge:
    """What a law assumes before anything was trained, its scales those of the candidates; a kind without a delta costs nothing."""
    table = table_of(architectures, law.tokens)
    model = compiled(beside_kinds(law.law_form, table.kinds), table, fixed)
    deltas = {coefficient(kind): law.layer_deltas.get(kind, 0.0) for kind in table.kinds}
    vector = model.vector({**law.coefficients, **deltas})
    scale = np.linalg.norm(_columns(model, vector), axis=0)
    used = int((scale > NOTHING).sum())
    return Knowledge(model.form, fixed, model.reference, vector, scale, np.zeros((used, used)), FACTORS)


def _columns(model: Model, vector: FloatArray) -> FloatArray:
    """Derivatives of the predictions, (n, p)."""
    return np.asarray(model.derivatives(vector[None])[1][0].T)


def table_of(architectures: Architectures, tokens: Tokens) -> Table:
    """Candidates as a table; their loss is unknown and 1."""
    kinds = [name for name in KIND_DEFAULTS if getattr(architectures, name).any()]
    numbers = {name: np.asarray(getattr(architectures, name), dtype=np.float64) for name in (*SHAPE, *kinds)}
    n = len(architectures)
    training = {} if tokens is None else {"tokens": np.broadcast_to(np.asarray(tokens, dtype=np.float64), (n,))}
    return Table({**numbers, **training, "loss": np.ones(n)}, np.arange(n))


def plan(
    known: Knowledge,
    architectures: Architectures,
    n: int,
    goal: Goal,
    tokens: Tokens,
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
            f"next: expected at most {len(architectures):,} designs, as many as there are candidates, got {n}; ask for fewer"
        )
    candidates = known.sensitivities(architectures, tokens)
    cost = training_flops(architectures, tokens) if goal == "cost" else None
    chosen = optimal(candidates, designs, known.information, None, cost)
    filled = filling_rows(known.varying, architectures, chosen, filling, generator)
    rows = np.concatenate([chosen, filled, chosen[:repeated]]).astype(np.int64)
    purpose = (goal,) * len(chosen) + ("space_filling",) * len(filled) + ("replicate",) * repeated
    seed = np.concatenate([np.zeros(len(chosen) + len(filled), dtype=np.int64), np.ones(repeated, dtype=np.int64)])
    after = known.information + candidates[rows].T @ candidates[rows]
    before = random_sets(candidates, n, generator) if known.empty else [known.information]
    return Plan(rows, purpose, seed, float(np.exp(np.mean([np.log(shrunk(each, after)) for each in before]))))


def random_sets(candidates: FloatArray, n: int, generator: np.random.Generator) -> list[FloatArray]:
    """The information matrices of sets of n random designs, each (p, p)."""
    drawn = [candidates[generator.choice(len(candidates), n)] for _ in range(RANDOM_SETS)]
    return [rows.T @ rows for rows in drawn]


def training_flops(architectures: Architectures, tokens: Tokens) -> FloatArray:
    """FLOP of training as metric `train_flops` counts them, (n,); tokens are 1 where they are unknown: then only ratios mean something."""
    several = np.broadcast_to(np.float64(1.0) if tokens is None else np.asarray(tokens), (len(architectures),))
    return training.training_flops(architectures, several, training.Training.sequence_length)


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
    varying: Sequence[str], architectures: Architectures, chosen: IntArray, n: int, generator: np.random.Generator
) -> IntArray:
    """Candidates nearest the points of a Latin hypercube in the logarithms of the factors, none chosen twice, (n,)."""
    table = table_of(architectures, None)
    names = [name for name in varying if name in table.levels]
    names = [name for name in names if not name.endswith("parameters")] or names
    if n == 0 or not names:
        return np.zeros(0, dtype=np.int64)
    candidates = np.stack([np.log(table.feature(name)) for name in names], axis=1)
    points = (candidates - candidates.min(axis=0)) / np.maximum(np.ptp(candidates, axis=0), 1e-300)
    free, found = np.ones(len(points), dtype=bool), []
    free[chosen] = False
    for aim in qmc.LatinHypercube(len(names), rng=generator).random(n):
        found.append(int(np.argmin(np.where(free, ((points - aim) ** 2).sum(axis=1), np.inf))))
        free[found[-1]] = False
    return np.array(found, dtype=np.int64)
