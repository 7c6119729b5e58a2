"""Pictures of an answer: which block each layer has along the frontier, and the frontier itself."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from nas.answer.palette import BASELINE, FRONTIER, PICK, STYLE
from nas.files.figures import png, save, styled
from nas.files.own_files import inner_folder
from plas_blocks.answers import along, cost_of, parent_totals
from plas_blocks.study import Study
from search_spaces.arrays import FloatArray, IntArray

MOST_COLUMNS, MOST_NAMED, LONGEST = 1_200, 14, 34
OWN = "#e4e7eb"  # the parent's block


def draw_all(study: Study, folder: Path) -> None:
    """Both pictures as PNG and SVG."""
    inner_folder(folder.parent, folder.name)
    with styled({**STYLE, "text.parse_math": False}):
        save(layers_figure(study), folder / "layers")
        save(frontier_figure(study), folder / "frontier")


def pngs(study: Study) -> list[bytes]:
    """Both pictures for a page."""
    with styled({**STYLE, "text.parse_math": False}):
        return [png(layers_figure(study)), png(frontier_figure(study))]


def layers_figure(study: Study) -> Figure:
    """Layers up, cost across, coloured by block: the parent's own grey, the others from dear to cheap."""
    order, name = _thinned(along(study.frontier)), cost_of(study.frontier)
    cost = study.frontier.metric(name)[order] if name else np.arange(len(order), dtype=np.float64)
    blocks, codes = _codes(study, order)
    figure = Figure(figsize=(8.6, min(max(2.2 + 0.085 * study.library.layers, 3.2), 9.0)), layout="constrained")
    ax = figure.add_subplot()
    colours: list[Any] = [
        OWN,
        *(matplotlib.colormaps["turbo"](0.06 + 0.88 * i / max(len(blocks) - 1, 1)) for i in range(len(blocks))),
    ]
    edges = np.arange(study.library.layers + 1) - 0.5
    colour_map, most = ListedColormap(colours), len(colours) - 0.5
    ax.pcolormesh(_edges(cost), edges, codes.T, cmap=colour_map, vmin=-0.5, vmax=most, rasterized=True)
    ax.set_xlabel(f"{name or 'mixture'}, along the frontier")
    ax.set_ylabel("Layer")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    _name_blocks(ax, ["the parent's own", *blocks], colours, codes)
    return figure


def _thinned(rows: IntArray) -> IntArray:
    places = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_COLUMNS)).astype(int))
    result: IntArray = rows[places]
    return result


def _codes(study: Study, rows: IntArray) -> tuple[list[str], IntArray]:
    """Names of the blocks that are not the parent's, dear ones first, and the number of each cell, 0 the parent's."""
    library, name = study.library, cost_of(study.frontier)
    chosen = study.frontier.chosen[rows]
    values = library.metrics[name] if name else np.zeros(len(library))
    used = [row for row in np.unique(chosen).tolist() if not library.parent[row]]
    mean = {
        b: float(np.mean([values[r] for r in used if library.blocks[r] == b]))
        for b in {library.blocks[r] for r in used}
    }
    names = sorted(mean, key=lambda block: (-mean[block], block))
    code = np.zeros(len(library), dtype=np.int64)
    for row in used:
        code[row] = 1 + names.index(library.blocks[row])
    result: IntArray = code[chosen]
    return names, result


def _edges(cost: FloatArray) -> FloatArray:
    """Borders of columns: each mixture stands from its own cost to the next one's."""
    width = float(np.median(np.diff(cost))) if len(cost) > 1 else 1.0
    return np.append(cost, cost[-1] + (width or 1.0))


def _name_blocks(ax: Axes, names: Sequence[str], colours: Sequence[Any], codes: IntArray) -> None:
    """The blocks that fill most of the picture."""
    counts = np.bincount(codes.ravel(), minlength=len(names))
    shown = sorted(np.argsort(-counts, kind="stable")[:MOST_NAMED].tolist())
    handles = [Patch(facecolor=colours[i], label=_cut(names[i])) for i in shown if counts[i]]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=7)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}…{text[-LONGEST // 2 :]}"


def frontier_figure(study: Study) -> Figure:
    """The first objective over the first cost, with the picks and the parent."""
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    ax, name = figure.add_subplot(), cost_of(study.frontier) or study.names[-1]
    first, cost = study.frontier.metric(study.names[0]), study.frontier.metric(name)
    order = np.argsort(cost, kind="stable")
    lone = len(study.names) != 2
    ax.plot(
        cost[order],
        first[order],
        "." if lone else "-",
        drawstyle="default" if lone else "steps-post",
        color=FRONTIER,
        label="frontier",
    )
    rows = [pick.row for pick in study.picks if pick.row is not None]
    ax.plot(cost[rows], first[rows], "o", color=PICK, markersize=5, label="picks")
    own = parent_totals(study.library)
    if own:
        ax.plot(own[name], own[study.names[0]], "s", color=BASELINE, markersize=5, label="the parent")
    ax.set_xlabel(name)
    ax.set_ylabel(f"{study.names[0]}, predicted by the sum")
    ax.legend()
    return figure
