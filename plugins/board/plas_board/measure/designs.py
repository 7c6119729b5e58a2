"""Designs to measure: of a run folder, of a candidate file, or published models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nas.answer.carried_study import list_of
from nas.errors import UsageError
from nas.export.candidates import columns, rows_of_run
from nas.record.candidates import read_candidates
from nas.study.baselines import baseline
from search_spaces.architectures import Architectures
from search_spaces.layer_kinds import COUNTS


def designs_to_measure(
    source: Path | None, how: str, models: Sequence[str], vocabulary: int | None, *, files: bool = False
) -> dict[str, dict[str, Any]]:
    """Architecture columns by id; `files` where models are measured from files, whatever their layers, and none is built.

    Raises:
        UsageError: nothing to measure, or a selection from a file.
    """
    designs = {model.label: model.architecture for model in map(baseline, models)}
    designs |= {} if source is None else _chosen(list_of(source), how)
    if not designs:
        raise UsageError(
            "measure: expected a run folder, a candidate file or --model, got nothing to measure; name one"
        )
    if vocabulary is not None:
        if vocabulary < 0:
            raise UsageError(f"vocabulary: expected at least 0, got {vocabulary}; correct it")
        designs = {name: a.with_vocabulary(vocabulary, tied=bool(a.tied[0])) for name, a in designs.items()}
    return {name: columns(design if files else _buildable(name, design)) for name, design in designs.items()}


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


def _chosen(source: Path, how: str) -> dict[str, Architectures]:
    if source.is_dir():
        run, rows = rows_of_run(source, how)
        architectures, names = run.architectures(rows), [str(name) for name in run.columns(rows)["id"]]
    elif how != "frontier":
        raise UsageError(f"select: expected a run folder for {how!r}, got {source}; a candidate file is measured whole")
    else:
        architectures, names = read_candidates(source)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{source}: expected each id once, got {twice!r} twice; rename one")
    return {name: architectures[row : row + 1] for row, name in enumerate(names)}
