"""Train candidates on the same data in the same order, for validation runs; writes the table that fit reads."""

from nas.terminal.parser import command
from plas_train.request import TrainRequest


def train(request: TrainRequest) -> None:
    """Train candidates on the same data in the same order, each in a process of its own."""
    from plas_train.command import carry_out

    carry_out(request)


main = command(
    train,
    "train first.csv --data stdlib --tokens 1e6 --workers 2 --out trained",
    "train first.csv --data stdlib --tokens 1e6 --workers 2 --out trained --resume",
)
if __name__ == "__main__":
    main()
