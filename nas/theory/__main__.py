"""Predict the best architecture for budgets: closed forms, regimes, a certified program, the rounded design."""

from nas.terminal.parser import command
from nas.theory.request import TheoryRequest


def theory(request: TheoryRequest) -> None:
    """Predict the best architecture for budgets without searching, and check the prediction."""
    from nas.theory.command import answer

    answer(request)


main = command(
    theory,
    "theory --budget decode_ms=20",
    "theory --compute '10 TFLOP/s' --bandwidth '50 GB/s' --memory '4 GB' --budget total_ms=500",
)
if __name__ == "__main__":
    main()
