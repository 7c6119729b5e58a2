"""Runs `evidence`: reads tables, evaluates laws and rules on them, prints the record."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from nas.errors import UsageError
from nas.evidence import tables
from nas.evidence.judging import Judgement
from nas.evidence.predictors import RULES, laws_by_name
from nas.evidence.questions import QUESTIONS
from nas.evidence.record import Mean, TableRecord, means, table_record
from nas.evidence.request import EvidenceRequest
from nas.files.faults import unknown
from nas.terminal.console import say, say_json
from nas.terminal.progress import Stages
from nas.terminal.styles import TITLE, Styled
from nas.terminal.tables import table

HEADER = ["by", "order %", "95 %", "regret, nats", "nats per nat", "off by, nats", "of the pairs %"]


def execute(request: EvidenceRequest) -> None:
    """Judge laws and rules on tables and print it.

    Raises:
        UsageError: a table, a law or a question that cannot be read.
    """
    if request.question is not None and request.question not in QUESTIONS:
        raise UsageError(f"question: {unknown('a question', request.question, QUESTIONS)}")
    laws, stage = laws_by_name(request.laws), Stages(quiet=request.quiet or request.json)
    chosen = [*tables.own(request.tables), *tables.published(request.published)] or tables.base()
    questions = [request.question] if request.question else list(QUESTIONS)
    records = []
    for each in chosen:
        stage(f"{each.name}: {len(each.table)} models")
        records.append(table_record(each, laws, questions))
    stage.close()
    if request.json:
        say_json(content(records))
    elif request.question:
        _say_question(request.question, records)
    else:
        _say_record(records)


def content(records: Sequence[TableRecord]) -> dict[str, Any]:
    """Everything as plain content: by table and question what became of every law and rule, and the record over the tables."""
    return {
        "tables": [
            {
                "name": record.source.name,
                "laboratory": record.source.laboratory,
                "models": len(record.source.table),
                "questions": {
                    question: {
                        "pairs": len(record.pairs[question]),
                        "models": len(record.pairs[question].rows),
                        "decides": question in record.decided,
                        "by": {name: each and asdict(each) for name, each in by.items()},
                    }
                    for question, by in record.by.items()
                },
            }
            for record in records
        ],
        "record": {
            question: {name: asdict(each) for name, each in by.items()} for question, by in means(records).items()
        },
    }


def _say_record(records: Sequence[TableRecord]) -> None:
    """The record over all tables on one screen, then which tables decide nothing."""
    found = means(records)
    names = [*dict.fromkeys(name for by in found.values() for name in by)]
    models, shown = sum(len(record.source.table) for record in records), f"{len(records)} tables"
    say(Styled(f"Pairs in the right order, %, mean over tables: {models:,} models in {shown}", TITLE))
    header = ["by", *(f"{question} ({_tables(by)})" for question, by in found.items())]
    table(header, [[name, *(_order(by[name]) for by in found.values())] for name in names])
    say()
    say(
        "In brackets the tables that decide a question. 50: a coin. A table of which a law says nothing counts 50; -: it says nothing of any."
    )
    if silent := sorted(set(QUESTIONS) - set(found)):
        say(f"No table decides {', '.join(silent)}: too few pairs, or none.")
    say("One question table by table, with intervals, regret and slope: --question shape; all of it: --json.")


def _say_question(question: str, records: Sequence[TableRecord]) -> None:
    """One question, table by table."""
    there = [record for record in records if question in record.by]
    if not there:
        say(f"No table has a pair for {question}.")
    for record in there:
        pairs = record.pairs[question]
        whose = f", {record.source.laboratory}" if record.source.laboratory else ""
        few = "" if question in record.decided else "; too few to decide anything"
        text = f"{question}: {record.source.name}{whose}, {len(pairs):,} pairs of {len(pairs.rows):,} models{few}"
        say(Styled(text, TITLE))
        heard = {name: each for name, each in record.by[question].items() if each is not None and each.mute < 1.0}
        table(HEADER, [[name, *_cells(each, name in RULES)] for name, each in heard.items()])
        if silent := record.by[question].keys() - heard.keys():
            say(f"Says nothing: {', '.join(sorted(silent))}.")
        say()


def _cells(each: Judgement, rule: bool) -> list[str]:
    low, high = each.interval
    nats = ["-", "-"] if rule else [f"{each.slope:.2f}", f"{each.error:.4f}"]
    order = [f"{100 * each.order:.1f}", f"{100 * low:.0f}-{100 * high:.0f}", f"{each.regret:.4f}"]
    return [*order, *nats, f"{100 * each.pairs / each.of:.0f}"]


def _order(each: Mean) -> str:
    return "-" if each.mute == each.tables else f"{100 * each.order:.1f}"


def _tables(by: Mapping[str, Mean]) -> int:
    return next(iter(by.values())).tables
