"""The question of a recorded run in other formats, or with another law of what few bits cost: another space, or other losses, so none of its rows hold."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nas.answer.past_run import RecordedRun, study_of
from nas.errors import UsageError
from nas.search.assembly import Study
from objectives.plugins import importable

CHANGED = ("space", "law", "laws", "precision_law", "precisions", "calibration")  # of a resolved study


def requeried(run: RecordedRun, flags: Mapping[str, Any]) -> tuple[RecordedRun, Study]:
    """The run's study with these keys, and the run as one of it that has evaluated nothing yet.

    Raises:
        UsageError: flags that do not fit the study, or a run that minimises or limits a metric of its own.
    """
    resolved, shipped = run.run.resolved, (*importable("objectives.metrics"), *run.workload.figures)
    own = [name for name in (*resolved["objectives"], *resolved["budgets"]) if name.partition("@")[0] not in shipped]
    if own:
        raise UsageError(
            f"{' and '.join(flags)}: expected a run of shipped metrics alone, which are solved again, got one of {own[0]}; "
            "start a run with them"
        )
    study = study_of(run, flags, [])
    now = study.resolved()
    nothing = study.problem.evaluate(np.zeros((0, len(study.problem.space.genes)), dtype=np.int64))
    empty = replace(nothing, objectives=run.evaluations.objectives, budgets=run.evaluations.budgets)
    opened = replace(run.run, resolved={**resolved, **{key: now[key] for key in CHANGED}})
    return replace(run, run=opened, space=study.problem.space, evaluations=empty, requeried=True), study
