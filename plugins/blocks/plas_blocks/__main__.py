"""The exact frontier of all mixtures of a library of blocks (Puzzletron's format or a table), or a library measured."""

from nas.terminal.parser import command
from plas_blocks.request import BlocksRequest


def blocks(request: BlocksRequest) -> None:
    """Find every best mixture of a library's blocks at once: no program per memory or latency budget.

    Scores and costs are added over layers; how far that holds is printed with every answer, where the library knows it.
    """
    if request.measure:
        from plas_blocks.measuring import measure as work
    else:
        from plas_blocks.command import answer as work
    work(request)


main = command(
    blocks,
    "blocks replacement_metrics_and_stats.json --objective lm_loss,memory_mib --budget runtime_ms=40",
    "blocks library.csv --budget 'has_attention>=20' --max-kinds 3 --fix 0=parent",
    "blocks model --measure --text text.txt --out library",
    "blocks library --objective score,memory_mib --out answer",
)
if __name__ == "__main__":
    main()
