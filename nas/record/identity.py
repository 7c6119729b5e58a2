"""The identity of a run: every key of a resolved study but those that are marked otherwise where they are defined."""

import hashlib
import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from nas.study.configuration import StudyConfig
from nas.study.value_parsers import ALWAYS, AtStart, Free, Part

UNDECIDING = (  # what a space, a law or a device says of itself
    *("name", "description", "source", "note", "provenance", "implied_residual_sd"),
    *("tokenizer", "data", "runs", "cannot_see", "caveat", "transcribed"),
    *(
        "npu",
        "chip",
        "cooling",
        "sustained",
    ),  # of a device: a profile or a share that follows from them is recorded itself
)
DOCUMENTS = ("space", "law", "device")  # parts that are one document


def mark_of(field: FieldInfo) -> Part | Free | AtStart:
    """The mark of a field; one without is of the scenario, and no run of an earlier version has it."""
    marks = [mark for mark in field.metadata if isinstance(mark, Part | Free | AtStart)]
    return marks[0] if marks else Part(ALWAYS.name, always=False)


@cache
def _marks() -> dict[str, Part | Free | AtStart]:
    return {key: mark_of(field) for key, field in StudyConfig.model_fields.items()}


def parts() -> dict[str, dict[str, Part]]:
    """The parts of a run's identity, each with its keys."""
    found: dict[str, dict[str, Part]] = {}
    for key, mark in _marks().items():
        if isinstance(mark, Part):
            found.setdefault(mark.name, {})[key] = mark
    return found


def needed() -> list[str]:
    """Keys that every run has recorded."""
    return [key for keys in parts().values() for key, mark in keys.items() if mark.always]


def free(*, recorded: bool = False) -> list[str]:
    """Keys that may differ; or those of them whose last value a run's folder holds."""
    return [key for key, mark in _marks().items() if isinstance(mark, Free) and (mark.recorded or not recorded)]


def at_start() -> list[str]:
    """Keys that are taken in when a run begins, and mean nothing to its continuation."""
    return [key for key, mark in _marks().items() if isinstance(mark, AtStart)]


@cache
def _defaults() -> dict[str, Any]:
    values = StudyConfig().model_dump(mode="json")
    return {key: "none" if value is None else value for key, value in values.items()}


def deciding(key: str, value: Any) -> Any:
    """A key's value as this version writes it: what an earlier one lacks inside at its default, without what is free."""
    models = _models(StudyConfig.model_fields[key].annotation)
    if not models or not isinstance(value, Mapping):
        return value
    whole = {name: each for name, each in value.items() if each is not None}
    with suppress(ValidationError):  # another version's differs as it is
        whole = {**models[0].model_validate(whole).model_dump(mode="json"), **whole}
    left_out = {name for name, field in models[0].model_fields.items() if isinstance(mark_of(field), Free)}
    return {name: each for name, each in whole.items() if name not in left_out and each is not None}


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [model for inner in getattr(annotation, "__args__", ()) for model in _models(inner)]


def section(resolved: Mapping[str, Any], part: str) -> Any:
    """The content of a part of a study's identity; what a run of an earlier version lacks is at its default."""
    content = {key: deciding(key, resolved.get(key, _defaults()[key])) for key in parts()[part]}
    if part not in DOCUMENTS:
        return content
    document = content[part]
    if not isinstance(document, dict):
        return document
    kept = {k: v for k, v in document.items() if k not in UNDECIDING}
    if part != "device" or "columns" not in kept:
        return kept
    figures = _asked(kept.pop("columns"), resolved)
    return kept | ({"columns": figures} if figures else {})


def _asked(columns: Mapping[str, Any], resolved: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a device that a study minimises, limits or keeps; its others decide nothing."""
    limited = (
        *resolved.get("budgets", {}),
        *(name for limit in resolved.get("applications", {}).values() for name in limit),
    )
    names = {*resolved.get("objectives", []), *limited, *resolved.get("columns", [])}
    return {name: columns[name]["value"] for name in columns if name in names}


def fingerprints(resolved: Mapping[str, Any]) -> dict[str, str]:
    """Hash per part of what must not differ; keys that not every run has count where they are not at their default."""
    found = {}
    for name, keys in parts().items():
        content = section(resolved, name)
        if name not in DOCUMENTS:
            content = {k: v for k, v in content.items() if keys[k].always or v != deciding(k, _defaults()[k])}
        found[name] = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    return found


def difference(
    recorded: Mapping[str, Any],
    now: Mapping[str, Any],
    among: Collection[str] | None = None,
    sides: tuple[str, str] = ("in the run", "now"),
) -> str | None:
    """The first difference between two resolved studies, in all parts or `among` some, that forbids taking one for the other."""
    for name in parts() if among is None else among:
        old, new = section(recorded, name), section(now, name)
        if name == "objectives" and among is not None:  # further columns decide nothing
            old, new = ({**content, "columns": []} for content in (old, new))
        if old != new:
            return _first_difference(name, old, new, sides)
    return None


def _first_difference(path: str, old: Any, new: Any, sides: tuple[str, str]) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(k for k in new if k not in old)]:
            if old.get(key) != new.get(key):
                return _first_difference(f"{path}.{key}", old.get(key, "nothing"), new.get(key, "nothing"), sides)
    return f"{path}: {_short(old)} {sides[0]}, {_short(new)} {sides[1]}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "…"


#: What decides the numbers of designs, and which of them are feasible.
PRICING = ("space", "objectives", "law", "device", "scenario", "budgets")
