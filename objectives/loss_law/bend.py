"""Rising functions that bend one quantity of a loss law before its terms take it: more of it is worth less and less."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from search_spaces.arrays import FloatArray


class Bend(BaseModel):
    """A quantity made of another: a rising function of it with coefficients of the law.

    saturation, start s and most M: 1/v = 1/(u − 1 + 1/(1/s − 1/M)) + 1/M, so that v(1) = s and v < M.
    repetition, unique U and decay R: v = u up to U, beyond it U + U·R·(1 − exp(−(u/U − 1)/R)).

    Source: Clark et al. 2022, eq. 1, of experts; Muennighoff et al. 2023, eq. 5 and 6, of tokens and parameters.
    `coefficients` names start and most, or the factors of U and then R.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    of: str
    by: Literal["saturation", "repetition"]
    coefficients: tuple[str, ...] = Field(min_length=2)

    def value(self, quantity: FloatArray | float, c: Mapping[str, Any]) -> FloatArray | float:
        """The bent quantity of one or of many, under one law or under many draws, coefficients (draws, 1)."""
        first: list[FloatArray | float]
        last: FloatArray | float
        *first, last = (c[name] for name in self.coefficients)
        if self.by == "saturation":
            inner = quantity - 1.0 + 1.0 / (1.0 / first[0] - 1.0 / last)
            return 1.0 / (1.0 / inner + 1.0 / last)
        unique = math.prod(first)
        beyond = np.maximum(quantity / unique - 1.0, 0.0)
        return np.minimum(quantity, unique) + unique * last * -np.expm1(-beyond / last)
