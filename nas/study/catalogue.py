"""Spaces, laws and devices by name or by file, and the content a study embeds."""

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, Path, unknown
from nas.study.configuration import StudyConfig
from objectives.device import Device
from objectives.loss_law.law import Law
from objectives.plugins import documents
from search_spaces.space import SearchSpace
from search_spaces.specification import SpaceSpecification, expert_faults_of

M = TypeVar("M", bound=BaseModel)
FOLDERS = {"space": "search_spaces.spaces", "law": "objectives.laws", "device": "objectives.devices"}


def named(raw: Mapping[str, Any], key: str, model: type[M], faults: Faults) -> M | None:
    """The object that a study's key names, embeds, or points to as a file."""
    given = raw.get(key, StudyConfig.model_fields[key].default)
    try:
        content, inner, prefix = _content(key, given, faults)
    except UsageError as error:
        faults.add((), str(error))
        return None
    if content is None:
        return None
    try:
        return model.model_validate(content)
    except ValidationError as error:
        inner.add_validation(error, prefix, model)
        for text in expert_faults_of(content) if model is SpaceSpecification else ():
            head, _, message = text.partition(": ")
            inner.add((*prefix, *head.split(".")), message)
        faults.lines += [line for line in inner.lines if line not in faults.lines]
        return None


def _content(key: str, given: Any, faults: Faults) -> tuple[Any, Faults, Path]:
    """Raw content of a space, law or device, with the faults object that knows its lines."""
    if isinstance(given, dict):
        return given, faults, (key,)
    if not isinstance(given, str):
        return None, faults, (key,)
    shipped = documents(FOLDERS[key])
    identifier = normalised(given)
    if identifier in shipped:
        path = shipped[identifier]
    elif FilePath(given).suffix in (".yaml", ".yml") or is_file(given):
        path = FilePath(given)
    else:
        faults.add((key,), unknown(f"a {key}", given, shipped, "a YAML file"))
        return None, faults, (key,)
    content, origins = yaml_source.read(path)
    if not isinstance(content, dict):
        raise UsageError(f"{path}:1: expected keys and values, got {type(content).__name__}; see 'plas schema {key}'")
    return content, Faults(origins), ()


def is_file(name: str) -> bool:
    """Whether a name is a file; one that no file can have is not."""
    try:
        return FilePath(name).is_file()
    except OSError:
        return False


def normalised(name: str) -> str:
    """Ids as the catalogue spells them: lower case, hyphens read as underscores."""
    return name.lower().replace("-", "_")


def id_and_mode(name: str) -> tuple[str, str]:
    """A device's id or file, and the power mode after an @ (empty without one)."""
    if is_file(name):
        return name, ""
    base, _, mode = name.partition("@")
    return base, normalised(mode)


def named_device(raw: Mapping[str, Any], faults: Faults) -> Device | None:
    given = raw.get("device", StudyConfig.model_fields["device"].default)
    given, mode = id_and_mode(given) if isinstance(given, str) else (given, "")
    device = named({"device": given}, "device", Device, faults)
    if device is None or not mode:
        return device
    try:
        return device.in_mode(mode)
    except ValueError as error:
        faults.add(("device",), str(error))
        return None


def load_device(name: str) -> Device:
    """A device by id, id@mode or file."""
    faults = Faults({("device",): "--device"})
    device = named_device({"device": name}, faults)
    faults.raise_if_any()
    assert device is not None
    return device


def load_space(name: str) -> SearchSpace:
    """A search space by name or file."""
    faults = Faults()
    specification = named({"space": name}, "space", SpaceSpecification, faults)
    faults.raise_if_any()
    assert specification is not None
    return SearchSpace(specification)


def load_law(name: str) -> Law:
    """A loss law by name or file."""
    faults = Faults()
    law = named({"law": name}, "law", Law, faults)
    faults.raise_if_any()
    assert law is not None
    return law
