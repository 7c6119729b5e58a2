"""Print the JSON schema of studies, comparisons, spaces, laws, devices, recipes, scores, shared measurements or a strategy's parameters."""

from typing import Annotated

from nas.terminal.flags import Word
from nas.terminal.parser import command


def schema(
    what: Annotated[
        str,
        Word(
            "study, comparison, devices (a study of several), space, law, device, recipe, scores, measurements (what --share writes), or a strategy's name or module.",
            show_default=True,
        ),
    ] = "study",
) -> None:
    """Print a JSON schema, for editors and checkers."""
    from nas.commands.schema import show

    show(what)


main = command(schema, "schema study", "schema nsga2")
if __name__ == "__main__":
    main()
