"""Bytes per token by vocabulary size, for each design and for the tokenizer of the loss law; metrics per byte use them."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from objectives.quantities import Name
from objectives.text.vocabulary_cost import VocabularyCost
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, FloatArray

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class Size(BaseModel):
    """Counts at one size of vocabulary.

    unigram_nats: nats per token of single tokens without their context; None where the text was too short to tell.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    vocabulary: Count
    bytes_per_token: Positive
    unigram_nats: Positive | None = None


class Source(BaseModel):
    """The counted text: names of its files, documents, bytes and their hash; or the publication."""

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
        """Return the bytes of text per token for vocabularies of any shape.

        Raises:
            ValueError: a vocabulary outside of the counted sizes.
        """
        return _interpolated(self.name, {size.vocabulary: size.bytes_per_token for size in self.sizes}, vocabulary)

    def unigram_nats(self, vocabulary: AnyArray | int) -> FloatArray:
        """Return the entropy of single tokens, nats, for vocabularies of any shape: the loss of a model that knows only frequencies.

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


KILOBYTE = 1000.0


@dataclass(frozen=True)
class Text:
    """A curve of bytes per token, and the cost of a vocabulary relative to the law's tokenizer.

    prompt, answer: bytes of a request's, by which each vocabulary has its own tokens; 0 where its tokens are given.
    """

    curve: TokenCurve
    cost: VocabularyCost
    prompt: float = 0.0
    answer: float = 0.0

    def at(self, vocabulary: int) -> Self:
        """Return the same text with this vocabulary for every design (0: none)."""
        return replace(self, cost=self.cost.at(vocabulary))

    @property
    def of_requests(self) -> bool:
        """True if requests read or write text."""
        return self.prompt > 0 or self.answer > 0

    def with_requests(self, read: int, written: int, held: float) -> Self:
        """Return the same text with requests that are given in tokens as text of so many tokens, each of `held` bytes."""
        return replace(self, prompt=self.prompt or read * held, answer=self.answer or written * held)

    def tokens_of(self, text: float) -> int:
        """Return the tokens of so many bytes at the vocabulary that the cost is at, rounded up."""
        return math.ceil(text / self.bytes_per_token_here - 1e-9)

    @property
    def bytes_per_token_here(self) -> float:
        """Bytes of text per token of that vocabulary.

        Raises:
            ValueError: the curve does not count it.
        """
        return float(self.curve.bytes_per_token(self.cost.here or self.cost.relative_to))

    def bytes_per_token(self, architectures: Architectures) -> FloatArray:
        """Return bytes of text per token for each design, (n,); for one without a vocabulary, those of the law's tokenizer.

        Raises:
            ValueError: a vocabulary outside those that the curve counts.
        """
        own = architectures.vocabulary
        return self.curve.bytes_per_token(np.where(own > 0, own, self.cost.relative_to))

    def tokens_per_kilobyte(self, architectures: Architectures) -> FloatArray:
        """Return tokens per 1,000 bytes of text, (n,)."""
        return KILOBYTE / self.bytes_per_token(architectures)

    @property
    def tokens_per_kilobyte_here(self) -> float:
        """The same where every design has the vocabulary that the cost is at."""
        return KILOBYTE / self.bytes_per_token_here

    @property
    def bytes_of_law(self) -> float:
        """Bytes per token of the tokenizer behind the law's loss."""
        return float(self.curve.bytes_per_token(self.cost.relative_to))
