"""What formats of weights cost in loss when they round the weights of a trained model, with the doubt: `costs.yaml`."""

from functools import cache
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from objectives.packaged import packaged
from search_spaces.arrays import FloatArray

BILLION = 1e9
ENDS = (0.05, 0.95)
Nats = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class FormatCosts(BaseModel):
    """Cost of format f of a model with N parameters without embeddings: nats_f · (N / 1e9)^−exponent.

    draws: exponent and nats of each format, in the order of `nats`, of a model that nothing was measured of. fitted_on: the
    parameters of the models measured.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    nats: dict[str, Nats]
    exponent: Annotated[float, Field(ge=0)]
    fitted_on: dict[str, tuple[float, float]]
    models: dict[str, Annotated[int, Field(gt=0)]]
    draws: tuple[str, ...]

    @model_validator(mode="after")
    def _alike(self) -> "FormatCosts":
        wrong = [row for row in self.draws if len(row.split()) != 1 + len(self.nats)]
        if wrong or not self.nats.keys() == self.fitted_on.keys() == self.models.keys():
            raise ValueError(
                "draws, fitted_on, models: expected those of the formats of nats; run benchmarks/format_costs.py"
            )
        return self

    def term(self, name: str) -> tuple[float, float]:
        """Scale and exponent of a format's cost, scale · N^−exponent nats."""
        return self.nats[name] * BILLION**self.exponent, self.exponent

    def drawn_terms(self, name: str) -> tuple[FloatArray, FloatArray]:
        """The same under each draw, (draws,) both."""
        rows = drawn_rows()
        exponents = rows[:, 0]
        return rows[:, 1 + list(self.nats).index(name)] * BILLION**exponents, exponents

    def interval(self, name: str, parameters: float) -> tuple[float, float]:
        """Where 90 % of such costs lie in a model of a size, nats."""
        scales, exponents = self.drawn_terms(name)
        low, high = np.quantile(scales * parameters**-exponents, ENDS)
        return float(low), float(high)


@cache
def format_costs() -> FormatCosts:
    """Those of this package."""
    return FormatCosts.model_validate(packaged("objectives.weight_formats", "costs"))


@cache
def drawn_rows() -> FloatArray:
    """The numbers of the draws, (draws, 1 + formats)."""
    return np.array([[float(number) for number in row.split()] for row in format_costs().draws])
