"""Metrics of FFN boxes with backbones as sums of parts: exact for one FFN, an optimistic bound for several."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from nas.errors import UsageError
from nas.exact.decomposition.grid import Backbones, Boxes, DepthTree, Grid, Items, one_layer
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from objectives.parts import Composition, NotASum, PartAssessment, Quantity, composition
from objectives.shares import Share
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from search_spaces.columns import Part

AGREE = 1e-10  # relative; a tenth of the slack that pruning leaves
Bound = tuple[Quantity, int]


class BrokenSum(UsageError):
    """Raised for a metric whose sums of parts are wrong; `reason` says why."""

    def __init__(self, metric: str, why: str) -> None:
        self.reason = f"{metric} {why}"
        super().__init__(f"{metric}: expected parts that add up to the whole and bound every range, got one that {why}")


def own_functions(problem: Problem) -> dict[str, Any]:
    """Return the user's metrics by name."""
    return {metric.name: metric.function for metric in problem.functions}


def undeclared(problem: Problem, metrics: tuple[str, ...]) -> str | None:
    """Return the first metric that does not follow from sums of parts, if any."""
    own = own_functions(problem)
    return next((metric for metric in metrics if composition(metric, problem.scenario, own) is None), None)


@dataclass(frozen=True, eq=False)
class AdditiveBounds:
    """Parts of some metrics over a grid.

    A bound is a quantity with the sign in which some metric depends on it: its least value over a
    box where the metric rises with it, its largest where it falls, both where it may do either. `attention`
    holds, per bound, what a layer and what all layers together have of every pair of heads and KV heads, (bounds,
    2, pairs), and `pair` the pair of each backbone, (p,); where layers are of several kinds a layer is the mean of all,
    and every backbone a pair of its own. `beside` holds, per bound and backbone, base + l · attention_l + attention;
    `moved`, per bound, whether an FFN adds to it per layer and once, (bounds, 2).
    """

    problem: Problem
    grid: Grid
    backbones: Backbones
    compositions: Mapping[str, Composition]
    bounds: tuple[Bound, ...]
    depth: FloatArray
    pair: IntArray
    attention: FloatArray
    beside: FloatArray
    moved: BoolArray

    @classmethod
    def for_metrics(cls, problem: Problem, grid: Grid, metrics: tuple[str, ...]) -> Self:
        """Return the sums of metrics that all declare their parts."""
        own, backbones = own_functions(problem), Backbones.from_grid(grid)
        found = {metric: composition(metric, problem.scenario, own) for metric in metrics}
        compositions = {metric: known for metric, known in found.items() if known is not None}
        bounds = _bounds(compositions)
        depth = problem.space.depths[backbones.depth].astype(np.float64)
        layer_plans = len(grid.layer_plans)
        of_pair = 1 if problem.space.mixed else layer_plans
        attention = _attention(problem, bounds, backbones[::of_pair])
        pair = np.arange(len(backbones)) // of_pair
        base = _base(problem, bounds, backbones, layer_plans)
        beside = np.empty((len(bounds), len(backbones)))
        for row, b, (layer, once) in zip(beside, base, attention, strict=True):
            row[:] = b + depth * layer[pair] + once[pair]
        moved = _moved(problem, bounds, grid)
        return cls(problem, grid, backbones, compositions, bounds, depth, pair, attention, beside, moved)

    def kept(self, pairs: BoolArray) -> Self:
        """Return the same sums with only the chosen pairs of heads and KV heads, at every depth."""
        rows = pairs[self.pair]
        return replace(
            self,
            backbones=self.backbones[rows],
            depth=self.depth[rows],
            pair=(np.cumsum(pairs) - 1)[self.pair[rows]],
            attention=self.attention.compress(pairs, axis=2),
            beside=self.beside.compress(rows, axis=1),
        )

    @cached_property
    def tree(self) -> DepthTree:
        """The backbones in groups that differ in depth alone."""
        return DepthTree.over(self.backbones)

    @cached_property
    def best(self) -> list[FloatArray]:
        """Per bound the best of `beside` in each node of the tree, (nodes,)."""
        ends = {1: np.minimum, -1: np.maximum}
        return [self.tree.reduced(row, ends[sign]) for row, (_, sign) in zip(self.beside, self.bounds, strict=True)]

    @cached_property
    def depths(self) -> tuple[FloatArray, FloatArray]:
        """Least and most depth in each node of the tree, (nodes,)."""
        return self.tree.reduced(self.depth, np.minimum), self.tree.reduced(self.depth, np.maximum)

    @cached_property
    def spread(self) -> FloatArray:
        """Logarithm of most by least depth in each node of the tree, (nodes,); −1 of a backbone."""
        return np.where(self.tree.count > 0, np.log(self.depths[1] / self.depths[0]), -1.0)

    def opposite(self) -> Self:
        """Return the same sums with every quantity bounded on its other side."""
        return replace(self, bounds=tuple((quantity, -sign) for quantity, sign in self.bounds))

    def restricted(self, metrics: tuple[str, ...]) -> Self:
        """Return the same sums for fewer metrics."""
        compositions = {metric: self.compositions[metric] for metric in metrics}
        bounds = _bounds(compositions)
        rows = [self.bounds.index(bound) for bound in bounds]
        of_rows = {name: getattr(self, name)[rows] for name in ("attention", "beside", "moved")}
        return replace(self, compositions=compositions, bounds=bounds, **of_rows)

    def ffn(self, boxes: Boxes) -> FloatArray:
        """Return the best per-layer and one-off FFN share per bound and box, (bounds, 2, boxes).

        A term rises or falls with E and with m, so that its extremes over a box lie at its corners.
        """
        ffns, rows = self.grid.corners(boxes)
        ends = np.cumsum([len(some) for some in rows[:-1]])
        best = np.zeros((len(self.bounds), 2, len(boxes)))
        shares = _shares(self.problem, self.bounds, ffns, "ffn")
        for row, share, (_, sign) in zip(best, shares, self.bounds, strict=True):
            better = np.minimum if sign > 0 else np.maximum
            for half, terms in zip(row, (share.per_layer, share.once), strict=True):
                for term in terms:
                    first, *others = np.split(term, ends)
                    extreme = first.copy()
                    for some, there in zip(rows[1:], others, strict=True):
                        extreme[some] = better(extreme[some], there)
                    half += extreme
        return best

    def refuse_better(self, ffn: FloatArray, around: FloatArray) -> None:
        """Raise an error if boxes have better shares than the boxes around them, both (bounds, 2, boxes).

        Raises:
            BrokenSum: one is better.
        """
        sign = np.array([sign for _, sign in self.bounds])[:, None, None]
        better = (around - ffn) * sign > AGREE * np.abs(around)
        if better.any():
            quantity, _ = self.bounds[int(np.argwhere(better)[0, 0])]
            metric = next(metric for metric, known in self.compositions.items() if quantity in known.quantities)
            raise BrokenSum(metric, "is better inside a range than its bound says")

    def values(
        self, metric: str, ffn: FloatArray, box: IntArray, backbone: IntArray, most: float | None = None
    ) -> FloatArray:
        """Return the metric's best value for pairs of a box and a node of backbones, (n,); above 1 it may be any such value where `most` is 1."""
        composition = self.compositions[metric]
        sooner = composition.inside if most is not None and most <= 1.0 else None
        value = np.asarray((sooner or composition.value)(*self.columns(metric, ffn, box, backbone)))
        return value if value.ndim else np.broadcast_to(value, len(box))

    def columns(self, metric: str, ffn: FloatArray, box: IntArray, backbone: IntArray) -> Iterator[FloatArray]:
        """Return the inputs of the metric's composition for pairs of a box and a node of backbones, each (n,)."""
        least, most = (depth.take(backbone) for depth in self.depths)
        for side in _sides(self.compositions[metric]):
            yield self._quantity(self.bounds.index(side), ffn, box, backbone, least, most)

    def varies(self, metric: str) -> bool:
        """Return True if the metric depends on the architecture."""
        return bool(self.compositions[metric].quantities)

    def _quantity(
        self, row: int, ffn: FloatArray, box: IntArray, node: IntArray, least: FloatArray, most: FloatArray
    ) -> FloatArray:
        """The best of a bound's quantity in pairs of a box and a node whose depths lie between least and most, (n,)."""
        (per_layer, once), (_, sign) = ffn[row], self.bounds[row]
        total: FloatArray = self.best[row].take(node)
        if self.moved[row, 0]:
            layer = per_layer.take(box)
            if (per_layer < 0.0).any():
                total += (np.minimum if sign > 0 else np.maximum)(least * layer, most * layer)
            else:
                total += (least if sign > 0 else most) * layer
        if self.moved[row, 1]:
            total += once.take(box)
        return total


def _attention(problem: Problem, bounds: tuple[Bound, ...], pairs: Backbones) -> FloatArray:
    """Contributions of a layer and of all layers together to every bound's quantity, (bounds, 2, pairs)."""
    nothing, whole = np.zeros(len(pairs)), pairs.architectures(problem.space)
    shares = _shares(problem, bounds, whole if problem.space.mixed else one_layer(whole), "attention")
    found = [(sum(share.per_layer, nothing), sum(share.once, nothing)) for share in shares]
    return np.reshape(found, (len(bounds), 2, len(pairs)))


def _base(problem: Problem, bounds: tuple[Bound, ...], backbones: Backbones, layer_plans: int) -> list[FloatArray]:
    """Contributions of width and depth to every bound's quantity, each (backbones,): the same beside all heads."""
    own = np.searchsorted(backbones.width, backbones.width) + np.arange(len(backbones)) % layer_plans
    rows, back = np.unique(own, return_inverse=True)
    shares = _shares(problem, bounds, backbones[rows].architectures(problem.space), "base")
    return [sum(share.once, np.zeros(len(rows)))[back] for share in shares]


def _moved(problem: Problem, bounds: tuple[Bound, ...], grid: Grid) -> BoolArray:
    """Whether an FFN adds to each bound's quantity per layer and once, (bounds, 2)."""
    shares = _shares(problem, bounds, grid.corners(Boxes.whole(grid))[0], "ffn")
    return np.array([[bool(share.per_layer), bool(share.once)] for share in shares], dtype=bool).reshape(-1, 2)


def _bounds(compositions: Mapping[str, Composition]) -> tuple[Bound, ...]:
    return tuple(dict.fromkeys(side for known in compositions.values() for side in _sides(known)))


def _sides(known: Composition) -> list[Bound]:
    """Each quantity with the sign of its bound; both signs where the metric may rise and fall with it."""
    return [(name, side) for name, sign in known.quantities.items() for side in ((sign,) if sign else (1, -1))]


def _shares(problem: Problem, bounds: tuple[Bound, ...], architectures: Architectures, part: Part) -> list[Share]:
    """The shares of every bound's quantity.

    Raises:
        BrokenSum: one is made of a metric that has no parts here.
    """
    shares = PartAssessment(problem.headed(architectures), problem.scenario, part, own_functions(problem))
    try:
        return [shares[quantity] for quantity, _ in bounds]
    except NotASum as error:
        raise BrokenSum(str(error), "is no sum of parts") from None


SAMPLE = 1000


def largest_difference(sums: AdditiveBounds, metrics: tuple[str, ...], generator: np.random.Generator) -> float:
    """Return the largest relative difference of a metric between sum and whole, over random architectures.

    Raises:
        BrokenSum: sums differ from the whole, or a box holds something better than its bound.
    """
    around = _random_boxes(sums, generator)
    inside = _random_members(around, generator)
    row = np.arange(len(around))
    first = np.searchsorted(sums.backbones.width, around.width)
    count = np.searchsorted(sums.backbones.width, around.width, side="right") - first
    backbone = first + generator.integers(count)
    genotypes = Items(inside, row, backbone).genotypes(sums.grid, sums.backbones)
    whole = sums.problem.evaluate(genotypes, metrics)
    exact, bound = sums.ffn(inside), sums.ffn(around)
    worst = 0.0
    for metric in metrics:
        worst = max(worst, agreement(metric, sums.values(metric, exact, row, backbone), whole))
        if (_relative(sums.values(metric, bound, row, backbone), whole, metric) > AGREE).any():
            raise BrokenSum(metric, "is better inside a range than its bound says")
    return worst


def agreement(metric: str, sums: FloatArray, whole: Evaluations) -> float:
    """Return the largest relative difference between sums (n,) and wholes (n,); failed rows are left out.

    Raises:
        BrokenSum: it is more than rounding.
    """
    worst = float(np.abs(_relative(sums, whole, metric)).max(initial=0.0))
    if not worst <= AGREE:
        raise BrokenSum(metric, "differs from the sum of its parts")
    return worst


def _relative(sums: FloatArray, whole: Evaluations, metric: str) -> FloatArray:
    """How far sums lie above the wholes, relative to them, over the rows that did not fail."""
    values, ok = whole.metrics[metric], slice(None) if whole.reasons is None else whole.ok
    difference: FloatArray = (sums[ok] - values[ok]) / np.maximum(np.abs(values[ok]), 1e-300)
    return difference


def _random_boxes(sums: AdditiveBounds, generator: np.random.Generator) -> Boxes:
    grid = sums.grid
    width = generator.choice(grid.widths, SAMPLE)
    group = generator.integers(len(grid.group_counts), size=SAMPLE)
    experts = np.sort(generator.integers(grid.group_counts[group], size=(2, SAMPLE)), axis=0)
    sizes = np.sort(generator.integers(grid.size_counts[width], size=(2, SAMPLE)), axis=0)
    return Boxes(width, group, *experts, *sizes)


def _random_members(boxes: Boxes, generator: np.random.Generator) -> Boxes:
    expert: IntArray = generator.integers(boxes.expert_low, boxes.expert_high + 1)
    size: IntArray = generator.integers(boxes.size_low, boxes.size_high + 1)
    return Boxes(boxes.width, boxes.group, expert, expert, size, size)
