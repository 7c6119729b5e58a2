"""How many bytes of text a token holds over the size of a vocabulary, and the unigram entropy of its tokens."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from objectives.quantities import Name
from search_spaces.arrays import AnyArray, FloatArray

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Count(BaseModel):
    """What was counted at one size of vocabulary: bytes per token, and the entropy of single tokens, nats."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    vocabulary: Annotated[int, Field(ge=1, le=10**7)]
    bytes_per_token: Positive
    unigram_nats: Positive | None = None


class TokenCurve(BaseModel):
    """Counts of one text by tokenizers of several sizes; between them both are interpolated in ln V."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Name
    description: str = ""
    source: str = ""
    remarks: tuple[str, ...] = ()
    counts: Annotated[tuple[Count, ...], Field(min_length=2)]

    @model_validator(mode="after")
    def _ascending(self) -> "TokenCurve":
        sizes = [count.vocabulary for count in self.counts]
        if sizes != sorted(set(sizes)):
            raise ValueError(f"counts: expected vocabularies in order, each once, got {sizes}; sort them")
        return self

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest size that was counted."""
        return self.counts[0].vocabulary, self.counts[-1].vocabulary

    def bytes_per_token(self, vocabulary: AnyArray | int) -> FloatArray:
        """Bytes of text per token of vocabularies of any shape.

        Raises:
            ValueError: a size outside those counted.
        """
        return self._between(vocabulary, [(count.vocabulary, count.bytes_per_token) for count in self.counts])

    def unigram_nats(self, vocabulary: AnyArray | int) -> FloatArray:
        """Entropy of single tokens, nats, of vocabularies of any shape.

        Raises:
            ValueError: a size outside those counted with it.
        """
        some = [(each.vocabulary, each.unigram_nats) for each in self.counts if each.unigram_nats is not None]
        return self._between(vocabulary, some)

    def _between(self, vocabulary: AnyArray | int, counted: Sequence[tuple[int, float]]) -> FloatArray:
        sizes, values = (np.array(each, dtype=np.float64) for each in zip(*counted, strict=True))
        given = np.asarray(vocabulary, dtype=np.float64)
        if (outside := given[(given < sizes[0]) | (given > sizes[-1])]).size:
            raise ValueError(
                f"vocabulary: expected {sizes[0]:,.0f} to {sizes[-1]:,.0f}, the sizes that {self.name} counts, "
                f"got {outside.flat[0]:,.0f}; count it with 'plas tokenize'"
            )
        found: FloatArray = np.interp(np.log(given), np.log(sizes), values)
        return found
