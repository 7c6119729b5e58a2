"""Pictures of the theory: who binds over latency and memory budgets, and how the optimum moves along each."""

from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from nas.answer.palette import EXACT, FRONTIER, INK, PICK, STYLE, label
from nas.exact.solution import QUICK
from nas.files.figures import plain, save, styled
from nas.files.own_files import made_folder
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from nas.problem.wording import in_words
from plas_paper.costs import COSTS, LATENCIES
from plas_paper.prediction import Prediction
from plas_paper.program import VARIABLES, Program, solve
from plas_paper.theory_problem import TheoryProblem
from search_spaces.arrays import FloatArray

SPAN, SIDE = 10.0, 25  # budgets from a tenth to ten times the asked ones, points on each side
ALONG = 41
COLOURS = ListedColormap(["#f2f2f2", "#cfe0f2", "#fbe3c4", "#d5ead9"])
BINDING = ("neither", "latency", "memory", "both")


@dataclass(frozen=True, eq=False)
class RegimeMap:
    """Optima over a grid of limits: variables (memory, latency, 5), which binds (0 neither … 3 both; NaN: nothing fits)."""

    metric: str
    latencies: FloatArray
    memories: FloatArray
    points: FloatArray
    binding: FloatArray


def draw(prediction: Prediction, folder: Path) -> list[str]:
    """Write the pictures that the budgets allow; their names."""
    made_folder(folder)
    theory, drawn = prediction.theory, []
    metric = next((m for m in LATENCIES if m in theory.limits), None)
    with styled(STYLE):
        if metric is not None and "memory_gb" in theory.limits:
            save(map_figure(theory, metric), folder / "regime_map", dpi=130)
            drawn.append("regime_map")
        for name in theory.limits:
            save(curve_figure(theory, name), folder / f"along_{name}", dpi=130)
            drawn.append(f"along_{name}")
    return drawn


def regime_map(theory: TheoryProblem, metric: str, latencies: FloatArray, memories: FloatArray) -> RegimeMap:
    """The program solved with closed-form costs at every pair of limits."""
    points = np.full((len(memories), len(latencies), 5), np.nan)
    binding = np.full((len(memories), len(latencies)), np.nan)
    costs = {name: COSTS[name](theory.setting) for name in (metric, "memory_gb")}
    for i, memory in enumerate(memories.tolist()):
        for j, latency in enumerate(latencies.tolist()):
            limits = {metric: costs[metric].times(1.0 / latency), "memory_gb": costs["memory_gb"].times(1.0 / memory)}
            program = Program(theory.loss, limits, theory.box())
            if not program.feasible:
                continue
            optimum = solve(program)
            points[i, j] = np.exp(optimum.logs)
            binding[i, j] = (metric in optimum.active) + 2 * ("memory_gb" in optimum.active)
    return RegimeMap(metric, latencies, memories, points, binding)


def map_figure(theory: TheoryProblem, metric: str) -> Figure:
    """Regimes with iso-lines of ρ*, l*, d*; below, the depth, width and ρ of the exact discrete optimum."""
    reach = np.geomspace(1.0 / SPAN, SPAN, SIDE)
    regimes = regime_map(theory, metric, theory.limits[metric] * reach, theory.limits["memory_gb"] * reach)
    figure = Figure(figsize=(9.6, 6.2))
    figure.subplots_adjust(left=0.07, right=0.955, bottom=0.08, top=0.94, hspace=0.28, wspace=0.2)
    panels = figure.subplots(2, 3)
    for ax, (variable, text) in zip(
        panels[0], ((4, "active share ρ*"), (0, "layers l*"), (1, "width d*")), strict=True
    ):
        ax.pcolormesh(
            regimes.latencies, regimes.memories, regimes.binding, cmap=COLOURS, vmin=0, vmax=3, shading="nearest"
        )
        drawn = ax.contour(
            regimes.latencies, regimes.memories, regimes.points[:, :, variable], 6, colors=INK, linewidths=0.7
        )
        ax.clabel(drawn, fontsize=7, fmt=lambda value: f"{value:.3g}" if value < 100 else f"{value:.0f}")
        _axes(ax, metric, f"Program: {text}")
    _legend(panels[0][0])
    _exact_panels(theory, metric, regimes, panels[1])
    return figure


def _exact_panels(
    theory: TheoryProblem, metric: str, regimes: RegimeMap, axes: "np.ndarray[tuple[int], np.dtype[np.object_]]"
) -> None:
    exact = exact_points(theory.problem, metric, regimes.latencies, regimes.memories)
    for ax, (variable, text) in zip(axes, ((2, "active share ρ"), (0, "layers l"), (1, "width d")), strict=True):
        if exact is None:
            ax.text(0.5, 0.5, "space too large to draw", ha="center", transform=ax.transAxes)
            continue
        mesh = ax.pcolormesh(
            regimes.latencies,
            regimes.memories,
            exact[:, :, variable],
            cmap="Blues",
            norm="log" if variable == 2 else None,
            shading="nearest",
        )
        ax.figure.colorbar(mesh, ax=ax, pad=0.02)
        _axes(ax, metric, f"Exact discrete optimum: {text}")


def exact_points(problem: Problem, metric: str, latencies: FloatArray, memories: FloatArray) -> FloatArray | None:
    """Depth, width, ρ of the design of lowest loss at every pair of limits, closed-form costs; None for large spaces."""
    if problem.space.size > QUICK:
        return None
    plain = replace(problem, scenario=replace(problem.scenario, latency="closed_form"), budgets=())
    every = plain.evaluate(plain.space.genotypes(np.arange(plain.space.size)), ("loss", metric, "memory_gb"))
    order = np.argsort(every.metrics["loss"], kind="stable")
    shapes = plain.architectures(every.genotypes[order])
    values = np.stack([shapes.depth, shapes.width, shapes.activation_rate], axis=1).astype(np.float64)
    time, memory = every.metrics[metric][order], every.metrics["memory_gb"][order]
    result = np.full((len(memories), len(latencies), 3), np.nan)
    for i, most in enumerate(memories):
        for j, longest in enumerate(latencies):
            fits = (time <= longest) & (memory <= most)
            if fits.any():
                result[i, j] = values[int(np.argmax(fits))]
    return result


def _axes(ax: Axes, metric: str, title: str) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(f"{label(metric)} budget")
    ax.set_ylabel("Memory budget (GB)", labelpad=1)
    ax.set_title(title, loc="left", color="#555555")


def _legend(ax: Axes) -> None:
    marks = [ax.scatter([], [], marker="s", s=40, color=COLOURS(i / 3), label=BINDING[i]) for i in range(4)]
    ax.legend(handles=marks, title="binding", loc="upper left", frameon=True, fontsize=7, title_fontsize=7)


def curve_figure(theory: TheoryProblem, name: str) -> Figure:
    """How the optimum moves along one budget, the others as they are."""
    limits = theory.limits[name] * np.geomspace(1.0 / SPAN, SPAN, ALONG)
    points = along(theory, name, limits)
    figure = Figure(figsize=(6.4, 7.2))
    figure.subplots_adjust(left=0.13, right=0.98, bottom=0.07, top=0.95, hspace=0.16)
    panels = figure.subplots(len(VARIABLES) + 1, 1, sharex=True)
    for ax, (text, values) in zip(
        panels, (("loss (nats)", points[:, 5]), *zip(VARIABLES, points.T, strict=False)), strict=True
    ):
        ax.plot(limits, np.round(values, 6), color=FRONTIER, linewidth=1.3)
        ax.axvline(theory.limits[name], color=EXACT if ax is panels[0] else PICK, linewidth=0.8, linestyle="--")
        ax.set_ylabel(fill(in_words(text), 12))
        ax.yaxis.set_label_coords(-0.09, 0.5)
        ax.set_xscale("log")
    panels[-1].set_xlabel(f"{label(name)} budget")
    device = plain(theory.problem.scenario.device.name)
    panels[0].set_title(f"{device}: optimum of the program, closed-form costs", loc="left", color="#555555")
    return figure


def along(theory: TheoryProblem, name: str, limits: FloatArray) -> FloatArray:
    """The five variables and the loss at each limit, (n, 6); NaN where nothing fits."""
    rows = np.full((len(limits), 6), np.nan)
    for i, limit in enumerate(limits.tolist()):
        others = tuple(b for b in theory.problem.budgets if b.metric != name)
        most_of = {b.metric: b.limit for b in (*others, Budget(name, limit))}
        costs = {metric: COSTS[metric](theory.setting).times(1.0 / most) for metric, most in most_of.items()}
        program = Program(theory.loss, costs, theory.box())
        if program.feasible:
            optimum = solve(program)
            rows[i] = [*np.exp(optimum.logs), optimum.value]
    return rows
