"""Candidates to export, of a run folder or of a candidate file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nas.answer.carried_study import list_of, study_of_file
from nas.answer.past_run import RecordedRun, recorded_run, solvable, solved_within, study_of
from nas.errors import InfeasibleError, UsageError
from nas.problem.evaluations import Evaluations, Scale, frontier_rows
from nas.record.candidates import read_candidates
from nas.search.assembly import Study
from nas.study.metrics import check_form, parse_budget, select
from nas.study.scenarios import able_to_serve
from nas.terminal.doors import command
from search_spaces.architectures import Architectures
from search_spaces.arrays import IntArray, python_value
from search_spaces.columns import DEFAULTS, any_of

QWEN_VOCABULARY = 151_936
SHAPE = ("depth", "width", "head_dim", "n_heads", "n_kv_heads", "n_experts", "top_k", "expert_size")


@dataclass(frozen=True, eq=False)
class Chosen:
    """Architectures with their ids, the study that predicts their metrics, and what must be said of that ("" of nothing)."""

    study: Study
    ids: list[str]
    architectures: Architectures
    doubt: str = ""


def chosen(
    source: Path, how: str | None, config: str | None, settings: Sequence[str], flags: Mapping[str, Any]
) -> Chosen:
    """The candidates of a run (its frontier unless `how` says otherwise) or of a file (every row).

    Raises:
        UsageError: neither run nor file, an unknown form, a study and a run together.
        InfeasibleError: nothing within the budgets.
    """
    if how is not None:
        check_form(how)
    source = list_of(source)
    if source.is_dir():
        candidates = _of_run(source, how or "frontier", config, settings, flags)
    else:
        candidates = _of_file(source, how, config, settings, flags)
    if not candidates.ids:
        raise InfeasibleError(f"{source}: nothing feasible to export; {command('select')} {source} says why")
    return candidates


def _of_run(source: Path, how: str, config: str | None, settings: Sequence[str], flags: Mapping[str, Any]) -> Chosen:
    if config is not None:
        raise UsageError("export: expected a run folder or --config, got both; the run holds its own configuration")
    run = recorded_run(source)
    study = study_of(run, flags, settings)
    kind, _, rest = how.partition(":")
    problem = solvable(run) if kind == "budget" else None
    if problem is not None:
        pick = parse_budget(rest, tuple(run.evaluations.metrics), run.workload)
        run = solved_within(run, problem, run.evaluations.budgets, pick)
    feasible = run.evaluations.feasible.any()
    rows = select(run.evaluations, how, run.scale(), run.workload) if feasible else np.zeros(0, dtype=np.int64)
    return Chosen(study, [str(name) for name in run.columns(rows)["id"].tolist()], run.architectures(rows))


def _of_file(
    source: Path, how: str | None, config: str | None, settings: Sequence[str], flags: Mapping[str, Any]
) -> Chosen:
    study, doubt = study_of_file(source, config, settings, flags)
    architectures, ids = read_candidates(source)
    if any_of(architectures.speculation) or any_of(architectures.experts_in):
        problem = replace(study.problem, scenario=able_to_serve(study.problem.scenario))
        study = replace(study, problem=problem)
    rows = np.arange(len(ids)) if how is None else _rows(study, architectures, how)
    return Chosen(study, [ids[row] for row in rows.tolist()], architectures[rows], doubt)


def _rows(study: Study, architectures: Architectures, how: str) -> IntArray:
    """Rows of a file chosen as those of a run are, by the study's metrics and budgets."""
    problem = study.problem
    assessment = problem.assess(problem.headed(architectures))
    metrics = {name: assessment[name] for name in problem.metric_names}
    numbers = np.arange(len(architectures))
    names = tuple(objective.name for objective in problem.objectives)
    evaluations = Evaluations(numbers[:, None], numbers, metrics, None, names, problem.budgets)
    if not evaluations.feasible.any():
        return np.zeros(0, dtype=np.int64)
    scale = Scale.from_frontier(problem.objectives, evaluations.values[frontier_rows(evaluations)])
    return select(evaluations, how, scale, problem.scenario)


def with_vocabulary(
    architectures: Architectures, flag: int | None, tokenizer: int | None, study: int = 0
) -> Architectures:
    """Every architecture with a vocabulary: the flag's, its own, the given tokenizer's, the study's, else Qwen's 151,936."""
    sizes = [flag or own or tokenizer or study or QWEN_VOCABULARY for own in architectures.vocabulary.tolist()]
    return Architectures.concatenate([architectures[i : i + 1].with_vocabulary(size) for i, size in enumerate(sizes)])


def rows_of_run(source: Path, how: str) -> tuple[RecordedRun, IntArray]:
    """A run folder and the rows that `how` chooses."""
    check_form(how)
    run = recorded_run(source)
    return run, select(run.evaluations, how, run.scale(), run.workload)


def columns(architecture: Architectures) -> dict[str, Any]:
    """One architecture as plain columns: its shape, and what differs from the defaults; its precision is the measurement's."""
    further = {name: column for name, column in architecture.further_columns().items() if name != "precision"}
    values = {name: getattr(architecture, name)[0] for name in SHAPE} | {name: further[name][0] for name in further}
    return {"vocabulary": DEFAULTS["vocabulary"], **{name: python_value(value) for name, value in values.items()}}
