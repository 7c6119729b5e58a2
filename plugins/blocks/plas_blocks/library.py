"""The library itself: one row a replacement, with the layers it takes the place of, its block, its scores and its costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files.faults import unknown
from search_spaces.arrays import BoolArray, FloatArray, IntArray

SCORE = "score"  # the library's one score, whatever it is called
LARGER = ("token_accuracy", "accuracy", "cosine_similarity")  # scores of which more is better, by how their names begin
LOSS = "loss"  # in the name of a score of which less is better


@dataclass(frozen=True)
class Row:
    """One replacement as a file has it; `where` is the place that its faults name."""

    where: str
    layers: tuple[int, ...]
    block: str
    parent: bool
    values: Mapping[str, Any]
    kind: str = ""  # what the block is, where its name alone does not say
    content: Mapping[str, Any] = field(default_factory=dict)  # of Puzzletron: block_config, layer_replacement


@dataclass(frozen=True, eq=False)
class Library:
    """Replacements sorted by first layer, number of layers and name, so that the order of a file decides nothing.

    `first`, `length`: (n,) the layers that each takes the place of; `parent`: whether it is the parent's own block;
    `metrics`: (n,) each, in the file's units; `scores`: which of them are qualities, the others are costs;
    `larger`: scores of which more is better; `rest`: what the model costs besides its layers.
    """

    source: str
    first: IntArray
    length: IntArray
    blocks: tuple[str, ...]
    kinds: tuple[str, ...]
    parent: BoolArray
    metrics: Mapping[str, FloatArray]
    scores: tuple[str, ...]
    larger: frozenset[str]
    rest: Mapping[str, float]
    contents: tuple[Mapping[str, Any], ...]

    def __len__(self) -> int:
        return len(self.first)

    @property
    def layers(self) -> int:
        """How many layers the parent has."""
        return int((self.first + self.length).max())

    @property
    def costs(self) -> tuple[str, ...]:
        """Metrics that are no score."""
        return tuple(name for name in self.metrics if name not in self.scores)

    @cached_property
    def baselines(self) -> Mapping[str, float]:
        """Of each score the parent's own, where it is the whole model's: the same at each of its layers.

        The score of a replacement is then the whole model's with that one replaced, and what adds up is the difference.
        0 where the parent's blocks have values of their own, or none are marked.
        """
        found = {}
        for name in self.scores:
            own = self.metrics[name][self.parent]
            found[name] = float(own[0]) if len(own) and (own == own[0]).all() else 0.0
        return found

    def named(self, name: str) -> str:
        """A metric by its name, also as Puzzletron writes it (`stats.memory_mib`), or `score`.

        Raises:
            UsageError: the library has none of that name, or several scores.
        """
        short = name.removeprefix("metrics.").removeprefix("stats.")
        if short in self.metrics:
            return short
        if short == SCORE and len(self.scores) == 1:
            return self.scores[0]
        if short == SCORE and self.scores:
            raise UsageError(
                f"objective: expected one score, got {len(self.scores)} ({', '.join(self.scores)}); name one instead of 'score'"
            )
        raise UsageError(f"{self.source}: {unknown('a metric', name, {*self.metrics, SCORE})}")

    def total(self, name: str, chosen: Sequence[int] | IntArray) -> float:
        """A metric of a whole mixture, from its replacements."""
        offset = self.baselines.get(name, 0.0)
        return offset + self.rest.get(name, 0.0) + float(np.sum(self.metrics[name][chosen] - offset))

    def written_layers(self, row: int) -> str:
        """`7`, or `7-9` of a replacement of several."""
        first, length = int(self.first[row]), int(self.length[row])
        return str(first) if length == 1 else f"{first}-{first + length - 1}"

    @property
    def parents(self) -> IntArray | None:
        """The parent's block of each layer, (layers,); None where one is not marked."""
        rows = np.flatnonzero(self.parent & (self.length == 1))
        whole = np.array_equal(self.first[rows], np.arange(self.layers))
        return rows if whole else None


def is_score(name: str) -> bool:
    """Whether a metric is known to be a quality by its name alone."""
    return name == SCORE or LOSS in name or larger_is_better(name)


def larger_is_better(name: str) -> bool:
    """Whether a score is known to be one of which more is better."""
    return name.startswith(LARGER)
