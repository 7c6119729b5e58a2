"""Pictures of a run, PNG and SVG, in a form that goes into a paper as it is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nas.answer.outcome import Outcome
from nas.answer.palette import BASELINE, EVALUATED, EXACT, FRONTIER, PICK, STYLE, label
from nas.answer.sentences import baseline_metric, plot_axes
from nas.files.figures import plain, save, styled
from nas.files.own_files import inner_folder
from nas.frontier.dominance import frontier_rows
from nas.frontier.indicators import too_many
from nas.problem.problem import Problem
from search_spaces.arrays import FloatArray

MEDIAN = "#111111"  # where points are too many to see a line of their own colour
THINNED = 20_000
VECTORS = 3_000  # points that an SVG holds as shapes; more become an image inside it


def draw_all(outcome: Outcome, folder: Path) -> None:
    """Frontier, evolution of parameters along it, convergence."""
    with styled(STYLE):
        inner_folder(folder.parent, folder.name)
        if len(outcome.frontier) == 0:
            return
        if plot_axes(outcome.frontier.objectives) is not None:
            save(frontier_figure(outcome), folder / "frontier")
            save(evolution_figure(outcome), folder / "evolution")
        if outcome.study.config.algo != "exact":
            save(convergence_figure(outcome), folder / "convergence")


def thinned(n: int) -> Any:
    """At most `THINNED` evenly spaced rows, so that huge runs stay drawable."""
    return slice(None) if n <= THINNED else np.unique(np.linspace(0, n - 1, THINNED).astype(int))


def frontier_figure(outcome: Outcome) -> Figure:
    """Everything evaluated, the frontier, the exact frontier, baselines and picks."""
    axes_names = plot_axes(outcome.frontier.objectives)
    assert axes_names is not None
    across, up = axes_names
    figure, ax = framed(4.2)
    _mark_evaluated(ax, outcome, across, up)
    _mark_exact(ax, outcome, across, up)
    _mark_frontier(ax, outcome, across, up)
    _mark_baselines(ax, outcome, across, up)
    _mark_picks(ax, outcome, across, up)
    _scale_axis(ax, outcome.study.problem, across)
    ax.set_xlabel(label(across))
    ax.set_ylabel(label(up))
    ax.set_title(subtitle(outcome), loc="left", color="#555555")
    low, high = ax.get_ylim()
    ax.set_ylim(low - 0.06 * (high - low), high)
    ax.legend(loc="upper right")
    return figure


def framed(height: float) -> tuple[Figure, Axes]:
    """A figure of one panel, 6.4 inches wide, with fixed margins in inches (a layout engine would take seconds)."""
    figure = Figure(figsize=(6.4, height))
    figure.subplots_adjust(left=0.105, right=0.985, bottom=0.47 / height, top=1 - 0.28 / height)
    return figure, figure.add_subplot()


def subtitle(outcome: Outcome) -> str:
    """Device, precision and workload."""
    c, device = outcome.study.config, outcome.study.problem.scenario.device
    return f"{plain(device.name)}, {c.precision}, {c.input_tokens:,} in / {c.output_tokens:,} out, {outcome.study.problem.space.name} space"


def _scale_axis(ax: Axes, problem: Problem, across: str) -> None:
    if next((o.log_scale for o in problem.objectives if o.name == across), False):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda v, _: f"{v:,.4g}"))
        ax.xaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())


def _mark_evaluated(ax: Axes, outcome: Outcome, across: str, up: str) -> None:
    """A small dot for each feasible architecture."""
    feasible = np.flatnonzero(outcome.evaluations.feasible)
    rows, metrics = feasible[thinned(len(feasible))], outcome.evaluations.metrics
    x, y = metrics[across][rows], metrics[up][rows]
    ax.scatter(x, y, s=3, color=EVALUATED, linewidths=0, label="evaluated", rasterized=True)


def _mark_exact(ax: Axes, outcome: Outcome, across: str, up: str) -> None:
    """A ring for each member of the exact frontier, where it is known."""
    if outcome.exact is None:
        return
    exact = outcome.exact.frontier
    rows, many = thinned(len(exact)), len(exact) > VECTORS
    x, y = exact.metrics[across][rows], exact.metrics[up][rows]
    rings: Any = {"s": 26, "facecolors": "none", "edgecolors": EXACT, "linewidths": 0.7}
    ax.scatter(x, y, label="exact frontier", rasterized=many, **rings)


def _mark_frontier(ax: Axes, outcome: Outcome, across: str, up: str) -> None:
    """The run's frontier, joined by steps where it is a curve."""
    found, algo = outcome.frontier, outcome.study.config.algo
    rows, many = thinned(len(found)), len(found) > VECTORS
    x, y = found.metrics[across][rows], found.metrics[up][rows]
    steps = {"linestyle": "-", "linewidth": 0.8, "drawstyle": "steps-post"}
    joined: Any = steps if len(found.objectives) == 2 else {"linestyle": ""}
    name = "exact frontier" if algo == "exact" else f"{algo} frontier"
    ax.plot(x, y, marker="o", markersize=2.4, color=FRONTIER, label=name, rasterized=many, **joined)


def _mark_baselines(ax: Axes, outcome: Outcome, across: str, up: str) -> None:
    for known in outcome.study.baselines:
        x, y = (baseline_metric(outcome, known.architecture, name) for name in (across, up))
        if x is None or y is None:
            continue
        star = "*" if outcome.study.problem.scenario.law.extrapolates(known.architecture)[0] else ""
        ax.scatter([x], [y], marker="D", s=34, color=BASELINE, zorder=5)
        ax.annotate(plain(known.label + star), (x, y), xytext=(7, 4), textcoords="offset points", color=BASELINE)


def _mark_picks(ax: Axes, outcome: Outcome, across: str, up: str) -> None:
    """A ring around each pick, with everything that it answers."""
    labels: dict[tuple[float, float], list[str]] = {}
    for pick in outcome.picks:
        if pick.answer is not None and not pick.question.baseline:
            at = (float(pick.answer.metrics[across][0]), float(pick.answer.metrics[up][0]))
            labels.setdefault(at, []).append(pick.question.label)
    for i, (at, asked) in enumerate(sorted(labels.items())):
        ax.scatter(*at, marker="o", s=42, facecolors="none", edgecolors=PICK, linewidths=1.3, zorder=6)
        ax.annotate(
            plain(", ".join(asked)),
            at,
            xytext=(-7, -12 - 11 * (i % 2)),
            textcoords="offset points",
            ha="right",
            color=PICK,
            fontsize=8,
        )


EVOLVING = (
    ("depth", "Depth (layers)"),
    ("width", "Width"),
    ("n_experts", "Experts E"),
    ("ffn_ratio", "FFN ratio r"),
    ("n_kv_heads", "KV heads"),
)


def evolution_figure(outcome: Outcome) -> Figure:
    """How depth, width, experts, FFN ratio and KV heads change along the frontier."""
    axes_names = plot_axes(outcome.frontier.objectives)
    assert axes_names is not None
    across, frontier = axes_names[0], outcome.frontier
    rows = thinned(len(frontier))
    architectures = outcome.study.problem.architectures(frontier.genotypes[rows])
    x = frontier.metrics[across][rows]
    order = np.argsort(x, kind="stable")
    figure = Figure(figsize=(6.4, 7.2))
    figure.subplots_adjust(left=0.11, right=0.98, bottom=0.07, top=0.95, hspace=0.16)
    panels: Sequence[Axes] = figure.subplots(len(EVOLVING), 1, sharex=True)
    for ax, (name, text) in zip(panels, EVOLVING, strict=True):
        values = np.asarray(getattr(architectures, name), dtype=np.float64)
        many = len(x) > VECTORS
        ax.plot(x[order], running_median(values[order]), color=MEDIAN if many else FRONTIER, linewidth=1.2, zorder=3)
        ax.scatter(
            x, values, s=3 if many else 7, color=FRONTIER, alpha=0.2 if many else 0.45, linewidths=0, rasterized=many
        )
        ax.set_ylabel(text)
        ax.yaxis.set_label_coords(-0.075, 0.5)
    _scale_axis(panels[-1], outcome.study.problem, across)
    panels[-1].set_xlabel(label(across))
    panels[0].set_title(f"{subtitle(outcome)}; line: running median", loc="left", color="#555555")
    return figure


def running_median(values: FloatArray) -> FloatArray:
    """Median over a centred window of 15 values or a fiftieth of them, shorter at the ends, (n,)."""
    half = min(max(15, len(values) // 50), len(values)) // 2
    return np.array([np.median(values[max(0, i - half) : i + half + 1]) for i in range(len(values))])


def convergence_figure(outcome: Outcome) -> Figure:
    """Hypervolume gap to exact, or hypervolume, over distinct evaluations."""
    exact = None if outcome.exact is None else outcome.exact.frontier.values
    rough = too_many(outcome.frontier.values) or (exact is not None and too_many(exact))
    counts, volumes = volume_over_time(outcome, approximate=rough)
    figure, ax = framed(3.4)
    if exact is not None and outcome.scale is not None:
        gap = 100 * (1 - volumes / outcome.scale.hypervolume(exact, approximate=rough))
        floor = 1e-4
        ax.plot(counts, np.maximum(gap, floor), marker="o", markersize=3, color=FRONTIER)
        ax.set_yscale("log")
        ax.set_ylabel("Hypervolume gap to exact (%)")
    else:
        ax.plot(counts, volumes, marker="o", markersize=3, color=FRONTIER)
        ax.set_ylabel("Hypervolume (own bounds)")
    ax.set_xscale("log")
    ax.set_xlabel("Distinct architectures evaluated")
    ax.set_title(
        f"{outcome.study.config.algo}, seed {outcome.study.config.seed}: {subtitle(outcome)}",
        loc="left",
        color="#555555",
    )
    return figure


def volume_over_time(outcome: Outcome, *, approximate: bool = False) -> tuple[FloatArray, FloatArray]:
    """Distinct evaluations at geometric checkpoints, and the hypervolume of everything found by then."""
    n = len(outcome.evaluations)
    counts = np.unique(np.geomspace(min(10, n), n, 24).astype(int))
    assert outcome.scale is not None
    volumes = []
    for count in counts:
        first = outcome.evaluations[slice(0, int(count))]
        volumes.append(outcome.scale.hypervolume(first.values[frontier_rows(first)], approximate=approximate))
    return counts.astype(np.float64), np.array(volumes)
