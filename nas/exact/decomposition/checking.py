"""At run time: sums of parts against whole architectures, and bounds of boxes against what lies in them."""

import numpy as np

from nas.exact.decomposition.additive_bounds import AGREE, AdditiveBounds, BrokenSum
from nas.exact.decomposition.boxes import Boxes
from nas.exact.decomposition.items import Items
from nas.problem.evaluations import Evaluations
from search_spaces.arrays import FloatArray, IntArray

SAMPLE = 1000


def largest_difference(sums: AdditiveBounds, metrics: tuple[str, ...], generator: np.random.Generator) -> float:
    """The largest relative difference of a metric between the sum and the whole, over random architectures.

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
    """The largest relative difference between sums (n,) and wholes (n,); failed rows have none.

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
