"""Times of all mixers of a space, made once: a batch of twenty designs takes as long to time as thousands do."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from objectives.dimensions import Dimensions
from objectives.latency.operator import passes
from objectives.latency.operators import mixer_operators
from objectives.latency.roofline import operator_seconds
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray, frozen
from search_spaces.space import Mixers

BLOCK = 1024  # rows of which the times of all operators are held at once


@dataclass(frozen=True, eq=False)
class MixerTable:
    """Seconds of one instance of each operator, (operators, 2, mixers), and its instances in a layer, (operators, 2, plans).

    In prefill and decode, in operator order, so that sums have the bits of `pass_seconds`; where a phase has fewer operators, zeros last.
    """

    mixers: Mixers
    each: FloatArray
    counts: FloatArray

    @classmethod
    def made(cls, mixers: Mixers, architectures: Architectures, scenario: Scenario) -> Self:
        """The table of a space's mixers; `architectures` are those of `Mixers.designs`."""
        x, n, found = Dimensions(architectures), len(mixers), list[tuple[list[FloatArray], list[FloatArray]]]()
        for one in passes(scenario):
            each, counts = list[FloatArray](), list[FloatArray]()
            for operator in mixer_operators(x, one.phase, one.scenario):  # one at a time: memory is slow to come by
                seconds = operator_seconds(operator, one.phase, one.scenario, {})
                each.append(np.broadcast_to(seconds, len(x.width))[:n])
                counts.append(np.broadcast_to(operator.count, len(x.width))[n:])
            found.append((each, counts))
        return cls(mixers, *(_stacked(parts) for parts in zip(*found, strict=True)))

    def seconds(self, genotypes: IntArray) -> FloatArray:
        """Seconds of a layer's mixer in prefill and decode, of canonical genotypes, (2, n)."""
        total = np.empty((2, len(genotypes)))
        for start in range(0, len(genotypes), BLOCK):
            rows = slice(start, start + BLOCK)
            mixer, plan = self.mixers.of(genotypes[rows])
            total[:, rows] = np.add.accumulate(self.each[:, :, mixer] * self.counts[:, :, plan], axis=0)[-1]
        return total


def holds(scenario: Scenario) -> bool:
    """Whether a layer's mixer takes as long at any depth, beside any FFN: not where a cache or a link between chips has a say.

    Times of drafting are of further passes, those of `closed_form` of no operators.
    """
    serving = scenario.serving
    return not (scenario.latency != "operator" or scenario.cached or serving.drafted or serving.link)


def _stacked(parts: tuple[list[FloatArray], ...]) -> FloatArray:
    """Both phases in one array, (operators, 2, n)."""
    found = np.zeros((max(map(len, parts)), len(parts), len(parts[0][0])))
    for phase, rows in enumerate(parts):
        found[: len(rows), phase] = rows
    return frozen(found)
