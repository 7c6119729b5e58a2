"""List strategies, spaces, laws, their forms, precision laws, formats, devices, models, metrics, studies, evidence and more."""

from enum import StrEnum
from typing import Annotated

from nas.terminal.flags import Json, Word
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
    kind: Annotated[Kind | None, Word("What to list; everything when left out.")] = None,
    json: Annotated[bool, Json] = False,
) -> None:
    """List what can be named in a study."""
    from nas.commands.list import show

    show([k.value for k in (Kind if kind is None else [kind])], as_json=json)


main = command(list_, "list devices", "list strategies --json")
if __name__ == "__main__":
    main()
