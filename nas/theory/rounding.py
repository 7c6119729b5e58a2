"""From the continuous optimum to a design: branch and bound over cells of the grid, with the certified bound of each."""

import heapq
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from nas.problem.dominance import rounded
from nas.problem.evaluations import Evaluations
from nas.problem.picks import best_row
from nas.theory.cells import Cell, genotypes, heads_of, sizes_of
from nas.theory.program import Optimum
from nas.theory.relaxation import Relaxation, relaxed
from nas.theory.theory_problem import TheoryProblem
from search_spaces.arrays import IntArray

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
        found = self.theory.problem.evaluate(genotypes, tuple(names))
        loss = np.where(found.feasible, found.metrics["loss"], np.inf)
        lowest = float(loss.min(initial=np.inf))
        self.best_loss = min(self.best_loss, lowest)
        keys: IntArray = found.keys[np.isfinite(loss) & (rounded(loss) == rounded(np.array([lowest])))]
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
