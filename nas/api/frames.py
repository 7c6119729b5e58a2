"""Architectures and metrics as pandas tables whose `attrs["units"]` say what the numbers are in."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from nas.answer.outcome import file_columns
from nas.errors import UsageError
from nas.problem.evaluations import Evaluations
from nas.problem.objective import unit_of
from nas.problem.problem import Problem
from nas.record.candidates import read_candidates
from search_spaces.architectures import Architectures
from search_spaces.columns import ALIASES, DEFAULTS, SHAPE

Given = Architectures | pd.DataFrame | Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | Path
KNOWN = tuple(dict.fromkeys((*SHAPE, *ALIASES, *DEFAULTS)))


def architectures_of(given: Given) -> Architectures:
    """Architectures of a table, of columns, of rows, or of a candidate file; columns that are none of theirs are passed over.

    Raises:
        UsageError: rows that are no architectures, named by their columns.
    """
    if isinstance(given, Architectures):
        return given
    if isinstance(given, (str, Path)):
        return read_candidates(Path(given))[0]
    table = given if isinstance(given, pd.DataFrame) else _frame(given)
    if table.empty:
        raise UsageError(
            "architectures: expected a row or more, got none; give depth, width, n_kv_heads and expert_size"
        )
    try:
        return Architectures.from_columns({name: table[name].to_numpy() for name in KNOWN if name in table})
    except ValueError as error:
        raise UsageError(str(error)) from None


def _frame(given: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    if not isinstance(given, Mapping):
        return pd.DataFrame(list(given))
    scalars = all(isinstance(value, str) or not hasattr(value, "__len__") for value in given.values())
    return pd.DataFrame([dict(given)] if scalars else dict(given))


def metrics_table(
    problem: Problem, architectures: Architectures, metrics: Mapping[str, Any], **more: Any
) -> pd.DataFrame:
    """Architecture columns, metrics, further columns: those of `frontier.csv`, one row each."""
    frame = pd.DataFrame({**file_columns(architectures, metrics), **more})
    frame.attrs["units"] = {name: unit for name, unit in units(problem).items() if name in frame}
    return frame


def evaluations_table(problem: Problem, evaluations: Evaluations) -> pd.DataFrame:
    """Evaluated rows as a table."""
    metrics = {name: evaluations.metrics[name] for name in problem.metric_names}
    return metrics_table(problem, problem.architectures(evaluations.genotypes), metrics)


def units(problem: Problem) -> dict[str, str]:
    """The unit of every metric of a problem; "" of a pure number."""
    own = {function.name: function.unit for function in problem.functions}
    return {name: own[name] if name in own else unit_of(name) for name in problem.metric_names}


def notebook_html(caption: str, frame: pd.DataFrame) -> str:
    """A caption over at most twenty rows, columns with their units, for a notebook."""
    named = {name: f"{name} ({unit})" for name, unit in frame.attrs.get("units", {}).items() if unit}
    table: str = frame.rename(columns=named).to_html(
        max_rows=20, index=False, float_format=lambda value: f"{value:.4g}"
    )
    return f"<p>{escape(caption)}</p>{table}"
