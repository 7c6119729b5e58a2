"""What is known of how often a target accepts the tokens of a draft model."""

from dataclasses import dataclass

import numpy as np

from search_spaces.arrays import BoolArray, FloatArray


@dataclass(frozen=True)
class AcceptanceOfDrafts:
    """Probability that a target accepts the first token of a draft model, by the draft's perplexity alone.

    points: perplexities with shares, perplexities rising, shares falling. Affine between two; better drafts than the first count as the
    first, the line goes on beyond the last, down to 0. One point is of every draft.
    Source: arXiv 2603.11053, affine in the draft's perplexity and, by little, the target's, which is left out here; its coefficients
    are in no text that is public to us.
    """

    points: tuple[tuple[float, float], ...]

    @property
    def constant(self) -> bool:
        """Whether every draft is accepted alike."""
        return len(self.points) == 1

    def first(self, perplexity: FloatArray) -> FloatArray:
        """The probability for drafts of these perplexities, (n,)."""
        x, shares = (np.array(each, dtype=np.float64) for each in zip(*self.points, strict=True))
        found: FloatArray = np.interp(perplexity, x, shares)
        if self.constant:
            return found
        slope = (shares[-1] - shares[-2]) / (x[-1] - x[-2])
        return np.where(perplexity > x[-1], np.maximum(shares[-1] + slope * (perplexity - x[-1]), 0.0), found)

    def measured(self, perplexity: FloatArray) -> BoolArray:
        """Which perplexities lie among those of the points, (n,)."""
        inside: BoolArray = (perplexity >= self.points[0][0]) & (perplexity <= self.points[-1][0])
        return inside
