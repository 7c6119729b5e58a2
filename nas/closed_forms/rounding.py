"""From the continuous optimum to a design: relaxations by width and (E, K), neighbours, and what a bound cuts off."""

import heapq
from dataclasses import dataclass, field
from itertools import count, product

import numpy as np

from nas.closed_forms.frame import Frame
from nas.closed_forms.program import Optimum
from nas.closed_forms.relaxation import Relaxation, relaxed
from nas.evaluations import Evaluations
from nas.picks import best_row
from search_spaces.arrays import IntArray

MOST = 600  # relaxations of one answer
PAIRS = 300  # (E, K) that are relaxed; of more, those nearest the program's activation rate
REACH = {"depth": 3, "ffn": 2, "kv": 2}  # grid values on each side of the optimum


@dataclass(frozen=True, eq=False)
class Rounded:
    """The best design found (one row, every metric; None: nothing feasible was met), all that were tried, the effort.

    `bound` is certified: no design of the space within the budgets has a lower loss (−inf where not
    every (E, K) was relaxed). `complete` says
    that nothing was left unsolved whose bound is below the best found; `lowest` is the lowest
    relaxation of any (E, K) with every width.
    """

    design: Evaluations | None
    tried: Evaluations | None
    bound: float
    relaxations: int
    cut_off: int
    complete: bool
    lowest: Relaxation | None


@dataclass(order=True)
class _Node:
    """A range of widths of one (E, K) with its relaxation; ordered by bound."""

    bound: float
    number: int
    pair: tuple[int, int] = field(compare=False)
    first: int = field(compare=False)
    last: int = field(compare=False)
    relaxation: Relaxation = field(compare=False)


class _Search:
    """Best-first over nodes; keeps every design tried."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.numbers = frame, count()
        self.queue: list[_Node] = []
        self.solves, self.leaf_bound = 0, np.inf
        self.lowest: Relaxation | None = None
        self.tried: dict[int, None] = {}
        self.best_loss, self.every_pair = np.inf, True

    def add(self, pair: tuple[int, int], first: int, last: int) -> None:
        """Relax a node, try the designs around its optimum, queue it."""
        relaxation = relaxed(self.frame, self.frame.box(first, last, pair), pair)
        self.solves += 1 if relaxation is None else relaxation.solves
        if relaxation is None:
            return
        node = _Node(relaxation.bound, next(self.numbers), pair, first, last, relaxation)
        heapq.heappush(self.queue, node)
        root = last - first == len(self.frame.problem.space.widths) - 1
        if root or relaxation.bound < self.best_loss:  # at the roots for the sake of designs of every sparsity
            self._try(node)

    def _try(self, node: _Node) -> None:
        space = self.frame.problem.space
        widths = space.widths[node.first : node.last + 1]
        order = np.argsort(np.abs(np.log(widths) - node.relaxation.optimum.logs[1]))[:2]
        genotypes = np.concatenate(
            [around(self.frame, node.relaxation.optimum, node.pair, node.first + int(i)) for i in order]
        )
        keys = space.keys(genotypes)
        fresh = np.array([key not in self.tried for key in keys.tolist()])
        self.tried |= dict.fromkeys(keys.tolist())
        if fresh.any():
            names = ("loss", *self.frame.limits)
            found = self.frame.problem.evaluate(genotypes[fresh], tuple(dict.fromkeys(names)))
            self.best_loss = min(self.best_loss, float(found.metrics["loss"][found.feasible].min(initial=np.inf)))

    def run(self) -> None:
        """Split the lowest bound until it is no better than the best design."""
        pairs, self.every_pair = _nearest(self.frame)
        for experts, top_k in pairs.tolist():
            self.add((experts, top_k), 0, len(self.frame.problem.space.widths) - 1)
        self.lowest = self.queue[0].relaxation if self.queue else None
        while self.queue and self.queue[0].bound < self.best_loss and self.solves < MOST:
            node = heapq.heappop(self.queue)
            if node.first == node.last:
                self.leaf_bound = min(self.leaf_bound, node.bound)
                continue
            middle = (node.first + node.last) // 2
            self.add(node.pair, node.first, middle)
            self.add(node.pair, middle + 1, node.last)


def _nearest(frame: Frame) -> tuple[IntArray, bool]:
    """The (E, K) to relax, and whether these are all."""
    pairs = frame.pairs
    whole = relaxed(frame, frame.box()) if len(pairs) > PAIRS else None
    if whole is None:
        return pairs, True
    away = np.abs(np.log(pairs[:, 1] / pairs[:, 0]) - whole.optimum.logs[4])
    return pairs[np.lexsort((pairs[:, 1], np.round(away, 2)))[:PAIRS]], False


def round_off(frame: Frame) -> Rounded:
    """The design that the relaxations and their neighbours lead to."""
    search = _Search(frame)
    search.run()
    waiting = min((node.bound for node in search.queue), default=np.inf)
    complete = search.every_pair and (not search.queue or waiting >= search.best_loss)
    bound = min(search.leaf_bound, waiting) if search.every_pair else -np.inf
    problem = frame.problem
    tried = problem.space.genotypes(np.array(sorted(search.tried), dtype=np.int64)) if search.tried else None
    evaluated = None if tried is None else problem.evaluate(tried)
    row = None if evaluated is None else best_row(evaluated, None)
    design = None if row is None or evaluated is None else evaluated[row : row + 1]
    return Rounded(design, evaluated, bound, search.solves, len(search.queue), complete, search.lowest)


def around(frame: Frame, optimum: Optimum, pair: tuple[int, int], width: int) -> IntArray:
    """Genotypes around a continuous optimum at one width (gene) and one (E, K), (n, 6)."""
    space, point = frame.problem.space, optimum.point
    sizes, kvs = space.ffn_gene.nth[width], space.kv_gene.nth[width]
    sizes, kvs = sizes[: space.ffn_gene.counts[width]], kvs[: space.kv_gene.counts[width]]
    kvs = kvs[np.argsort(space.kv_values[width, kvs])]
    d = float(space.widths[width])
    kv_heads = d / (point["gqa"] * frame.setting.head_dim)
    depth = _near(space.depths, point["depth"], REACH["depth"])
    size = sizes[_near(space.expert_sizes[width, sizes], point["ffn_ratio"] * d / pair[1], REACH["ffn"])]
    kv = kvs[_near(space.kv_values[width, kvs], kv_heads, REACH["kv"])]
    expert, top_k = np.searchsorted(space.experts, pair[0]), np.searchsorted(space.top_ks, pair[1])
    rows = [(a, width, expert, top_k, b, c) for a, b, c in product(depth.tolist(), size.tolist(), kv.tolist())]
    return np.array(rows, dtype=np.int64)


def _near(axis: IntArray, value: float, reach: int) -> IntArray:
    """Positions of the `reach` values on each side of a value on an ascending axis."""
    place = int(np.searchsorted(axis, value))
    return np.arange(max(0, place - reach), min(len(axis), place + reach))
