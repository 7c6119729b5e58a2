"""The critical-difference diagram of mean ranks over studies, with scikit-posthocs."""

from importlib.util import find_spec
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from nas.answer.palette import INK
from nas.compare.pictures import GREY, Stroke
from nas.compare.result import Ranking

NO_DIAGRAM = "The critical-difference diagram was left out: it needs pip install './plugins/bench[stats]'."


def can_draw() -> bool:
    """Whether the package that draws the diagram (extra `stats`) is installed."""
    return find_spec("scikit_posthocs") is not None


def rank_figure(ranking: Ranking, styles: dict[str, Stroke]) -> Figure | None:
    """Mean ranks on a line, bars joining strategies that are not shown to differ (Nemenyi); None below ten studies or without the extra."""
    if not ranking.shown or not can_draw():
        return None
    import scikit_posthocs

    gaps = pd.DataFrame(ranking.gaps, columns=list(ranking.strategies))
    different = scikit_posthocs.posthoc_nemenyi_friedman(gaps)
    ranks = dict(ranking.ordered())
    figure = Figure(figsize=(7.4, 1.5 + 0.19 * len(ranks)))
    ax = figure.subplots()
    colours: Any = {name: styles[name].colour for name in ranks}
    bars = {"color": INK, "linewidth": 2.2}
    scikit_posthocs.critical_difference_diagram(
        ranks, different, ax=ax, color_palette=colours, crossbar_props=bars, text_h_margin=0.02
    )
    ax.set_title(
        f"Mean rank over {len(ranking.gaps)} studies, 1 is best; bars: no difference shown",
        loc="left",
        color=GREY,
        pad=9,
    )
    figure.subplots_adjust(left=0.2, right=0.8, bottom=0.04, top=0.84)
    return figure
