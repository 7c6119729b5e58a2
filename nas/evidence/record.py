"""Every judgement of laws and rules on tables, and their record over several."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nas.evidence.judging import Judgement, judged
from nas.evidence.predictors import RULES, by_law, by_rule
from nas.evidence.questions import QUESTIONS, Pairs, questions_of
from nas.evidence.tables import GroupedTable
from nas.study.law_records import Record
from objectives.loss_law.law import Law


@dataclass(frozen=True, eq=False)
class TableRecord:
    """One table: its pairs by question, and by question what became of every law and rule, None of one that cannot be asked.

    fitted: laws whose coefficients are of this very table.
    """

    source: GroupedTable
    pairs: Mapping[str, Pairs]
    by: Mapping[str, Mapping[str, Judgement | None]]
    fitted: frozenset[str] = frozenset()

    @cached_property
    def decided(self) -> frozenset[str]:
        """Questions for which the table has pairs and rows enough."""
        own = self.by.items()
        return frozenset(name for name, by in own if any(each is not None and each.decides for each in by.values()))


def table_record(source: GroupedTable, laws: Mapping[str, Law], questions: Iterable[str] = QUESTIONS) -> TableRecord:
    """What a table says of laws and rules."""
    wanted = set(questions)
    pairs = {name: own for name, own in questions_of(source.table, source.group).items() if name in wanted}
    predictions = {name: by_law(law, source) for name, law in laws.items()}
    predictions |= {name: by_rule(quantity, source.table) for name, quantity in RULES.items()}
    by = {question: judged(predictions, source.table.loss, own) for question, own in pairs.items()}
    return TableRecord(source, pairs, by, _fitted(source, laws))


def _fitted(source: GroupedTable, laws: Mapping[str, Law]) -> frozenset[str]:
    pooled = (name for name, law in laws.items() if law.provenance.get("pooled", {}).get(source.name, 0) > 0)
    return frozenset([*source.fitted, *pooled])


def means(records: Iterable[TableRecord]) -> dict[str, dict[str, Record]]:
    """By question and law or rule: the mean order over the tables that decide the question, a table each."""
    found: dict[str, dict[str, Record]] = {}
    kept = list(records)
    for question in QUESTIONS:
        deciding = [record for record in kept if question in record.decided]
        if not deciding:
            continue
        names = deciding[0].by[question]
        found[question] = {name: _mean([record.by[question][name] for record in deciding]) for name in names}
    return found


def _mean(judgements: list[Judgement | None]) -> Record:
    orders = [0.5 if each is None else each.order for each in judgements]
    mute = sum(each is None or each.mute == 1.0 for each in judgements)
    priced = [0.0 if each is None else each.pairs / each.of for each in judgements]
    return Record(float(np.mean(orders)), len(judgements), mute, float(np.mean(priced)))
