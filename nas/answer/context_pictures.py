"""The picture of time and memory along the context."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nas.answer.context_curves import Curve
from nas.answer.palette import BASELINE, EXACT, FRONTIER, INK, PICK, STYLE, label
from nas.files.figures import plain, plain_decades, png, styled
from nas.problem.steps import CONTEXTS

PANELS = ("prefill_ms", "tpot_ms", "resident_gb")
COLOURS = (PICK, FRONTIER, EXACT, INK)  # of picks; baselines have theirs, told apart by their marks
MARKS = "os^Dv*Px"


def curves_png(found: list[Curve], device_gb: float) -> bytes:
    """Prefill, time per token and resident memory over the prompt, a line a design; dashed: the device's memory."""
    with styled(STYLE):
        return png(curves_figure(found, device_gb))


def curves_figure(found: list[Curve], device_gb: float) -> Figure:
    """The same as a figure."""
    figure = Figure(figsize=(9.6, 3.6))
    figure.subplots_adjust(left=0.09, right=0.985, bottom=0.32, top=0.96, wspace=0.38)
    panels = figure.subplots(1, len(PANELS))
    for ax, name in zip(panels, PANELS, strict=True):
        _panel(ax, name, found)
    panels[-1].axhline(device_gb, color=INK, linewidth=0.8, linestyle="--", label="the device's memory")
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, bbox_to_anchor=(0.5, 0.0))
    return figure


def _panel(ax: Axes, name: str, found: list[Curve]) -> None:
    """One quantity over the prompt, both on logarithmic axes."""
    for number, curve in enumerate(found):
        style = "--" if curve.baseline else "-"
        colour = BASELINE if curve.baseline else COLOURS[number % len(COLOURS)]
        values = [getattr(row, name) for row in curve.rows]
        mark = MARKS[number % len(MARKS)]
        ax.plot(
            CONTEXTS, values, style, color=colour, marker=mark, markersize=3.5, linewidth=1.1, label=plain(curve.label)
        )
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(CONTEXTS[::2], [f"{tokens // 1024}k" for tokens in CONTEXTS[::2]])
    plain_decades(ax.yaxis)
    ax.set_xlabel("Prompt (tokens)")
    ax.set_ylabel(label(name))
