"""A law fitted to a table: variable projection from many starts, then a robust polish of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.stats import qmc

from objectives.loss_law.form import Form
from plas_fit.fitting.columns import beside_kinds
from plas_fit.fitting.model import Model, compiled, needed
from plas_fit.fitting.robust import EFFICIENT, minimised, scale_of
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import FloatArray


def projected_starts(model: Model, starts: int, generator: np.random.Generator) -> FloatArray:
    """Least-squares coefficients from several starts of the exponents, best first, (starts, p)."""
    if not model.free:
        return np.stack([_vector(model, np.zeros(0))])
    found = [searched(model, exponents) for exponents in exponent_starts(model, starts, generator)]
    order = np.argsort([loss for _, loss in found], kind="stable")
    return np.stack([found[i][0] for i in order])


def exponent_starts(model: Model, starts: int, generator: np.random.Generator) -> FloatArray:
    """A Latin hypercube in the exponents' bounds, (starts, exponents)."""
    low, high = model.low[model.count :], model.high[model.count :]
    unit = qmc.LatinHypercube(len(model.free), rng=generator).random(starts)
    drawn: FloatArray = low + (0.05 + 0.9 * unit) * (high - low)
    return drawn


def searched(model: Model, exponents: FloatArray) -> tuple[FloatArray, float]:
    """The vector and the sum of squares that a search from these exponents ends at."""
    importance, target = relative(model)

    def value(trial: FloatArray) -> tuple[float, FloatArray]:
        terms = model.terms(trial[None])[0]
        scales = inner(model, terms, importance, target)
        residual = (scales @ terms - target) * importance
        weighted = 2.0 * residual * importance
        gradient = np.einsum("tn,ten->e", scales[:, None] * terms * weighted, model.slopes)
        return float(residual @ residual), gradient

    bounds = list(zip(model.low[model.count :], model.high[model.count :], strict=True))
    least = minimize(value, exponents, jac=True, method="SLSQP", bounds=bounds, options={"ftol": 1e-12, "maxiter": 80})
    return _vector(model, least.x), float(least.fun)


def relative(model: Model) -> tuple[FloatArray, FloatArray]:
    """Importance of each row and the values that the terms add up to; a residual of the logarithm is a relative one."""
    if not model.logarithmic:
        return np.sqrt(model.weight), model.target
    target = np.exp(model.target)
    return np.sqrt(model.weight) / target, target


def inner(model: Model, terms: FloatArray, importance: FloatArray, target: FloatArray) -> FloatArray:
    """Least-squares scales of given terms (terms, n), each at least its bound."""
    matrix = (terms * importance).T
    norms = np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
    both = np.flatnonzero(np.isinf(model.low[: model.count]))
    scaled = matrix / norms
    found, _ = nnls(np.hstack([scaled, -scaled[:, both]]), target * importance)
    scales: FloatArray = found[: model.count].copy()
    scales[both] -= found[model.count :]
    return np.asarray(scales / norms)


def _vector(model: Model, exponents: FloatArray) -> FloatArray:
    importance, target = relative(model)
    return np.concatenate([inner(model, model.terms(exponents[None])[0], importance, target), exponents])


ROUNDS = 3
AGREE = 1e-4  # relative excess of the objective at which two starts count as agreeing
LEAST_SCALE = 1e-9


@dataclass(frozen=True)
class Method:
    """How to fit: δ of the Huber loss (None: 1.345 robust residual sds; infinity: least squares), starts, seed."""

    delta: float | None = None
    starts: int = 16
    seed: int = 0
    fixed: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Fit:
    """The best coefficients, δ, the objective, and what each start ended at (objectives, best first)."""

    form_name: str
    table: Table
    model: Model
    method: Method
    vector: FloatArray
    delta: float
    objective: float
    reached: FloatArray

    @property
    def coefficients(self) -> dict[str, float]:
        """As in a law file."""
        return dict(zip(self.model.form.coefficients, self.model.raw(self.vector[None])[0].tolist(), strict=True))

    @property
    def predicted(self) -> FloatArray:
        """In the scale of the residuals, (n,)."""
        return np.asarray(self.model.predict(self.vector[None])[0])

    @property
    def residuals(self) -> FloatArray:
        """Observed minus predicted, in nats or in ln(nats), (n,)."""
        return np.asarray(self.model.target - self.predicted)

    @property
    def residual_sd(self) -> float:
        """√(Σ w r² / (n − p))."""
        squares = float((self.model.weight * self.residuals**2).sum())
        return float(np.sqrt(squares / max(self.model.n - len(self.vector), 1)))

    @property
    def agreeing(self) -> int:
        """Starts whose objective is the best's."""
        return int((self.reached <= self.objective * (1 + AGREE) + 1e-15).sum())


def fitted(form_name: str, form: Form, table: Table, method: Method) -> Fit:
    """Fit a form to a table, what kinds of layers cost beside its own terms.

    Raises:
        ValueError: too few rows, a quantity that is missing or constant.
    """
    model = compiled(beside_kinds(form, table.kinds), table, method.fixed)
    refuse(model, table)
    generator = np.random.default_rng(method.seed)
    starts = projected_starts(model, method.starts, generator)
    vectors, objectives, delta = polished(model, starts, method.delta)
    order = np.argsort(objectives, kind="stable")
    best = vectors[order[0]]
    return Fit(form_name, table, model, method, best, delta, float(objectives[order[0]]), objectives[order])


def polished(model: Model, starts: FloatArray, delta: float | None) -> tuple[FloatArray, FloatArray, float]:
    """Every start polished; without δ it follows the residuals of the best, which rounds settle."""
    if delta is not None:
        return (*minimised(model, starts, delta), delta)
    best = starts[0]
    for _ in range(ROUNDS):
        residuals = model.target - model.predict(best[None])[0]
        width = EFFICIENT * max(scale_of(residuals, len(best)), LEAST_SCALE)
        vectors, _ = minimised(model, best[None], width)
        best = vectors[0]
    vectors, objectives = minimised(model, np.concatenate([best[None], starts]), width)
    return vectors[1:] if len(starts) > 1 else vectors[:1], objectives[1:] if len(starts) > 1 else objectives[:1], width


def refuse(model: Model, table: Table) -> None:
    """Say why a table cannot determine a form.

    Raises:
        ValueError: a line a fault.
    """
    faults = []
    for name in needed(model.form, model.fixed):
        column = table.feature(name)
        exponents = {
            written.removeprefix("-") for t in model.form.terms.values() for f, written in t.powers.items() if f == name
        }
        logged = any(name in term.logs for term in model.form.terms.values())
        if not _varies(table, name) and (logged or exponents & set(model.free)):
            cure = "fix its exponent with --fix, or choose" if _told_apart(model.form, table) else "choose"
            faults.append(
                f"{name}: expected values that vary, got {column[0]:g} in every row; {cure} a form without it"
            )
    faults += [
        f"{kind}: expected rows with other shares of such layers, got {share[0]:g} in every row; add models of full attention alone"
        for kind, share in table.kinds.items()
        if np.ptp(share) <= 1e-9
    ]
    faults += [] if faults else _queries_of_the_width(needed(model.form, model.fixed), table)
    designs, p = len(np.unique(table.design)), len(model.names)
    if designs <= p and not faults:
        faults.append(
            f"rows: expected more than {p} different designs for {p} coefficients, got {designs}; add rows, --fix an exponent, or choose a smaller form"
        )
    if faults:
        raise ValueError("\n".join(faults))


def _told_apart(form: Form, table: Table) -> bool:
    """Whether no two terms are alike in the quantities that vary: with exponents held, rows could tell a sum of such terms alone."""
    vary = [frozenset(name for name in term.features if _varies(table, name)) for term in form.terms.values()]
    return len(set(vary)) == len(vary)


def _varies(table: Table, name: str) -> bool:
    column = table.feature(name) if table.has(name) else np.ones(1)
    return float(np.ptp(column)) > 1e-9 * float(np.abs(column).max())


def _queries_of_the_width(quantities: Sequence[str], table: Table) -> list[str]:
    """Heads that are together as wide as the layers, or a constant times so, in every row: no term can tell them apart."""
    if "query_dim" not in quantities or not table.has("width"):
        return []
    shares = table.feature("query_dim") / table.feature("width")
    if np.ptp(shares) > 1e-9 * float(shares.max()):
        return []
    return [
        f"query_dim: expected rows that differ in n_heads · head_dim / width, got {shares[0]:g} in every row; "
        "add such rows, or choose a form without it"
    ]
