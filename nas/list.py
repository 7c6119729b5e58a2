"""List strategies, spaces, laws, forms, formats, devices, models, metrics, studies, evidence and more; print JSON schemas."""

from enum import StrEnum
from typing import Annotated

from nas.errors import UsageError
from nas.terminal.flags import Flag, Json, Word
from nas.terminal.parser import command


class Kind(StrEnum):
    """Kinds that can be listed."""

    strategies = "strategies"
    spaces = "spaces"
    laws = "laws"
    forms = "forms"
    precision_laws = "precision-laws"
    formats = "formats"
    devices = "devices"
    models = "models"
    metrics = "metrics"
    presets = "presets"
    studies = "studies"
    stacks = "stacks"
    recipes = "recipes"
    evidence = "evidence"
    token_curves = "token-curves"


def list_(
    kind: Annotated[Kind | None, Word("What to list; default: which kinds there are.")] = None,
    words: Annotated[tuple[str, ...], Word("Rows that have these words alone: jetson orin.", "WORD")] = (),
    schema: Annotated[
        str | None,
        Flag(
            "--schema",
            "Print the JSON schema of a file for editors: study, comparison, devices, space, law, device, recipe, measurements, or of a strategy's parameters.",
            metavar="WHAT",
        ),
    ] = None,
    json: Annotated[bool, Json] = False,
) -> None:
    """List what can be named in a study, or print the JSON schema of a file."""
    if schema is not None:
        if kind is not None:
            raise UsageError(f"--schema: expected nothing to list with it, got {kind}; leave one of them out")
        from nas.commands.schema import show as show_schema

        show_schema(schema)
        return
    from nas.commands.list import show

    show([k.value for k in (Kind if kind is None else [kind])], words, as_json=json)


main = command(list_, "list devices jetson", "list strategies --json", "list --schema study", "list --schema nsga2")
if __name__ == "__main__":
    main()
