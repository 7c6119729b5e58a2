"""The picture of a device study, PNG and SVG: the transfer matrix as a heat map."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from nas.answer.palette import INK, STYLE
from nas.files.figures import save, styled
from nas.files.own_files import inner_folder
from plas_range.device_document import cell
from plas_range.result import DeviceStudy

MOST_NAMED = 40  # cases whose names and numbers are written
MOST_WRITTEN = 16  # cases whose cells hold a number
LONGEST_NAME = 30
OVER = "#d9d9d9"


def draw_all(study: DeviceStudy, folder: Path) -> None:
    """The heat map, where a case has a pick."""
    inner_folder(folder.parent, folder.name)
    with styled({**STYLE, "text.parse_math": False}):
        if study.optima:
            save(transfer_figure(study), folder / "transfer")


def transfer_figure(study: DeviceStudy) -> Figure:
    """Rows: the case that a design is picked for; columns: the case that it runs on; colour: nats lost, grey: over a limit."""
    n = len(study.rows)
    side = min(max(0.48 * n, 2.2), 9.0)
    left, top = 2.3 if n <= MOST_NAMED else 0.7, 0.62
    bottom = 1.95 if n <= MOST_NAMED else 0.7
    figure = Figure(figsize=(side + left + 1.1, side + bottom + top))
    width, height = figure.get_size_inches()
    ax = figure.add_axes((left / width, bottom / height, side / width, side / height))
    t = study.transfer
    over, regret = t.violation > 0.0, np.clip(t.regret, 0.0, None)
    shown = np.where(over | ~np.isfinite(t.regret), np.nan, regret)
    ax.imshow(np.where(over, 1.0, np.nan), cmap=ListedColormap([OVER]), vmin=0, vmax=1, interpolation="nearest")
    highest = float(np.nanmax(shown)) if np.isfinite(shown).any() else 0.0
    drawn = ax.imshow(shown, cmap="cividis_r", vmin=0.0, vmax=highest or 1e-3, interpolation="nearest")
    if n <= MOST_WRITTEN:
        _write_cells(ax, study, shown, highest)
    bar = figure.add_axes(((left + side + 0.15) / width, bottom / height, 0.14 / width, side / height))
    figure.colorbar(drawn, cax=bar, label="Loss over the best design there (nats)")
    _name_axes(ax, study)
    patch = Patch(facecolor=OVER, label="over a limit there, by how much")
    ax.legend(handles=[patch], loc="lower left", bbox_to_anchor=(-0.01, 1.0))
    title = f"Designs of {n} cases in each other's place: {len(study.optima)} distinct optima"
    figure.text(left / width, 1 - 0.18 / height, title, color=INK)
    return figure


def _write_cells(ax: Axes, study: DeviceStudy, shown: Any, highest: float) -> None:
    design = study.design_of()
    for row, column in np.ndindex(shown.shape):
        if not np.isfinite(study.transfer.regret[row, column]):
            continue
        text = cell(study, row, column, design[row] == design.get(column)).replace("x", "×")
        dark = np.isfinite(shown[row, column]) and shown[row, column] > 0.5 * highest > 0.0
        ax.text(column, row, text, ha="center", va="center", fontsize=6.5, color="white" if dark else INK)


def _name_axes(ax: Axes, study: DeviceStudy) -> None:
    labels = [cut(answer.case.label, LONGEST_NAME) for answer in study.rows]
    ax.set_ylabel("Design picked for")
    ax.set_xlabel("Runs on")
    if len(labels) > MOST_NAMED:
        return
    ax.set_xticks(range(len(labels)), labels, rotation=60, ha="right", rotation_mode="anchor", fontsize=7)
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    ax.tick_params(length=0)


def cut(text: str, most: int) -> str:
    """A text of at most so many characters, its middle left out."""
    return text if len(text) <= most else f"{text[: (most - 1) // 2]}…{text[len(text) - most // 2 :]}"
