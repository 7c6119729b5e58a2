"""A comparison as it is read: sentences and tables per study and over studies as a document, and its page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nas.answer.palette import label
from nas.compare.configuration import BASELINES
from nas.compare.reference import UNION
from nas.compare.result import NONE_SHOWN, Ranking, StudyResult, against, course, dependent, named, pairs, same_starts
from nas.compare.statistics import PAIRED, UNPAIRED, quantile, runs_needed, seeds_needed
from nas.compare.tables import (
    against_word,
    anytime_table,
    explained,
    percent,
    rank_table,
    result_table,
    setting,
    target_table,
)
from nas.document.document import Document, Figure, Part, Section
from nas.pages.page import column, element, footer, page, paragraphs, section, section_html, text
from search_spaces.arrays import FloatArray


def sentences(r: StudyResult) -> list[str]:
    """A reading of one study."""
    if r.reference is None:
        return [f"{r.name}: no run found a feasible design; nothing can be compared. Relax a budget."]
    lines = [*best(r), *baseline(r), *too_few(r), *alike(r)]
    lines += [f"{name}: {why}." for name, why in r.chosen.items()]
    lines += whole(r)
    if r.reference.source == UNION:
        lines.append(
            "There is no exact frontier here: gaps are to the union of all runs, so they depend on which runs there are."
        )
    return lines


def best(r: StudyResult) -> list[str]:
    """Which strategy came closest, and which ones it is not shown to differ from."""
    order = r.ranking()
    if not order:
        return [f"{r.name}: every run failed."]
    first = order[0]
    verdicts = {
        p.second if p.first == first else p.first: p.better for p in pairs(r, "gap") if first in (p.first, p.second)
    }
    same = [name for name in order[1:] if verdicts[name] == NONE_SHOWN]
    least, *others = (quantile(r.last(name, "gap"), 0.5) for name in order)
    equal = [name for name, median in zip(order[1:], others, strict=True) if median == least]
    level = f" (the same median: {', '.join(equal)})" if equal else ""
    text = f"Smallest median gap after {r.counts[-1]:,} distinct evaluations: {first}, {percent(least)}{level}."
    if any(can_show(r).values()):
        text += f" No difference shown from it: {', '.join(same)}." if same else " Shown to be better than every other."
    return [text]


def baseline(r: StudyResult) -> list[str]:
    """Which strategies are not shown to be better than random search."""
    verdicts = against(r, "gap", BASELINES[0])
    if not verdicts:
        return []
    words: dict[str, list[str]] = {"better": [], "worse": [], NONE_SHOWN: []}
    for pair in verdicts:
        words[against_word(pair.better, pair.first)].append(pair.first)
    parts = [f"{word}: {', '.join(names)}" for word, names in words.items() if names]
    tests = " and ".join(sorted({pair.test for pair in verdicts}))
    return [f"Against {BASELINES[0]} search ({tests}, Holm, 5 %): {'; '.join(parts)}."]


def whole(r: StudyResult) -> list[str]:
    """Note on fidelity steps that a run of the study would take."""
    stepped = ", ".join(objective.name for objective in r.objectives if objective.fidelities)
    return [f"{stepped}: every evaluation at the full fidelity, a comparison takes no steps."] if stepped else []


NEEDED = {UNPAIRED: runs_needed, PAIRED: seeds_needed}


def seeds_too_few(strategies: int, seeds: int) -> list[str]:
    """Say before the runs that so many seeds could show no difference between any two of the strategies."""
    family = strategies * (strategies - 1) // 2
    least = min(needed(family) for needed in NEEDED.values()) if family else 0
    if seeds >= least:
        return []
    own = "1 seed" if seeds == 1 else f"{seeds} seeds"
    return [f"{own} cannot show a difference between any two of {strategies} strategies: --seeds {least} or more can"]


def can_show(r: StudyResult) -> dict[str, bool]:
    """By test, whether the runs are enough for it to show any difference, in the pair that has the most."""
    all_pairs = pairs(r, "gap")
    most = {test: max(p.runs for p in all_pairs if p.test == test) for test in sorted({p.test for p in all_pairs})}
    return {test: runs >= NEEDED[test](len(all_pairs)) for test, runs in most.items()}


def too_few(r: StudyResult) -> list[str]:
    """Say so when no data could show a difference, of all pairs or of those of one test."""
    all_pairs, enough = pairs(r, "gap"), can_show(r)
    family = len(all_pairs)
    seeded = all(run.seed is not None for run in r.runs)
    lines = []
    for test in [test for test, can in enough.items() if not can]:
        runs = max(p.runs for p in all_pairs if p.test == test)
        have = (
            f"{runs} {'seed' if runs == 1 else 'seeds'}" if seeded else f"{runs} {'run' if runs == 1 else 'runs'} each"
        )
        whom = f"of {len(r.strategies)} strategies ({family} {'pair' if family == 1 else 'pairs'})"
        kind = f" that begin with {'the same' if test == PAIRED else 'different'} designs" if len(enough) > 1 else ""
        lines.append(
            f"{have} cannot show a difference between any two {whom}{kind}: at least {NEEDED[test](family)} are needed."
        )
    return lines


def alike(r: StudyResult) -> list[str]:
    """Which strategies begin with the same designs, so that they are level until then and not independent after."""
    seeded = all(run.seed is not None for run in r.runs)
    return [
        (f"A seed gives {', '.join(names)}" if seeded else f"Runs of one name of {', '.join(names)} have")
        + f" the same first {count:,} designs: level until then"
        + (f", and tested on pairs of seeds ({PAIRED})." if dependent(r, names[0], names[1]) else ".")
        for names, count in same_starts(r)
    ]


def until(names: Sequence[str]) -> str:
    """What stands at the line where strategies that begin with the same designs part."""
    whom = " and ".join(names) if len(names) == 2 else f"{names[0]} and {len(names) - 1} more"
    return f"{whom}: the same until here"


def left_out(results: Sequence[StudyResult]) -> list[str]:
    """Strategies that were skipped and runs that failed, each with its reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for r in results:
        for strategy, reason in r.skipped.items():
            reasons.setdefault((f"Skipped: {strategy}", reason), []).append(r.name)
        for run, reason in r.failures.items():
            reasons.setdefault((f"Failed: {run}", reason), []).append(r.name)
    everywhere = len(results)
    return [
        f"{what}{'' if len(names) == everywhere else ' in ' + ', '.join(names)}: {reason}"
        for (what, reason), names in reasons.items()
    ]


MANY = 3  # studies; more are folded, and a sentence on each comes first


def comparison_document(
    name: str,
    results: Sequence[StudyResult],
    rankings: Sequence[Ranking],
    numbers: Mapping[str, Any],
    *,
    pictures: bool,
) -> Document:
    """A comparison as it is read, nothing of which depends on the clock: each study, over the studies, what was left out."""
    many, reading, missing = len(results) > MANY, {r.name: sentences(r) for r in results}, left_out(results)
    explaining = {explained(r): r for r in reversed(results) if r.reference is not None}  # the first of each reference
    studies = [
        section
        for r in results
        for section in _of_study(r, reading[r.name], many=many, explain=r in explaining.values())
    ]
    over = [_over(results, ranking) for ranking in rankings]
    brief = Section(
        "In short", tuple(f"{name}: {first.removeprefix(f'{name}: ')}" for name, (first, *_) in reading.items())
    )
    sections = [brief, *over, *studies] if many else [*studies, *over]
    sections.append(Section("Left out", tuple(missing)))
    if not pictures:
        sections = [replace(s, parts=tuple(part for part in s.parts if not isinstance(part, Figure))) for s in sections]
    data = {**numbers, "reading": reading, "left_out": missing}
    return Document(name, tuple(section for section in sections if section.parts), data)


def _of_study(r: StudyResult, said: Sequence[str], *, many: bool, explain: bool) -> Iterator[Section]:
    """What a study shows, and folded how it came there."""
    if r.reference is None:
        yield Section(r.name, (r.what, *said), folded=many)
        return
    last = replace(result_table(r), title="", notes=(explained(r),) if explain else ())
    shown: tuple[Part, ...] = (setting(r), *said, last)
    pictures = [Figure(f"{r.name}-anytime", "anytime")] * r.drawn
    further: tuple[Part, ...] = (anytime_table(r), target_table(r), *pictures)
    if many:
        yield Section(r.name, (*shown, *further), folded=True)
    else:
        yield Section(r.name, shown)
        yield Section(f"{r.name} on the way", further, folded=True)


def _over(results: Sequence[StudyResult], ranking: Ranking) -> Section:
    """A group's strategies over its studies; of one study alone nothing but its picture of targets."""
    drawn = any(r.drawn for r in results if r.group == ranking.group)
    pictures = [Figure(named("targets", ranking.group), "targets")] * drawn
    if len(results) == 1:
        return Section("", tuple(pictures), folded=True)
    parts: list[Part] = [ranking.sentence()]
    if ranking.shown:
        parts.append(rank_table(course(results, ranking.group)))
    return Section(f"Over the studies{f' of {ranking.group}' if ranking.group else ''}", (*parts, *pictures))


SCRIPTS = ("comparison.js",)
FLOOR = 1e-4  # per cent: gaps below are drawn here, a logarithm has no zero
QUARTILES = {"low": 0.25, "middle": 0.5, "high": 0.75}
MOST = 1_500  # designs of a frontier


def comparison_page(document: Document, results: Sequence[StudyResult]) -> str:
    """A comparison as one HTML file: charts to explore, then the document, without its pictures.

    Raises:
        PlasError: no BokehJS in this environment.
    """
    drawn = [result for result in results if result.drawn]
    legend = element("div", id="legend", class_="legend", role="group", aria_label="Strategies shown")
    charts = [element("div", id=part, class_="chart", role="img", aria_label=alt) for part, alt in _CHARTS.items()]
    said = paragraphs([_DRAWN], "quiet") + paragraphs([_HINT], "quiet keys")
    explore = section("Strategies side by side", element("div", id="study", class_="controls"), legend, *charts, said)
    main = element("main", explore if drawn else "", *map(section_html, document.sections), id="main")
    data = {"metrics": [], "studies": [study_data(result) for result in drawn]}
    header = element("header", element("h1", text(document.title)))
    return page(document.title, header + main + footer(), data, SCRIPTS)


_CHARTS = {
    "gap": "Hypervolume gap over evaluations; the tables below hold its figures.",
    "share": "Share of the reference found over evaluations; the tables below hold its figures.",
    "fronts": "What the median run of each strategy found, over the reference.",
}
_DRAWN = "Medians of runs with bands between quartiles. Until a dotted line the strategies named there have the same designs: level by construction."
_HINT = "A name hides and shows its strategy, pointing at it or Tab lifts it out, Esc shows all; drag to zoom, point to read."


def study_data(result: StudyResult) -> dict[str, Any]:
    """A study's curves and frontiers, its strategies from the smallest median gap to the largest."""
    order, reference = result.ranking(), result.reference
    assert reference is not None
    return {
        "name": result.name,
        "strategies": order,
        "counts": column(result.counts),
        "gap": [_quartiles(np.maximum(100 * result.matrix(name, "gap"), FLOOR)) for name in order],
        "share": [_quartiles(100 * result.matrix(name, "share")) for name in order],
        "alike": [{"said": until(names), "count": count} for names, count in same_starts(result)],
        "gapLabel": gap_label(result),
        "shareLabel": share_label(result),
        "referenceLabel": reference.source,
        "objectives": [{"name": o.name, "label": label(o.name), "log": o.log_scale} for o in result.objectives],
        "reference": _columns(reference.values),
        "fronts": [_columns(result.median_front(name)) for name in order],
    }


def gap_label(r: StudyResult) -> str:
    """The gap on an axis."""
    return f"Hypervolume gap to {'exact' if r.exact else 'union of runs'} (%)"


def share_label(r: StudyResult) -> str:
    """The share on an axis."""
    return f"Share of the {'exact frontier' if r.exact else 'union'} found (%)"


def _quartiles(values: FloatArray) -> dict[str, Any]:
    """Quartiles over runs at each checkpoint of values (runs, checkpoints)."""
    return {name: column(np.array([quantile(each, q) for each in values.T])) for name, q in QUARTILES.items()}


def _columns(values: FloatArray) -> list[dict[str, Any]]:
    """Objective values (n, m), thinned, a column each."""
    kept = values[np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST)).astype(int))]
    return [column(each) for each in kept.T]
