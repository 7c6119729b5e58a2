"""Posynomials: sums of positive multiples of l^a d^b r^c gqa^e ρ^f, convex functions of the variables' logarithms."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from search_spaces.arrays import FloatArray, frozen

VARIABLES = ("depth", "width", "ffn_ratio", "gqa", "activation_rate")
DEPTH, WIDTH, RATIO, GQA, RATE = range(5)


@dataclass(frozen=True, eq=False)
class Posynomial:
    """Σ_k c_k Π_i x_i^a_ki with c (k,) ≥ 0 and a (k, 5), the variables in the order of `VARIABLES`."""

    coefficients: FloatArray
    exponents: FloatArray

    @classmethod
    def of(cls, terms: Iterable[tuple[float, tuple[float, ...]]]) -> Self:
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
