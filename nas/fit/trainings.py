"""Trainings that may be proposed: architectures, each on a count of tokens."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from objectives.fitting.design import training_flops
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

SHARES = (1.0, 0.5, 0.25)  # of the law's tokens: counts for a form with tokens where no table says which are trained
MOST_COUNTS = 4


@dataclass(frozen=True, eq=False)
class Trainings:
    """Architectures to train, each on its tokens, (n,); None where tokens are unknown."""

    architectures: Architectures
    tokens: FloatArray | None

    def __len__(self) -> int:
        return len(self.architectures)

    def __getitem__(self, rows: IntArray) -> "Trainings":
        return Trainings(self.architectures[rows], None if self.tokens is None else self.tokens[rows])

    @property
    def flops(self) -> FloatArray:
        """Training FLOP of each, (n,); only ratios mean something where tokens are unknown."""
        return training_flops(self.architectures, self.tokens)

    def losses(self, law: Law) -> FloatArray:
        """What a law predicts for each on its tokens, nats, (n,)."""
        found = np.zeros(len(self))
        for rows, at in self.by_count(law):
            found[rows] = at.loss(self.architectures[rows])
        return found

    def drawn_losses(self, law: Law) -> FloatArray:
        """The same under each of a law's draws, (draws, n)."""
        found = np.zeros((len(law.drawn), len(self)))
        for rows, at in self.by_count(law):
            found[:, rows] = at.drawn_losses(self.architectures[rows])
        return found

    def by_count(self, law: Law) -> Iterator[tuple[IntArray, Law]]:
        """Rows of each count of tokens with the law for that count."""
        if self.tokens is None:
            yield np.arange(len(self)), law
            return
        for count in np.unique(self.tokens).tolist():
            yield np.flatnonzero(self.tokens == count), law.model_copy(update={"tokens": count})


def counts_of(law: Law, trained: FloatArray | None) -> FloatArray | None:
    """Token counts to train on, the law's own first: of a form with tokens several, those trained before where there are any."""
    if law.tokens is None:
        return None
    if "tokens" not in law.law_form.features:
        return np.array([law.tokens])
    levels = law.tokens * np.array(SHARES) if trained is None else np.unique(trained)[::-1]
    if len(levels) > MOST_COUNTS:
        levels = levels[np.linspace(0, len(levels) - 1, MOST_COUNTS).round().astype(np.int64)]
    return np.array([law.tokens, *(float(level) for level in levels if level != law.tokens)])


def on_counts(architectures: Architectures, counts: FloatArray | None) -> Trainings:
    """Every architecture on every count of tokens."""
    if counts is None:
        return Trainings(architectures, None)
    rows = np.tile(np.arange(len(architectures)), len(counts))
    return Trainings(architectures[rows], np.repeat(counts, len(architectures)))
