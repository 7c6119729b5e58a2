"""The work of `evidence`: tables read, laws and rules chosen, the record and its questions printed."""

from nas.errors import UsageError
from nas.files.faults import unknown
from nas.files.tables import write
from nas.files.yaml_source import dump
from nas.study.study_laws import records_of
from nas.terminal.console import Stages
from nas.terminal.tables import show
from plas_evidence import tables
from plas_evidence.judging import QUESTIONS, table_record
from plas_evidence.left_out import EVIDENCE, laws_left_out, left_out, pooled_law
from plas_evidence.record_document import left_out_document, question_document, record_document
from plas_evidence.request import EvidenceRequest
from plas_evidence.tables import laws_by_name


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
    without = left_out(chosen, stage) if pooled else []
    if request.write_law is not None:
        write(request.write_law, "# Pooled by plas evidence.\n" + dump(pooled_law(chosen, without).mapping()))
    own = laws_left_out(without) if request.left_out else {}
    questions = [request.question] if request.question else list(QUESTIONS)
    records = []
    for source in chosen:
        stage(f"{source.name}: {len(source.table)} models")
        of_others = {EVIDENCE: own[source.laboratory]} if request.left_out else {}
        records.append(table_record(source, laws | of_others, questions))
    stage.close()
    if request.question:
        document = question_document(request.question, records)
    elif request.left_out:
        document = left_out_document(records)
    else:
        document = record_document(records, records_of(EVIDENCE) if chosen_is_base else None)
    show(document, as_json=request.json)
