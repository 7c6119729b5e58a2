"""Chooses the architectures to export, from a run folder or from a candidate file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nas.answer.past_run import recorded_run
from nas.answer.reassembled_study import study_of
from nas.answer.resolved_exactly import solvable, solved_within
from nas.errors import InfeasibleError, UsageError
from nas.problem.dominance import frontier_rows
from nas.problem.evaluations import Evaluations
from nas.problem.indicators import Scale
from nas.record.candidates import read_candidates
from nas.search.assembly import Study, assemble
from nas.search.serving import able_to_serve
from nas.study.layers import layered
from nas.study.preferences import check_form, parse_budget, select
from nas.terminal.program import command
from search_spaces.architectures import Architectures
from search_spaces.arrays import IntArray
from search_spaces.columns import any_of

QWEN_VOCABULARY = 151_936


@dataclass(frozen=True, eq=False)
class Chosen:
    """Architectures with their ids, and the study that predicts their metrics."""

    study: Study
    ids: list[str]
    architectures: Architectures


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
    if source.is_dir():
        found = _of_run(source, how or "frontier", config, settings, flags)
    else:
        found = _of_file(source, how, config, settings, flags)
    if not found.ids:
        raise InfeasibleError(f"{source}: nothing feasible to export; {command('select')} {source} says why")
    return found


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
    raw, origins = layered({"algo": "random", **flags}, settings, config)
    study = assemble({**raw, "params": {}}, origins)
    architectures, ids = read_candidates(source)
    if any_of(architectures.speculation) or any_of(architectures.experts_in):
        problem = replace(study.problem, scenario=able_to_serve(study.problem.scenario))
        study = replace(study, problem=problem)
    rows = np.arange(len(ids)) if how is None else _rows(study, architectures, how)
    return Chosen(study, [ids[row] for row in rows.tolist()], architectures[rows])


def _rows(study: Study, architectures: Architectures, how: str) -> IntArray:
    """Rows of a file chosen as those of a run are, by the study's metrics and budgets."""
    problem = study.problem
    assessment = problem.assess(problem.headed(architectures))
    metrics = {name: assessment[name] for name in problem.metric_names}
    numbers = np.arange(len(architectures))
    names = tuple(objective.name for objective in problem.objectives)
    found = Evaluations(numbers[:, None], numbers, metrics, None, names, problem.budgets)
    if not found.feasible.any():
        return np.zeros(0, dtype=np.int64)
    return select(
        found, how, Scale.from_frontier(problem.objectives, found.values[frontier_rows(found)]), problem.scenario
    )


def with_vocabulary(architectures: Architectures, flag: int | None, tokenizer: int | None) -> Architectures:
    """Every architecture with a vocabulary: the flag's, its own, the given tokenizer's, else Qwen's 151,936."""
    parts = []
    for i in range(len(architectures)):
        own = int(architectures.vocabulary[i])
        size = flag or own or tokenizer or QWEN_VOCABULARY
        parts.append(architectures[i : i + 1].with_vocabulary(size))
    return Architectures.concatenate(parts)
