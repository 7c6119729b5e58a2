"""The exact frontier of all mixtures of a library of blocks (Puzzletron's format or a table)."""

from nas.terminal.parser import command
from plas_blocks.request import BlocksRequest


def blocks(request: BlocksRequest) -> None:
    """Find every best mixture of a library's blocks at once: no program per memory or latency budget.

    Scores and costs are added over layers.
    """
    from plas_blocks.command import answer

    answer(request)


main = command(
    blocks,
    "blocks replacement_metrics_and_stats.json --objective lm_loss,memory_mib --budget runtime_ms=40",
    "blocks library.csv --budget 'has_attention>=20' --max-kinds 3 --fix 0=parent",
    "blocks library --objective score,memory_mib --out answer",
)
if __name__ == "__main__":
    main()
