"""What a vocabulary costs in loss per byte of text, by runs that differ in nothing but it."""

from typing import Annotated, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from search_spaces.arrays import AnyArray, FloatArray

REFERENCE = 16_384  # V at which the scale is what is lost
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Size = Annotated[int, Field(ge=1, le=10**7)]


class VocabularyCost(BaseModel):
    """Loss per byte of text at equal body and text, as a factor of that with the law's own tokenizer, of V₀ tokens.

    (1 + scale · (V / 16,384)^−exponent) / (1 + scale · (V₀ / 16,384)^−exponent), with V₀ `relative_to`.

    draws: scale and exponent refitted to bodies and runs drawn with replacement. fitted_on: range of V.
    here: the vocabulary of every design (0: none), where they have one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    scale: Positive
    exponent: Positive
    draws: tuple[tuple[Positive, Positive], ...] = ()
    fitted_on: tuple[Size, Size]
    relative_to: Size
    source: str
    here: Annotated[int, Field(ge=0, le=10**7)] | None = None

    def at(self, vocabulary: int) -> Self:
        """The same where every design has this vocabulary."""
        return self.model_copy(update={"here": vocabulary})

    def priced(self, losses: FloatArray, vocabulary: AnyArray | int) -> FloatArray:
        """Losses with what vocabularies cost, nats, (n,); where there is none (0) as they are."""
        return losses * _relative(vocabulary, self.relative_to, self.scale, self.exponent)

    def drawn(self, losses: FloatArray, vocabulary: AnyArray) -> FloatArray:
        """The same under draws of a law, (draws, n), each with a draw of the cost; of fewer draws they begin again."""
        draws = self.draws or ((self.scale, self.exponent),)
        factors = np.array([_relative(vocabulary, self.relative_to, *draw) for draw in draws[: len(losses)]])
        found: FloatArray = losses * factors[np.arange(len(losses)) % len(factors)]
        return found


def _relative(vocabulary: AnyArray | int, relative_to: int, scale: float, exponent: float) -> FloatArray:
    size = np.asarray(vocabulary, dtype=np.float64)
    size = np.where(size > 0, size, relative_to)
    found: FloatArray = _costs(size, scale, exponent) / _costs(np.array(relative_to), scale, exponent)
    return found


def _costs(size: AnyArray, scale: float, exponent: float) -> FloatArray:
    found: FloatArray = 1.0 + scale * (size / REFERENCE) ** -exponent
    return found
