"""How the shipped laws, and rules that need no law, order models that others trained, by the tables that ship; evidence on laboratories left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from nas.files.yaml_source import read
from nas.study import entry_points
from nas.study.catalogue import load_law
from objectives.loss_law.law import Law
from objectives.loss_law.origin import origin_of
from objectives.plugins import documents, folder

RIGHT = "% of pairs of other people's models in the right order"
OVERALL = "equal tokens"  # the question of all designs
LEFT_OUT = "evidence"  # judged on each laboratory by the law of the others


@dataclass(frozen=True)
class Record:
    """A law or a rule on one question: the mean share of pairs in the right order over `tables`, of `mute` of which it says nothing.

    priced: the mean share of the pairs that it prices; the others count half.
    """

    order: float
    tables: int
    mute: int
    priced: float

    @property
    def in_short(self) -> str:
        """`97.3`; `-` where it says nothing of any table."""
        return "-" if self.mute == self.tables else f"{100 * self.order:.1f}"

    @property
    def in_full(self) -> str:
        """`61.0 (44)`: with the share of the pairs that it prices, %, where that is not all."""
        all_priced = self.mute == self.tables or self.priced > 0.995
        return self.in_short if all_priced else f"{self.in_short} ({100 * self.priced:.0f})"


@cache
def records() -> Mapping[str, Mapping[str, Record]]:
    """By question, then by law or rule."""
    content, _ = read(folder("objectives") / "records.yaml")
    return {question: {name: Record(**own) for name, own in by.items()} for question, by in content.items()}


def rules() -> list[str]:
    """The rules that need no law, in the order of the file."""
    names = dict.fromkeys(name for by in records().values() for name in by)
    return [name for name in names if name not in documents(entry_points.SHIPPED["laws"])]


def strongest(by: Mapping[str, Record]) -> str | None:
    """The name of the best order, of the first where several have it; None where all say nothing."""
    heard = {name: each.order for name, each in by.items() if each.mute < each.tables}
    return max(heard, key=lambda name: heard[name]) if heard else None


def strongest_rules() -> dict[str, str]:
    """By question the rule with the best record, where one says anything."""
    found = {question: strongest({rule: by[rule] for rule in rules()}) for question, by in records().items()}
    return {question: rule for question, rule in found.items() if rule is not None}


def records_of(name: str) -> dict[str, Record]:
    """The record of a shipped law or of a rule by question; questions of which it says nothing are left out."""
    own = {question: by[name] for question, by in records().items() if name in by}
    return {question: record for question, record in own.items() if record.mute < record.tables}


def record_line(law: Law) -> str:
    """A law's record, beginning with RIGHT; "" where it is no shipped one with its own constants."""
    if law.name not in documents(entry_points.SHIPPED["laws"]) or law.coefficients != load_law(law.name).coefficients:
        return ""
    found = records_of(law.name)
    return f"{RIGHT}: {_listed(found)}" if found else ""


def left_out_line(law: Law) -> str:
    """How a shipped pooled law orders models of laboratories that it had not seen, beside the best other law or rule; "" of any other law."""
    found = origin_of(law)
    if found is None or not found.pooled or not record_line(law):
        return ""
    by = records()[OVERALL]
    own, best = by[law.name], max(by.keys() - {law.name}, key=lambda name: by[name].order)
    said = "best record" if own.order > by[best].order else "not the best record"
    return f"{said} on laboratories left out: {own.in_short} % of pairs of {OVERALL} in order ({best}: {by[best].in_short} %); limits: docs/evidence.md"


def records_line(laws: Sequence[Law]) -> list[str]:
    """The records of several laws, and of the strongest rule that needs none, in one sentence; nothing where none is a shipped one."""
    known = [law.name for law in laws if record_line(law)]
    best = strongest_rules()
    figures = ", ".join(by[best[question]].in_short if question in best else "-" for question, by in records().items())
    shown = [*(f"{name} {_figures(name)}" for name in known), f"the strongest rule without a law {figures}"]
    return [f"Record, {RIGHT} ({', '.join(records())}): {'; '.join(shown)}."] if known else []


def _figures(name: str) -> str:
    own = records_of(name)
    return ", ".join(own[question].in_short if question in own else "-" for question in records())


def _listed(found: Mapping[str, Record]) -> str:
    return ", ".join(f"{question} {record.in_short}" for question, record in found.items())
