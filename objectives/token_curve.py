"""Bytes of text that a token holds, and the entropy of single tokens, over the vocabulary: counted at some sizes, interpolated between."""

from itertools import pairwise
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from objectives.quantities import Name
from search_spaces.arrays import AnyArray, FloatArray

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class Size(BaseModel):
    """What was counted at one size of vocabulary.

    unigram_nats: nats per token of single tokens without their context; None where the text was too short to tell.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    vocabulary: Count
    bytes_per_token: Positive
    unigram_nats: Positive | None = None


class Source(BaseModel):
    """The text that was counted: names of its files, documents, bytes and the hash of them all; or the publication."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    texts: list[Name] = []
    documents: Count | None = None
    bytes: Count | None = None
    sha256: Name = ""
    published: str = ""


class TokenCurve(BaseModel):
    """Bytes per token b(V) and unigram entropy H₁(V) over the vocabulary V, of one text and one kind of tokenizer.

    Between counted sizes both are straight lines in ln V; outside of them there is no answer.
    trained_on, counted_on: bytes of text that the tokenizers were made from, and of the held-out text that was counted.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Name
    description: str = ""
    source: Source
    trained_on: Count | None = None
    counted_on: Count | None = None
    sizes: Annotated[list[Size], Field(min_length=1)]

    @field_validator("sizes")
    @classmethod
    def _ascending(cls, sizes: list[Size]) -> list[Size]:
        for before, after in pairwise(sizes):
            if after.vocabulary <= before.vocabulary:
                raise ValueError(
                    f"expected each vocabulary larger than the one before, got {after.vocabulary:,} after "
                    f"{before.vocabulary:,}; sort them, each once"
                )
        return sizes

    def bytes_per_token(self, vocabulary: AnyArray | int) -> FloatArray:
        """Bytes of text that a token holds, of vocabularies of any shape.

        Raises:
            ValueError: a vocabulary outside of the counted sizes.
        """
        return _interpolated(self.name, {size.vocabulary: size.bytes_per_token for size in self.sizes}, vocabulary)

    def unigram_nats(self, vocabulary: AnyArray | int) -> FloatArray:
        """Entropy of single tokens, nats per token, of vocabularies of any shape: the loss of a model that knows frequencies alone.

        Raises:
            ValueError: a vocabulary outside of the sizes at which it was counted.
        """
        counted = {size.vocabulary: size.unigram_nats for size in self.sizes if size.unigram_nats is not None}
        return _interpolated(self.name, counted, vocabulary)


def _interpolated(name: str, counted: dict[int, float], vocabulary: AnyArray | int) -> FloatArray:
    """Values at vocabularies, (n,), from values at counted ones; at one counted size alone the value there.

    Raises:
        ValueError: a vocabulary outside of the counted ones.
    """
    wanted = np.asarray(vocabulary)
    for got in np.unique(wanted):
        if not counted or not min(counted) <= got <= max(counted):
            span = " to ".join(f"{size:,}" for size in sorted({min(counted), max(counted)})) if counted else ""
            raise ValueError(
                f"vocabulary: expected {span or 'an entropy at some size'} as the curve {name} counts, got {got:,}; "
                "count it with the recipe in docs/vocabulary.md"
            )
    found: FloatArray = np.interp(np.log(wanted), np.log(list(counted)), list(counted.values()))
    return found
