"""Results from before a run, checked against its study: given to the strategy, not charged."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Objective
from nas.problem.problem import Problem
from nas.record.given import Given, read_given
from nas.record.identity import deciding, section
from nas.study.configuration import StudyConfig
from nas.study.study_laws import recorded_lengths
from objectives.display_text import escaped
from objectives.plugins import importable
from search_spaces.arrays import AnyArray, BoolArray, FloatArray, IntArray
from search_spaces.columns import worded

METRICS = "objectives.metrics"
SAME = 1e-6  # relative; a shipped metric that a source tells otherwise is of another study


@dataclass(frozen=True, eq=False)
class Known:
    """Results from before a run, each design once; per source how many were taken, and what was left out and why."""

    evaluations: Evaluations
    sources: tuple[dict[str, Any], ...] = ()

    def lines(self) -> list[str]:
        """A line per source."""
        return [
            f"known: {source['source']}: {source['used']:,} results taken, not charged"
            + "".join(f"; {n:,} left out: {why}" for why, n in source["left_out"].items())
            + "".join(f"; {note}" for note in source["notes"])
            for source in self.sources
        ]


def known_columns(found: Evaluations, problem: Problem) -> dict[str, AnyArray]:
    """Known results as a table that is known results again: architectures and the user's own metrics."""
    columns = problem.architectures(found.genotypes).columns(problem.space.further)
    return columns | {metric.name: found.metrics[metric.name] for metric in problem.functions}


def known_of(config: StudyConfig, problem: Problem) -> Known | None:
    """Known results of a study; None where it names none.

    A user's own metrics are taken as they were told. Shipped ones cost nothing and are computed again. Of a design that is told
    several times the mean counts.

    Raises:
        UsageError: a source that cannot be read, lacks a metric, is of another study, or holds nothing that can be used.
    """
    own = [metric.name for metric in problem.functions]
    for name in config.known_as:
        if name not in own:
            raise UsageError(
                f"known_as: expected a metric of your own ({', '.join(own) or 'this study has none'}), got {escaped(name)}; correct it"
            )
    if not config.known:
        return None
    parts = [_taken(source, problem, config.known_as) for source in config.known]
    return Known(_joined([found for found, _ in parts], problem), tuple(account for _, account in parts))


def _taken(source: str, problem: Problem, known_as: Mapping[str, str]) -> tuple[Evaluations, dict[str, Any]]:
    """The rows of a source that can be used, and the count of those left out."""
    given, shown = read_given(source), escaped(source)
    columns = _columns(given, problem, known_as)
    own = _own_values(shown, given, columns, problem)
    keys = problem.space.find(problem.headed(given.architectures)) if len(given) else np.zeros(0, np.int64)
    reasons = _reasons(given, problem, keys, own)
    used = np.flatnonzero(reasons == "")
    left_out = dict(Counter(reasons[reasons != ""].tolist()).most_common())
    if not len(used):
        said = "; ".join(f"{n:,} {why}" for why, n in left_out.items()) or "no row"
        raise UsageError(
            f"known: {shown}: expected results of designs of this study, got none ({said}); name another source"
        )
    shipped = tuple(name for name in problem.metric_names if name not in own)
    found = problem.evaluate(problem.space.genotypes(keys[used]), shipped)
    notes = _compared(shown, given, found, used, problem, {name for name, _ in columns})
    metrics = {name: found.metrics.get(name, np.zeros(0)) for name in problem.metric_names}
    metrics |= {name: column[used] for name, column in own.items()}
    account = {"source": shown, "used": len(used), "left_out": left_out, "notes": notes}
    return replace(found, metrics=metrics)[found.ok], account


def _columns(given: Given, problem: Problem, known_as: Mapping[str, str]) -> list[tuple[str, Objective]]:
    """The column of each of the user's metrics: the one that he names, its own name, or its function's where no shipped metric is called so."""
    return [(known_as.get(metric.name) or _by_name(given, metric), metric) for metric in problem.functions]


def _by_name(given: Given, metric: Objective) -> str:
    short = metric.name.rpartition(":")[2]
    return metric.name if metric.name in given.numbers or short in importable(METRICS) else short


def _own_values(
    source: str, given: Given, columns: Sequence[tuple[str, Objective]], problem: Problem
) -> dict[str, FloatArray]:
    """Values of the user's own metrics by name, each of its column, (n,), NaN where a row has none.

    Raises:
        UsageError: no column holds them, or a function of the scenario was called in another one.
    """
    found = {}
    for column, metric in columns:
        if column not in given.numbers:
            there = ", ".join(escaped(name) for name in given.numbers if name not in importable(METRICS)) or "none"
            raise UsageError(
                f"known: {source}: expected a column {column} with values of {metric.name}, got {there[:200]}; "
                f"say which it is: --set known_as={metric.name}=COLUMN"
            )
        if metric.wants_scenario and given.resolved is not None:
            _refuse_elsewhere(source, metric, given.resolved, problem)
        if metric.settings is not None and given.resolved is not None:
            _refuse_other_settings(source, metric.name, metric.settings, given.resolved.get(metric.name))
        found[metric.name] = given.numbers[column] + 0.0  # no negative zero
    return found


def _refuse_elsewhere(source: str, metric: Objective, there: Mapping[str, Any], problem: Problem) -> None:
    scenario = problem.scenario
    here = {name: getattr(scenario, name) for name in ("batch", "input_tokens", "output_tokens")}
    load = scenario.sustained and scenario.sustained.model_dump(mode="json")
    here |= {"device": section({"device": scenario.device.mapping()}, "device"), "precision": scenario.precision.name}
    here |= {"sustained": load}
    there = {**there, **recorded_lengths(there), "device": section(there, "device")}
    if other := [name for name, value in here.items() if there.get(name) != value]:
        raise UsageError(
            f"known: {source}: expected values of {metric.name}, which takes the scenario, of this study's {', '.join(other)}, "
            "got another's; name results of the same device, precision and workload"
        )


def _refuse_other_settings(source: str, name: str, here: Mapping[str, Any], told: Any) -> None:
    there = deciding(name, told) if isinstance(told, Mapping) else {}
    if other := [f"{name}.{key}" for key, value in deciding(name, here).items() if there.get(key) != value]:
        raise UsageError(
            f"known: {source}: expected values of {name} as this study has it, got others in {', '.join(other)}; name results "
            "of the same settings"
        )


def _reasons(given: Given, problem: Problem, keys: IntArray, own: Mapping[str, FloatArray]) -> AnyArray:
    """Why each row cannot be used, the first reason of several, (n,); "" where it can."""
    found = np.full(len(given), "", dtype=object)
    _refuse_mixed_tokens(given, problem)
    formats, a = ("", problem.scenario.precision.name), given.architectures
    other_format = ~np.isin(worded("precision", a.precision).astype(str), formats)
    checks: list[tuple[BoolArray, str]] = [
        (given.failed, "failed there"),
        (keys < 0, f"outside the space {problem.space.name}"),
        (other_format & ("precision" not in problem.space.place), "of another precision"),
        *((~np.isfinite(column), f"without {name}") for name, column in own.items()),
        *((own[m.name] <= 0, f"{m.name} has no logarithm") for m in problem.functions if m.log_scale),
    ]
    for rows, why in checks:
        found[rows & (found == "")] = why
    return found


def _refuse_mixed_tokens(given: Given, problem: Problem) -> None:
    counts = np.unique(given.architectures.tokens[given.architectures.tokens > 0])
    if len(counts) > 1 and "tokens" not in problem.space.place:
        text = ", ".join(f"{count:g}" for count in counts[:4].astype(float))
        raise UsageError(
            f"known: expected results of one number of training tokens where tokens are no axis, got {len(counts)} ({text}); "
            "keep the rows of one, or search over them with --tokens"
        )


def _compared(
    source: str, given: Given, found: Evaluations, used: IntArray, problem: Problem, own: set[str]
) -> list[str]:
    """Notes on shipped metrics that a source has with other values than this study computes.

    Raises:
        UsageError: they are all that it tells, or a function that takes the scenario was called in another one.
    """
    told = {name: given.numbers[name][used] for name in found.metrics if name in given.numbers and name not in own}
    differ = {
        name: ~np.isclose(column, found.metrics[name], rtol=SAME, equal_nan=True) for name, column in told.items()
    }
    differ = {name: rows for name, rows in differ.items() if rows.any()}
    if not differ:
        return []
    names, rows = ", ".join(differ), int(np.any(list(differ.values()), axis=0).sum())
    if not problem.functions or any(metric.wants_scenario for metric in problem.functions):
        name, first = next((name, int(np.argmax(rows))) for name, rows in differ.items())
        raise UsageError(
            f"known: {source}: expected {names} as this study computes them, got others in {rows:,} of {len(used):,} rows "
            f"({name} {told[name][first]:.6g}, here {found.metrics[name][first]:.6g}): another law, device or workload; "
            "name results of this study"
        )
    return [f"{names} computed again: {rows:,} rows of the source differ (another law, device or workload)"]


def _joined(parts: Sequence[Evaluations], problem: Problem) -> Evaluations:
    """Every design once, in the order of its first row, with the mean of its values."""
    keys = np.concatenate([part.keys for part in parts])
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    order = np.sort(first)
    metrics = {name: np.concatenate([part.metrics[name] for part in parts]) for name in problem.metric_names}
    for metric in problem.functions:
        metrics[metric.name] = _means(metrics[metric.name], place)[place]
    genotypes = np.concatenate([part.genotypes for part in parts])
    names = tuple(objective.name for objective in problem.objectives)
    chosen = {name: column[order] for name, column in metrics.items()}
    return Evaluations(genotypes[order], keys[order], chosen, None, names, problem.budgets)


def _means(values: FloatArray, place: IntArray) -> FloatArray:
    """The mean of the values of each place, (places,); of equal ones the value itself, to the last bit."""
    low = np.full(place.max() + 1, np.inf)
    np.minimum.at(low, place, values)
    found: FloatArray = low + np.bincount(place, values - low[place]) / np.bincount(place)
    return found
