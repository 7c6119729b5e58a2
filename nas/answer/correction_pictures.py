"""The picture of what was learned: how far each value lies from what all others say of it, with the model and without."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nas.answer.palette import BASELINE, FRONTIER, INK, STYLE, label
from nas.files.figures import plain, plain_decades, png, styled
from nas.search.strategy import LeftOut, Lessons
from search_spaces.arrays import FloatArray


def learned_figure(lessons: Lessons) -> Figure | None:
    """A panel per learned metric, residuals over values; None where nothing was learned."""
    parts = lessons.left_out
    if not parts:
        return None
    height = 2.6 * len(parts)
    figure = Figure(figsize=(6.4, height))
    figure.subplots_adjust(left=0.12, right=0.985, bottom=0.5 / height, top=1 - 0.3 / height, hspace=0.55)
    panels: list[Axes] = list(np.atleast_1d(figure.subplots(len(parts), 1)))
    for ax, (name, part) in zip(panels, parts.items(), strict=True):
        _panel(ax, name, part)
    panels[0].legend(loc="lower center", bbox_to_anchor=(0.5, 0.98), ncols=3)
    return figure


def _panel(ax: Axes, name: str, part: LeftOut) -> None:
    """Value minus prediction, in percent where the metric is learned as a logarithm."""
    ax.axhline(0.0, color=INK, linewidth=0.6)
    if part.by_prior is not None:
        ax.scatter(
            part.values,
            _apart(part, part.by_prior),
            s=13,
            facecolors="none",
            edgecolors=BASELINE,
            label="prior on a line",
        )
    found, before = _apart(part, part.expected), np.arange(len(part.values)) < part.known
    ax.scatter(part.values[~before], found[~before], s=11, color=FRONTIER, linewidths=0, label="corrected")
    if before.any():
        ax.scatter(
            part.values[before], found[before], s=14, color=FRONTIER, marker="x", linewidths=0.9, label="known before"
        )
    if part.log_scale:
        ax.set_xscale("log")
        plain_decades(ax.xaxis)
    ax.set_xlabel(plain(label(name)))
    ax.set_ylabel("off when left out, %" if part.log_scale else "off when left out")


def _apart(part: LeftOut, predicted: FloatArray) -> FloatArray:
    found: FloatArray = 100.0 * (part.values / predicted - 1.0) if part.log_scale else part.values - predicted
    return found


def learned_png(lessons: Lessons) -> bytes | None:
    """The picture for a page; None where nothing was learned."""
    with styled(STYLE):
        figure = learned_figure(lessons)
        return None if figure is None else png(figure)
