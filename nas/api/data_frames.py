"""Architectures and metrics as pandas tables with their units in `attrs["units"]`."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nas.answer.outcome_files import file_columns
from nas.answer.sureness import difference_columns, evidence_columns
from nas.answer.witness import model_witnesses
from nas.errors import UsageError
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Baseline, unit_of
from nas.problem.problem import Problem
from nas.problem.uncertainty import from_models
from nas.record.candidates import read_candidates
from nas.record.store import GENE
from nas.study.baselines import baseline
from objectives.loss_law.law import Law
from objectives.plugins import importable
from search_spaces.architectures import Architectures
from search_spaces.columns import ALIASES, DEFAULTS, SHAPE

Given = Architectures | pd.DataFrame | pd.Series | Mapping[str, Any] | Iterable[Mapping[str, Any]] | str | Path
NEEDED = "depth, width, n_kv_heads and expert_size"
KNOWN = tuple(dict.fromkeys((*SHAPE, *ALIASES, *DEFAULTS)))


def architectures_of(given: Given) -> Architectures:
    """Return architectures from a table, columns, rows, one row, a candidate file or the name of a published model.

    Unknown columns are ignored, unless one looks like a misspelt missing column.

    Raises:
        UsageError: rows that are not architectures, with their wrong columns.
    """
    if isinstance(given, Architectures):
        return given
    if isinstance(given, (str, Path)):
        return _of_file_or_model(given)
    table = given if isinstance(given, pd.DataFrame) else _frame(given)
    if table.empty:
        raise UsageError(f"architectures: expected a row or more, got none; give {NEEDED}")
    _refuse_misspelt(table)
    try:
        return Architectures.from_columns({name: table[name].to_numpy() for name in KNOWN if name in table})
    except ValueError as error:
        raise UsageError(str(error)) from None


def designs_of(problem: Problem, given: Given) -> Architectures:
    """Return architectures from columns, or from gene indices (`gene_depth`) as traces and trials have them.

    Raises:
        UsageError: neither architectures nor genes.
    """
    table = given if isinstance(given, pd.DataFrame) else None
    columns = [f"{GENE}{gene}" for gene in problem.space.genes]
    if table is None or not set(columns) <= set(table.columns):
        return architectures_of(given)
    genotypes = table[columns].to_numpy(dtype=np.float64)
    if not np.array_equal(genotypes, np.rint(genotypes)):
        raise UsageError(f"{GENE}…: expected whole numbers, got others; give every gene as its index")
    return problem.architectures(problem.space.repair(genotypes.astype(np.int64)))


def _of_file_or_model(given: str | Path) -> Architectures:
    if str(given).lower().endswith((".csv", ".jsonl")) or Path(given).is_file():
        return read_candidates(Path(given))[0]
    try:
        return baseline(str(given)).architecture
    except UsageError as error:
        raise UsageError(f"architectures: {error}, or give a candidate file (.csv, .jsonl)") from None


def _frame(given: Any) -> pd.DataFrame:
    """Columns, rows or one row as a table."""
    if isinstance(given, pd.Series):
        return given.to_frame().T
    if isinstance(given, Mapping):
        scalars = all(isinstance(value, str) or not hasattr(value, "__len__") for value in given.values())
        rows: Any = [dict(given)] if scalars else dict(given)
    else:
        rows = list(given) if isinstance(given, Iterable) else [given]
        wrong = [row for row in rows if not isinstance(row, (Mapping, pd.Series))]
        if wrong:
            kind = type(given if isinstance(given, np.ndarray) else wrong[0]).__name__
            raise UsageError(
                f"architectures: expected columns by name, got {kind}; give {NEEDED}, or for genotypes "
                "study.problem.architectures(genotypes)"
            )
    try:
        return pd.DataFrame(rows)
    except ValueError as error:
        raise UsageError(f"architectures: expected columns of one length, got others ({error}); correct them") from None


def _refuse_misspelt(table: pd.DataFrame) -> None:
    absent = [name for name in KNOWN if name not in table]
    for column in map(str, table.columns):
        close = get_close_matches(column, absent, n=1, cutoff=0.85)
        if close and column not in (*KNOWN, *importable("objectives.metrics")):
            raise UsageError(f"architectures: expected names of columns, got {column!r}; did you mean {close[0]}?")


def designs_table(architectures: Architectures) -> pd.DataFrame:
    """Return the columns of architectures, one row each."""
    return pd.DataFrame(file_columns(architectures, {}))


def metrics_table(
    problem: Problem, architectures: Architectures, metrics: Mapping[str, Any], **more: Any
) -> pd.DataFrame:
    """Return one row per architecture with the columns of `frontier.csv`: architecture, metrics, further columns."""
    frame = pd.DataFrame({**file_columns(architectures, metrics), **more})
    frame.attrs["units"] = {name: unit for name, unit in units(problem).items() if name in frame}
    return frame


def evaluations_table(problem: Problem, evaluations: Evaluations) -> pd.DataFrame:
    """Return evaluated rows as a table."""
    metrics = {name: evaluations.metrics[name] for name in problem.metric_names}
    return metrics_table(problem, problem.architectures(evaluations.genotypes), metrics)


def units(problem: Problem) -> dict[str, str]:
    """Return the unit of every metric of a problem; "" for a pure number."""
    own = {function.name: function.unit for function in problem.functions}
    return {
        name: own[name] if name in own else unit_of(name, problem.scenario.figures) for name in problem.metric_names
    }


def with_differences(frame: pd.DataFrame, law: Law, designs: Architectures, models: Sequence[Baseline]) -> pd.DataFrame:
    """Return a table of designs with their loss differences from published models, if the law knows how sure these are."""
    more = difference_columns(from_models(law, designs, models))
    more |= evidence_columns(model_witnesses(law, designs, models))
    found = frame.assign(**more)
    of_more = {name: "probability" if "better_than_" in name else "nats" for name in more}
    found.attrs = {**frame.attrs, "units": {**frame.attrs["units"], **of_more}}
    return found


class Design(pd.Series):
    """One architecture: its columns and metrics by name, with their units in `attrs["units"]`."""

    @property
    def _constructor(self) -> type[pd.Series]:
        return pd.Series

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={value}" for name, value, _ in with_units(self).to_numpy().tolist())
        return f"Design({text if len(text) <= 300 else text[:299] + '…'})"

    def __str__(self) -> str:
        rows = with_units(self).to_numpy().tolist()
        name, value, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
        return "\n".join(f"{row[0]:<{name}}  {row[1]:>{value}}  {row[2]}".rstrip() for row in rows)

    def _repr_html_(self) -> str:
        return notebook_html("", with_units(self), len(self))


def design_of(frame: pd.DataFrame) -> Design:
    """Return the first row of a table, with values unchanged."""
    row = Design(frame.astype(object).iloc[0])
    row.attrs["units"] = dict(frame.attrs["units"])
    return row


def with_units(row: pd.Series) -> pd.DataFrame:
    """Return a row as a table of names, values and units."""
    given = row.attrs.get("units", {})
    shown = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in row]
    return pd.DataFrame({"name": row.index, "value": shown, "unit": [given.get(name, "") for name in row.index]})


def notebook_html(caption: str, frame: pd.DataFrame, most: int = 20, *, above: str = "", picture: str = "") -> str:
    """Return HTML for a notebook: a caption, at most so many rows with units, and optional lines and a picture above."""
    named = {name: f"{name} ({unit})" for name, unit in frame.attrs.get("units", {}).items() if unit}
    table: str = frame.rename(columns=named).to_html(
        max_rows=most, index=False, float_format=lambda value: f"{value:.4g}"
    )
    lines = "".join(f"<p>{escape(each)}</p>" for each in above.splitlines())
    return lines + picture + (f"<p>{escape(caption)}</p>" if caption else "") + table
