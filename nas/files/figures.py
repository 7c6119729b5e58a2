"""Figures as files: drawn over matplotlib's defaults whatever the user's matplotlibrc says, written whole, the same bytes."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from nas.files.tables import write


@contextmanager
def styled(style: Any) -> Iterator[None]:
    """A style over the defaults; the user's own settings (`text.usetex`, fonts, sizes) return afterwards.

    A letter that the font does not have is drawn as a box, without a word.
    """
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(style)
        yield


def save(figure: Figure, stem: Path, *, dpi: int = 160, svg: bool = True) -> None:
    """PNG and, unless left out, SVG: the same bytes for the same figure.

    Raises:
        PlasError: they cannot be written.
    """
    FigureCanvasAgg(figure)
    kinds: dict[str, dict[str, Any]] = {"png": {"dpi": dpi, "metadata": {"Software": None}}}
    if svg:
        kinds["svg"] = {"metadata": {"Date": None}}
    for kind, options in kinds.items():
        drawn = io.BytesIO()
        figure.savefig(drawn, format=kind, **options)
        write(stem.with_name(f"{stem.name}.{kind}"), drawn.getvalue())


def png(figure: Figure, *, dpi: int = 110) -> bytes:
    """A figure as the bytes of a PNG, for a page."""
    FigureCanvasAgg(figure)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi, metadata={"Software": None})
    return drawn.getvalue()


def plain_decades(axis: Axis) -> None:
    """Numbers at the powers of ten of a logarithmic axis, in plain text: a formula would be parsed for each of them.

    Where the axis holds fewer than two of these, at twice and five times them as well.
    """

    def between(value: float, _: int | None = None) -> str:
        low, high = sorted(axis.get_view_interval())
        few = np.floor(np.log10(high)) - np.ceil(np.log10(low)) < 1
        return f"{value:,.6g}" if few and f"{value:e}"[0] in "25" else ""

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(FuncFormatter(between))


def plain(text: str) -> str:
    """A name as it is: no dollar in it begins a formula."""
    return text.replace("$", r"\$")
