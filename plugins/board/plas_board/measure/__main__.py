"""Measure candidates on real hardware with random weights, each in its own process, or this machine's rates."""

from nas.terminal.parser import command
from plas_board.measure.request import MeasureRequest


def measure(request: MeasureRequest) -> None:
    """Measure candidates on real hardware with random weights, each in a process of its own."""
    from plas_board.measure.command import carry_out, rates

    (rates if request.hardware else carry_out)(request)


main = command(
    measure, "measure runs/paper-nsga2-s0 --select diverse:5 --out measured", "measure --hardware --out my_machine.yaml"
)
if __name__ == "__main__":
    main()
