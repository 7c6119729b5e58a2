"""PLAS-Bench: frozen problems with exact fronts; score any tool's trace on them, or run a strategy."""

from nas.files.import_rights import Right
from nas.terminal.parser import command
from plas_bench.request import BenchRequest


def bench(request: BenchRequest) -> None:
    """List or show problems, score traces of any tool against exact fronts, run a strategy of ours.

    A trace is a CSV of designs in the order of their evaluation: a column gene_NAME for each gene, or depth, width … as in a candidate file.
    """
    from plas_bench.command import answer

    answer(request)


main = command(
    bench,
    "bench list",
    "bench show plas1-fine-loss-latency",
    "bench run plas1-paper-loss-latency --algo nsga2 --seeds 10",
    "bench score mine.csv --problem plas1-fine-loss-latency --out scores",
    right=Right.TYPED,
)
if __name__ == "__main__":
    main()
