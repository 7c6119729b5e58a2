"""Recompute every claim of the paper, with a verdict each: a Markdown page with pictures, and one to explore."""

from nas.reproduce.request import ReproduceRequest
from nas.terminal.parser import command


def reproduce(request: ReproduceRequest) -> None:
    """Recompute every claim of the paper and give each a verdict."""
    from nas.reproduce.command import reproduce as work

    work(request)


main = command(reproduce, "reproduce", "reproduce --out claims/reproduction.md")
if __name__ == "__main__":
    main()
