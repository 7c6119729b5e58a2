"""Curves of task scores over bits per byte, fitted to a table of models; studies and pages show what they predict."""

from nas.files.import_rights import Right
from nas.terminal.parser import command
from plas_evidence.scores.request import ScoresRequest


def scores(request: ScoresRequest) -> None:
    """Fit curves of task scores to a table of models."""
    from plas_evidence.scores.command import execute

    execute(request)


main = command(scores, "scores evaluations.csv --out scores.yaml", right=Right.NONE)
if __name__ == "__main__":
    main()
