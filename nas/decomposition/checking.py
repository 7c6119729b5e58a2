"""At run time: sums of parts against whole architectures, and bounds of boxes against what lies in them."""

import numpy as np

from nas.decomposition.boxes import Boxes
from nas.decomposition.items import Items
from nas.decomposition.sums import Sums
from nas.errors import UsageError
from search_spaces.arrays import FloatArray, IntArray

SAMPLE = 1000
AGREE = 1e-10  # relative; a tenth of the slack that pruning leaves


def largest_difference(sums: Sums, metrics: tuple[str, ...], generator: np.random.Generator) -> float:
    """The largest relative difference of a metric between the sum and the whole, over random architectures.

    Raises:
        UsageError: sums differ from the whole, or a box holds something better than its bound.
    """
    around = _random_boxes(sums, generator)
    inside = _random_members(around, generator)
    row = np.arange(len(around))
    first = np.searchsorted(sums.partners.width, around.width)
    count = np.searchsorted(sums.partners.width, around.width, side="right") - first
    partner = first + generator.integers(count)
    genotypes = Items(inside, row, partner).genotypes(sums.grid, sums.partners)
    whole = sums.problem.evaluate(genotypes, metrics).metrics
    exact, bound = sums.ffn(inside), sums.ffn(around)
    worst = 0.0
    for metric in metrics:
        apart = _relative(sums.values(metric, exact, row, partner) - whole[metric], whole[metric])
        worst = max(worst, float(np.abs(apart).max()))
        beyond = _relative(sums.values(metric, bound, row, partner) - whole[metric], whole[metric]).max()
        if worst > AGREE or beyond > AGREE:
            wrong = "its sum differs" if worst > AGREE else "a range of experts holds less than its ends say"
            raise UsageError(
                f"{metric}: expected parts that add up to the whole and rise or fall with E and m, got parts where {wrong}; "
                "correct them, or remove them to have the space enumerated"
            )
    return worst


def _relative(difference: FloatArray, values: FloatArray) -> FloatArray:
    return difference / np.maximum(np.abs(values), 1e-300)


def _random_boxes(sums: Sums, generator: np.random.Generator) -> Boxes:
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
