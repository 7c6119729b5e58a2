"""A frontier as a small picture inside a notebook: SVG in the colour of the text around it, light or dark."""

import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as MplPath

from nas.answer.palette import INK, LABELS, STYLE
from nas.answer.plot_data import thinned
from nas.answer.sentences import plot_axes
from nas.files.figures import plain, plain_decades, styled
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Objective
from search_spaces.arrays import FloatArray

#: Each is told apart from white and from near black: 3 to 1 at least, and dots of what was evaluated stay behind.
FOUND, BEST, BEHIND = "#3b82c4", "#c26a1b", "#98a2b3"
MOST, MOST_BEHIND = 150, 300  # points of a frontier, and of what was evaluated, that are drawn
ROOT = "max-width: 100%; height: auto; stroke-linejoin: round"
LONG = re.compile(r"\d+\.\d{3,}")  # a number of more digits than a tenth of a point takes
NOT_INSIDE = re.compile(r"\s*<(metadata|style)\b.*?</\1>", re.DOTALL)  # a style would be the whole page's
SMALL = {"path.simplify": False, "savefig.transparent": True, "xtick.color": INK, "ytick.color": INK, "text.color": INK}


def frontier_svg(
    objectives: Sequence[Objective], frontier: Evaluations, evaluated: Evaluations | None, units: Mapping[str, str]
) -> str:
    """A frontier over what was evaluated, with the design of lowest loss; "" of one objective and where nothing fits.

    The picture says in words what it shows, for readers who do not see it.
    """
    names = plot_axes(tuple(each.name for each in objectives))
    if names is None or not len(frontier):
        return ""
    logarithmic = any(each.log_scale for each in objectives if each.name == names[0])
    with styled({**STYLE, **SMALL}):
        figure = Figure(figsize=(5.2, 2.6))
        figure.subplots_adjust(left=0.13, right=0.98, bottom=0.19, top=0.97)
        ax = figure.add_subplot()
        _draw(ax, names, frontier, evaluated)
        if logarithmic:
            ax.set_xscale("log")
            plain_decades(ax.xaxis)
        ax.set_xlabel(_labelled(names[0], units))
        ax.set_ylabel(_labelled(names[1], units))
        ax.legend(loc="upper right")
        return _inline(figure, in_words(names, frontier, units))


def in_words(names: tuple[str, str], frontier: Evaluations, units: Mapping[str, str]) -> str:
    """`139 designs: total_ms 1.9 to 98.9 ms, loss 3.145 to 5.021 nats; lowest loss 3.145 nats at 98.9 ms`."""
    across, up = (frontier.metrics[name] for name in names)
    x, y = (f" {units[name]}" if units.get(name) else "" for name in names)
    best = int(np.argmin(up))
    return (
        f"{len(frontier):,} designs: {names[0]} {across.min():,.4g} to {across.max():,.4g}{x}, "
        f"{names[1]} {up.min():,.4g} to {up.max():,.4g}{y}; lowest {names[1]} {up[best]:,.4g}{y} at {across[best]:,.4g}{x}"
    )


def _draw(ax: Axes, names: tuple[str, str], frontier: Evaluations, evaluated: Evaluations | None) -> None:
    if evaluated is not None:
        rows = np.flatnonzero(evaluated.feasible)
        x, y = (evaluated.metrics[name][rows[thinned(len(rows), MOST_BEHIND)]] for name in names)
        _dots(ax, x, y, BEHIND, "evaluated")
    across, up = (frontier.metrics[name] for name in names)
    order = np.lexsort((-up, across))[thinned(len(frontier), MOST)]
    if len(frontier.objectives) == 2:
        ax.plot(across[order], up[order], linewidth=1.4, drawstyle="steps-post", color=FOUND, label="frontier")
    else:
        _dots(ax, across[order], up[order], FOUND, "frontier")
    best = int(np.argmin(up))
    ring: Any = {"markerfacecolor": "none", "markeredgewidth": 1.4, "color": BEST, "zorder": 6}
    ax.plot(across[best], up[best], "o", linestyle="", label=f"lowest {plain(names[1])}", **ring)


def _dots(ax: Axes, x: FloatArray, y: FloatArray, color: str, label: str) -> None:
    """Dots as one path of lines without length and with round ends: a tenth of the text that so many markers are."""
    ends = np.repeat(np.column_stack([x, y]), 2, axis=0)
    codes = np.tile([MplPath.MOVETO, MplPath.LINETO], len(x))
    ax.add_patch(PathPatch(MplPath(ends, codes), fill=False, edgecolor=color, linewidth=2, capstyle="round"))
    ax.plot([], [], "o", linestyle="", markersize=3, color=color, label=label)
    ax.autoscale_view()


def _labelled(name: str, units: Mapping[str, str]) -> str:
    unit = units.get(name, "")
    return LABELS.get(name) or plain(f"{name} ({unit})" if unit else name)


def _inline(figure: Figure, words: str) -> str:
    """A figure as an element of a page, its ink in the colour of the text around it."""
    FigureCanvasAgg(figure)
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", dpi=100, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = drawn.getvalue().replace(INK, "currentColor")
    svg = LONG.sub(lambda number: f"{float(number[0]):.1f}", NOT_INSIDE.sub("", text[text.index("<svg") :]))
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(words)}" style="{ROOT}"', 1)
