"""How the shipped laws, and rules that need no law, order models that others trained: the figures of docs/laws-elsewhere.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from nas.files.yaml_source import read
from nas.study import entry_points
from nas.study.catalogue import load_law
from objectives.loss_law.law import Law
from objectives.plugins import documents, folder

RIGHT = "% of pairs of other people's models in the right order"
SHOWN_RULES = ("more active parameters", "deeper")  # beside an answer; plas list laws has all


@dataclass(frozen=True)
class Record:
    """A law or a rule on one table: % of `pairs` in the right order, of `of` pairs that the table has; nats that its pick loses."""

    pairs: int
    of: int
    ordered: float
    regret: float

    @property
    def in_short(self) -> str:
        """`97.3`, or `94.6 of 28 pairs` of a law that prices a part of the table."""
        return f"{self.ordered:.1f}" + (f" of {self.pairs} pairs" if self.pairs < self.of else "")


@cache
def records() -> Mapping[str, Mapping[str, Record]]:
    """By table, then by law or rule."""
    content, _ = read(folder("objectives") / "records.yaml")
    return {table: {name: Record(**own) for name, own in by.items()} for table, by in content.items()}


def rules() -> list[str]:
    """The rules that need no law, in the order of the tables."""
    names = dict.fromkeys(name for by in records().values() for name in by)
    return [name for name in names if name not in documents(entry_points.SHIPPED["laws"])]


def records_of(name: str) -> dict[str, Record]:
    """The record of a shipped law or of a rule by table; tables of which it says nothing are left out."""
    return {table: by[name] for table, by in records().items() if name in by}


def record_line(law: Law) -> str:
    """A law's record, beginning with RIGHT; "" where it is no shipped one with its own constants."""
    if law.name not in documents(entry_points.SHIPPED["laws"]) or law.coefficients != load_law(law.name).coefficients:
        return ""
    found = records_of(law.name)
    return f"{RIGHT}: {_listed(found)}" if found else ""


def records_line(laws: Sequence[Law]) -> list[str]:
    """The records of several laws, and of rules that need none, in one sentence; nothing where none is a shipped one."""
    known = [law.name for law in laws if record_line(law)]
    shown = [f"{name} {_figures(name)}" for name in (*known, *SHOWN_RULES)]
    shown[len(known)] = f"without a law: {shown[len(known)]}"
    return [f"Record, {RIGHT} ({', '.join(records())}): {'; '.join(shown)}."] if known else []


def _figures(name: str) -> str:
    own = records_of(name)
    return ", ".join(own[table].in_short if table in own else "-" for table in records())


def _listed(found: Mapping[str, Record]) -> str:
    return ", ".join(f"{table} {record.in_short}" for table, record in found.items())
