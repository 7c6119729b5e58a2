"""A scatter plot made of characters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from search_spaces.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Series:
    """Points of one kind; later series are drawn over earlier ones."""

    label: str
    mark: str
    x: FloatArray
    y: FloatArray


def scatter(
    series: Sequence[Series], x_name: str, y_name: str, *, log_x: bool, width: int = 72, height: int = 16
) -> list[str]:
    """Lines of the plot with axes and a legend; empty when there is nothing to draw."""
    drawn = [s for s in series if len(s.x)]
    if not drawn:
        return []
    xs, ys = np.concatenate([s.x for s in drawn]), np.concatenate([s.y for s in drawn])
    axis_x, axis_y = _Axis(xs, width, log_x), _Axis(ys, height, False)
    grid = [[" "] * width for _ in range(height)]
    for s in drawn:
        for column, row in zip(axis_x.cells(s.x), axis_y.cells(s.y), strict=True):
            grid[height - 1 - row][column] = s.mark
    return [*_framed(grid, axis_y, y_name), *_below(axis_x, x_name, width), _legend(drawn)]


class _Axis:
    """Maps values to cells, linearly or on a log scale."""

    def __init__(self, values: FloatArray, cells: int, log: bool) -> None:
        self.log, self.count = log, cells
        on_scale = np.log(values) if log else values
        self.low, self.high = float(on_scale.min()), float(on_scale.max())

    def cells(self, values: FloatArray) -> list[int]:
        on_scale = np.log(values) if self.log else values
        share = (on_scale - self.low) / ((self.high - self.low) or 1.0)
        cells: list[int] = np.rint(share * (self.count - 1)).astype(int).tolist()
        return cells

    def value(self, share: float) -> float:
        at = self.low + share * (self.high - self.low)
        return float(np.exp(at)) if self.log else at


def _framed(grid: list[list[str]], axis: _Axis, name: str) -> list[str]:
    height = len(grid)
    labels = {
        0: axis.value(1.0),
        height // 2: axis.value(1 - (height // 2) / (height - 1)),
        height - 1: axis.value(0.0),
    }
    rows = [f"{labels[i]:>9.4g} ┤" if i in labels else " " * 9 + " │" for i in range(height)]
    return [f"{name:>9}", *(label + "".join(cells).rstrip() for label, cells in zip(rows, grid, strict=True))]


def _below(axis: _Axis, name: str, width: int) -> list[str]:
    ticks = [" "] * (width + 12)
    for i in range(5):
        text = f"{axis.value(i / 4):.4g}"
        start = min(10 + round(i / 4 * (width - 1)), width + 11 - len(text))
        ticks[start : start + len(text)] = text
    scale = ", log scale" if axis.log else ""
    return [" " * 9 + " └" + "─" * width, "".join(ticks).rstrip(), f"{name}{scale}".rjust(width + 11)]


def _legend(series: Sequence[Series]) -> str:
    return " " * 11 + "   ".join(f"{s.mark} {s.label}" for s in series)
