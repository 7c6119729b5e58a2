"""The work of `evidence`: tables read, laws and rules chosen, the record printed."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from nas.errors import UsageError
from nas.evidence import tables
from nas.evidence.left_out import EVIDENCE, laws_left_out, left_out, pooled_law
from nas.evidence.predictors import laws_by_name
from nas.evidence.questions import QUESTIONS
from nas.evidence.record import TableRecord, means, table_record
from nas.evidence.request import EvidenceRequest
from nas.evidence.text import say_left_out, say_question, say_record
from nas.files.faults import unknown
from nas.files.tables import write
from nas.files.yaml_source import dump
from nas.study.law_records import records_of
from nas.terminal.console import say_json
from nas.terminal.progress import Stages


def execute(request: EvidenceRequest) -> None:
    """Judge laws and rules on tables and print it.

    Raises:
        UsageError: a table, a law or a question that cannot be read.
    """
    if request.question is not None and request.question not in QUESTIONS:
        raise UsageError(f"question: {unknown('a question', request.question, QUESTIONS)}")
    if request.left_out and request.tables:
        raise UsageError("left_out: expected no table of yours, which no law has seen, got some; drop --left-out")
    laws, stage = laws_by_name(request.laws), Stages(quiet=request.quiet or request.json)
    pooled = request.left_out or request.write_law is not None
    chosen = [*tables.own(request.tables), *tables.published(request.published)]
    chosen = [*tables.base(), *chosen] if pooled or not chosen else chosen
    chosen_is_base = not (request.tables or request.published)
    each_out = left_out(chosen, stage) if pooled else []
    if request.write_law is not None:
        write(request.write_law, "# Pooled by plas evidence.\n" + dump(pooled_law(chosen, each_out).mapping()))
    own = laws_left_out(each_out) if request.left_out else {}
    questions = [request.question] if request.question else list(QUESTIONS)
    records = []
    for each in chosen:
        stage(f"{each.name}: {len(each.table)} models")
        of_others = {EVIDENCE: own[each.laboratory]} if request.left_out else {}
        records.append(table_record(each, laws | of_others, questions))
    stage.close()
    if request.json:
        say_json(content(records))
    elif request.question:
        say_question(request.question, records)
    elif request.left_out:
        say_left_out(records)
    else:
        say_record(records, records_of(EVIDENCE) if chosen_is_base else None)


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
                        "fitted_to_it": sorted(record.fitted & by.keys()),
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
