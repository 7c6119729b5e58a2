"""Rows of a comparison's CSV files, in full precision."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from nas.compare.anytime import MEASURES, TARGETS, VOLUME
from nas.compare.plan import BASELINES
from nas.compare.result import StudyResult, against, pairs, powers
from nas.compare.statistics import EFFECTS, bootstrap_interval, quantile
from nas.files.tables import csv_text
from search_spaces.arrays import FloatArray

Rows = list[dict[str, Any]]
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


def volume_rows(results: Iterable[StudyResult]) -> Rows:
    """Hypervolume of every run at every checkpoint, within the point and bounds that were given."""
    return [
        {"study": r.name, "strategy": run.strategy, "run": run.run, "evaluations": int(count), VOLUME: float(volume)}
        for r in results
        for run in r.runs
        if VOLUME in run.values
        for count, volume in zip(r.counts, run.values[VOLUME], strict=True)
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


def power_rows(results: Iterable[StudyResult]) -> Rows:
    """Of each study and test the least effect that is shown in 80 % of comparisons, empty where none is, and how often others are.

    The effect is A12 for Mann and Whitney's test, the share of seeds on which one is ahead for Wilcoxon's.
    """
    return [
        {
            "study": r.name,
            **{name: getattr(power, name) for name in ("test", "runs", "comparisons", "least")},
            **{f"shown_at_{effect:g}": power.shown(effect) for effect in EFFECTS},
        }
        for r in results
        if r.reference is not None
        for power in powers(r)
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


def clock_rows(results: Iterable[StudyResult]) -> Rows:
    """Gap over seconds of strategy and objectives: median and quartiles."""
    return [
        {"study": r.name, "strategy": s, "seconds": float(instant), **spread(column)}
        for r in results
        for s in r.strategies
        if (clocks := [run.clock for run in r.runs_of(s) if run.clock is not None])
        for instant, column in zip(r.instants, np.array(clocks).T, strict=True)
    ]
