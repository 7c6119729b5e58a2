"""The study of a recorded run assembled anew, under other flags if given; a user's functions are left out, nothing is imported."""

from collections.abc import Mapping
from typing import Any

from nas.answer.past_run import RecordedRun
from nas.search.assembly import Study, assemble
from nas.study.layers import over, preset_keys
from objectives.plugins import importable


def study_of(run: RecordedRun, flags: Mapping[str, Any], settings: list[str]) -> Study:
    """The run's study with shipped metrics alone.

    Raises:
        UsageError: flags that do not fit it.
    """
    shipped = importable("objectives.metrics")
    kept = {
        "objectives": [n for n in run.run.resolved["objectives"] if n in shipped] or ["loss"],
        "algo": "random",
        "params": {},
        "applications": {},
    }
    budgets = {metric: limit for metric, limit in run.run.resolved["budgets"].items() if metric in shipped}
    base = {**run.run.resolved, **kept, "budgets": budgets}
    if "preset" in flags:
        base = {key: value for key, value in base.items() if key not in preset_keys()}
    return assemble(*over(base, {}, flags, settings))
