"""Pictures of a comparison, PNG and SVG: measures over evaluations, targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from nas.answer.palette import BASELINE, FRONTIER, PICK, STYLE
from nas.compare.anytime import TARGETS
from nas.compare.configuration import BASELINES
from nas.compare.report import gap_label, share_label, until
from nas.compare.result import StudyResult, named, same_starts
from nas.compare.statistics import quantile
from nas.files.figures import save, styled
from nas.files.own_files import inner_folder
from search_spaces.arrays import FloatArray

COLOURS = (FRONTIER, PICK, BASELINE, "#7b4fa3", "#17909b", "#d1619c", "#84861a", "#8c5a2b")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.2)))
GREY = "#555555"  # of titles and notes
GREYS = ("#6b6f76", "#a7acb4")


@dataclass(frozen=True)
class Stroke:
    """Colour and dashes of a strategy's line."""

    colour: str
    dashes: Any

    def line(self) -> dict[str, Any]:
        """Keyword arguments of a matplotlib line."""
        return {"color": self.colour, "linestyle": self.dashes, "linewidth": 1.5}


def strokes(names: Sequence[str]) -> dict[str, Stroke]:
    """A stroke per name, in their order: eight colours, solid first, then dashed, then dotted."""
    own = [name for name in names if name not in BASELINES]
    coloured = {
        name: Stroke(COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)]) for i, name in enumerate(own)
    }
    grey = {name: Stroke(colour, DASHES[1]) for name, colour in zip(BASELINES, GREYS, strict=True)}
    return {name: coloured.get(name) or grey[name] for name in names}


def log_axis(ax: Axes, which: Literal["x", "y"], few: float = 300.0, floor: float = 0.0) -> None:
    """A logarithmic axis labelled in plain numbers: at 1, 2 and 5 of a decade where it spans less than `few` times its start.

    What is drawn at `floor` is labelled as at most that.
    """
    start, end = ax.dataLim.intervalx if which == "x" else ax.dataLim.intervaly
    if start == end:
        ax.set(**{f"{which}lim": (start / 2, end * 2)})
    axis: XAxis | YAxis = ax.xaxis if which == "x" else ax.yaxis
    ax.set(**{f"{which}scale": "log"})
    low, high = ax.get_xlim() if which == "x" else ax.get_ylim()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < few * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value, floor)))
    axis.set_minor_formatter(NullFormatter())


def plain(value: float, floor: float) -> str:
    """A tick's number without exponents, marked where it is the floor of what is drawn."""
    text = f"{value:,.0f}" if value >= 1 else f"{value:g}"
    return f"≤ {text}" if value <= 1.0001 * floor else text


def legend(figure: Figure, order: Sequence[str], styles: dict[str, Stroke], x: float, top: float) -> None:
    """Strategies in the order of the tables, the best first."""
    handles = [Line2D([], [], **styles[name].line()) for name in order]
    figure.legend(handles, order, loc="upper left", bbox_to_anchor=(x, top + 0.02), handlelength=2.6, fontsize=8)


FLOOR = 1e-6  # gaps below are drawn here: a logarithm has no zero


def draw_all(folder: Path, results: Sequence[StudyResult]) -> None:
    """Every picture that the results allow."""
    shown = [result for result in results if result.drawn]
    styles = strokes(sorted({name for result in shown for name in result.strategies}))
    inner_folder(folder.parent, folder.name)
    with styled({**STYLE, "text.parse_math": False}):  # names from other tools may hold a $
        for result in shown:
            save(anytime_figure(result, styles), folder / f"{result.name}-anytime")
        for group in dict.fromkeys(result.group for result in shown):
            members = [result for result in shown if result.group == group]
            save(targets_figure(members, styles), folder / named("targets", group))


def anytime_figure(result: StudyResult, styles: dict[str, Stroke]) -> Figure:
    """Gap and share of the reference over distinct evaluations: medians, with bands between quartiles."""
    figure = Figure(figsize=(9.0, 3.7))
    left, right = figure.subplots(1, 2)
    order = result.ranking()
    for name in order:
        band(left, result.counts, 100 * np.maximum(result.matrix(name, "gap"), FLOOR), styles[name])
        band(right, result.counts, 100 * result.matrix(name, "share"), styles[name])
    log_axis(left, "y", floor=100 * FLOOR)
    left.set_ylabel(gap_label(result))
    right.set_ylabel(share_label(result))
    for ax in (left, right):
        warm_up(ax, result, named=ax is right)
        log_axis(ax, "x")
        ax.set_xlabel("Distinct architectures evaluated")
    runs = sorted({len(result.runs_of(name)) for name in result.strategies})
    seeds = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    left.set_title(f"{result.name}: medians of {seeds} runs, bands between quartiles", loc="left", color=GREY)
    figure.subplots_adjust(left=0.115, right=0.84, bottom=0.14, top=0.91, wspace=0.2)
    legend(figure, order, styles, 0.847, 0.91)
    return figure


def band(ax: Axes, x: Any, values: FloatArray, stroke: Stroke) -> None:
    """Median over rows, and a band between quartiles."""
    low, middle, high = (np.array([quantile(column, q) for column in values.T]) for q in (0.25, 0.5, 0.75))
    ax.fill_between(x, low, high, color=stroke.colour, alpha=0.10, linewidth=0)
    ax.plot(x, middle, **stroke.line())


def warm_up(ax: Axes, result: StudyResult, *, named: bool) -> None:
    """A dotted line where strategies that begin with the same designs part: until there they are level by construction."""
    for names, count in same_starts(result):
        if result.counts[0] <= count < result.counts[-1]:
            ax.axvline(count, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
            place: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "rotation": 90, "ha": "right", "va": "top"}
            ax.text(0.97 * count, 0.98, until(names) if named else "", fontsize=6, color=GREY, **place)


def first_decade(reached: dict[str, FloatArray]) -> float:
    """The power of ten below the first target that any run reached."""
    first = min((float(times[np.isfinite(times)].min(initial=np.inf)) for times in reached.values()), default=np.inf)
    return float(10 ** np.floor(np.log10(first))) if np.isfinite(first) else 1.0


def targets_figure(results: Sequence[StudyResult], styles: dict[str, Stroke]) -> Figure:
    """Share of runs and targets reached over distinct evaluations: an empirical distribution over all studies."""
    figure = Figure(figsize=(6.4, 3.7))
    ax = figure.subplots()
    last = max(int(result.counts[-1]) for result in results)
    names = sorted({name for result in results for name in result.strategies})
    reached = {name: np.concatenate([r.reached(name).ravel() for r in results]) for name in names}
    order = sorted(names, key=lambda name: (-float(np.isfinite(reached[name]).mean()), name))
    for name in order:
        times = np.sort(reached[name][np.isfinite(reached[name])])
        shares = 100 * np.arange(1, len(times) + 1) / len(reached[name])
        x, y = np.append(times, last), np.append(shares, shares[-1] if len(shares) else 0.0)
        ax.step(np.insert(x, 0, 1), np.insert(y, 0, 0.0), where="post", **styles[name].line())
    log_axis(ax, "x")
    first = first_decade(reached)
    ax.set_xlim(first, max(last, 2 * first))
    ax.set_ylim(0)
    ax.set_xlabel("Distinct architectures evaluated")
    ax.set_ylabel("Runs and targets reached (%)")
    over = results[0].name if len(results) == 1 else f"{len(results)} studies"
    what = f"{over}: {len(TARGETS)} targets, gaps from {100 * TARGETS[0]:g} % to {100 * TARGETS[-1]:g} %"
    ax.set_title(what, loc="left", color=GREY)
    figure.subplots_adjust(left=0.1, right=0.77, bottom=0.14, top=0.91)
    legend(figure, order, styles, 0.785, 0.91)
    return figure
