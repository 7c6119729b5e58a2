"""The space of a study: the one it names, with the settings and limits that it gives beside it."""

from collections.abc import Mapping

from pydantic import ValidationError

from nas.files.faults import Faults
from nas.study.configuration import StudyConfig
from nas.study.layer_requirements import within
from search_spaces.specification import SpaceSpecification


def study_space(
    config: StudyConfig, space: SpaceSpecification, limits: Mapping[str, int], faults: Faults
) -> SpaceSpecification:
    """The space with the study's formats, and its tokens: several are its axis of them, one leaves it without.

    `limits` are those on capabilities, which its conditions are then.
    """
    if config.tokens is None and not config.precisions and not limits:
        return space
    content = within(space, limits, faults)
    if config.precisions:
        content["axes"]["precision"] = list(dict.fromkeys(config.precisions))
    if config.tokens is not None:
        content["axes"].pop("tokens", None)
    if isinstance(config.tokens, list):
        content["axes"]["tokens"] = config.tokens
    try:
        return SpaceSpecification.model_validate(content)
    except ValidationError as error:
        for each in error.errors():
            text = str(each.get("ctx", {}).get("error", each["msg"]))
            at = "tokens" if "tokens" in each["loc"] else "precisions"
            faults.add((at,), text.removeprefix(f"axes.{at}: "))
        return space
