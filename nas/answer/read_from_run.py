"""Derives the outcome of a recorded run from its folder; a user's own functions are not called, no code but ours is imported."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nas.answer.outcome import Ending, Outcome, derived
from nas.answer.past_run import RecordedRun, study_of
from nas.files import yaml_source
from nas.problem.objective import Budget, Objective, PickQuery
from nas.problem.problem import Problem
from nas.record.store import KNOWN
from nas.search.assembly import Study
from nas.search.discovery import completed
from nas.search.strategy import ReportSection
from objectives.plugins import importable

LONGEST = 200  # characters of a sentence that a file of the folder may bring along
MOST, LONGEST_LESSON = 100, 2_000  # sentences of a strategy, and characters of one
LEARNED = "What was learned"


def recalled(run: RecordedRun, scores: str | None = None) -> Outcome:
    """The result of a run; of one that has not ended, what it holds so far; `scores` are a file of those shown in place of its study's."""
    study = restored(run, scores)
    batches = np.where(np.arange(len(run.evaluations)) < run.known, KNOWN, 0)
    return derived(study, run.evaluations, batches, _ending(run, study.problem))


def restored(run: RecordedRun, scores: str | None = None) -> Study:
    """The run's study with its own objectives, budgets, applications and strategy name; own metrics without their functions."""
    flags = {} if scores is None else {"scores": scores}
    study, resolved = study_of(run, flags, []), run.run.resolved
    config = study.config.model_copy(update={"algo": resolved["algo"], "objectives": resolved["objectives"]})
    return replace(study, config=config, problem=_problem(run, study.problem))


def _problem(run: RecordedRun, shipped: Problem) -> Problem:
    known = (*importable("objectives.metrics"), *run.workload.figures)
    scales = {o.name: o.log_scale for o in run.objectives}
    names = [name for name in run.run.meta["metrics"] if name not in known and "@" not in name]
    units = run.run.meta.get("units", {})  # which earlier runs do not hold
    own = tuple(Objective(name, units.get(name, ""), scales.get(name, False)) for name in names)
    asked = [
        PickQuery(str(label), Budget(metric, limit))
        for label, limits in run.run.resolved["applications"].items()
        for metric, limit in limits.items()
        if metric in run.evaluations.metrics
    ]
    questions = (shipped.queries[0], *asked, *shipped.queries[1:])
    return replace(
        shipped,
        objectives=run.objectives,
        budgets=run.evaluations.budgets,
        functions=own,
        queries=questions,
    )


def _ending(run: RecordedRun, problem: Problem) -> Ending:
    """Counts of summary.json for exactly these evaluations; for others those of the manifest."""
    summary, n = _content(run.run.path / "summary.json"), len(run.evaluations) - run.known
    counted = summary.get("evaluations")
    if not isinstance(counted, Mapping) or counted.get("distinct") != n:
        return Ending(_unended(run.run.path), n, {})
    space = summary["space"] if isinstance(summary.get("space"), Mapping) else {}
    whole = run.run.resolved["algo"] == "exact" and space.get("covered") == run.space.size
    asked = counted.get("asked")
    return Ending(
        str(summary.get("stop_reason"))[:LONGEST],
        asked if isinstance(asked, int) and asked >= n else n,
        {},
        str(space.get("exact_frontier") or "")[:LONGEST],
        whole,
        _sections(run, problem, summary),
    )


def _sections(run: RecordedRun, problem: Problem, summary: Mapping[str, Any]) -> tuple[ReportSection, ...]:
    """What the strategy said, where the summary has sentences; a strategy that does not ship is not imported."""
    lines, figures = summary.get("lessons"), summary.get("learned")
    if not isinstance(lines, list):
        return ()
    sentences = tuple(str(line)[:LONGEST_LESSON] for line in lines[:MOST])
    said = ReportSection(LEARNED, sentences, figures if isinstance(figures, Mapping) else {})
    return (completed(said, run.run.resolved["algo"], run.run.path, problem),)


def _unended(folder: Path) -> str:
    """Why a run stopped whose summary is missing or of other evaluations."""
    state = str(_content(folder / "manifest.json").get("state"))
    known = state in ("running", "interrupted", "failed")
    return f"not at its end, the run is {state}" if known else "unknown, summary.json is not of these evaluations"


def _content(path: Path) -> Mapping[str, Any]:
    with suppress(Exception):
        content = yaml_source.read(path, own=True)[0]
        if isinstance(content, Mapping):
            return content
    return {}
