"""Comparisons for a paper: LaTeX tables and rank diagrams."""

from nas.files.import_rights import Right
from nas.terminal.parser import command
from plas_bench.publish.request import PublishRequest


def publish(request: PublishRequest) -> None:
    """Write a comparison's tables in LaTeX and the diagram of ranks. The comparison's folder stays as it is."""
    from plas_bench.publish.command import answer

    answer(request)


main = command(publish, "publish runs/compare-paper", right=Right.STUDY)
if __name__ == "__main__":
    main()
