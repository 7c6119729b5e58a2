"""Tables of a comparison: CSV in full precision, Markdown as read; clock times in files of their own."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nas.compare.anytime import MEASURES, SHOWN_TARGETS, TARGETS, shown
from nas.compare.configuration import BASELINES
from nas.compare.result import NONE_SHOWN, Ranking, StudyResult, against, course, pairs
from nas.compare.statistics import bootstrap_interval, quantile
from nas.document.document import Table, markdown_table, table_of
from nas.files.own_files import inner_folder
from nas.files.tables import csv_text, write
from search_spaces.arrays import FloatArray

Rows = list[dict[str, Any]]
ENDED, LEVEL = "* ended before", "= the same designs as another"


def table_rows(results: Sequence[StudyResult], rankings: Sequence[Ranking]) -> dict[str, Rows]:
    """The rows of every table that does not depend on the clock, by the name of its file."""
    return {
        "runs": run_rows(results),
        "anytime": anytime_rows(results),
        "results": result_rows(results),
        "targets": target_rows(results),
        "reached": reached_rows(results),
        "pairs": pair_rows(results),
        "ranks": [row for stages in courses(results, rankings) for ranking in stages for row in ranking.rows()],
    }


def courses(results: Sequence[StudyResult], rankings: Sequence[Ranking]) -> list[list[Ranking]]:
    """The rankings on the way of each group that has ranks."""
    return [course(results, ranking.group) for ranking in rankings if ranking.shown]


def write_tables(
    folder: Path, rows: Mapping[str, Rows], results: Sequence[StudyResult], rankings: Sequence[Ranking]
) -> None:
    """Every table that does not depend on the clock, then those that do."""
    tables, timing = inner_folder(folder, "tables"), inner_folder(folder, "timing")
    for name, of_table in rows.items():
        write(tables / f"{name}.csv", as_csv(of_table))
    for name, table in PER_STUDY.items():
        write(tables / f"{name}.md", under_headings(map(table, results)))
    write(tables / "ranks.md", under_headings(map(rank_table, courses(results, rankings))))
    write(timing / "overhead.csv", as_csv(overhead_rows(results)))
    write(timing / "overhead.md", under_headings(map(overhead_table, results)))


def under_headings(tables: Iterable[Table]) -> str:
    """Tables in Markdown, the title of each as a heading."""
    blocks = [block for t in tables for block in (f"### {t.title}", *markdown_table(replace(t, title="")))]
    return "\n\n".join(blocks) + "\n"


def result_table(r: StudyResult) -> Table:
    """Median and quartiles of every measure, the best first."""
    verdicts = {p.first: p.better for p in against(r, "gap", BASELINES[0])}
    header = ("strategy", "runs", "gap to exact" if r.exact else "gap to union", "95 % interval of it", "share found")
    rows = [
        (
            s,
            f"{len(r.runs_of(s))}" + (f" ({r.failed(s)} failed)" if r.failed(s) else ""),
            _spread(r, s, "gap", percent),
            interval(r, s),
            _spread(r, s, "share", percent),
            distance(quantile(r.last(s, "igd_plus"), 0.5)),
            distance(quantile(r.last(s, "epsilon"), 0.5)),
            "nothing fits" if math.isinf(lost := quantile(r.last(s, "regret"), 0.5)) else number(lost),
            *([against_word(verdicts.get(s), s)] if verdicts else []),
            r.ended(s) or "-",
        )
        for s in r.ranking()
    ]
    closing = ("IGD+", "epsilon", regret_column(r), *([f"against {BASELINES[0]}"] if verdicts else []), "ended")
    return table_of((*header, *closing), rows, titled(r))


def regret_column(r: StudyResult) -> str:
    """The name of the worst regret with its unit, that of what is picked by: `worst regret (nats)`."""
    unit = "" if r.reference is None else r.objectives[r.reference.picked].unit
    return "worst regret" + (f" ({unit})" if unit else "")


def explained(r: StudyResult) -> str:
    """What the columns of a study's table are."""
    frontier = "the exact frontier" if r.exact else "the union's frontier"
    return (
        f"Gap: the part of the hypervolume of {frontier} that was missed, median [quartiles] over runs; share found: of its designs; "
        "IGD+ and epsilon: mean and largest distance from it, in % of the range that it spans; worst regret: how much worse than the "
        "best a pick from what was found is, at the worst of twenty budgets. Medians over runs."
    )


def titled(r: StudyResult) -> str:
    """The caption of a study's table."""
    return f"{r.name}: {setting(r)}"


def setting(r: StudyResult) -> str:
    """What was searched, for how many evaluations, and against what it is measured."""
    against_what = (
        "nothing feasible" if r.reference is None else f"{r.reference.source} of {len(r.reference.keys):,} designs"
    )
    return f"{r.what}; {r.counts[-1]:,} distinct evaluations, against the {against_what}"


def against_word(better: str | None, strategy: str) -> str:
    """Better, worse, or no difference shown; a dash for the baseline itself."""
    if better is None:
        return "-"
    return better if better == NONE_SHOWN else "better" if better == strategy else "worse"


def interval(r: StudyResult, strategy: str) -> str:
    """Bootstrap interval of the median gap."""
    low, high = bootstrap_interval(r.last(strategy, "gap"))
    return f"{percent(low)} to {percent(high)}"


def _spread(r: StudyResult, strategy: str, measure: str, form: Any) -> str:
    values = r.last(strategy, measure)
    middle, low, high = (form(quantile(values, q)) for q in (0.5, 0.25, 0.75))
    return str(middle) if low == high == middle else f"{middle} [{low}, {high}]"


def distance(value: float) -> str:
    """IGD+ or epsilon, in % of the range that the frontier spans."""
    return "nothing found" if math.isinf(value) else percent(value)


def percent(value: float) -> str:
    """A share in percent, two significant digits, three from 10 % on."""
    if math.isnan(value):
        return "-"
    return "0 %" if value == 0 else f"{100 * value:.3g} %" if value >= 0.1 else f"{100 * value:.2g} %"


def number(value: float) -> str:
    """Two significant digits."""
    return "-" if math.isnan(value) else f"{value:.2g}"


def target_table(r: StudyResult) -> Table:
    """Expected evaluations to each shown target, and how many runs reached it."""
    cells = {(row["strategy"], row["target"]): row for row in target_rows([r])}
    header = ("strategy", *(f"gap {percent(target)}" for target in SHOWN_TARGETS))
    rows = [(s, *(_target_cell(cells[s, target]) for target in SHOWN_TARGETS)) for s in r.ranking()]
    return table_of(header, rows, f"{r.name}: expected distinct evaluations to a gap (runs that reached it)")


def _target_cell(row: dict[str, Any]) -> str:
    expected = row["expected_evaluations"]
    return f"{'never' if math.isinf(expected) else f'{expected:,.0f}'} ({row['reached']} of {row['runs']})"


def pair_table(r: StudyResult) -> Table:
    """Which of two strategies has the smaller gap, Holm-corrected, with A12 of the row's strategy."""
    by_names = {(p.first, p.second): p for p in pairs(r, "gap")}
    names = r.ranking()
    rows = [(a, *(_pair_cell(by_names.get((a, b)), by_names.get((b, a))) for b in names)) for a in names]
    tests = " and ".join(sorted({p.test for p in by_names.values()}))
    title = f"{r.name}: gap at {r.counts[-1]:,} distinct evaluations, row against column: + better, - worse, = no difference shown; A12, how often the row's run is ahead (p of {tests or 'no test'} after Holm)"
    return table_of(("strategy", *names), rows, title)


def _pair_cell(forward: Any, backward: Any) -> str:
    pair = forward or backward
    if pair is None:
        return ""
    better = pair.a12 if forward else 1 - pair.a12
    mark = "=" if pair.better == NONE_SHOWN else "+" if (pair.better == pair.first) == bool(forward) else "-"
    return f"{mark} {better:.2f} ({pair.p_holm:.2g})"


def anytime_table(r: StudyResult) -> Table:
    """Median gap on the way, the best in the end first."""
    columns = shown(r.counts)
    rows = tuple(
        (
            s,
            *(
                _marked(
                    percent(quantile(r.matrix(s, "gap")[:, i], 0.5)),
                    ended=r.carried(s, r.counts[i]),
                    level=r.level(s, r.counts[i]),
                )
                for i in columns
            ),
        )
        for s in r.ranking()
    )
    title = f"{r.name}: median gap after distinct evaluations{_legend(rows)}"
    return table_of(("strategy", *_counts(r.counts[columns])), rows, title)


def rank_table(course: Sequence[Ranking]) -> Table:
    """Mean ranks over studies on the way, the best in the end first."""
    ranks = [dict(ranking.ordered()) for ranking in course]
    rows = tuple(
        (
            s,
            *(
                _marked(f"{known[s]:.2f}", ended=s in ranking.ended, level=s in ranking.level)
                for known, ranking in zip(ranks, course, strict=True)
            ),
        )
        for s, _ in course[-1].ordered()
    )
    header = ("strategy", *_counts([ranking.evaluations for ranking in course]))
    return table_of(header, rows, f"{course[-1].title()}; by distinct evaluations{_legend(rows)}")


def _marked(text: str, *, ended: bool, level: bool) -> str:
    return f"{text} *" if ended else f"{text} =" if level else text


def _legend(rows: Iterable[tuple[str, ...]]) -> str:
    """Legend of the marks in a table's cells, of those that are in it."""
    used = {cell[-2:] for row in rows for cell in row[1:]}
    marks = [meaning for meaning in (ENDED, LEVEL) if f" {meaning[0]}" in used]
    return f" ({'; '.join(marks)})" if marks else ""


def _counts(counts: Iterable[int]) -> list[str]:
    return [f"{count:,}" for count in counts]


def overhead_table(r: StudyResult) -> Table:
    """The cost of a strategy by itself."""
    by_names = {(row["strategy"], row["what"]): row for row in overhead_rows([r])}
    rows = [
        (s, *(number(by_names[s, what]["median"]) for what in CLOCK))
        for s in sorted(r.strategies, key=lambda s: (by_names[s, CLOCK[0]]["median"], s))
    ]
    header = ("strategy", "own time per distinct evaluation (ms)", "objectives' (ms)", "whole run (s)")
    return table_of(header, rows, f"{r.name}: medians over runs, on this machine")


#: Tables of each study in `tables/`, by the name of their file.
PER_STUDY = {"results": result_table, "targets": target_table, "pairs": pair_table, "anytime": anytime_table}
PAIR_COLUMNS = ("first", "second", "test", "runs", "shared_start", "a12", "p", "p_holm", "better")
CLOCK = ("strategy_ms", "objectives_ms", "seconds")


def as_csv(rows: Rows) -> str:
    """Rows with the same keys as CSV; NaN is empty."""
    return csv_text({name: [row[name] for row in rows] for name in rows[0]}) if rows else ""


def run_rows(results: Iterable[StudyResult]) -> Rows:
    """Every run at every checkpoint."""
    return [
        {
            "study": r.name,
            "strategy": run.strategy,
            "run": run.run,
            "ended": run.ended,
            "distinct": run.evaluations,
            "evaluations": int(count),
            "carried": int(count) > run.evaluations,
            **{name: float(run.values[name][i]) for name in MEASURES},
        }
        for r in results
        for run in r.runs
        for i, count in enumerate(r.counts)
    ]


def anytime_rows(results: Iterable[StudyResult]) -> Rows:
    """Median and quartiles over runs at every checkpoint."""
    return [
        {
            "study": r.name,
            "strategy": s,
            "evaluations": int(count),
            "level": r.level(s, count),
            "measure": m,
            **spread(r.matrix(s, m)[:, i]),
        }
        for r in results
        for s in r.strategies
        for i, count in enumerate(r.counts)
        for m in MEASURES
    ]


def result_rows(results: Iterable[StudyResult]) -> Rows:
    """Each strategy's result at the last checkpoint: median, quartiles and the interval of the median."""
    return [_result_row(r, s, m) for r in results for s in r.strategies for m in MEASURES]


def _result_row(r: StudyResult, strategy: str, measure: str) -> dict[str, Any]:
    values = r.last(strategy, measure)
    low, high = bootstrap_interval(values)
    return {
        "study": r.name,
        "group": r.group,
        "reference": "none" if r.reference is None else r.reference.source,
        "strategy": strategy,
        "evaluations": int(r.counts[-1]),
        "ended": r.ended(strategy),
        "failed": r.failed(strategy),
        "measure": measure,
        **spread(values),
        "low": low,
        "high": high,
    }


def spread(values: FloatArray) -> dict[str, Any]:
    """How many, median and quartiles."""
    return {
        "runs": len(values),
        **{name: quantile(values, q) for name, q in (("median", 0.5), ("q1", 0.25), ("q3", 0.75))},
    }


def target_rows(results: Iterable[StudyResult]) -> Rows:
    """Expected evaluations to each target: those of all runs until they reached it or ended, over how many reached it."""
    rows: Rows = []
    for r in results:
        for strategy in r.strategies:
            reached = r.reached(strategy)
            spent = np.array([run.evaluations for run in r.runs_of(strategy)], dtype=np.float64)
            for i, target in enumerate(TARGETS):
                column = reached[:, i]
                hits = int(np.isfinite(column).sum())
                total = float(np.where(np.isfinite(column), column, spent).sum())
                rows.append(
                    {
                        "study": r.name,
                        "strategy": strategy,
                        "target": target,
                        "runs": len(column),
                        "reached": hits,
                        "expected_evaluations": total / hits if hits else math.inf,
                        "median": quantile(np.where(np.isfinite(column), column, np.inf), 0.5),
                    }
                )
    return rows


def reached_rows(results: Iterable[StudyResult]) -> Rows:
    """Every run and target: evaluations to it, empty where the run was censored after `censored` evaluations."""
    return [
        {
            "study": r.name,
            "strategy": run.strategy,
            "run": run.run,
            "target": target,
            "evaluations": float(run.reached[i]),
            "censored": run.evaluations if np.isnan(run.reached[i]) else math.nan,
        }
        for r in results
        for run in r.runs
        if run.ended != "failed"
        for i, target in enumerate(TARGETS)
    ]


def pair_rows(results: Iterable[StudyResult]) -> Rows:
    """Every pair of strategies on every measure, and every strategy with each baseline, each family corrected by itself."""
    return [
        {"study": r.name, "measure": measure, "family": family, **{name: getattr(p, name) for name in PAIR_COLUMNS}}
        for r in results
        if r.reference is not None
        for measure in MEASURES
        for family, members in (
            ("all pairs", pairs(r, measure)),
            *((f"against {name}", against(r, measure, name)) for name in BASELINES),
        )
        for p in members
    ]


def overhead_rows(results: Iterable[StudyResult]) -> Rows:
    """Milliseconds of strategy and of objectives per distinct evaluation and seconds of a run, over the runs that have times."""
    rows: Rows = []
    for r in results:
        for strategy in r.strategies:
            for what in CLOCK:
                times = [value for run in r.runs_of(strategy) if (value := getattr(run, what)) is not None]
                rows.append({"study": r.name, "strategy": strategy, "what": what, **spread(np.array(times))})
    return rows
