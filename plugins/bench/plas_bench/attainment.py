"""Pictures of what runs attain, of two objectives: the front of half of the runs, and where one algorithm attains more than another."""

import math
from typing import Any

import moocore
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from nas.answer.palette import EXACT, FRONTIER, label
from nas.compare.configuration import BASELINES
from nas.compare.pictures import GREY, Stroke, legend, log_axis
from nas.compare.result import StudyResult
from nas.problem.uncertainty import FROM_LOSS
from search_spaces.arrays import FloatArray, IntArray


def opponents(result: StudyResult) -> tuple[str, str]:
    """The best strategy and random search, or the second where random search is not there or is the best."""
    order = result.ranking()
    return order[0], BASELINES[0] if BASELINES[0] in order[1:] else order[1]


STEPS = 5


def points_of(result: StudyResult, strategy: str, runs: int | None = None) -> tuple[FloatArray, IntArray]:
    """Fronts of a strategy's runs, cost first, and the number of the run of each point, from 1.

    A run that found nothing attains nothing: it counts with a point far beyond every other.
    """
    across = across_of(result)
    assert result.reference is not None
    beyond = 1e6 * np.abs(result.reference.values).max(axis=0) + 1e6
    fronts = [run.front if len(run.front) else beyond[None, :] for run in result.runs_of(strategy)[:runs]]
    sets = np.repeat(np.arange(1, len(fronts) + 1), [len(front) for front in fronts])
    return np.concatenate(fronts)[:, [across, 1 - across]], sets


def across_of(result: StudyResult) -> int:
    """The objective on the horizontal axis: not the loss."""
    return 1 if result.objectives[0].name in FROM_LOSS else 0


def surface(points: FloatArray, sets: IntArray, percentile: float) -> FloatArray:
    """The boundary of what at least `percentile` % of the runs attain, (k, 2), from left to right."""
    boundary = np.asarray(moocore.eaf(points, sets, percentiles=[percentile]))[:, :2]
    return boundary[np.lexsort((-boundary[:, 1], boundary[:, 0]))]


def attainment_figure(result: StudyResult, styles: dict[str, Stroke]) -> Figure:
    """Picture of the front that half of a strategy's runs attain, over the reference."""
    figure = Figure(figsize=(7.2, 4.2))
    ax = figure.subplots()
    limits = _framed(ax, result)
    reference = _ordered_reference(result)
    ax.plot(*_stairs(reference, limits), color=EXACT, linewidth=2.6, alpha=0.55)
    order = result.ranking()
    for name in order:
        ax.plot(*_stairs(surface(*points_of(result, name), 50), limits), **{**styles[name].line(), "linewidth": 1.1})
    assert result.reference is not None
    what = f"{result.name}: attained by half of the runs; orange: {result.reference.source}"
    ax.set_title(what, loc="left", color=GREY)
    figure.subplots_adjust(left=0.095, right=0.79, bottom=0.125, top=0.92)
    legend(figure, order, styles, 0.8, 0.92)
    return figure


def difference_figure(result: StudyResult, first: str, second: str) -> Figure:
    """Where one strategy attains more often than the other, a side each; darker is more often."""
    figure = Figure(figsize=(8.2, 3.9))
    panels = figure.subplots(1, 2, sharey=True)
    runs = min(len(result.runs_of(first)), len(result.runs_of(second)))
    one, two = (np.column_stack(points_of(result, name, runs)).astype(np.float64) for name in (first, second))
    boxes = differences(one, two)
    for ax, name, other, sign in zip(panels, (first, second), (second, first), (1, -1), strict=True):
        limits = _framed(ax, result)
        shares = sign * boxes[:, 4] / runs
        _fill(ax, boxes[shares > 0], shares[shares > 0], limits)
        ax.plot(*_stairs(_ordered_reference(result), limits), color=EXACT, linewidth=1.4)
        ax.set_title(f"{name} attains more often than {other}", loc="left", color=GREY)
    panels[1].set_ylabel("")
    figure.subplots_adjust(left=0.08, right=0.85, bottom=0.13, top=0.92, wspace=0.08)
    handles = [
        Rectangle((0, 0), 1, 1, color=FRONTIER, alpha=_shade(step / STEPS), linewidth=0) for step in range(STEPS, 0, -1)
    ]
    words = [f"{100 * (step - 1) // STEPS} to {100 * step // STEPS} %" for step in range(STEPS, 0, -1)]
    title = f"of {runs} runs"
    figure.legend(handles, words, loc="upper left", bbox_to_anchor=(0.855, 0.95), title=title, title_fontsize=8)
    return figure


def differences(one: FloatArray, two: FloatArray) -> FloatArray:
    """Rectangles (k, 5) with how many runs more of the first attain them than of the second; none where all is equal."""
    try:
        return np.asarray(moocore.eafdiff(one, two, rectangles=True))
    except ValueError:  # moocore cannot shape an empty answer
        return np.zeros((0, 5))


def _shade(share: float) -> float:
    return 0.12 + 0.8 * (math.ceil(share * STEPS - 1e-9) - 1) / (STEPS - 1)


def _fill(ax: Axes, boxes: FloatArray, shares: FloatArray, limits: Any) -> None:
    """Rectangles, cut at the frame, in a few steps of one colour."""
    (left, right), (bottom, top) = limits
    x0, x1 = (np.clip(boxes[:, i], left, right) for i in (0, 2))
    y0, y1 = (np.clip(boxes[:, i], bottom, top) for i in (1, 3))
    for step in range(1, STEPS + 1):
        rows = np.flatnonzero((np.ceil(shares * STEPS - 1e-9) == step) & (x1 > x0) & (y1 > y0))
        patches = [Rectangle((x0[i], y0[i]), x1[i] - x0[i], y1[i] - y0[i]) for i in rows]
        shaded = PatchCollection(patches, facecolor=FRONTIER, alpha=_shade(step / STEPS), linewidth=0, rasterized=True)
        ax.add_collection(shaded)


def _ordered_reference(result: StudyResult) -> FloatArray:
    assert result.reference is not None
    across = across_of(result)
    values = result.reference.values[:, [across, 1 - across]]
    return values[np.argsort(values[:, 0], kind="stable")]


def _stairs(points: FloatArray, limits: Any) -> tuple[FloatArray, FloatArray]:
    """A staircase through points ordered from left to right, from the top of the frame to its right side."""
    (_, right), (_, top) = limits
    x = np.repeat(np.append(points[:, 0], max(right, points[-1, 0])), 2)[:-1]
    y = np.repeat(np.insert(points[:, 1], 0, max(top, points[0, 1])), 2)[1:]
    return x, np.append(y, y[-1]) if len(y) < len(x) else y


def _framed(ax: Axes, result: StudyResult) -> Any:
    """Axes around the reference with a margin on their scales; the frame's limits."""
    across, values = across_of(result), _ordered_reference(result)
    ends = []
    for i, objective in enumerate((result.objectives[across], result.objectives[1 - across])):
        low, high = float(values[:, i].min()), float(values[:, i].max())
        if objective.log_scale:
            spread = max(high / low, 1.05)
            ends.append((low / spread**0.03, high * spread**0.12))
        else:
            spread = (high - low) or max(abs(high), 1.0) * 0.05
            ends.append((low - 0.03 * spread, high + 0.12 * spread))
    ax.set_xlim(*ends[0])
    ax.set_ylim(*ends[1])
    if result.objectives[across].log_scale:
        log_axis(ax, "x", few=100)
    if result.objectives[1 - across].log_scale:
        log_axis(ax, "y", few=100)
    ax.set_xlabel(label(result.objectives[across].name))
    ax.set_ylabel(label(result.objectives[1 - across].name))
    return ends
