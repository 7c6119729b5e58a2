"""Traces of designs that any tool evaluated, in order: CSV by genes or by columns of architectures, and run folders."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files import yaml_source
from nas.record import folder as run_folder
from nas.record.candidates import read_rows
from nas.record.store import FILE, GENE, begun, final
from objectives.display_text import LACKING, lacking_row, read_cell, shown_name
from objectives.table_names import ALIAS, bare, inexact
from plas_bench.instance import BenchProblem
from search_spaces.architectures import Architectures, architectures_of
from search_spaces.arrays import IntArray
from search_spaces.columns import ALIASES, DEFAULTS, FILE_COLUMNS

SAME = 1e-6  # relative; beyond it a value is another
ALGORITHM, RUN = ("algorithm", "strategy"), ("run", "seed")
Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class GivenTrace:
    """One run: repaired genotypes (n, g) in the order of their evaluation, who proposed them, and its seed where it is known."""

    algorithm: str
    run: str
    seed: int | None
    genotypes: IntArray

    def distinct(self, bench: BenchProblem) -> int:
        """How many different designs it evaluated."""
        return len(np.unique(bench.problem.space.keys(self.genotypes)))


def info_of(path: Path) -> Mapping[str, Any]:
    """What the JSON file beside a trace says of it; nothing where there is none.

    Raises:
        UsageError: it cannot be read.
    """
    place = path.with_suffix(".json")
    if path.is_dir() or not place.is_file():
        return {}
    content = yaml_source.read(place)[0]
    if not isinstance(content, dict):
        raise UsageError(
            f"{place}: expected an object with problem, algorithm and seed, got something else; correct it"
        )
    return content


def read_traces(path: Path, bench: BenchProblem) -> list[GivenTrace]:
    """Every run of a file, or the one of a run folder.

    Raises:
        UsageError: unreadable, or a row that is no design of the problem, with its line.
    """
    if path.is_dir():
        return [_of_folder(path, bench)]
    rows, info = read_rows(path), info_of(path)
    if not rows:
        raise UsageError(
            f"{path}: expected a row per evaluation, got none; write designs in the order of their evaluation"
        )
    _refuse_blanks(path, rows)
    genotypes = _genotypes(path, rows, bench)
    _refuse_other_values(path, rows, genotypes, bench)
    return [_trace(path, rows, chosen, genotypes, info) for chosen in _grouped(rows)]


def _grouped(rows: Sequence[Row]) -> Iterator[list[int]]:
    """Places of each run's rows."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault((_first(row, ALGORITHM), _first(row, RUN)), []).append(place)
    yield from groups.values()


def _refuse_blanks(path: Path, rows: Sequence[Row]) -> None:
    """Refuse a row that lacks the label which others have.

    Raises:
        UsageError: there is one.
    """
    for names in (ALGORITHM, RUN):
        if (place := lacking_row(_first(row, names) for row in rows)) is not None:
            raise UsageError(f"{path}: row {place + 1}: {' or '.join(names)}: {LACKING}")


def _first(row: Row, names: Sequence[str]) -> str:
    return next((str(row[name]) for name in names if row.get(name) not in (None, "")), "")


def _trace(
    path: Path, rows: Sequence[Row], chosen: list[int], genotypes: IntArray, info: Mapping[str, Any]
) -> GivenTrace:
    """One run, in the order of a column `evaluation`, else of the file; what the rows do not say the JSON file does."""
    if rows[chosen[0]].get("evaluation") not in (None, ""):
        chosen = sorted(chosen, key=lambda place: _order(path, place, rows[place]))
    algorithm = _first(rows[chosen[0]], ALGORITHM) or str(info.get("algorithm") or path.stem)
    run = _first(rows[chosen[0]], RUN) or str(info.get("seed", path.stem))
    seed = int(run) if run.isdigit() else None
    try:
        return GivenTrace(shown_name(read_cell(algorithm)), shown_name(read_cell(run)), seed, genotypes[chosen])
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None


def _order(path: Path, place: int, row: Row) -> float:
    try:
        return float(row["evaluation"])
    except (TypeError, ValueError):
        raise UsageError(
            f"{path}: row {place + 1}: evaluation: expected a number, got {row['evaluation']!r}; number every row or none"
        ) from None


def _genotypes(path: Path, rows: Sequence[Row], bench: BenchProblem) -> IntArray:
    """Genotypes by columns `gene_NAME`, else by the columns of architectures, (n, g)."""
    columns = {f"{GENE}{name}": int(most) for name, most in zip(bench.genes, bench.upper, strict=True)}
    if unknown := [name for name in rows[0] if name.startswith(GENE) and name not in columns]:
        raise UsageError(
            f"{path}: expected genes of {bench.name} ({', '.join(columns)}), got {shown_name(unknown[0])}; leave it out"
        )
    if any(column in rows[0] for column in columns):
        genes = [[_whole(path, place, row, *column) for column in columns.items()] for place, row in enumerate(rows)]
        return bench.repair(genes)
    return _by_architecture(path, rows, bench)


def _whole(path: Path, place: int, row: Row, column: str, most: int) -> int:
    try:
        found = int(str(row.get(column)))
    except ValueError:
        found = -1
    if 0 <= found <= most:
        return found
    raise UsageError(
        f"{path}: row {place + 1}: {column}: expected a whole number from 0 to {most}, got {row.get(column)!r}; give every gene as its index"
    )


def _refuse_other_values(path: Path, rows: Sequence[Row], genotypes: IntArray, bench: BenchProblem) -> None:
    """Refuse values of a trace that the problem does not have: it is of another problem, or of another version.

    Raises:
        UsageError: the first of them, with the problem's own.
    """
    names = [name for name in bench.objectives if name in rows[0]]
    if not names:
        return
    values = bench.evaluate(genotypes).objectives
    for column in (bench.objectives.index(name) for name in names):
        name = bench.objectives[column]
        for place, row in enumerate(rows):
            own, written = float(values[place, column]), row.get(name)
            if written in (None, "") or _close(written, own):
                continue
            raise UsageError(
                f"{path}: row {place + 1}: {name}: expected {own:.9g}, as {bench.name} has it of this design, got {written}; "
                "name the problem that it is of, or leave the column out"
            )


def _close(written: object, own: float) -> bool:
    try:
        return bool(np.isclose(float(str(written)), own, rtol=SAME, equal_nan=True))
    except ValueError:
        return False


def _by_architecture(path: Path, rows: Sequence[Row], bench: BenchProblem) -> IntArray:
    names = _columns(path, rows[0])
    given = [{new: row[old] for old, new in names.items() if row.get(old) not in ("", None)} for row in rows]
    try:
        architectures = architectures_of(given)
    except ValueError as error:
        wanted = ", ".join(f"{GENE}{name}" for name in bench.genes)
        raise UsageError(f"{path}: {error}; or give columns {wanted}") from None
    keys = bench.problem.space.find(architectures)
    if (keys < 0).any():
        place = int(np.flatnonzero(keys < 0)[0])
        raise UsageError(
            f"{path}: row {place + 1}: expected a design of {bench.name}, got {_off(bench, architectures[[place]])}; "
            f"plas bench show {bench.name} has every value"
        )
    return bench.problem.space.genotypes(keys)


def _columns(path: Path, row: Row) -> dict[str, str]:
    """The columns of architectures in a trace, by their names there and here; what other tools call the same is known.

    Raises:
        UsageError: two of one quantity.
    """
    known = {*FILE_COLUMNS, *DEFAULTS, *ALIASES}
    called = {old: old if old in known else ALIAS.get(bare(old), bare(old)) for old in row}
    found = {old: new for old, new in called.items() if new in known and (old == new or new not in row)}
    if faults := inexact((old for old in row if old not in found), found.values(), known - {*row}, path):
        raise UsageError("\n".join(faults))
    for old, new in found.items():
        if twice := [other for other in found if found[other] == new and other != old]:
            raise UsageError(f"{path}: {new}: expected one column, got {old} and {twice[0]}; leave one out")
    return found


def _off(bench: BenchProblem, design: Architectures) -> str:
    """Which of its values are on no axis of the problem, with the nearest that are; else that they do not go together."""
    found = []
    for name, axis in bench.axes.items():
        values = np.array([each for each in axis if isinstance(each, (int, float))], dtype=np.float64)
        if len(values) < len(axis) or np.isclose(values, value := float(getattr(design, name)[0])).any():
            continue
        near = np.sort(values[np.argsort(abs(values - value))[:2]])
        found.append(f"{name} {value:g} (near it are {' and '.join(f'{each:g}' for each in near)})")
    return ", ".join(found) or "values that are there, but not together"


def _of_folder(path: Path, bench: BenchProblem) -> GivenTrace:
    """The evaluations of a run folder, whose designs must be the problem's."""
    if not begun(path / FILE):
        raise UsageError(f"{path}: expected a trace (.csv) or a run folder, got a folder without evaluations; name one")
    run = run_folder.open_run(path)
    recorded = run.store.read()
    run.store.close()
    found, space = final(recorded.evaluations, recorded.retried), run.resolved.get("space")
    if space != bench.problem.space.mapping():
        raise UsageError(
            f"{path}: expected a run in the space of {bench.name}, got one of {dict(space or {}).get('name', 'another')}; "
            "search it with plas bench run"
        )
    seed = int(run.resolved.get("seed", 0))
    return GivenTrace(str(run.resolved.get("algo")), path.resolve().name, seed, found.genotypes.astype(np.int64))
