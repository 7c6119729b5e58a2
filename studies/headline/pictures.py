"""The pictures of results.md."""

from collections.abc import Mapping

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from search_spaces.arrays import BoolArray, FloatArray
from studies.headline.files import DOCS

IMAGES = DOCS / "images"
TITLES = {"prefill_ms": "Prefill, ms", "tpot_ms": "Decode step, ms"}


def draw_law(predicted: FloatArray, trained: FloatArray, sparse: BoolArray) -> None:
    """Predicted and trained loss, dense and sparse apart."""
    figure, axes = plt.subplots(figsize=(4.5, 4.2), layout="constrained")
    for mask, label, marker in ((~sparse, "dense", "o"), (sparse, "experts", "s")):
        axes.plot(predicted[mask], trained[mask], marker, label=label)
    _equal(axes)
    axes.set(xlabel="Predicted loss, nats per byte", ylabel="Trained loss, nats per byte")
    axes.legend()
    figure.savefig(IMAGES / "headline-law.png", dpi=150)
    plt.close(figure)


def draw_latency(times: Mapping[str, tuple[FloatArray, FloatArray]]) -> None:
    """Predicted and measured times, a panel a phase."""
    figure, panels = plt.subplots(1, len(times), figsize=(4.2 * len(times), 4.0), layout="constrained")
    for axes, (name, (predicted, measured)) in zip(panels, times.items(), strict=True):
        axes.loglog(predicted, measured, "o")
        _equal(axes)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        axes.set(title=TITLES[name], xlabel="Predicted", ylabel="Measured")
    figure.savefig(IMAGES / "headline-latency.png", dpi=150)
    plt.close(figure)


def _equal(axes: Axes) -> None:
    """A line where both are equal."""
    low = min(axes.get_xlim()[0], axes.get_ylim()[0])
    high = max(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([low, high], [low, high], "-", color="0.7", linewidth=1, zorder=0)
