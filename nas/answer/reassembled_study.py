"""Assembles the study of a recorded run, under other flags if given; a user's functions are left out, nothing is imported."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nas.answer.past_run import RecordedRun
from nas.problem.quantiles import named_in, refuse_unclaimed, ships, with_metrics
from nas.search.assembly import Study, assemble
from nas.study.layers import over, preset_keys

OF_FORMATS = ("precision_law", "precision", "group_size", "precision_tokens")


def study_of(run: RecordedRun, flags: Mapping[str, Any], settings: Sequence[str]) -> Study:
    """The run's study with shipped metrics alone.

    Raises:
        UsageError: flags that do not fit it.
    """
    figures = run.workload.figures
    kept: dict[str, Any] = {
        "objectives": [n for n in run.run.resolved["objectives"] if ships(n, figures)] or ["loss"],
        "algo": "random",
        "params": {},
        "applications": {},
        "train": None,
        "measure": None,
    }
    budgets = {metric: limit for metric, limit in run.run.resolved["budgets"].items() if ships(metric, figures)}
    base = {**run.run.resolved, **kept, "budgets": budgets}
    if "precision_law" in flags:
        base |= _without_precision_laws(base)
    if "preset" in flags:
        base = {key: value for key, value in base.items() if key not in preset_keys()}
    return assemble(*over(base, {}, flags, settings))


def with_quantiles(run: RecordedRun, limits: Iterable[str]) -> RecordedRun:
    """The run with the metrics at a quantile that limits as they are typed name and that it did not keep, by its own profiles.

    Raises:
        UsageError: a quantile that what was held out cannot claim.
    """
    lacking = tuple(name for name in named_in(limits) if name not in run.evaluations.metrics)
    if not lacking:
        return run
    problem = replace(study_of(run, {}, []).problem, columns=lacking)
    refuse_unclaimed(problem)
    return replace(run, evaluations=with_metrics(problem, run.evaluations, lacking))


def _without_precision_laws(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """A run's laws as they were before its study named what few bits cost, which another answer takes the place of."""
    first, further = resolved["precision_law"][:1], resolved["precision_law"][1:]
    own = [
        law for law in resolved["laws"] if not str(law.get("name")).endswith(tuple(f"+{other}" for other in further))
    ]
    return {"law": _plain(resolved["law"], first), "laws": [_plain(law, first) for law in own]}


def _plain(law: Mapping[str, Any], first: Sequence[str]) -> dict[str, Any]:
    """A law without what the study gave it; a precision law of its own file stays."""
    given = OF_FORMATS if law.get("precision_law") in first else ()
    return {name: value for name, value in law.items() if name not in given}
