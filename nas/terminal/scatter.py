"""A scatter plot made of characters."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

import numpy as np

from nas.terminal.screen_text import Styled, wrapped
from search_spaces.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Series:
    """Points of one kind, and how they look; later series are drawn over earlier ones."""

    label: str
    mark: str
    x: FloatArray
    y: FloatArray
    style: str = ""


Rows = list[list[str]]
MARGIN = 11  # columns beside the plot
LINES = 3  # around it: legend, axis, ticks


def scatter(
    series: Sequence[Series], x_name: str, y_name: str, *, log_x: bool, width: int = 72, height: int = 16
) -> Rows:
    """Lines of the plot of finite points, its legend above it, as parts; none when there is nothing to draw."""
    drawn = [s for s in map(_finite, series) if len(s.x)]
    if not drawn:
        return []
    xs, ys = np.concatenate([s.x for s in drawn]), np.concatenate([s.y for s in drawn])
    axis_x, axis_y = _Axis(xs, width, log_x), _Axis(ys, height, False)
    grid: Rows = [[" "] * width for _ in range(height)]
    for s in drawn:
        for column, row in zip(axis_x.cells(s.x), axis_y.cells(s.y), strict=True):
            grid[height - 1 - row][column] = Styled(s.mark, s.style)
    return [
        *wrapped(_legend(drawn, x_name, y_name, log_x), width + MARGIN + 1),
        *_framed(grid, axis_y),
        *_below(axis_x, width),
    ]


def _finite(series: Series) -> Series:
    """Without points that have no place: a law may be mute on a published model."""
    there = np.isfinite(series.x) & np.isfinite(series.y)
    return replace(series, x=series.x[there], y=series.y[there])


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


def _framed(grid: Rows, axis: _Axis) -> Rows:
    height = len(grid)
    labels = {
        0: axis.value(1.0),
        height // 2: axis.value(1 - (height // 2) / (height - 1)),
        height - 1: axis.value(0.0),
    }
    rows = [f"{labels[i]:>9.4g} ┤" if i in labels else " " * 9 + " │" for i in range(height)]
    return [[label, *_joined(cells)] for label, cells in zip(rows, grid, strict=True)]


def _joined(cells: list[str]) -> list[str]:
    """A row's cells without those after its last mark, equal neighbours as one part."""
    while cells and cells[-1] == " ":
        cells = cells[:-1]
    runs = ["".join(run) for _, run in groupby(cells)]
    starts = accumulate(map(len, runs), initial=0)
    return [_like(run, cells[start]) for run, start in zip(runs, starts, strict=False)]


def _like(text: str, cell: str) -> str:
    return Styled(text, cell.style) if isinstance(cell, Styled) else text


def _below(axis: _Axis, width: int) -> Rows:
    ticks = [" "] * (width + MARGIN + 1)
    for i in range(5):
        text = f"{axis.value(i / 4):.4g}"
        start = min(MARGIN - 1 + round(i / 4 * (width - 1)), width + MARGIN - len(text))
        ticks[start : start + len(text)] = text
    return [[" " * 9 + " └" + "─" * width], ["".join(ticks).rstrip()]]


def _legend(series: Sequence[Series], x_name: str, y_name: str, log_x: bool) -> list[str]:
    scale = " (log)" if log_x else ""
    marks = [part for s in series for part in ("  ", Styled(s.mark, s.style), f" {s.label}")]
    return [" " * MARGIN + f"{y_name} over {x_name}{scale}:", *marks]
