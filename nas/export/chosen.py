"""Candidates to measure: of a run folder, of a candidate file, or published models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nas.answer.past_run import RecordedRun, recorded_run
from nas.errors import UsageError
from nas.record.candidates import read_candidates
from nas.study.baselines import baseline
from nas.study.preferences import check_form, select
from search_spaces.architectures import Architectures
from search_spaces.arrays import IntArray
from search_spaces.columns import DEFAULTS
from search_spaces.layer_kinds import COUNTS

SHAPE = ("depth", "width", "head_dim", "n_heads", "n_kv_heads", "n_experts", "top_k", "expert_size")


def chosen(
    source: Path | None, how: str, models: Sequence[str], vocabulary: int | None, *, files: bool = False
) -> dict[str, dict[str, Any]]:
    """Architecture columns by id; `files` where models are measured from files, whatever their layers, and none is built.

    Raises:
        UsageError: nothing to measure, or a selection from a file.
    """
    found: dict[str, Architectures] = {}
    for name in models:
        known = baseline(name)
        found[known.label] = known.architecture
    if source is not None:
        found |= _of_run(source, how) if source.is_dir() else _of_file(source, how)
    if not found:
        raise UsageError(
            "measure: expected a run folder, a candidate file or --model, got nothing to measure; name one"
        )
    if vocabulary is not None and vocabulary < 0:
        raise UsageError(f"vocabulary: expected at least 0, got {vocabulary}; correct it")
    if vocabulary is not None:
        found = {name: each.with_vocabulary(vocabulary, tied=bool(each.tied[0])) for name, each in found.items()}
    return {name: columns(each if files else _buildable(name, each)) for name, each in found.items()}


def _buildable(name: str, architecture: Architectures) -> Architectures:
    """The designs as backends build them: attention to the whole context in every layer.

    Raises:
        UsageError: layers that they do not have.
    """
    built = architecture.with_full_attention()
    others = [column for column in (*COUNTS, "latent_size") if getattr(built, column)[0]]
    if others:
        given = ", ".join(f"{column} {getattr(built, column)[0]:d}" for column in others)
        raise UsageError(f"{name}: expected attention and an FFN in every layer, got {given}; leave it out")
    return built


def _of_run(source: Path, how: str) -> dict[str, Architectures]:
    run, rows = rows_of_run(source, how)
    return _split(run.architectures(rows), [str(name) for name in run.columns(rows)["id"]])


def rows_of_run(source: Path, how: str) -> tuple[RecordedRun, IntArray]:
    """A run folder and the rows that `how` chooses."""
    check_form(how)
    run = recorded_run(source)
    return run, select(run.evaluations, how, run.scale(), run.workload)


def _of_file(source: Path, how: str) -> dict[str, Architectures]:
    if how != "frontier":
        raise UsageError(f"select: expected a run folder for {how!r}, got {source}; a candidate file is measured whole")
    architectures, names = read_candidates(source)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{source}: expected each id once, got {twice!r} twice; rename one")
    return _split(architectures, names)


def _split(architectures: Architectures, names: list[str]) -> dict[str, Architectures]:
    return {name: architectures[i : i + 1] for i, name in enumerate(names)}


def columns(architecture: Architectures) -> dict[str, Any]:
    """One architecture as plain columns: its shape, and what differs from the defaults; its precision is the measurement's."""
    further = {name: column for name, column in architecture.further_columns().items() if name != "precision"}
    values = {name: getattr(architecture, name)[0] for name in SHAPE} | {name: further[name][0] for name in further}
    plain = {name: value.item() if hasattr(value, "item") else value for name, value in values.items()}
    return {"vocabulary": DEFAULTS["vocabulary"], **plain}
