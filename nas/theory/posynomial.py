"""Convex functions of the logarithms of l, d, r, gqa, ρ: posynomials, and these plus what is linear in the logarithms."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from search_spaces.arrays import BoolArray, FloatArray, frozen

VARIABLES = ("depth", "width", "ffn_ratio", "gqa", "activation_rate")
DEPTH, WIDTH, RATIO, GQA, RATE = range(5)


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
        values: FloatArray = np.exp(logs @ self.exponents.T) @ self.coefficients
        return values

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
        values: FloatArray = self.powers(logs) + logs @ self.slopes + self.constant
        return values

    def derivatives(self, logs: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient (5,) and Hessian (5, 5) by the logarithms at a point (5,)."""
        value, gradient, hessian = self.powers.derivatives(logs)
        return value + float(logs @ self.slopes) + self.constant, gradient + self.slopes, hessian

    @property
    def seen(self) -> BoolArray:
        """Which variables change the value, (5,)."""
        seen: BoolArray = (self.slopes != 0.0) | (self.powers.exponents != 0.0).any(axis=0)
        return seen
