"""Pictures of the reproduction: frontiers by phase and precision, parameters along them."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from nas.answer.palette import EXACT, FRONTIER, STYLE, label
from nas.answer.plot_data import running_median
from nas.files.figures import save, styled
from nas.files.own_files import inner_folder, made_folder
from plas_paper.reproduce.whole_spaces import PHASES, whole

COLOURS = {"fp16": FRONTIER, "int8": EXACT}
MOVING = ("depth", "width", "n_experts", "ffn_ratio")


def draw(folder: Path) -> dict[str, str]:
    """Write the pictures; file names with captions."""
    inner_folder(made_folder(folder.parent), folder.name)
    with styled(STYLE):
        save(frontiers(), folder / "reproduction_frontiers", dpi=130, svg=False)
        save(evolution(), folder / "reproduction_evolution", dpi=130, svg=False)
    return {
        "reproduction_frontiers.png": "Exact frontiers per phase and precision, AGX Orin, operator model [fig:pareto_frontier].",
        "reproduction_evolution.png": "Parameters along the exact frontiers, running medians [fig:config_evolution].",
    }


def frontiers() -> Figure:
    """Loss over latency, three phases, two precisions."""
    figure = Figure(figsize=(9.6, 3.2))
    figure.subplots_adjust(left=0.07, right=0.99, bottom=0.16, top=0.92, wspace=0.2)
    for ax, phase in zip(figure.subplots(1, 3), PHASES, strict=True):
        for name, colour in COLOURS.items():
            every = whole(precision=name)
            rows = every.frontier(phase)
            ax.step(every.metrics[phase][rows], every.metrics["loss"][rows], where="post", color=colour, label=name)
        ax.set_xscale("log")
        ax.set_xlabel(label(phase))
        ax.set_ylabel("Predicted loss (nats)")
        ax.legend()
    return figure


def evolution() -> Figure:
    """Depth, width, experts, FFN ratio along each frontier."""
    figure = Figure(figsize=(9.6, 7.2))
    figure.subplots_adjust(left=0.07, right=0.99, bottom=0.07, top=0.98, wspace=0.2, hspace=0.25)
    for row, name in zip(figure.subplots(len(MOVING), len(PHASES), sharex="col"), MOVING, strict=True):
        for ax, phase in zip(row, PHASES, strict=True):
            for precision, colour in COLOURS.items():
                every = whole(precision=precision)
                rows = every.frontier(phase)
                values = running_median(np.asarray(every.columns[name][rows]))
                ax.plot(every.metrics[phase][rows], values, color=colour, linewidth=1.2, label=precision)
            ax.set_xscale("log")
            ax.set_ylabel(name)
            if name == MOVING[-1]:
                ax.set_xlabel(label(phase))
            if name == MOVING[0]:
                ax.legend(loc="upper left")
    return figure
