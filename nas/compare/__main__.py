"""Compare strategies over seeds and studies, with statistics; resumable."""

from nas.compare.request import CompareRequest
from nas.terminal.parser import command


def compare(request: CompareRequest) -> None:
    """Compare search strategies at equal numbers of distinct evaluations, over seeds and studies.

    With nothing else this is every strategy on the paper's study. --config compare_paper is the study
    behind our own claims; it takes hours.
    """
    from nas.compare.command import execute

    execute(request)


main = command(
    compare,
    "compare --algos nsga2,lhs --seeds 5 --evaluations 500",
    "compare --algos all --studies paper --out compared",
)
if __name__ == "__main__":
    main()
