"""Pairs of models as rows: columns of targets, drafts and metrics, their frontier, and rows with one draft."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nas.problem.evaluations import non_dominated, rounded
from search_spaces.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs as rows: genotypes of target and draft, tokens drafted, the probability that the first is accepted, metrics, each (n,).

    Of a target alone drafted is 0 and the draft's genotype of no meaning.
    """

    targets: IntArray
    drafts: IntArray
    drafted: IntArray
    first: FloatArray
    metrics: dict[str, FloatArray]

    def __len__(self) -> int:
        return len(self.drafted)

    def __getitem__(self, rows: IntArray | BoolArray) -> "Pairs":
        metrics = {name: column[rows] for name, column in self.metrics.items()}
        return Pairs(self.targets[rows], self.drafts[rows], self.drafted[rows], self.first[rows], metrics)

    def values(self, names: tuple[str, ...]) -> FloatArray:
        """Some metrics, (n, m)."""
        return np.stack([self.metrics[name] for name in names], axis=1) if names else np.zeros((len(self), 0))


def joined(first: Pairs, second: Pairs) -> Pairs:
    """The rows of both."""
    metrics = {name: np.concatenate([first.metrics[name], second.metrics[name]]) for name in first.metrics}
    targets, drafts, drafted = (
        np.concatenate([getattr(first, name), getattr(second, name)]) for name in ("targets", "drafts", "drafted")
    )
    return Pairs(targets, drafts, drafted, np.concatenate([first.first, second.first]), metrics)


def frontier(pairs: Pairs, names: tuple[str, ...]) -> Pairs:
    """Rows that no other dominates, with all ties, sorted by the objectives."""
    kept = pairs[non_dominated(pairs.values(names))]
    return kept[np.lexsort((kept.drafted, *rounded(kept.values(names)).T[::-1]))]


def groups_of(pairs: Pairs) -> Iterator[IntArray]:
    """Rows of pairs with one draft and one number of tokens."""
    kinds = np.concatenate([pairs.drafts, pairs.drafted[:, None]], axis=1)
    _, kind = np.unique(kinds, axis=0, return_inverse=True)
    order = np.argsort(kind.ravel(), kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(kind.ravel()[order])) + 1) if len(order) else ()
