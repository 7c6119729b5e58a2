"""Architectures and metrics as pandas tables with their units in `attrs["units"]`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from os.path import isfile
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from nas.answer.outcome_files import file_columns
from nas.answer.sureness import difference_columns, evidence_columns, model_witnesses
from nas.errors import UsageError
from nas.files.faults import squashed
from nas.problem.breakdown import Explanation
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Baseline, unit_of
from nas.problem.problem import Problem
from nas.problem.uncertainty import from_models
from nas.record.candidates import read_candidates
from nas.record.store import GENE
from nas.study.baselines import baseline, model_named
from objectives.loss_law.law import Law
from objectives.plugins import importable
from search_spaces.architectures import Architectures
from search_spaces.architectures import architectures_of as rows_of
from search_spaces.arrays import frozen
from search_spaces.columns import NAMES, PRECISIONS, names_of, unknown_columns

OneGiven = Architectures | pd.DataFrame | pd.Series | Mapping[str, Any] | str | Path
Given = OneGiven | Iterable[OneGiven]
NEEDED = "depth, width, n_kv_heads and expert_size"
CONFIG = {"model_type", "config"}  # a mapping with one of these is a config.json, or names one
NEXT = ("purpose", "predicted_loss", "training_flops")  # of the trainings that a fit proposes
BESIDE = ("id", "question", "name", "model", "source", "seed", "state", "feasible", "extrapolates", "reason", *NEXT)
OURS = re.compile(
    rf"(?:{GENE}|violation_|difference_|evidence_|better_than_|regret).*|\w[\w.]*:\w+"
)  # columns of tables


def architectures_of(problem: Problem | None, given: Given) -> Architectures:
    """Return architectures from a table, columns, rows, one row, a candidate file, or a published model (its name, or its config.json as path or content).

    An empty cell is not given. Designs without a vocabulary get the study's, if there is one. Rows may have metrics beside their columns.

    Raises:
        UsageError: rows that are not architectures, with their wrong columns; a format or a device that is not the study's.
    """
    if hasattr(given, "model_type") and hasattr(given, "to_dict"):
        given = cast(Any, given).to_dict()
    if isinstance(given, Iterable) and not isinstance(given, (str, Mapping, pd.DataFrame, pd.Series, np.ndarray)):
        given = given if isinstance(given, Architectures) else list(given)
    tied = isinstance(given, (pd.DataFrame, pd.Series, Mapping)) and "tied" in given
    if isinstance(given, Architectures):
        found = given
    elif isinstance(given, (str, Path)):
        found = _of_file_or_model(given)
    elif isinstance(given, Mapping) and not CONFIG.isdisjoint(given):
        found = _of_model(given)
    elif isinstance(given, list) and any(_is_model(row) for row in given):
        found = Architectures.concatenate([architectures_of(problem, row) for row in given])
    else:
        found = _of_table(given if isinstance(given, pd.DataFrame) else _frame(given), problem)
    return found if problem is None else _of_study(found, problem, tied=tied)


def _is_model(row: Any) -> bool:
    return isinstance(row, (str, Path, Architectures)) or (isinstance(row, Mapping) and not CONFIG.isdisjoint(row))


def _of_model(given: Mapping[str, Any]) -> Architectures:
    try:
        return baseline(given).architecture
    except (UsageError, ValueError) as error:
        raise UsageError(f"architectures: {error}") from None


def _of_table(table: pd.DataFrame, problem: Problem | None) -> Architectures:
    if table.empty:
        raise UsageError(f"architectures: expected a row or more, got none; give {NEEDED}")
    names = tuple(map(str, table.columns))
    metrics = {*BESIDE, *importable("objectives.metrics")}
    if problem is not None:
        metrics |= {*problem.scenario.figures, *(name.rpartition(":")[2] for name in problem.metric_names)}
    beside = [name for name in names if name.partition("@")[0] in metrics or OURS.fullmatch(name)]
    if faults := unknown_columns(names, beside):
        raise UsageError("\n".join(f"architectures: {fault}" for fault in faults))
    designs = table[[name for name in table.columns if name in NAMES]]
    try:
        if len(designs) > 1 and designs.isna().any(axis=None):
            return rows_of([{str(name): cell for name, cell in row.dropna().items()} for _, row in designs.iterrows()])
        return Architectures.from_columns({str(name): designs[name].to_numpy() for name in designs.dropna(axis=1)})
    except ValueError as error:
        raise UsageError(str(error)) from None


def _of_study(designs: Architectures, problem: Problem, *, tied: bool) -> Architectures:
    """Return designs with the study's vocabulary where they have none; `tied` says that they were given as tied or not.

    Raises:
        UsageError: a format or a device of another study.
    """
    scenario = problem.scenario
    places = [here for _, here in scenario.devices] or [scenario]
    formats = {each.precision.name for here in places for each in (here, *here.formats)}
    for name in {PRECISIONS[place] for place in np.unique(designs.precision).tolist()} - {"", *formats}:
        raise UsageError(
            f"precision: expected {' or '.join(sorted(formats))}, as this study has it, got {name}; "
            f"ask study.replace(precision={name!r})"
        )
    for name in {*names_of(np.unique(designs.device)).tolist()} - {"", *dict(scenario.devices)}:
        if scenario.devices or squashed(name) not in squashed(scenario.device.name):
            raise UsageError(f"device: expected one of this study, got {name}; ask study.replace(device={name!r})")
    lacking = designs.vocabulary == 0
    if not lacking.any():
        return designs
    headed = problem.headed(designs)
    kept = ~lacking | (True if tied else ~designs.tied)
    vocabulary = np.where(lacking, headed.vocabulary, designs.vocabulary)
    return replace(designs, vocabulary=frozen(vocabulary), tied=frozen(np.where(kept, designs.tied, headed.tied)))


def designs_of(problem: Problem, given: Given) -> Architectures:
    """Return architectures from columns, or from gene indices (`gene_depth`) as traces and trials have them.

    Raises:
        UsageError: neither architectures nor genes.
    """
    table = given if isinstance(given, pd.DataFrame) else None
    columns = [f"{GENE}{gene}" for gene in problem.space.genes]
    if table is None or not set(columns) <= set(table.columns):
        return architectures_of(problem, given)
    genotypes = table[columns].to_numpy(dtype=np.float64)
    if not np.array_equal(genotypes, np.rint(genotypes)):
        raise UsageError(f"{GENE}…: expected whole numbers, got others; give every gene as its index")
    return problem.architectures(problem.space.repair(genotypes.astype(np.int64)))


def _of_file_or_model(given: str | Path) -> Architectures:
    if str(given).lower().endswith((".csv", ".jsonl")) or (isfile(given) and Path(given).suffix != ".json"):
        return read_candidates(Path(given))[0]
    try:
        return model_named(str(given)).architecture
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


def evaluations_table(problem: Problem, evaluations: Evaluations, **more: Any) -> pd.DataFrame:
    """Return evaluated rows as a table, with further columns."""
    metrics = {name: evaluations.metrics[name] for name in problem.metric_names}
    return metrics_table(problem, problem.architectures(evaluations.genotypes), metrics, **more)


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


class DesignExplanation(Explanation):
    """One design broken down: its metrics, and `frame`, its operators."""

    @property
    def frame(self) -> pd.DataFrame:
        """The operators of both phases, one row each: instances, GFLOP, MB, ms, and what their time goes to."""
        rows = [{"phase": phase, **vars(row)} for phase, operators in self.operators.items() for row in operators]
        table = pd.DataFrame(rows).drop(columns="ms_by_kind", errors="ignore")
        table.attrs["units"] = {"gflop": "GFLOP", "mb": "MB", "ms": "ms"}
        return table

    def _metrics(self) -> Design:
        row = Design(self.metrics, dtype=object)
        row.attrs["units"] = {name: unit_of(name, {}) for name in self.metrics}
        return row

    def __repr__(self) -> str:
        return repr(self._metrics()).replace("Design(", "Explanation(", 1)

    def __str__(self) -> str:
        return f"{self._metrics()}\n\n{self.frame.to_string(index=False, float_format='{:.4g}'.format)}"

    def _repr_html_(self) -> str:
        return notebook_html("", with_units(self._metrics()), len(self.metrics)) + notebook_html("", self.frame, 60)


def with_units(row: pd.Series) -> pd.DataFrame:
    """Return a row as a table of names, values and units."""
    given = row.attrs.get("units", {})
    shown = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in row]
    return pd.DataFrame({"name": row.index, "value": shown, "unit": [given.get(name, "") for name in row.index]})


def notebook_html(caption: str, frame: pd.DataFrame, most: int = 20, *, above: str = "") -> str:
    """Return HTML for a notebook: a caption, at most so many rows with units, and optional lines above."""
    named = {name: f"{name} ({unit})" for name, unit in frame.attrs.get("units", {}).items() if unit}
    table: str = frame.rename(columns=named).to_html(
        max_rows=most, index=False, float_format=lambda value: f"{value:.4g}"
    )
    lines = "".join(f"<p>{escape(each)}</p>" for each in above.splitlines())
    return lines + (f"<p>{escape(caption)}</p>" if caption else "") + table
