"""From the continuous optimum to a design: branch and bound over cells of the grid, with the certified bound of each.

Cells are boxes of the grid, of one (E, K), that are split until they are small enough to evaluate whole.
"""

import heapq
from dataclasses import dataclass, field, replace
from itertools import count, product
from math import prod

import numpy as np

from nas.problem.evaluations import Evaluations, rounded
from nas.problem.picks import best_row
from plas_paper.program import DEPTH, GQA, RATIO, WIDTH, Box, Optimum
from plas_paper.relaxation import Relaxation, relaxed
from plas_paper.theory_problem import TheoryProblem
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
        candidates, spans = [], []
        for variable in [WIDTH] if WIDTH in axes else axes:
            name, values = axes[variable]
            first, last = getattr(self, name)
            if last > first:
                candidates.append((variable, name, values))
                spans.append(abs(float(slope[variable])) * float(np.log(values[last] / values[first])))
        return candidates[int(np.argmax(spans))]


def sizes_of(theory: TheoryProblem, width: int) -> IntArray:
    """FFN genes that a width allows, by rising size."""
    gene = theory.problem.space.ffn_gene
    return gene.nth[width, : gene.counts[width]]


def heads_of(theory: TheoryProblem, width: int) -> IntArray:
    """KV genes that a width allows, by rising number of heads."""
    space = theory.problem.space
    genes = space.kv_gene.nth[width, : space.kv_gene.counts[width]]
    return genes[np.argsort(space.kv_values[width, genes])]


def genotypes(
    theory: TheoryProblem, pair: tuple[int, int], width: int, depths: IntArray, sizes: IntArray, heads: IntArray
) -> IntArray:
    """Genotypes (n, 6) of all combinations of positions on the axes of depth, FFN size and KV heads."""
    space = theory.problem.space
    expert, top_k = np.searchsorted(space.experts, pair[0]), np.searchsorted(space.top_ks, pair[1])
    ffn, kv = sizes_of(theory, width)[sizes], heads_of(theory, width)[heads]
    rows = [(a, width, expert, top_k, b, c) for a, b, c in product(depths.tolist(), ffn.tolist(), kv.tolist())]
    return np.array(rows, dtype=np.int64).reshape(-1, 6)


MOST = 3000  # relaxations of one answer
UNPROVEN = 600  # of one that can prove nothing, since not every (E, K) is relaxed
PAIRS = 300  # (E, K) that are relaxed; of more, those nearest the program's activation rate
LEAF = 2048  # designs of a cell that are evaluated rather than split
REACH = {"depth": 3, "ffn": 2, "kv": 2}  # grid values on each side of the optimum


@dataclass(frozen=True, eq=False)
class Rounded:
    """The best design found (one row, every metric; None: nothing feasible was met), those worth a look, the effort.

    `bound` is certified: no design of the space within the budgets has a lower loss (−inf where not
    every (E, K) was relaxed). `complete` says that nothing was left whose bound is below the best found, so that no
    design of the space is better; `designs` how many were evaluated, `tried` the neighbours of every optimum and
    the best of every cell evaluated whole; `lowest` is the lowest relaxation of any (E, K) with every width.
    """

    design: Evaluations | None
    tried: Evaluations | None
    bound: float
    relaxations: int
    cut_off: int
    designs: int
    complete: bool
    lowest: Relaxation | None


@dataclass(order=True)
class _Node:
    """A cell with its relaxation; ordered by bound."""

    bound: float
    number: int
    cell: Cell = field(compare=False)
    relaxation: Relaxation = field(compare=False)


class _Search:
    """Best-first over cells; keeps what is worth a look."""

    def __init__(self, theory: TheoryProblem) -> None:
        self.theory, self.numbers = theory, count()
        self.queue: list[_Node] = []
        self.solves = self.cut_off = self.designs = 0
        self.lowest: Relaxation | None = None
        self.tried: dict[int, None] = {}
        self.best_loss, self.every_pair = np.inf, True

    def add(self, cell: Cell, *, root: bool = False) -> None:
        """Relax a cell, try the designs around its optimum, queue it."""
        relaxation = relaxed(self.theory, cell.box(self.theory), cell.pair)
        self.solves += 1 if relaxation is None else relaxation.solves
        if relaxation is None:
            self.cut_off += 1
            return
        heapq.heappush(self.queue, _Node(relaxation.bound, next(self.numbers), cell, relaxation))
        if root or relaxation.bound < self.best_loss:  # at the roots for the sake of designs of every sparsity
            self._try(cell, relaxation.optimum)

    def _try(self, cell: Cell, optimum: Optimum) -> None:
        first, last = cell.width
        widths = self.theory.problem.space.widths[first : last + 1]
        order = np.argsort(np.abs(np.log(widths) - optimum.logs[1]))[:2]
        genotypes = np.concatenate([around(self.theory, optimum, cell.pair, first + int(i)) for i in order])
        keys = self.theory.problem.space.keys(genotypes)
        fresh = np.array([key not in self.tried for key in keys.tolist()])
        self.tried |= dict.fromkeys(keys.tolist())
        self._evaluated(genotypes[fresh])

    def _evaluated(self, genotypes: IntArray) -> IntArray:
        """Keys of the best of some designs, (n,): those that share the lowest loss within the budgets."""
        self.designs += len(genotypes)
        names = dict.fromkeys(("loss", *self.theory.limits))
        evaluations = self.theory.problem.evaluate(genotypes, tuple(names))
        loss = np.where(evaluations.feasible, evaluations.metrics["loss"], np.inf)
        lowest = float(loss.min(initial=np.inf))
        self.best_loss = min(self.best_loss, lowest)
        keys: IntArray = evaluations.keys[np.isfinite(loss) & (rounded(loss) == rounded(np.array([lowest])))]
        return keys

    def run(self) -> None:
        """Split the cell of the lowest bound, or evaluate it whole, until no bound is below the best design."""
        pairs, self.every_pair = nearest_pairs(self.theory)
        for experts, top_k in pairs.tolist():
            self.add(Cell.whole(self.theory, (experts, top_k)), root=True)
        self.lowest = self.queue[0].relaxation if self.queue else None
        most = MOST if self.every_pair else UNPROVEN
        while self.queue and self.queue[0].bound < self.best_loss and self.solves < most:
            node = heapq.heappop(self.queue)
            if node.cell.size() <= LEAF:
                self.tried |= dict.fromkeys(self._evaluated(node.cell.designs(self.theory)).tolist())
                continue
            for half in node.cell.halves(self.theory, node.relaxation.optimum):
                self.add(half)


def nearest_pairs(theory: TheoryProblem) -> tuple[IntArray, bool]:
    """The (E, K) to relax, and whether these are all."""
    pairs = theory.pairs
    whole = relaxed(theory, theory.box()) if len(pairs) > PAIRS else None
    if whole is None:
        return pairs, True
    away = np.abs(np.log(pairs[:, 1] / pairs[:, 0]) - whole.optimum.logs[4])
    return pairs[np.lexsort((pairs[:, 1], np.round(away, 2)))[:PAIRS]], False


def round_off(theory: TheoryProblem) -> Rounded:
    """The best design by branch and bound over cells, and what no design of the space goes below."""
    search = _Search(theory)
    search.run()
    waiting = min((node.bound for node in search.queue), default=np.inf)
    complete = search.every_pair and waiting >= search.best_loss
    bound = min(waiting, search.best_loss) if search.every_pair else -np.inf
    problem = theory.problem
    tried = problem.space.genotypes(np.array(sorted(search.tried), dtype=np.int64)) if search.tried else None
    evaluated = None if tried is None else problem.evaluate(tried)
    row = None if evaluated is None else best_row(evaluated, None)
    design = None if row is None or evaluated is None else evaluated[row : row + 1]
    cut_off = search.cut_off + len(search.queue)
    return Rounded(design, evaluated, bound, search.solves, cut_off, search.designs, complete, search.lowest)


def around(theory: TheoryProblem, optimum: Optimum, pair: tuple[int, int], width: int) -> IntArray:
    """Genotypes around a continuous optimum at one width (gene) and one (E, K), (n, 6)."""
    space, point = theory.problem.space, optimum.point
    d = float(space.widths[width])
    depth = _near(space.depths, point["depth"], REACH["depth"])
    sizes, heads = space.expert_sizes[width, sizes_of(theory, width)], space.kv_values[width, heads_of(theory, width)]
    ffn = _near(sizes, point["ffn_ratio"] * d / pair[1], REACH["ffn"])
    kv = _near(heads, d / (point["gqa"] * theory.setting.head_dim), REACH["kv"])
    return genotypes(theory, pair, width, depth, ffn, kv)


def _near(axis: IntArray, value: float, reach: int) -> IntArray:
    """Positions of the `reach` values on each side of a value on an ascending axis."""
    place = int(np.searchsorted(axis, value))
    return np.arange(max(0, place - reach), min(len(axis), place + reach))
