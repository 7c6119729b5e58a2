"""Text of which metrics per byte are: bytes per token of each design's vocabulary, and of the tokenizer that a law's loss is of."""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from objectives.text.vocabulary_cost import VocabularyCost
from objectives.token_curve import TokenCurve
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

KILOBYTE = 1000.0


@dataclass(frozen=True)
class Text:
    """A curve of bytes per token, and what a vocabulary costs beside the law's own tokenizer.

    prompt, answer: bytes of a request's, by which each vocabulary has its own tokens; 0 where its tokens are given.
    """

    curve: TokenCurve
    cost: VocabularyCost
    prompt: float = 0.0
    answer: float = 0.0

    def at(self, vocabulary: int) -> Self:
        """The same where every design has this vocabulary (0: none)."""
        return replace(self, cost=self.cost.at(vocabulary))

    @property
    def of_requests(self) -> bool:
        """Whether requests are of text, read or written."""
        return self.prompt > 0 or self.answer > 0

    def with_requests(self, read: int, written: int, held: float) -> Self:
        """The same where a request that is given in tokens is the text of so many, each of `held` bytes."""
        return replace(self, prompt=self.prompt or read * held, answer=self.answer or written * held)

    def tokens_of(self, text: float) -> int:
        """Tokens of so many bytes where every design has the vocabulary that the cost is at, rounded up."""
        return math.ceil(text / self.bytes_per_token_here - 1e-9)

    @property
    def bytes_per_token_here(self) -> float:
        """Bytes of text per token of that vocabulary.

        Raises:
            ValueError: the curve does not count it.
        """
        return float(self.curve.bytes_per_token(self.cost.here or self.cost.relative_to))

    def bytes_per_token(self, architectures: Architectures) -> FloatArray:
        """Bytes of text per token of each design, (n,); of one without a vocabulary those of the law's tokenizer.

        Raises:
            ValueError: a vocabulary outside those that the curve counts.
        """
        own = architectures.vocabulary
        return self.curve.bytes_per_token(np.where(own > 0, own, self.cost.relative_to))

    def tokens_per_kilobyte(self, architectures: Architectures) -> FloatArray:
        """Tokens of 1,000 bytes of text, (n,)."""
        return KILOBYTE / self.bytes_per_token(architectures)

    @property
    def tokens_per_kilobyte_here(self) -> float:
        """The same where every design has the vocabulary that the cost is at."""
        return KILOBYTE / self.bytes_per_token_here

    @property
    def bytes_of_law(self) -> float:
        """Bytes per token of the tokenizer that the law's loss is of."""
        return float(self.curve.bytes_per_token(self.cost.relative_to))
