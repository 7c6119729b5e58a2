"""What `evidence` shows: the record over all tables, one question table by table."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from nas.document.document import Cell, Column, Document, Part, Section, Table, figures, table_of
from nas.study.study_laws import Record, strongest
from plas_evidence.judging import QUESTIONS, Doubt, Judgement, TableRecord, means
from plas_evidence.tables import RULES

JUDGED = (
    Column("by", words=True),
    *figures({"order %": ".1f", "95 %": "", "regret, nats": ".4f", "nats per nat": ".2f", "off by, nats": ".4f"}),
    Column("priced %", format=".0f"),
)
DOUBT = figures(
    {"outside %": ".0f", "50/80/90 % hold": "", "90 % width": ".3f", "sure %": ".0f", "of these right %": ".1f"}
)
NAN = float("nan")
Means = Mapping[str, Mapping[str, Record]]


def content(records: Sequence[TableRecord]) -> dict[str, Any]:
    """Everything as plain content: by table and question what became of every law and rule, and the record over the tables."""
    return {
        "tables": [
            {
                "name": record.source.name,
                "laboratory": record.source.laboratory,
                "models": len(record.source.table),
                "questions": {question: _question_content(record, question) for question in record.by},
            }
            for record in records
        ],
        "record": {
            question: {name: asdict(own) for name, own in by.items()} for question, by in means(records).items()
        },
    }


def _question_content(record: TableRecord, question: str) -> dict[str, Any]:
    by, pairs = record.by[question], record.pairs[question]
    return {
        "pairs": len(pairs),
        "models": len(pairs.rows),
        "decides": question in record.decided,
        "by": {name: own and asdict(own) for name, own in by.items()},
        "fitted_to_it": sorted(record.fitted & by.keys()),
    }


def record_document(records: Sequence[TableRecord], stored: Mapping[str, Record] | None = None) -> Document:
    """By question the law evidence beside the strongest rule, then every law and rule; what decides nothing.

    stored: what the shipped record has of the law evidence on laboratories left out, where it is of the same tables.
    """
    by_question, models = means(records), sum(len(record.source.table) for record in records)
    title = f"Pairs in the right order, %, mean over tables: {models:,} models in {len(records)} tables"
    names = dict.fromkeys(name for by in by_question.values() for name in by)
    fitted = {name for record in records for name in record.fitted}
    rows = [[name + "*" * (name in fitted), *(by[name].in_full for by in by_question.values())] for name in names]
    every = table_of(["by", *by_question], rows, notes=_reading(by_question, fitted))
    return Document(title, (Section(title, (_leading(by_question, stored),)), Section("", (every,))), content(records))


def _leading(by_question: Means, stored: Mapping[str, Record] | None) -> Table:
    """By question: tables that decide it, the law evidence left out, the strongest rule."""
    rows: list[list[Cell]] = []
    for question, by in by_question.items():
        rule, tables = strongest({rule: by[rule] for rule in RULES}), next(iter(by.values())).tables
        own = [] if stored is None else [stored[question].in_short if question in stored else "-"]
        rows.append([question, tables, *own, f"{by[rule].in_full} {rule}" if rule is not None else "-"])
    left_out = [] if stored is None else ["evidence, left out"]
    return table_of(["question", "tables", *left_out, "strongest rule without a law"], rows)


def _reading(by_question: Means, fitted: Collection[str]) -> list[str]:
    """How the record is read."""
    silent = sorted(set(QUESTIONS) - set(by_question))
    return [
        *(["*: fitted to some of these tables, so no test of it."] if fitted else []),
        "50: a coin. -: it says nothing of any.",
        "In brackets the share of the pairs that it prices, %, where not all; the others count 50.",
        *([f"No table decides {', '.join(silent)}: too few pairs, or none."] if silent else []),
        "One question table by table: --question shape; all of it: --json.",
    ]


def question_document(question: str, records: Sequence[TableRecord]) -> Document:
    """One question, table by table."""
    sections = [_question_section(question, record) for record in records if question in record.by]
    none = Section("", (f"No table has a pair for {question}.",))
    return Document(question, tuple(sections or [none]), content(records))


def _question_section(question: str, record: TableRecord) -> Section:
    source, pairs = record.source, record.pairs[question]
    whose = f", {source.laboratory}" if source.laboratory else ""
    few = "" if question in record.decided else "; too few to decide anything"
    own = {name: one for name, one in record.by[question].items() if one is not None and one.mute < 1.0}
    marked = {name: name + "*" * (name in record.fitted) for name in own}
    doubts = {marked[name]: one.doubt for name, one in own.items() if one.doubt is not None}
    parts: list[Part] = [Table(JUDGED, tuple((marked[name], *_cells(one)) for name, one in own.items()))]
    parts += ["", doubts_table("by", doubts)] if doubts else []
    if rules := [name for name in RULES if name in own]:
        best = max(rules, key=lambda rule: own[rule].order)
        parts.append(f"Strongest rule without a law: {best}, {100 * own[best].order:.1f} %.")
    if fitted := record.fitted & own.keys():
        parts.append(f"*: fitted to this table: {', '.join(sorted(fitted))}.")
    if silent := record.by[question].keys() - own.keys():
        parts.append(f"Says nothing: {', '.join(sorted(silent))}.")
    title = f"{question}: {source.name}{whose}, {len(pairs):,} pairs of {len(pairs.rows):,} models{few}"
    return Section(title, tuple(parts))


def _cells(one: Judgement) -> tuple[Cell, ...]:
    interval = "{:.0f}-{:.0f}".format(*(100 * end for end in one.interval))
    return (100 * one.order, interval, one.regret, one.slope, one.error, 100 * one.pairs / one.of)


def doubts_table(head: str, doubts: Mapping[str, Doubt]) -> Table:
    """What the draws of laws, or of one law on several tables, claim and what holds."""
    return Table((Column(head, words=True), *DOUBT), tuple((name, *_doubt(doubt)) for name, doubt in doubts.items()))


def _doubt(doubt: Doubt) -> tuple[Cell, ...]:
    held = "/".join(f"{100 * share:.0f}" for share in (doubt.coverage or {}).values())
    sure, right = (NAN if share is None else 100 * share for share in (doubt.sure, doubt.sure_right))
    return (100 * doubt.outside, held or "-", doubt.width or NAN, sure, right)
