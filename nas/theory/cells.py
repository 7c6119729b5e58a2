"""Cells of a space: boxes of the grid, of one (E, K), that are split until they are small enough to evaluate whole."""

from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from nas.theory.posynomial import DEPTH, GQA, RATIO, WIDTH
from nas.theory.program import Box, Optimum
from nas.theory.theory_problem import TheoryProblem
from search_spaces.arrays import IntArray

Range = tuple[int, int]  # first and last position, both in


@dataclass(frozen=True)
class Cell:
    """Positions on the ascending axes of width, depth, FFN size and KV heads; the last two are whole until the width is one.

    `pair` is (E, K).
    """

    pair: tuple[int, int]
    width: Range
    depth: Range
    ffn: Range | None = None
    kv: Range | None = None

    @classmethod
    def whole(cls, theory: TheoryProblem, pair: tuple[int, int]) -> "Cell":
        """Every design of one (E, K)."""
        space = theory.problem.space
        return cls(pair, (0, len(space.widths) - 1), (0, len(space.depths) - 1)).settled(theory)

    def settled(self, theory: TheoryProblem) -> "Cell":
        """The cell with its FFN sizes and KV heads written out where the width is one."""
        if self.width[0] < self.width[1] or self.ffn is not None:
            return self
        space = theory.problem.space
        sizes, heads = (int(gene.counts[self.width[0]]) - 1 for gene in (space.ffn_gene, space.kv_gene))
        return replace(self, ffn=(0, sizes), kv=(0, heads))

    def axes(self, theory: TheoryProblem) -> dict[int, tuple[str, IntArray]]:
        """Per variable: the field that bounds it and the ascending values of its whole axis, as the variable has them."""
        space, (first, last) = theory.problem.space, self.width
        if first < last:
            return {WIDTH: ("width", space.widths), DEPTH: ("depth", space.depths)}
        sizes = space.expert_sizes[first, sizes_of(theory, first)] * self.pair[1] / space.widths[first]
        heads = space.kv_values[first, heads_of(theory, first)] / space.heads[first]
        return {DEPTH: ("depth", space.depths), RATIO: ("ffn", sizes), GQA: ("kv", heads)}

    def box(self, theory: TheoryProblem) -> Box:
        """Bounds that hold every design of the cell."""
        box = theory.box(*self.width, self.pair)
        ends = {"depth": [float(theory.problem.space.depths[i]) for i in self.depth]}
        if self.ffn is not None and self.kv is not None:
            _, ratios = self.axes(theory)[RATIO]
            _, shares = self.axes(theory)[GQA]
            ends["ffn_ratio"] = [float(ratios[i]) for i in self.ffn]
            ends["gqa"] = [float(1.0 / shares[i]) for i in reversed(self.kv)]
        return box.between(**{name: (low, high) for name, (low, high) in ends.items()})

    def size(self) -> float:
        """Number of designs; infinite while the width is not one."""
        if self.ffn is None or self.kv is None:
            return np.inf
        return prod(last - first + 1 for first, last in (self.depth, self.ffn, self.kv))

    def designs(self, theory: TheoryProblem) -> IntArray:
        """Genotypes of every design, (n, 6), of a cell of one width."""
        assert self.ffn is not None
        assert self.kv is not None
        return genotypes(
            theory,
            self.pair,
            self.width[0],
            *(np.arange(first, last + 1) for first, last in (self.depth, self.ffn, self.kv)),
        )

    def halves(self, theory: TheoryProblem, optimum: Optimum) -> "tuple[Cell, Cell]":
        """The cell cut in two, of one axis, where its optimum lies between two values."""
        variable, name, values = self._longest(theory, optimum)
        first, last = getattr(self, name)
        value = np.exp(-optimum.logs[GQA] if variable == GQA else optimum.logs[variable])
        cut = first + int(np.searchsorted(values[first : last + 1], value))
        if not first < cut <= last:
            cut = (first + last + 1) // 2
        lower, upper = (replace(self, **{name: ends}) for ends in ((first, cut - 1), (cut, last)))
        return lower.settled(theory), upper.settled(theory)

    def _longest(self, theory: TheoryProblem, optimum: Optimum) -> tuple[int, str, IntArray]:
        """Width while there are several; then the axis along which the loss changes most, by its slope at the optimum."""
        _, slope, _ = optimum.program.objective.derivatives(optimum.logs)
        axes = self.axes(theory)
        found, spans = [], []
        for variable in [WIDTH] if WIDTH in axes else axes:
            name, values = axes[variable]
            first, last = getattr(self, name)
            if last > first:
                found.append((variable, name, values))
                spans.append(abs(float(slope[variable])) * float(np.log(values[last] / values[first])))
        return found[int(np.argmax(spans))]


def sizes_of(theory: TheoryProblem, width: int) -> IntArray:
    """FFN genes that a width allows, by rising size."""
    gene = theory.problem.space.ffn_gene
    sizes: IntArray = gene.nth[width, : gene.counts[width]]
    return sizes


def heads_of(theory: TheoryProblem, width: int) -> IntArray:
    """KV genes that a width allows, by rising number of heads."""
    space = theory.problem.space
    found = space.kv_gene.nth[width, : space.kv_gene.counts[width]]
    heads: IntArray = found[np.argsort(space.kv_values[width, found])]
    return heads


def genotypes(
    theory: TheoryProblem, pair: tuple[int, int], width: int, depths: IntArray, sizes: IntArray, heads: IntArray
) -> IntArray:
    """Genotypes (n, 6) of all combinations of positions on the axes of depth, FFN size and KV heads."""
    space = theory.problem.space
    expert, top_k = np.searchsorted(space.experts, pair[0]), np.searchsorted(space.top_ks, pair[1])
    ffn, kv = sizes_of(theory, width)[sizes], heads_of(theory, width)[heads]
    rows = [(a, width, expert, top_k, b, c) for a, b, c in product(depths.tolist(), ffn.tolist(), kv.tolist())]
    return np.array(rows, dtype=np.int64).reshape(-1, 6)
