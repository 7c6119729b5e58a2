"""Print the JSON schema of studies, spaces, laws, devices, recipes or a strategy's parameters."""

from typing import Annotated

import typer

from nas.terminal import options as o


def schema(
    what: Annotated[
        str, typer.Argument(help="study, space, law, device, recipe, or a strategy's name or module.")
    ] = "study",
) -> None:
    """Print a JSON schema, for editors and checkers."""
    from pydantic import BaseModel

    from nas.errors import UsageError
    from nas.export.recipe import Recipe
    from nas.files.faults import unknown
    from nas.search.discovery import is_own, named, strategy_module
    from nas.study.configuration import StudyConfig
    from nas.terminal.console import say_json
    from objectives.device import Device
    from objectives.loss_law.law import Law
    from search_spaces.specification import SpaceSpecification

    models: dict[str, type[BaseModel]] = {
        "study": StudyConfig,
        "space": SpaceSpecification,
        "law": Law,
        "device": Device,
        "recipe": Recipe,
    }
    if what in models:
        say_json(models[what].model_json_schema(by_alias=True))
    elif what in named() or is_own(what):
        say_json(strategy_module(what).Parameters.model_json_schema())
    else:
        raise UsageError(f"schema: {unknown('a kind', what, [*models, *named()])}")


main = o.command(schema, "schema study", "schema nsga2")
if __name__ == "__main__":
    main()
