"""Pictures of a comparison, PNG and SVG: measures over evaluations and over time, frontiers, targets, ranks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nas.answer.palette import EXACT, STYLE, label
from nas.answer.sentences import plot_axes
from nas.compare.anytime import TARGETS
from nas.compare.attainment import attainment_figure, difference_figure
from nas.compare.line_styles import Stroke, legend, log_axis, strokes
from nas.compare.plan import BASELINES
from nas.compare.rank_diagram import rank_figure
from nas.compare.ranking import Ranking, named
from nas.compare.reading import until
from nas.compare.result import StudyResult, same_starts
from nas.compare.statistics import quantile
from nas.files.figures import save, styled
from nas.files.own_files import inner_folder
from search_spaces.arrays import FloatArray

FLOOR = 1e-6  # gaps below are drawn here: a logarithm has no zero
GREY = "#555555"


def draw_all(folder: Path, results: Sequence[StudyResult], rankings: Sequence[Ranking]) -> None:
    """Every picture that the results allow."""
    shown = [result for result in results if result.pictures]
    styles = strokes(sorted({name for result in shown for name in result.strategies}))
    inner_folder(folder.parent, folder.name)
    with styled({**STYLE, "text.parse_math": False}):  # names from other tools may hold a $
        for result in shown:
            save(anytime_figure(result, styles), folder / f"{result.name}-anytime")
            if any(run.clock is not None for run in result.runs):
                save(clock_figure(result, styles), folder.with_name("timing") / f"{result.name}-clock")
            if "frontiers" in result.pictures:
                save(frontier_figure(result, styles), folder / f"{result.name}-frontiers")
            if "attainment" in result.pictures:
                save(attainment_figure(result, styles), folder / f"{result.name}-attainment")
            if "difference" in result.pictures:
                save(difference_figure(result, *opponents(result)), folder / f"{result.name}-difference")
        for group in dict.fromkeys(result.group for result in shown):
            members = [result for result in shown if result.group == group]
            save(targets_figure(members, styles), folder / named("targets", group))
        for ranking in rankings:
            if (figure := rank_figure(ranking, styles)) is not None:
                save(figure, folder / named("ranks", ranking.group))


def opponents(result: StudyResult) -> tuple[str, str]:
    """The best strategy and random search, or the second where random search is not there or is the best."""
    order = result.ranking()
    return order[0], BASELINES[0] if BASELINES[0] in order[1:] else order[1]


def anytime_figure(result: StudyResult, styles: dict[str, Stroke]) -> Figure:
    """Gap and share of the reference over distinct evaluations: medians, with bands between quartiles."""
    figure = Figure(figsize=(9.0, 3.7))
    left, right = figure.subplots(1, 2)
    order = result.ranking()
    for name in order:
        band(left, result.counts, 100 * np.maximum(result.matrix(name, "gap"), FLOOR), styles[name])
        band(right, result.counts, 100 * result.matrix(name, "share"), styles[name])
    exact = result.reference is not None and result.reference.source.startswith("exact")
    log_axis(left, "y", floor=100 * FLOOR)
    left.set_ylabel(f"Hypervolume gap to {'exact' if exact else 'union of runs'} (%)")
    right.set_ylabel(f"Share of the {'exact frontier' if exact else 'union'} found (%)")
    for ax in (left, right):
        warm_up(ax, result, named=ax is right)
        log_axis(ax, "x")
        ax.set_xlabel("Distinct architectures evaluated")
    return _finished(figure, result, left, order, styles)


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


def _finished(
    figure: Figure, result: StudyResult, first: Axes, order: Sequence[str], styles: dict[str, Stroke]
) -> Figure:
    """A title, and a legend to the right in the order of the ranking."""
    runs = sorted({len(result.runs_of(name)) for name in result.strategies})
    seeds = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    first.set_title(f"{result.name}: medians of {seeds} runs, bands between quartiles", loc="left", color=GREY)
    figure.subplots_adjust(left=0.115, right=0.84, bottom=0.14, top=0.91, wspace=0.2)
    legend(figure, order, styles, 0.847, 0.91)
    return figure


def clock_figure(result: StudyResult, styles: dict[str, Stroke]) -> Figure:
    """Gap over seconds of strategy and objectives on this machine."""
    figure = Figure(figsize=(6.4, 3.7))
    ax = figure.subplots()
    order = [name for name in result.ranking() if any(run.clock is not None for run in result.runs_of(name))]
    for name in order:
        clocks = np.array([run.clock for run in result.runs_of(name) if run.clock is not None])
        end = max(run.seconds or 0.0 for run in result.runs_of(name))
        until = max(int(np.searchsorted(result.instants, end)) + 1, 1)
        band(ax, result.instants[:until], 100 * np.maximum(clocks[:, :until], FLOOR), styles[name])
    log_axis(ax, "x")
    log_axis(ax, "y", floor=100 * FLOOR)
    ax.set_xlabel("Seconds of strategy and objectives, on this machine")
    ax.set_ylabel("Hypervolume gap (%)")
    ax.set_title(f"{result.name}: medians, bands between quartiles", loc="left", color=GREY)
    figure.subplots_adjust(left=0.15, right=0.78, bottom=0.14, top=0.91)
    legend(figure, order, styles, 0.785, 0.91)
    return figure


def first_decade(found: dict[str, FloatArray]) -> float:
    """The power of ten below the first target that any run reached."""
    first = min((float(times[np.isfinite(times)].min(initial=np.inf)) for times in found.values()), default=np.inf)
    return float(10 ** np.floor(np.log10(first))) if np.isfinite(first) else 1.0


COLUMNS = 4


def frontier_figure(result: StudyResult, styles: dict[str, Stroke]) -> Figure:
    """Picture of each strategy's median run, over the reference, a panel each, the best first."""
    order, reference = result.ranking(), result.reference
    assert reference is not None
    names = [objective.name for objective in result.objectives]
    axes_names = plot_axes(tuple(names))
    assert axes_names is not None
    across, up = (names.index(name) for name in axes_names)
    rows, columns = -(-len(order) // COLUMNS), min(COLUMNS, len(order))
    figure = Figure(figsize=(2.3 * columns + 0.6, 1.9 * rows + 0.7))
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for ax, name in zip(panels.flat, order, strict=False):
        front = result.median_front(name)
        ax.scatter(reference.values[:, across], reference.values[:, up], s=5, color=EXACT, alpha=0.55, linewidths=0)
        ax.scatter(front[:, across], front[:, up], s=5, color=styles[name].colour, linewidths=0)
        ax.set_title(name, loc="left", fontsize=8.5)
        if result.objectives[across].log_scale:
            log_axis(ax, "x", few=30)
    for i, ax in enumerate(panels.flat):
        ax.set_visible(i < len(order))
        ax.tick_params(labelbottom=i + columns >= len(order))
    height, width = figure.get_figheight(), figure.get_figwidth()
    figure.subplots_adjust(
        left=0.62 / width, right=1 - 0.1 / width, bottom=0.52 / height, top=1 - 0.5 / height, wspace=0.1, hspace=0.28
    )
    figure.supxlabel(label(axes_names[0]), fontsize=9, y=0.08 / height)
    figure.supylabel(label(axes_names[1]), fontsize=9, x=0.08 / width)
    what = f"{result.name}: the run of median gap of each strategy; orange: {reference.source}"
    figure.suptitle(what, x=0.62 / width, y=1 - 0.04 / height, ha="left", va="top", fontsize=9, color=GREY)
    return figure


def targets_figure(results: Sequence[StudyResult], styles: dict[str, Stroke]) -> Figure:
    """Share of runs and targets reached over distinct evaluations: an empirical distribution over all studies."""
    figure = Figure(figsize=(6.4, 3.7))
    ax = figure.subplots()
    last = max(int(result.counts[-1]) for result in results)
    names = sorted({name for result in results for name in result.strategies})
    found = {name: np.concatenate([r.reached(name).ravel() for r in results]) for name in names}
    order = sorted(names, key=lambda name: (-float(np.isfinite(found[name]).mean()), name))
    for name in order:
        times = np.sort(found[name][np.isfinite(found[name])])
        shares = 100 * np.arange(1, len(times) + 1) / len(found[name])
        x, y = np.append(times, last), np.append(shares, shares[-1] if len(shares) else 0.0)
        ax.step(np.insert(x, 0, 1), np.insert(y, 0, 0.0), where="post", **styles[name].line())
    log_axis(ax, "x")
    first = first_decade(found)
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
