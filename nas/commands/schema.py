"""The work of `schema`: JSON schemas of everything that a user writes."""

from pydantic import BaseModel

from nas.errors import UsageError
from nas.export.recipe import Recipe
from nas.files.faults import unknown
from nas.search.discovery import named, strategy_module
from nas.study.configuration import StudyConfig
from nas.study.user_code import is_own
from nas.terminal.console import say_json
from objectives.calibrating.shared import SharedMeasurements
from objectives.device import Device
from objectives.loss_law.law import Law
from objectives.scores.curves import Scores
from search_spaces.specification import SpaceSpecification

MODELS: dict[str, type[BaseModel]] = {
    "study": StudyConfig,
    "space": SpaceSpecification,
    "law": Law,
    "device": Device,
    "recipe": Recipe,
    "scores": Scores,
    "measurements": SharedMeasurements,
}


def show(what: str) -> None:
    """Print the schema of a kind of file, or of a strategy's parameters.

    Raises:
        UsageError: no such kind, no such strategy.
    """
    if what in MODELS:
        say_json(MODELS[what].model_json_schema(by_alias=True))
    elif what in named() or is_own(what):
        say_json(strategy_module(what).Parameters.model_json_schema())
    else:
        raise UsageError(f"schema: {unknown('a kind', what, [*MODELS, *named()])}")
