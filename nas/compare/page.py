"""The page of a comparison: what it says of each study, measures over evaluations, frontiers, tables, ranks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nas.answer.palette import label
from nas.compare.reading import left_out, sentences, until
from nas.compare.result import Ranking, StudyResult, course, same_starts
from nas.compare.statistics import quantile
from nas.compare.tables import Table, anytime_table, explained, rank_table, result_table, target_table
from nas.pages.embedding import column
from nas.pages.markup import element, footer, paragraphs, section, table, text
from nas.pages.page import page
from search_spaces.arrays import FloatArray

SCRIPTS = ("comparison.js",)
FLOOR = 1e-4  # per cent: gaps below are drawn here, a logarithm has no zero
QUARTILES = {"low": 0.25, "middle": 0.5, "high": 0.75}
MOST = 1_500  # designs of a frontier


def comparison_page(name: str, results: Sequence[StudyResult], rankings: Sequence[Ranking]) -> str:
    """A comparison as one HTML file; nothing on it depends on the clock.

    Raises:
        PlasError: no BokehJS in this environment.
    """
    drawn = [result for result in results if result.pictures]
    legend = element("div", id="legend", class_="legend", role="group", aria_label="Strategies shown")
    explore = (
        element("div", id="study", class_="controls")
        + legend
        + "".join(
            element("div", id=part, class_="chart", role="img", aria_label=title) for part, title in _CHARTS.items()
        )
    )
    main = element(
        "main",
        section("Strategies side by side", explore, paragraphs([_DRAWN], "quiet"), paragraphs([_HINT], "quiet keys"))
        if drawn
        else "",
        *(_ranks(results, ranking) for ranking in rankings),
        *(_study(result, first=result is results[0]) for result in results),
        section("Left out", paragraphs(left_out(results))),
        id="main",
    )
    data = {"metrics": [], "studies": [study_data(result) for result in drawn]}
    return page(name, element("header", element("h1", text(name))) + main + footer(), data, SCRIPTS)


_CHARTS = {
    "gap": "Hypervolume gap over evaluations; the tables below hold its figures.",
    "share": "Share of the reference found over evaluations; the tables below hold its figures.",
    "fronts": "What the median run of each strategy found, over the reference.",
}
_DRAWN = "Medians of runs with bands between quartiles. Until a dotted line the strategies named there have the same designs: level by construction."
_HINT = "A name hides and shows its strategy, pointing at it or Tab lifts it out, Esc shows all; drag to zoom, point to read."


def _ranks(results: Sequence[StudyResult], ranking: Ranking) -> str:
    title = f"Over the studies{f' of {ranking.group}' if ranking.group else ''}"
    shown = _table(rank_table(course(results, ranking.group))) if ranking.shown else ""
    return section(title, shown, paragraphs([ranking.sentence()])) if len(results) > 1 else ""


def _study(result: StudyResult, *, first: bool) -> str:
    """A section on a study, with its tables folded away."""
    if result.reference is None:
        folded = ""
    else:
        first_table, *others = map(_table, (result_table(result), anytime_table(result), target_table(result)))
        words = paragraphs([explained(result)], "quiet")
        folded = element("details", element("summary", "Tables"), first_table, words, *others, open=first)
    return section(result.name, paragraphs([result.what], "quiet"), paragraphs(sentences(result)), folded)


def _table(shown: Table) -> str:
    return table(shown.header, shown.rows, shown.title)


def study_data(result: StudyResult) -> dict[str, Any]:
    """A study's curves and frontiers, its strategies from the smallest median gap to the largest."""
    order, reference = result.ranking(), result.reference
    assert reference is not None
    exact = reference.source.startswith("exact")
    return {
        "name": result.name,
        "strategies": order,
        "counts": column(result.counts),
        "gap": [_quartiles(np.maximum(100 * result.matrix(name, "gap"), FLOOR)) for name in order],
        "share": [_quartiles(100 * result.matrix(name, "share")) for name in order],
        "alike": [{"said": until(names), "count": count} for names, count in same_starts(result)],
        "gapLabel": f"Hypervolume gap to {'exact' if exact else 'union of runs'} (%)",
        "shareLabel": f"Share of the {'exact frontier' if exact else 'union'} found (%)",
        "referenceLabel": reference.source,
        "objectives": [{"name": o.name, "label": label(o.name), "log": o.log_scale} for o in result.objectives],
        "reference": _columns(reference.values),
        "fronts": [_columns(result.median_front(name)) for name in order],
    }


def _quartiles(values: FloatArray) -> dict[str, Any]:
    """Quartiles over runs at each checkpoint of values (runs, checkpoints)."""
    return {name: column(np.array([quantile(each, q) for each in values.T])) for name, q in QUARTILES.items()}


def _columns(values: FloatArray) -> list[dict[str, Any]]:
    """Objective values (n, m), thinned, a column each."""
    kept = values[np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST)).astype(int))]
    return [column(each) for each in kept.T]
