"""Write a commented study, or a strategy of your own, to edit."""

from nas.commands.requests import InitRequest
from nas.terminal.parser import command


def init(request: InitRequest) -> None:
    """Write a commented study to edit, or a strategy of your own (.py); an existing file is never overwritten."""
    from nas.commands.init import init as work

    work(request)


main = command(init, "init my_study.yaml --from paper", "init my_search.py")
if __name__ == "__main__":
    main()
