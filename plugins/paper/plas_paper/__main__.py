"""Predict the best architecture for budgets: closed forms, regimes, a certified program, the rounded design."""

from nas.files.import_rights import Right
from nas.terminal.parser import command
from plas_paper.request import TheoryRequest


def theory(request: TheoryRequest) -> None:
    """Predict the best architecture for budgets without searching, and check the prediction."""
    from plas_paper.command import answer

    answer(request)


main = command(
    theory,
    "theory --budget decode_ms=20",
    "theory --compute '10 TFLOP/s' --bandwidth '50 GB/s' --memory '4 GB' --budget total_ms=500",
    right=Right.TYPED,
)
if __name__ == "__main__":
    main()
