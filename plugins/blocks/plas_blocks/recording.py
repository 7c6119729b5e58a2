"""The folder of an answer: the library and the question that repeat it, its tables, Puzzletron's files; and read again."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.tables import BLOCK, csv_text, write, write_json
from plas_blocks.files import write_library
from plas_blocks.folder_names import CONFIG
from plas_blocks.puzzletron import per_layer, solution
from plas_blocks.query import BlocksQuery, limit_of
from plas_blocks.solution import Frontier
from plas_blocks.study import Study

COMMAND = "blocks"
NAN = float("nan")


def write_tables(folder: Path, study: Study) -> None:
    """Everything but pictures and the page.

    Raises:
        PlasError: the folder cannot be written.
    """
    write_library(folder, study.library)
    write(folder / "frontier.csv", frontier_blocks(study.frontier))
    write(folder / "picks.csv", csv_text(columns_of(study.pick_rows())))
    write(folder / "layers.csv", csv_text(columns_of(study.layer_rows())))
    write_json(folder / "solutions.json", solutions(study, [p.row for p in study.picks if p.row is not None]))
    write_json(folder / "summary.json", study.summary())


def solutions(study: Study, rows: Sequence[int]) -> list[dict[str, Any]]:
    """Mixtures as Puzzletron's solutions.json."""
    limits = {limit.metric: limit.value for limit in (limit_of(study.library, text) for text in study.asked.budgets)}
    score = next((name for name in study.names if name in study.library.scores), study.names[0])
    found = []
    for row in rows:
        chosen = study.frontier.replacements(row)
        found.append({"id": row, **solution(study.library, chosen, score, limits)})
    return found


def block_configs(study: Study, row: int) -> list[Any]:
    """The per-layer block_configs of one mixture."""
    return per_layer(study.library, study.frontier.replacements(row))


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns; what a row does not have is empty."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [NAN if row.get(name) is None else row[name] for row in rows] for name in names}


def frontier_blocks(frontier: Frontier) -> Iterator[str]:
    """frontier.csv: id, the objectives, the other metrics, layers changed, kinds, ties, the library's rows layer by layer."""
    names = dict.fromkeys((*frontier.problem.names, *frontier.problem.library.metrics))
    metrics = {name: frontier.metric(name) for name in names}
    changed, kinds = frontier.changed, frontier.kinds
    for start in range(0, max(len(frontier), 1), BLOCK):
        part = slice(start, start + BLOCK)
        columns: dict[str, Any] = {"id": np.arange(len(frontier))[part], **{n: v[part] for n, v in metrics.items()}}
        columns |= {"layers_changed": changed[part], "kinds": kinds[part], "tied": frontier.tied[part]}
        columns["blocks"] = [" ".join(map(str, row)) for row in frontier.chosen[part].tolist()]
        yield csv_text(columns, header=start == 0)


def candidate_columns(study: Study, rows: Sequence[int]) -> dict[str, Any]:
    """Some mixtures as columns of a file of their own: the block of each layer by name."""
    at = np.array(rows, dtype=np.int64)
    frontier = study.frontier[at]
    names = dict.fromkeys((*study.names, *study.library.metrics))
    columns: dict[str, Any] = {"id": at, **{name: frontier.metric(name) for name in names}}
    columns |= {"layers_changed": frontier.changed, "kinds": frontier.kinds}
    for layer in range(study.frontier.problem.layers):
        columns[f"layer_{layer}"] = [study.library.blocks[row] for row in frontier.chosen[:, layer].tolist()]
    return columns


def write_config(folder: Path, source: str, asked: BlocksQuery) -> dict[str, Any]:
    """config.yaml, which with library.csv repeats the answer; what it says.

    Raises:
        PlasError: the folder cannot be written.
    """
    content = {"command": COMMAND, "library": source, **asked.content()}
    write(folder / CONFIG, yaml_source.dump(content))
    return content


def read_config(folder: Path) -> tuple[BlocksQuery, dict[str, Any]]:
    """What a folder's answer was asked for.

    Raises:
        UsageError: another command's configuration, or changed content.
    """
    path = folder / CONFIG
    content = yaml_source.read(path, own=True)[0]
    if not isinstance(content, dict) or content.get("command") != COMMAND:
        raise UsageError(f"{path}: expected a configuration of plas blocks, got another; name its folder")
    return BlocksQuery.from_config(content, str(path)), content
