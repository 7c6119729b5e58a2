"""A fit's report on disk: JSON, Markdown and plots."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

from nas.answer.palette import BASELINE, FRONTIER, STYLE
from nas.files.figures import save, styled
from nas.files.own_files import inner_folder, made_folder
from nas.files.tables import write, write_json
from nas.fit.text import markdown
from objectives.fitting.diagnostics import factors, losses
from objectives.fitting.estimate import Fit


def write_report(folder: Path, content: dict[str, Any], fit: Fit) -> None:
    """report.json, report.md and plots/ in a folder.

    Raises:
        PlasError: it cannot be written.
    """
    plots = inner_folder(made_folder(folder), "plots")
    write_json(folder / "report.json", content)
    names = ("predicted", "residuals", "normal")
    with styled(STYLE):
        for name, figure in zip(names, (predicted(fit), residuals(fit), normal(fit)), strict=True):
            save(figure, plots / name, dpi=150)
    write(folder / "report.md", markdown(content, names))


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
    found = figure.subplots(1, count, sharey=count > 1)
    figure.subplots_adjust(left=0.16 if count == 1 else 0.06, right=0.98, bottom=0.17, top=0.96)
    return figure, list(np.atleast_1d(found))
