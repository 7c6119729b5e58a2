"""The work of `evidence`: tables read, laws and rules chosen, the record and its questions printed."""

from nas.errors import UsageError
from nas.files.faults import unknown
from nas.study.study_laws import records_of
from nas.terminal.console import Stages
from nas.terminal.tables import show
from plas_evidence import tables
from plas_evidence.judging import QUESTIONS, table_record
from plas_evidence.record_document import question_document, record_document
from plas_evidence.request import EvidenceRequest
from plas_evidence.tables import laws_by_name


def execute(request: EvidenceRequest) -> None:
    """Judge laws and rules on tables and print it.

    Raises:
        UsageError: a table, a law or a question that cannot be read.
    """
    if request.question is not None and request.question not in QUESTIONS:
        raise UsageError(f"question: {unknown('a question', request.question, QUESTIONS)}")
    laws, stage = laws_by_name(request.laws), Stages(quiet=request.quiet or request.json)
    chosen = [*tables.own(request.tables), *tables.published(request.published)]
    chosen_is_base = not chosen
    chosen = chosen or tables.base()
    questions = [request.question] if request.question else list(QUESTIONS)
    records = []
    for source in chosen:
        stage(f"{source.name}: {len(source.table)} models")
        records.append(table_record(source, laws, questions))
    stage.close()
    if request.question:
        document = question_document(request.question, records)
    else:
        document = record_document(records, records_of("evidence") if chosen_is_base else None)
    show(document, as_json=request.json)
