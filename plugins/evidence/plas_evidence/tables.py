"""The tables that are asked (the evidence base, published files, the user's own), and what laws and rules say of their rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from nas.errors import UsageError
from nas.files.faults import unknown
from nas.files.yaml_source import read
from nas.study.catalogue import load_law
from objectives.loss_law.coverage import Range, kinds_of
from objectives.loss_law.law import Law
from objectives.plugins import documents, normalised
from objectives.table import numbers_or_empty
from plas_evidence.convention import EvidenceSource, converted
from plas_fit.evidence.joint_form import MOST_EPOCHS, Trainings, in_unit, trainings
from plas_fit.fitting.portability import drawn_predictions, predictions, stand_ins
from plas_fit.fitting.several_tables import read_tables
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import AnyArray, BoolArray, FloatArray

SOURCES = "objectives.evidence.sources"
YOURS = "yours"  # the laboratory of tables that are given


@dataclass(frozen=True, eq=False)
class GroupedTable:
    """A table with its name, whose it is, which rows may be compared, (n,), the unit of its losses, how often each row read its text, (n,),
    the laws that were fitted to it, and why the law evidence claims nothing of it, if so.
    """

    name: str
    laboratory: str
    table: Table
    group: AnyArray
    unit: str = "nats per token"
    epochs: FloatArray | None = None
    fitted: tuple[str, ...] = ()
    outside: str = ""

    @property
    def no_evidence(self) -> bool:
        """Whether the law evidence neither is fitted to it nor claims anything of it: said of it, or losses of an unknown unit."""
        return bool(self.outside) or self.unit == "as published"

    @cached_property
    def trainings(self) -> Trainings:
        """The same as the pooled law reads it."""
        rows = (self.name, self.laboratory, self.table, self.group)
        return trainings(*rows, unit=self.unit, epochs=self.epochs, outside=self.no_evidence)


@cache
def sources() -> Mapping[str, EvidenceSource]:
    """The documents of the evidence base by id."""
    return {name: EvidenceSource.model_validate(read(path)[0]) for name, path in documents(SOURCES).items()}


def base() -> list[GroupedTable]:
    """The packaged tables of the evidence base."""
    places = documents(SOURCES)
    own = {name: source for name, source in sources().items() if source.packaged}
    return [_grouped(source, *_read(places[name].with_suffix(".csv"))) for name, source in own.items()]


def published(given: Sequence[str]) -> list[GroupedTable]:
    """Published files in the convention, each `NAME=FILE` of a source of the evidence base.

    Raises:
        UsageError: an unknown source, or a file that is not the source's.
    """
    return [_published(*item.partition("=")) for item in given]


def _published(name: str, equals: str, file: str) -> GroupedTable:
    if not equals or normalised(name) not in sources():
        raise UsageError(f"published: {unknown('NAME=FILE of a source', name, sorted(sources()))}")
    source = sources()[normalised(name)]
    try:
        columns = converted(source, Path(file)).columns
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    group, unique = columns.pop("group"), columns.pop("unique_tokens", None)
    epochs = None if unique is None else columns["tokens"] / unique
    return _grouped(source, Table(columns, np.arange(len(group))), group, epochs)


def own(paths: Sequence[Path]) -> list[GroupedTable]:
    """Tables of the user's; a column `group` tells which rows may be compared, without it all may.

    Raises:
        UsageError: one that cannot be read.
    """
    try:
        rows = [_read(path) for path in paths]
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    return [
        GroupedTable(path.stem, YOURS, table, group, epochs=epochs)
        for path, (table, group, epochs) in zip(paths, rows, strict=True)
    ]


def _grouped(source: EvidenceSource, table: Table, group: AnyArray, epochs: FloatArray | None) -> GroupedTable:
    whose = (source.name, source.laboratory)
    return GroupedTable(*whose, table, group, source.unit, epochs, source.fitted, source.outside)


def _read(path: Path) -> tuple[Table, AnyArray, FloatArray | None]:
    """A table; its column `group` tells rows that may be compared, all without one; `unique_tokens` how often a text was read."""
    table = read_tables([path])
    if table.empty:  # every column may be one that some law reads
        raise ValueError("\n".join(table.empty.values()))
    group = np.zeros(len(table), dtype=np.int64)
    if "group" in table.beside:
        group = np.unique(table.beside["group"], return_inverse=True)[1]
    epochs = None
    if "unique_tokens" in table.beside and table.has("tokens"):
        unique = table.beside["unique_tokens"].tolist()
        epochs = table.feature("tokens") / numbers_or_empty("unique_tokens", unique, table.lines, path)
    return table, group, epochs


RULES = {
    "more parameters": "parameters",
    "more active parameters": "active_parameters",
    "deeper": "depth",
    "wider": "width",
}  # what loses less, by the quantity that is larger


def laws_by_name(further: Sequence[str]) -> dict[str, Law]:
    """Every shipped law, then further ones by name or file.

    Raises:
        UsageError: one of them cannot be read.
    """
    laws = {name: load_law(name) for name in documents("objectives.laws")}
    for given in further:
        law = load_law(given)
        laws[given if law.name in laws else law.name] = law
    return laws


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a law or a rule says of a table's rows: losses, nan where it says nothing, (n,).

    in_nats: losses, and not only an order. draws: the same under each of a law's draws, (draws, n); None without any. misfit: sd
    of one row about them; outside: rows outside of what the law was fitted on, of which its draws claim nothing, (n,).
    """

    losses: FloatArray
    in_nats: bool
    draws: FloatArray | None = None
    misfit: float = 0.0
    outside: BoolArray | None = None


def by_law(law: Law, of: GroupedTable) -> Prediction | None:
    """A law's losses in the table's unit; None where it cannot be asked.

    Raises:
        UsageError: its formula gives no loss of any row that it prices.
    """
    table, per = of.table, in_unit(of.unit)
    assumed = stand_ins(law, table)
    if assumed is None:
        return None
    predicted, priced = predictions(law, table, assumed), np.ones(len(table), dtype=bool)
    for name, (low, high) in law.prices.items():
        if table.has(name):
            priced &= (table.feature(name) >= low) & (table.feature(name) <= high)
    if law.prices_sparse and table.has("n_experts"):  # what experts must be is not said by these tables
        priced &= table.feature("n_experts") == 1
    finite = np.isfinite(predicted)
    if priced.any() and not (finite & (predicted > 0.0))[priced].any():
        raise UsageError(
            f"law: expected a formula that gives losses, got none above 0 from {law.name} for {priced.sum():,} models "
            f"of {of.name}; correct its form or its coefficients"
        )
    losses = per * np.where(priced & finite, predicted, np.nan)
    if not law.drawn:
        return Prediction(losses, True)
    draws = per * drawn_predictions(law, table, assumed)
    return Prediction(losses, True, draws, per * (law.residual_sd or 0.0), outside(law, of))


def outside(law: Law, of: GroupedTable) -> BoolArray:
    """Rows outside the ranges that a law was fitted on, that read their text more often than counts as new, or of a table outside, (n,)."""
    table, out = of.table, np.full(len(of.table), of.no_evidence)

    def range_of(name: str) -> Range | None:
        return (column := table.feature(name), column) if table.has(name) else None

    experts = table.feature("n_experts") if table.has("n_experts") else np.ones(len(table))
    for over in kinds_of(law.regions, experts, range_of, {}).values():
        out |= over > 0.0
    return out if of.epochs is None else out | (of.epochs > MOST_EPOCHS)


def by_rule(quantity: str, table: Table) -> Prediction | None:
    """The rule that more of a quantity loses less; None where the table does not say it."""
    return Prediction(-table.feature(quantity), False) if table.has(quantity) else None
