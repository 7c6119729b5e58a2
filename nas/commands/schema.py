"""The work of `list --schema`: JSON schemas of everything that a user writes, as it may be written."""

import json
from typing import Any

from pydantic import BaseModel, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from nas.compare.configuration import ComparisonConfig
from nas.errors import UsageError
from nas.export.recipe import Recipe
from nas.files.faults import unknown
from nas.search.discovery import named, strategy_module
from nas.study.configuration import StudyConfig
from nas.study.user_code import is_own
from nas.study.value_parsers import none_word
from nas.terminal.console import say_json
from objectives.device import Device
from objectives.loss_law.law import Law
from objectives.plugins import bundled
from search_spaces.specification import SpaceSpecification


class GroupedStudy(StudyConfig):
    """A study of a comparison; those of one group are ranked together."""

    group: str = ""


MODELS: dict[str, type[BaseModel]] = {
    "study": StudyConfig,
    "comparison": create_model(
        "Comparison",
        __base__=ComparisonConfig,
        study=(str | StudyConfig, {}),
        studies=(dict[str, GroupedStudy | None], {}),
    ),
    "space": SpaceSpecification,
    "law": Law,
    "device": Device,
    "recipe": Recipe,
}


def models() -> dict[str, type[BaseModel]]:
    """Return the model of each kind of file, those of the packages that come with the core too."""
    return MODELS | {name: point.load() for name, point in bundled("schemas").items()}


WORD_OR_NUMBER = {"type": ["string", "number"]}


class AsWritten(GenerateJsonSchema):
    """What a file may hold, not what it is read as: a value that is parsed may be a text with its unit, or the word `none`."""

    def function_before_schema(self, schema: Any) -> JsonSchemaValue:
        """A parsed value in either form; whole models and what says itself how it is written stay as they are."""
        found = super().function_before_schema(schema)
        if "json_schema_input_schema" in schema or schema["schema"]["type"] in ("model", "model-fields"):
            return found
        other = {"const": "none"} if schema["function"]["function"] is none_word else WORD_OR_NUMBER
        return self.get_flattened_anyof([found, other])


def schema_of(kind: str) -> dict[str, Any]:
    """The schema of a kind of file, a key of `models()`."""
    return models()[kind].model_json_schema(by_alias=True, schema_generator=AsWritten)


def schema_text(kind: str) -> str:
    """The same as the text of a file."""
    return json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n"


def show(what: str) -> None:
    """Print the schema of a kind of file, or of a strategy's parameters.

    Raises:
        UsageError: no such kind, no such strategy.
    """
    if what in models():
        say_json(schema_of(what))
    elif what in named() or is_own(what):
        say_json(strategy_module(what).Parameters.model_json_schema(schema_generator=AsWritten))
    else:
        raise UsageError(f"--schema: {unknown('a kind', what, [*models(), *named()])}")
