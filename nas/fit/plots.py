"""The plots of a fit."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

from nas.answer.palette import BASELINE, FRONTIER, STYLE
from nas.document.document import Figure as Picture
from nas.document.document import Section
from nas.files.figures import save, styled
from nas.files.own_files import inner_folder
from objectives.fitting.diagnostics import factors, losses
from objectives.fitting.estimate import Fit


def write_plots(folder: Path, fit: Fit) -> Section:
    """PNG and SVG in the folder `plots`, and the section that shows them.

    Raises:
        PlasError: they cannot be written.
    """
    drawn = {
        "predicted": ("Observed against predicted losses", predicted),
        "residuals": ("Residuals against each factor", residuals),
        "normal": ("Residuals against those of a normal distribution", normal),
    }
    plots = inner_folder(folder, "plots")
    with styled(STYLE):
        for name, (_, plot) in drawn.items():
            save(plot(fit), plots / name, dpi=150)
    return Section("Plots", tuple(Picture(name, alt) for name, (alt, _) in drawn.items()))


def predicted(fit: Fit) -> Figure:
    """Observed against predicted loss."""
    figure, (ax,) = _panels(1)
    value = losses(fit, fit.predicted)
    ax.scatter(value, fit.table.loss, s=10, color=FRONTIER, linewidths=0)
    ends = [min(value.min(), fit.table.loss.min()), max(value.max(), fit.table.loss.max())]
    ax.plot(ends, ends, color=BASELINE, linewidth=0.8)
    ax.set_xlabel("Predicted loss (nats per token)")
    ax.set_ylabel("Observed loss (nats per token)")
    return figure


def residuals(fit: Fit) -> Figure:
    """Residuals against every factor and the prediction."""
    names = factors(fit.table)
    figure, axes = _panels(len(names) + 1)
    for ax, name in zip(axes, (*names, "prediction"), strict=True):
        across = losses(fit, fit.predicted) if name == "prediction" else fit.table.feature(name)
        ax.scatter(across, fit.residuals, s=8, color=FRONTIER, linewidths=0)
        ax.axhline(0.0, color=BASELINE, linewidth=0.8)
        ax.set_xlabel(name.replace("_", " "))
        if name != "prediction":
            ax.set_xscale("log")
    axes[0].set_ylabel("Observed − predicted")
    return figure


def normal(fit: Fit) -> Figure:
    """Ordered residuals against those of a normal distribution."""
    figure, (ax,) = _panels(1)
    n = fit.model.n
    ax.scatter(norm.ppf((np.arange(n) + 0.5) / n), np.sort(fit.residuals), s=10, color=FRONTIER, linewidths=0)
    ax.set_xlabel("Quantile of a normal distribution")
    ax.set_ylabel("Residual")
    return figure


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    """A row of panels with fixed margins."""
    figure = Figure(figsize=(max(4.2, 2.4 * count), 3.2))
    axes = figure.subplots(1, count, sharey=count > 1)
    figure.subplots_adjust(left=0.16 if count == 1 else 0.06, right=0.98, bottom=0.17, top=0.96)
    return figure, list(np.atleast_1d(axes))
