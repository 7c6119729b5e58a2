"""Comparisons for a paper: LaTeX tables, rank diagrams, power, and traces of other tools beside our runs."""

from nas.files.import_rights import Right
from nas.terminal.parser import command
from plas_bench.publish.request import PublishRequest


def publish(request: PublishRequest) -> None:
    """Write a comparison's tables in LaTeX, the diagram of ranks and the power of its tests, traces of other tools beside its runs.

    The comparison's folder stays as it is. Without one, traces are compared with each other. A trace is a CSV with a row per evaluation.
    """
    from plas_bench.publish.command import answer

    answer(request)


main = command(
    publish,
    "publish runs/compare-paper",
    "publish runs/compare-paper --traces mytool.csv",
    "publish --traces published.csv --reference loss=4 --reference total_ms=100",
    right=Right.STUDY,
)
if __name__ == "__main__":
    main()
