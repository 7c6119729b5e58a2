"""Writes nas/api/study_keys.py again from the entries of a study: `python -m tests.nas.api.write_study_keys`."""

import json
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from nas.study.configuration import StudyConfig
from nas.terminal.flags import study_keys

FILE = Path(__file__).resolve().parents[3] / "nas/api/study_keys.py"


def as_typed(annotation: Any) -> str:
    """A type as it is given in a call: names stand for what they name, texts for numbers with units."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return as_typed(inner[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(json.dumps, inner))}]"
    if origin in (Union, UnionType):
        parts = list(dict.fromkeys(map(as_typed, inner)))
        several = ["Named", *parts[2:]] if parts[:2] == ["str", "Mapping[str, Any]"] else parts
        return " | ".join("Written" if part == "Number" and "None" in parts else part for part in several)
    if origin is list:
        return "Listed"
    if origin is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "Mapping[str, Any]"
    return {NoneType: "None", float: "Number"}.get(annotation) or annotation.__name__


def written() -> str:
    """The module's text: what stands above the keys as it is, and every key with its type and help."""
    above = FILE.read_text(encoding="utf-8").partition("    name: ")[0]
    lines = []
    for name, field in StudyConfig.model_fields.items():
        entry = study_keys()[name]
        lines += [f"    {name}: {entry.key.typed or as_typed(field.annotation)}", f'    """{entry.help}."""']
    return above + "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
