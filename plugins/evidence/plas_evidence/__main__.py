"""Which loss law to believe for which question: laws and simple rules on models that others, or you, trained."""

from nas.files.import_rights import Right
from nas.terminal.parser import command
from plas_evidence.request import EvidenceRequest


def evidence(request: EvidenceRequest) -> None:
    """Ask loss laws, and rules that need none, about trained models, question by question."""
    from plas_evidence.command import execute

    execute(request)


main = command(
    evidence,
    "evidence",
    "evidence runs.csv --law mine.yaml",
    "evidence --question shape",
    "evidence --published marin_nemotron=isoflop-nemotron.csv",
    right=Right.NONE,
)
if __name__ == "__main__":
    main()
