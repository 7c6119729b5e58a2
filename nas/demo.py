"""Show the five-minute tour: every command types itself, with a sentence before it."""

from nas.commands.requests import DemoRequest
from nas.terminal.parser import command


def demo(request: DemoRequest) -> None:
    """Show the tour of the README on this machine: each command is explained, typed and run; on a terminal Enter runs it.

    A device is described, its best design found, explained, exported and looked at. Ctrl-C stops; the files stay.
    """
    from nas.commands.demo import demo as work

    work(request)


main = command(demo, "demo", "demo --no-wait --no-open --out tour")
if __name__ == "__main__":
    main()
