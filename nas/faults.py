"""All faults of a configuration at once: `file:line: path: expected X, got Y; do Z`."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from nas.errors import UsageError

Path = tuple[str | int, ...]


def nearest(name: str, choices: Sequence[str]) -> str:
    """`; did you mean X?` when a known name is close, else the hint to list them."""
    longer = sorted(choice for choice in choices if choice.startswith(str(name).lower()))
    if longer and len(str(name)) > 2:
        return f"did you mean {longer[0]}?"
    close = difflib.get_close_matches(str(name).lower(), choices, n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else "choose one"


def unknown(what: str, name: object, choices: Iterable[str]) -> str:
    """`expected one of …, got name; did you mean …?`"""
    known = sorted(choices)
    shown = ", ".join(known) if len(known) <= 24 else f"the {len(known)} names of 'plas list'"
    return f"expected {what} ({shown}), got {name!r}; {nearest(str(name), known)}"


@dataclass
class Faults:
    """Collects faults with the place each value came from."""

    origins: Mapping[Path, str] = field(default_factory=dict)
    lines: list[tuple[str, str]] = field(default_factory=list)

    def add(self, path: Path, message: str) -> None:
        """Record one fault at a path of the configuration."""
        for line in message.splitlines():
            entry = (self.origin(path), f"{dotted(path)}: {line}" if path else line)
            if entry not in self.lines:
                self.lines.append(entry)

    def origin(self, path: Path) -> str:
        """`file:line` or flag of the closest enclosing value that was given."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.origins:
                return self.origins[path[:end]]
        return ""

    def add_validation(self, error: ValidationError, prefix: Path = (), model: type[BaseModel] | None = None) -> None:
        """Record every fault that pydantic found, in our words."""
        for detail in error.errors():
            self.add_detail(prefix, detail, model)

    def add_detail(self, prefix: Path, detail: Any, model: type[BaseModel] | None) -> None:
        """One pydantic fault; a message that starts with its own path is split off."""
        where = _place(detail)
        if detail["type"] == "value_error":
            for line in str(detail["ctx"]["error"]).splitlines():
                head, colon, rest = line.partition(": ")
                named = colon and " " not in head
                self.add(
                    prefix + where + (tuple(int(p) if p.isdecimal() else p for p in head.split(".")) if named else ()),
                    rest if named else line,
                )
        elif detail["type"] == "extra_forbidden":
            self.add(prefix + where, f"unknown key; {_known_keys(model, where)}")
        else:
            self.add(prefix + where, plain(detail))

    def raise_if_any(self) -> None:
        """Raise one UsageError that holds every fault, a line each."""
        if self.lines:
            ordered = sorted(self.lines, key=lambda entry: _line_number(entry[0]))
            raise UsageError("\n".join(f"{origin}: {text}" if origin else text for origin, text in ordered))


def dotted(path: Path) -> str:
    """`space.axes.depth.2`."""
    return ".".join(str(part) for part in path)


def _line_number(origin: str) -> tuple[str, int]:
    head, _, last = origin.rpartition(":")
    return (head, int(last)) if last.isdecimal() else (origin, 0)


def _place(detail: Any) -> Path:
    """Where a fault is, without the names of pydantic's alternatives; an unknown key may be spelled like one."""
    parts = detail["loc"]
    own = len(parts) - 1 if detail["type"] == "extra_forbidden" else -1
    return tuple(part for i, part in enumerate(parts) if i == own or not _is_type_tag(part))


def _is_type_tag(part: Any) -> bool:
    return isinstance(part, str) and (
        part.endswith("]") or part in ("str", "int", "float", "dict", "Calibration", "constrained-str")
    )


def _known_keys(model: type[BaseModel] | None, where: Path) -> str:
    for part in where[:-1]:
        model = _inner(model, part)
    if model is None:
        return "remove it"
    keys = [field.alias or name for name, field in model.model_fields.items()]
    close = nearest(str(where[-1]), keys)
    return close if close.startswith("did") else f"remove it; known are {', '.join(keys)}"


def _inner(model: type[BaseModel] | None, part: str | int) -> type[BaseModel] | None:
    found = None if model is None else model.model_fields.get(str(part))
    kind = None if found is None else found.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


_NUMBERS = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "list": "a list",
    "dict": "a mapping",
}


def plain(detail: Any) -> str:
    """`expected X, got Y; do Z` for pydantic's own checks."""
    kind, context, got = detail["type"], detail.get("ctx", {}), _shown(detail["input"])
    if kind == "missing":
        return "expected a value, got nothing; add it"
    if kind in ("too_short", "string_too_short") or detail["input"] == []:
        return f"expected at least {context.get('min_length', 1)} item, got {got}; add one"
    bounds = {
        "greater_than_equal": ("ge", "at least"),
        "greater_than": ("gt", "more than"),
        "less_than_equal": ("le", "at most"),
        "less_than": ("lt", "less than"),
    }
    if kind in bounds:
        key, words = bounds[kind]
        return f"expected {words} {context[key]:g}, got {got}; correct it"
    if kind in ("literal_error", "enum"):
        choices = context["expected"].replace("'", "")
        return (
            f"expected {choices}, got {got}; {nearest(str(detail['input']), choices.replace(' or ', ', ').split(', '))}"
        )
    if kind == "string_pattern_mismatch":
        return f"expected up to 60 letters, digits, '.', '_' or '-', the first no '.', got {got}; rename it"
    for stem, words in _NUMBERS.items():
        if kind.startswith(stem):
            return f"expected {words}, got {got}; correct it"
    return f"expected {detail['msg'].removeprefix('Input should be ')}, got {got}; correct it"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
