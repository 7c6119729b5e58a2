"""Watch a run in progress, from any terminal; read-only."""

from nas.commands.requests import WatchRequest
from nas.terminal.parser import command


def watch(request: WatchRequest) -> None:
    """Show the progress of a run until it ends. Nothing in it is changed.

    Ctrl-C stops only the display, not the run.
    """
    from nas.commands.watch import watch as work

    work(request)


main = command(watch)
if __name__ == "__main__":
    main()
