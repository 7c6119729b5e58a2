"""Recompute every claim of the paper, with a verdict each: a Markdown page."""

from nas.files.import_rights import Right
from nas.terminal.parser import command
from plas_paper.reproduce.request import ReproduceRequest


def reproduce(request: ReproduceRequest) -> None:
    """Recompute every claim of the paper and give each a verdict."""
    from plas_paper.reproduce.command import reproduce as work

    work(request)


main = command(reproduce, "reproduce", "reproduce --out claims/reproduction.md", right=Right.NONE)
if __name__ == "__main__":
    main()
