"""Watch a run or a comparison in progress, from any terminal; read-only."""

from nas.commands.requests import WatchRequest
from nas.terminal.parser import command


def watch(request: WatchRequest) -> None:
    """Watch a run or a comparison until it ends: how far, how fast, the best so far. Nothing in it is changed.

    Ctrl-C ends the watching, never the run.
    """
    from nas.commands.watch import watch as work

    work(request)


main = command(watch)
if __name__ == "__main__":
    main()
