"""Geometric programs in logarithms: posynomials, and the least of a convex function under posynomial limits, certified.

Source: Boyd, Kim, Vandenberghe, Hassibi 2007 (geometric programs); Wright 1997 (primal-dual steps).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from search_spaces.arrays import BoolArray, FloatArray, IntArray, frozen

VARIABLES = ("depth", "width", "ffn_ratio", "gqa", "activation_rate")


@dataclass(frozen=True, eq=False)
class Posynomial:
    """Σ_k c_k Π_i x_i^a_ki with c (k,) ≥ 0 and a (k, 5), the variables in the order of `VARIABLES`."""

    coefficients: FloatArray
    exponents: FloatArray

    @classmethod
    def from_terms(cls, terms: Iterable[tuple[float, tuple[float, ...]]]) -> Self:
        """A posynomial of (coefficient, exponents) pairs; terms of coefficient 0 are left out.

        Raises:
            ValueError: a negative coefficient, which makes it no posynomial.
        """
        kept = [(c, a) for c, a in terms if c != 0.0]
        if any(c < 0.0 for c, _ in kept):
            raise ValueError("posynomial: expected coefficients of at least 0, got a negative one")
        coefficients = np.array([c for c, _ in kept], dtype=np.float64)
        return cls(frozen(coefficients), frozen(np.array([a for _, a in kept], dtype=np.float64).reshape(-1, 5)))

    def __call__(self, logs: FloatArray) -> FloatArray:
        """Values at logarithms of the variables (…, 5), (…,)."""
        return np.exp(logs @ self.exponents.T) @ self.coefficients

    def __add__(self, other: "Posynomial") -> "Posynomial":
        return Posynomial(
            np.concatenate([self.coefficients, other.coefficients]), np.concatenate([self.exponents, other.exponents])
        )

    def times(self, factor: float) -> "Posynomial":
        """The posynomial times a positive factor."""
        return Posynomial(self.coefficients * factor, self.exponents)

    def derivatives(self, logs: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient (5,) and Hessian (5, 5) by the logarithms at a point (5,)."""
        terms = self.coefficients * np.exp(self.exponents @ logs)
        return float(terms.sum()), terms @ self.exponents, (self.exponents.T * terms) @ self.exponents


@dataclass(frozen=True, eq=False)
class Convex:
    """A posynomial + Σ_i slope_i ln x_i + constant: convex in logarithms, since what is linear there has no curvature."""

    powers: Posynomial
    slopes: FloatArray
    constant: float

    def __call__(self, logs: FloatArray) -> FloatArray:
        """Values at logarithms of the variables (…, 5), (…,)."""
        return self.powers(logs) + logs @ self.slopes + self.constant

    def derivatives(self, logs: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient (5,) and Hessian (5, 5) by the logarithms at a point (5,)."""
        value, gradient, hessian = self.powers.derivatives(logs)
        return value + float(logs @ self.slopes) + self.constant, gradient + self.slopes, hessian

    @property
    def seen(self) -> BoolArray:
        """Which variables change the value, (5,)."""
        seen: BoolArray = (self.slopes != 0.0) | (self.powers.exponents != 0.0).any(axis=0)
        return seen


STEPS, TOLERANCE, LAST = 100, 1e-11, 1e-14
ROUNDING = 1e-12  # of a limit's logarithm
ACTIVE = 1e-6  # a multiplier above this share of the largest marks a limit as active


@dataclass(frozen=True, eq=False)
class Box:
    """Bounds of the five variables, and the least KV dimension (gqa ≤ d / least), features.

    Every cost rises with depth, width and ratio and falls with gqa and activation rate, so that
    `cheapest` has the least of every cost at once.
    """

    lower: FloatArray
    upper: FloatArray
    least_kv_dim: float = 0.0

    @property
    def cheapest(self) -> FloatArray:
        """Logarithms of the point with the least of every cost, (5,)."""
        low, high = self.lower, self.upper
        gqa = high[3] if self.least_kv_dim == 0.0 else min(high[3], low[1] / self.least_kv_dim)
        corner: FloatArray = np.log(np.array([low[0], low[1], low[2], gqa, high[4]]))
        return corner

    def cheaper(self, logs: FloatArray, which: BoolArray) -> FloatArray:
        """A point (5,) with some variables moved to where every cost is least."""
        moved = np.where(which, self.cheapest, logs)
        if which[3]:
            least = self.least_kv_dim
            moved[3] = np.log(self.upper[3]) if least == 0.0 else min(np.log(self.upper[3]), moved[1] - np.log(least))
        return moved

    def fixed(self, **values: float) -> "Box":
        """The box with some variables fixed."""
        return self.between(**{name: (value, value) for name, value in values.items()})

    def between(self, **ranges: tuple[float, float]) -> "Box":
        """The box with other bounds for some variables."""
        lower, upper = self.lower.copy(), self.upper.copy()
        for name, (low, high) in ranges.items():
            lower[VARIABLES.index(name)], upper[VARIABLES.index(name)] = low, high
        return Box(lower, upper, self.least_kv_dim)


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise what is convex in logarithms over a box, under named posynomials that may be at most 1."""

    objective: Convex | Posynomial
    limits: Mapping[str, Posynomial]
    box: Box

    @cached_property
    def lines(self) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
        """Linear limits in logarithms, A x ≤ b, with their names; fixed variables have none."""
        rows, right, names = [], [], []
        for i, name in enumerate(VARIABLES):
            low, high = self.box.lower[i], self.box.upper[i]
            for sign, bound, word in ((-1.0, low, "least"), (1.0, high, "largest")):
                if low < high and 0.0 < bound < np.inf:
                    rows.append([sign * (j == i) for j in range(5)])
                    right.append(sign * np.log(bound))
                    names.append(f"{word} {name}")
        if self.box.least_kv_dim > 0.0:
            rows.append([0.0, -1.0, 0.0, 1.0, 0.0])
            right.append(-np.log(self.box.least_kv_dim))
            names.append("least KV heads")
        return np.array(rows).reshape(-1, 5), np.array(right), tuple(names)

    @cached_property
    def free(self) -> BoolArray:
        """Which variables are not fixed, (5,)."""
        return self.box.lower < self.box.upper

    @cached_property
    def _stacked(self) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
        """Log coefficients, exponents, owner and membership (limits, terms) of the posynomial limits."""
        parts = list(self.limits.values())
        owner = np.repeat(np.arange(len(parts)), [len(p.coefficients) for p in parts])
        logs = np.log(np.concatenate([p.coefficients for p in parts])) if parts else np.zeros(0)
        exponents = np.concatenate([p.exponents for p in parts]) if parts else np.zeros((0, 5))
        return logs, exponents, owner, (owner == np.arange(len(parts))[:, None]).astype(np.float64)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all limits: the posynomial ones, then the linear ones."""
        return (*self.limits, *self.lines[2])

    def excess(self, x: FloatArray) -> FloatArray:
        """Logarithm of each limit's value, at most 0 where it is met, (limits,)."""
        logs, exponents, _, member = self._stacked
        sides, right, _ = self.lines
        return np.concatenate([np.log(member @ np.exp(logs + exponents @ x)), sides @ x - right])

    def slopes(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradients of the excesses (limits, 5) and each term's share of its posynomial (terms,)."""
        logs, exponents, owner, member = self._stacked
        terms = np.exp(logs + exponents @ x)
        shares = terms / (member @ terms)[owner]
        return np.concatenate([member @ (shares[:, None] * exponents), self.lines[0]]), shares

    def curvature(self, shares: FloatArray, gradients: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Σ multiplier · Hessian of the posynomial limits, (5, 5)."""
        _, exponents, owner, member = self._stacked
        own, some = multipliers[: len(member)], gradients[: len(member)]
        return (exponents.T * (shares * own[owner])) @ exponents - (some.T * own) @ some

    @property
    def feasible(self) -> bool:
        """Whether the point where every cost is least meets the posynomial limits, up to rounding; if not, nothing does."""
        return bool((self.excess(self.box.cheapest)[: len(self.limits)] <= ROUNDING).all())


@dataclass(frozen=True, eq=False)
class Optimum:
    """A solved program: logarithms of the variables, multipliers by limit (nats per unit of a limit's logarithm).

    `residual` is the largest of stationarity, violation and complementarity; no point of the box
    that meets the limits has an objective below `bound` (−inf where the box is unbounded).
    """

    program: Program = field(repr=False)
    logs: FloatArray
    value: float
    multipliers: FloatArray
    residual: float
    bound: float
    steps: int

    @property
    def point(self) -> dict[str, float]:
        """The variables by name."""
        return dict(zip(VARIABLES, np.exp(self.logs).tolist(), strict=True))

    @property
    def prices(self) -> dict[str, float]:
        """Multipliers of the limits that hold the optimum back."""
        least = max(1e-9, ACTIVE * float(self.multipliers.max(initial=0.0)))
        named = zip(self.program.names, self.multipliers.tolist(), strict=True)
        return {name: price for name, price in named if price > least}

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the limits that hold the optimum back."""
        return tuple(self.prices)


def solve(program: Program, start: FloatArray | None = None) -> Optimum:
    """The one optimum of a feasible program, by primal-dual interior-point steps with exact derivatives.

    Convex in logarithms, so that the point where the conditions of Karush, Kuhn and Tucker hold is
    the global optimum whatever the start.
    """
    free = program.free
    x = _middle(program.box) if start is None else start.copy()
    x[~free] = np.log(program.box.lower[~free])
    slack = np.maximum(-program.excess(x), 0.1)
    price = 0.1 / slack
    steps = 0
    while not _met(state := _residuals(program, x, slack, price), program.free, slack * price) and steps < STEPS:
        x, slack, price = _stepped(program, x, slack, price, state)
        steps += 1
    return _certified(program, x, price, steps)


def _met(state: "_State", free: BoolArray, gaps: FloatArray) -> bool:
    """Whether the conditions hold, or the slacks are at the resolution of float64."""
    parts = (state.stationarity[free], state.violation, gaps)
    return gaps.max(initial=0.0) < LAST or all(np.abs(part).max(initial=0.0) < TOLERANCE for part in parts)


def _middle(box: Box) -> FloatArray:
    low = np.where(box.lower > 0.0, box.lower, np.minimum(1.0, box.upper) * 0.1)
    high = np.where(np.isfinite(box.upper), box.upper, np.maximum(low * 100.0, 1.0))
    return 0.5 * (np.log(low) + np.log(high))


@dataclass(frozen=True, eq=False)
class _State:
    stationarity: FloatArray
    violation: FloatArray
    gradients: FloatArray
    hessian: FloatArray


def _residuals(program: Program, x: FloatArray, slack: FloatArray, price: FloatArray) -> _State:
    _, slope, curvature = program.objective.derivatives(x)
    gradients, shares = program.slopes(x)
    hessian = curvature + program.curvature(shares, gradients, price)
    return _State(slope + price @ gradients, program.excess(x) + slack, gradients, hessian)


CENTRING, TO_BOUNDARY, LONGEST = 0.1, 0.995, 3.0


def _stepped(
    program: Program, x: FloatArray, slack: FloatArray, price: FloatArray, state: _State
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """One damped Newton step towards the central path: H dx = −r, with slacks and prices kept positive."""
    free = program.free
    target = CENTRING * float(slack @ price) / max(len(slack), 1)
    complementarity = slack * price - target
    jacobian = state.gradients[:, free]
    matrix = state.hessian[np.ix_(free, free)] + (jacobian.T * (price / slack)) @ jacobian
    right = -state.stationarity[free] - jacobian.T @ ((price * state.violation - complementarity) / slack)
    matrix[np.diag_indices_from(matrix)] += 1e-14 * (1.0 + np.abs(np.diag(matrix)))
    dx = np.linalg.solve(matrix, right)
    d_slack = -state.violation - jacobian @ dx
    d_price = (-complementarity - price * d_slack) / slack
    length = min(1.0, LONGEST / max(float(np.abs(dx).max(initial=0.0)), 1e-300))
    for value, change in ((slack, d_slack), (price, d_price)):
        falling = change < 0.0
        if falling.any():
            length = min(length, TO_BOUNDARY * float((-value[falling] / change[falling]).min()))
    moved = x.copy()
    moved[free] += length * dx
    return moved, slack + length * d_slack, price + length * d_price


def _certified(program: Program, x: FloatArray, price: FloatArray, steps: int) -> Optimum:
    """The optimum with its certificate.

    For z ≥ 0 the Lagrangian is convex and below the objective wherever the limits are met, so that
    f(y) ≥ f(x) + z·g(x) − Σ_i |∂_i Lagrangian(x)| · (width of the box in direction i). A limit counts as
    met up to rounding, which lowers the bound by what that could buy at the prices.
    """
    gradients, _ = program.slopes(x)
    excess = program.excess(x)
    value, own, _ = program.objective.derivatives(x)
    slope, box = (own + price @ gradients)[program.free], program.box
    with np.errstate(divide="ignore"):
        widths = (np.log(box.upper) - np.log(box.lower))[program.free]
    lost = float(np.abs(slope) @ widths) if np.isfinite(widths).all() else np.inf
    lost += ROUNDING * float(price.sum())
    residual = float(
        max(np.abs(slope).max(initial=0.0), excess.max(initial=0.0), np.abs(price * excess).max(initial=0.0))
    )
    return Optimum(program, x, value, price, residual, min(value, value + float(price @ excess) - lost), steps)
