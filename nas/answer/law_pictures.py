"""The picture of a run under several laws: regrets along its frontier as a map, each law's own choice as strips."""

from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from nas.answer.law_verdicts import AlongFrontier
from nas.answer.outcome import Outcome
from nas.answer.palette import label
from nas.files.figures import plain
from search_spaces.arrays import FloatArray

SMALLEST, LARGEST = 1e-4, 0.3  # nats at the ends of the map's colours
EXPERTS = ("#d9d9d9", "#c6dbef", "#6baed6", "#3182bd", "#08519c", "#08306b")  # dense, then more and more experts
UNPRICED = "#ffffff"


def laws_figure(outcome: Outcome) -> Figure | None:
    """Regret of the frontier's designs under each law, above the experts that each law itself would take; None without a cost."""
    answers = outcome.under_laws
    if answers is None or answers.along is None:
        return None
    found, names = answers.along, [plain(law.name) for law in answers.laws]
    height = 1.5 + 0.5 * len(names)
    figure = Figure(figsize=(6.4, height))
    figure.subplots_adjust(left=0.2, right=0.86, bottom=0.62 / height, top=1 - 0.3 / height, hspace=0.35)
    upper, lower = figure.subplots(2, 1, sharex=True)
    edges = _edges(found.costs)
    colours = _map(upper, edges, found)
    _strips(lower, edges, found)
    for ax in (upper, lower):
        ax.set_yticks(np.arange(len(names)) + 0.5, names)
        ax.invert_yaxis()
        ax.grid(visible=False)
    upper.set_title("Regret of the frontier's designs, nats", loc="left", fontsize=9)
    lower.set_title("What each law itself would take", loc="left", fontsize=9)
    lower.set_xlabel(label(found.metric))
    if next((o.log_scale for o in outcome.study.problem.objectives if o.name == found.metric), False):
        lower.set_xscale("log")
    place = upper.get_position()
    bar = figure.add_axes((0.88, place.y0, 0.015, place.height))
    figure.colorbar(colours, cax=bar)
    return figure


def _edges(costs: FloatArray) -> FloatArray:
    """A place holds from its cost to the next one's, (n + 1,); equal costs have no width."""
    last = costs[-1] * 1.02 if len(costs) < 2 else costs[-1] + 0.02 * (costs[-1] - costs[0])
    return np.append(costs, last)


def _map(ax: Axes, edges: FloatArray, found: AlongFrontier) -> ScalarMappable:
    values = np.ma.masked_invalid(np.clip(found.regrets.T, SMALLEST, LARGEST))
    return ax.pcolormesh(
        edges, np.arange(len(values) + 1), values, cmap="YlOrRd", norm=LogNorm(SMALLEST, LARGEST), rasterized=True
    )


def _strips(ax: Axes, edges: FloatArray, found: AlongFrontier) -> None:
    """A strip a law: its own best's experts at most so costly; white where it prices nothing."""
    counts = [n for n in np.unique(found.n_experts).tolist() if n]
    shades = {n: _shade(i, len(counts), n) for i, n in enumerate(counts)} | {0: UNPRICED}
    for row, experts in enumerate(found.n_experts.T.tolist()):
        starts = [0, *(i for i in range(1, len(experts)) if experts[i] != experts[i - 1]), len(experts)]
        for start, end in pairwise(starts):
            width = edges[end] - edges[start]
            ax.broken_barh([(edges[start], width)], (row + 0.05, 0.9), facecolors=shades[experts[start]], linewidth=0)
    ax.set_ylim(0, found.n_experts.shape[1])
    named = [Patch(color=shades[n], label="dense" if n == 1 else f"E {n}") for n in _few(counts)]
    ax.legend(handles=named, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, frameon=False)


def _shade(place: int, many: int, n_experts: int) -> str:
    if n_experts == 1:
        return EXPERTS[0]
    return EXPERTS[1 + round(place / max(many - 1, 1) * (len(EXPERTS) - 2))]


def _few(counts: list[int]) -> list[int]:
    """At most six of them, with both ends."""
    return [counts[i] for i in np.unique(np.linspace(0, len(counts) - 1, min(6, len(counts))).astype(int))]
