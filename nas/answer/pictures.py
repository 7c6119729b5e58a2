"""The picture of a run, PNG and SVG, in a form that goes into a paper as it is."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nas.answer import plot_data
from nas.answer.outcome import Outcome
from nas.answer.palette import BASELINE, BEYOND, EVALUATED, EXACT, FRONTIER, OF_DEVICES, PICK, STYLE, label
from nas.answer.sentences import devices_in_words, plot_axes
from nas.files.figures import plain, plain_decades, save, styled
from nas.files.own_files import inner_folder
from nas.problem.problem import Problem
from search_spaces.arrays import IntArray

MARKERS = "osD^vP"  # of devices beyond the colours
NAME_WIDTH, NAME_HEIGHT = 4.9, 10.0  # points of a letter and a line of a pick's name
NAME_DROPS = range(12, 90, 4)  # points below its mark where it may stand
FULL_LINE = 78  # letters of the line above a picture; more are smaller
VECTORS = 3_000  # points that an SVG holds as shapes; more become an image inside it


def draw_all(outcome: Outcome, folder: Path) -> None:
    """The frontier, where there is one to draw."""
    with styled(STYLE):
        inner_folder(folder.parent, folder.name)
        if len(outcome.frontier) and plot_axes(outcome.frontier.objectives) is not None:
            save(frontier_figure(outcome), folder / "frontier")


def frontier_figure(outcome: Outcome) -> Figure:
    """Everything evaluated, the frontier, the exact frontier, baselines and picks."""
    axes_names = plot_axes(outcome.frontier.objectives)
    assert axes_names is not None
    across, up = axes_names
    figure = Figure(figsize=(6.4, 4.2))  # with fixed margins: a layout engine would take seconds
    figure.subplots_adjust(left=0.105, right=0.985, bottom=0.47 / 4.2, top=1 - 0.28 / 4.2)
    ax = figure.add_subplot()
    feasible, metrics = np.flatnonzero(outcome.evaluations.feasible), outcome.evaluations.metrics
    rows = feasible[plot_data.thinned(len(feasible))]
    x, y = metrics[across][rows], metrics[up][rows]
    ax.scatter(x, y, s=3, color=EVALUATED, linewidths=0, label="evaluated", rasterized=True)
    beyond = plot_data.beyond_evidence(outcome)
    if len(beyond):
        x, y = beyond.metrics[across], beyond.metrics[up]
        ax.scatter(x, y, s=14, marker="x", color=BEYOND, linewidths=0.7, label="outside the evidence", rasterized=True)
    if outcome.exact is not None:
        exact = outcome.exact.frontier
        at = plot_data.thinned(len(exact))
        rings: Any = {"s": 26, "facecolors": "none", "edgecolors": EXACT, "linewidths": 0.7}
        x, y = exact.metrics[across][at], exact.metrics[up][at]
        ax.scatter(x, y, label="exact frontier", rasterized=len(exact) > VECTORS, **rings)
    _mark_frontier(ax, outcome, across, up)
    for model in plot_data.baseline_points(outcome, across, up):
        place, text = (model.x, model.y), plain(model.label + "*" * bool(model.extrapolates))
        ax.scatter(*place, marker="D", s=34, color=BASELINE, zorder=5)
        ax.annotate(text, place, xytext=(7, 4), textcoords="offset points", color=BASELINE)
    problem, scenario = outcome.study.problem, outcome.study.problem.scenario
    if next((o.log_scale for o in problem.objectives if o.name == across), False):
        ax.set_xscale("log")
        plain_decades(ax.xaxis)
    ax.set_xlabel(_with_unit(problem, across))
    ax.set_ylabel(_with_unit(problem, up))
    device = plain(devices_in_words(problem) if scenario.devices else scenario.device.name)
    of_study = f"{', '.join(scenario.by_format)}, {outcome.study.config.request_words}, {problem.space.name} space"
    headed(figure, ax, f"{device}, {of_study}")
    low, high = ax.get_ylim()
    ax.set_ylim(low - 0.09 * (high - low), high)
    _mark_picks(ax, outcome, across, up)
    ax.legend(loc="upper right")
    return figure


def headed(figure: Figure, ax: Axes, text: str) -> None:
    """A line above the panel; a title of matplotlib's would measure every label to find its place."""
    place = ax.get_position()
    size = 9.0 * FULL_LINE / max(len(text), FULL_LINE)
    figure.text(place.x0, place.y1 + 0.06 / figure.get_figheight(), text, va="bottom", color="#555555", fontsize=size)


def _with_unit(problem: Problem, metric: str) -> str:
    """A metric's name on an axis; a device's figure with the unit that its file or table gives it."""
    figure = problem.scenario.figures.get(metric)
    return f"{label(metric)} ({plain(figure.unit)})" if figure is not None and figure.unit else label(metric)


def _mark_frontier(ax: Axes, outcome: Outcome, across: str, up: str) -> None:
    """The run's frontier, joined by steps where it is a curve: each loss holds until a further cost buys a lower one."""
    found = outcome.frontier
    rows, many = plot_data.thinned(len(found)), len(found) > VECTORS
    x, y = found.metrics[across][rows], found.metrics[up][rows]
    order = np.lexsort((-y, x))
    steps = {"linestyle": "-", "linewidth": 0.8, "drawstyle": "steps-post"}
    joined: Any = steps if len(found.objectives) == 2 else {"linestyle": ""}
    several = "device" in outcome.study.problem.space.settings
    unseen = several and len(found.objectives) > 2  # neither a line nor, under those of devices, dots
    name, size = "_" if unseen else plot_data.frontier_name(outcome), 0.0 if several else 2.4
    ax.plot(x[order], y[order], marker="o", markersize=size, color=FRONTIER, label=name, rasterized=many, **joined)
    if several:
        _mark_devices(ax, outcome, rows, across, up, rasterized=many)


def _mark_devices(
    ax: Axes, outcome: Outcome, rows: IntArray | slice, across: str, up: str, *, rasterized: bool
) -> None:
    """The run's frontier by the device that each design is on; beyond `OF_DEVICES` markers tell them apart too."""
    found, axes = outcome.frontier[rows], outcome.study.problem.space.specification.axes
    place = found.genotypes[:, outcome.study.problem.space.place["device"]]
    for i, name in enumerate(axes.device or []):
        own = place == i
        if own.any():
            x, y = found.metrics[across][own], found.metrics[up][own]
            style: Any = {
                "s": 7,
                "color": OF_DEVICES[i % len(OF_DEVICES)],
                "marker": MARKERS[i // len(OF_DEVICES) % len(MARKERS)],
            }
            ax.scatter(x, y, linewidths=0, zorder=4, label=f"on {plain(name)}", rasterized=rasterized, **style)


def _mark_picks(ax: Axes, outcome: Outcome, across: str, up: str) -> None:
    """A ring around each pick, with everything that it answers; the axes' limits must be set, since names keep clear of one another."""
    labels: dict[tuple[float, float], list[str]] = {}
    for row, asked in plot_data.answered_designs(outcome):
        labels.setdefault((float(row.metrics[across][0]), float(row.metrics[up][0])), []).extend(asked)
    for at in labels:
        ax.scatter(*at, marker="o", s=42, facecolors="none", edgecolors=PICK, linewidths=1.3, zorder=6)
    taken: list[tuple[float, float, float]] = []
    for at, every in sorted(labels.items(), key=lambda item: (-len(item[1]), len(", ".join(item[1])), item[0])):
        name = plain(", ".join(every))
        if (drop := _clear(ax, at, name, taken)) is not None:
            ax.annotate(name, at, (-7, -drop), textcoords="offset points", ha="right", color=PICK, fontsize=8)


def _clear(ax: Axes, at: tuple[float, float], name: str, taken: list[tuple[float, float, float]]) -> float | None:
    """Points below a mark at which its name has room, which is then taken (left, right, base line); None where the frame has none."""
    points = 72.0 / ax.figure.dpi
    (x, y), floor = ax.transData.transform(at) * points, ax.bbox.y0 * points
    left, right = x - 10.0 - NAME_WIDTH * len(name), x - 7.0
    for drop in NAME_DROPS:
        free = all(right <= start or end <= left or abs(y - drop - base) >= NAME_HEIGHT for start, end, base in taken)
        if free and y - drop > floor + 3.0:
            taken.append((left, right, y - drop))
            return float(drop)
    return None
