"""Writes nas/api/study_keys.py again from the entries of a study: `python -m tests.nas.api.write_study_keys`."""

from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from nas.study.configuration import StudyConfig
from nas.terminal.flags import Key

FILE = Path(__file__).resolve().parents[3] / "nas/api/study_keys.py"


def as_typed(annotation: Any) -> str:
    """A type as it is written, without what pydantic checks of it."""
    if get_origin(annotation) is Annotated:
        return as_typed(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return " | ".join(map(as_typed, get_args(annotation)))
    if get_origin(annotation) is Literal:
        words = ", ".join(f'"{word}"' for word in get_args(annotation))
        return f"Literal[{words}]"
    return "None" if annotation is NoneType else annotation.__name__


def key_of(name: str) -> Key:
    """What the entry of a key says.

    Raises:
        StopIteration: it has no `Key`.
    """
    return next(mark for mark in StudyConfig.model_fields[name].metadata if isinstance(mark, Key))


def written() -> str:
    """The module's text: what stands above the keys as it is, and every key with its type and help."""
    above = FILE.read_text(encoding="utf-8").partition("    name: ")[0]
    lines = []
    for name, field in StudyConfig.model_fields.items():
        key = key_of(name)
        lines += [f"    {name}: {key.typed or as_typed(field.annotation)}", f'    """{key.text}."""']
    return above + "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
