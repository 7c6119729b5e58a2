"""One stroke per strategy, the same in every picture of a comparison; baselines are grey."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from nas.answer.palette import BASELINE, FRONTIER, PICK
from nas.compare.plan import BASELINES

COLOURS = (FRONTIER, PICK, BASELINE, "#7b4fa3", "#17909b", "#d1619c", "#84861a", "#8c5a2b")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.2)))
GREY = "#555555"  # of titles and notes
GREYS = ("#6b6f76", "#a7acb4")


@dataclass(frozen=True)
class Stroke:
    """Colour and dashes of a strategy's line."""

    colour: str
    dashes: Any

    def line(self) -> dict[str, Any]:
        """Keyword arguments of a matplotlib line."""
        return {"color": self.colour, "linestyle": self.dashes, "linewidth": 1.5}


def strokes(names: Sequence[str]) -> dict[str, Stroke]:
    """A stroke per name, in their order: eight colours, solid first, then dashed, then dotted."""
    own = [name for name in names if name not in BASELINES]
    found = {
        name: Stroke(COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)]) for i, name in enumerate(own)
    }
    grey = {name: Stroke(colour, DASHES[1]) for name, colour in zip(BASELINES, GREYS, strict=True)}
    return {name: found.get(name) or grey[name] for name in names}


def log_axis(ax: Axes, which: Literal["x", "y"], few: float = 300.0, floor: float = 0.0) -> None:
    """A logarithmic axis labelled in plain numbers: at 1, 2 and 5 of a decade where it spans less than `few` times its start.

    What is drawn at `floor` is labelled as at most that.
    """
    start, end = ax.dataLim.intervalx if which == "x" else ax.dataLim.intervaly
    if start == end:
        ax.set(**{f"{which}lim": (start / 2, end * 2)})
    axis: XAxis | YAxis = ax.xaxis if which == "x" else ax.yaxis
    ax.set(**{f"{which}scale": "log"})
    low, high = ax.get_xlim() if which == "x" else ax.get_ylim()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < few * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value, floor)))
    axis.set_minor_formatter(NullFormatter())


def plain(value: float, floor: float) -> str:
    """A tick's number without exponents, marked where it is the floor of what is drawn."""
    text = f"{value:,.0f}" if value >= 1 else f"{value:g}"
    return f"≤ {text}" if value <= 1.0001 * floor else text


def legend(figure: Figure, order: Sequence[str], styles: dict[str, Stroke], x: float, top: float) -> None:
    """Strategies in the order of the tables, the best first."""
    handles = [Line2D([], [], **styles[name].line()) for name in order]
    figure.legend(handles, order, loc="upper left", bbox_to_anchor=(x, top + 0.02), handlelength=2.6, fontsize=8)
