"""All faults of a configuration at once: `file:line: path: expected X, got Y; do Z`."""

import difflib
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path as PathOfFile
from typing import Any

from pydantic import BaseModel, ValidationError

from nas.errors import UsageError
from objectives.plugins import packaged
from objectives.quantities import short

Path = tuple[str | int, ...]
ROMAN = re.compile(r"i{2,3}$")
MOST_NAMED = 6
CLOSE = 0.7  # twice the letters in common, in order, over those of both names: one letter of four may be another one
CHOOSE = "choose one"
MOST_SHOWN = 12  # names in a message
LISTED = {
    **{kind: f"{kind}s" for kind in ("device", "metric", "model", "form", "format", "law", "space", "stack", "recipe")},
    "strategy": "strategies",
    "study": "studies",
    "precision": "formats",
}  # what has a list of its own
MOST_LISTED = 40  # keys


def nearest(name: str, choices: Sequence[str], otherwise: str = "") -> str:
    """`did you mean X or Y?` when known names are close, else the hint to choose; then what else can be given."""
    close = similar(str(name), sorted(choices))
    if close:
        return f"did you mean {alternatives(close)}?" + (f" Or give {otherwise}" if otherwise else "")
    return CHOOSE + (f", or give {otherwise}" if otherwise else "")


@cache
def other_words(kind: str) -> dict[str, str]:
    """What other tools and people call a name or a flag here, or several with spaces between, by word."""
    content = packaged("nas.files", "other_words")[kind]
    return {word: ours for ours, theirs in content.items() for word in str(theirs).split()}


def called(name: str, choices: Collection[str]) -> list[str]:
    """The one that is spelled otherwise (NSGA-II, nsga2), or what other tools call so."""
    asked = squashed(name)
    alike = {asked, f"{asked}s", re.sub(r"(?<!s)s$", "", asked)} if len(name) > 4 else {asked}
    same = [choice for choice in choices if squashed(choice) in alike]
    words = other_words("names").get(name.lower().strip("-"), "").split()
    return same or [choice for choice in words if choice in choices]


def meant(name: str, choices: Collection[str]) -> str:
    """The only choice that a name stands for, else the name itself."""
    standing = [] if name in choices else called(name, choices)
    return standing[0] if len(standing) == 1 else name


def similar(name: str, choices: Sequence[str]) -> list[str]:
    """What is called so, else those that hold the name, else the closest."""
    asked = squashed(name)
    if standing := called(name, choices):
        return standing
    holding = [choice for choice in choices if asked in squashed(choice)] if len(asked) > 2 else []
    if holding:
        return sorted(holding, key=lambda choice: not squashed(choice).startswith(asked))
    spelt = {squashed(choice): choice for choice in choices}
    return [spelt[letters] for letters in difflib.get_close_matches(asked, spelt, n=1, cutoff=CLOSE)]


def squashed(name: str) -> str:
    """Lower-case letters and digits alone, a Roman numeral at the end as a digit."""
    letters = re.sub(r"[^a-z0-9]", "", name.lower())
    return ROMAN.sub(lambda found: str(len(found[0])), letters)


def alternatives(names: Sequence[str]) -> str:
    """`a, b or c`, six of them at most."""
    shown = list(names[:MOST_NAMED])
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    *first, last = [*shown, *more]
    return f"{', '.join(first)} or {last}" if first else last


def unknown(what: str, name: object, choices: Iterable[str], otherwise: str = "") -> str:
    """`expected one of …, got name; did you mean …?`; `otherwise` is what may be given besides a known name."""
    known = sorted(choices)
    shown, more = ", ".join(known[:MOST_SHOWN]), len(known) - MOST_SHOWN
    if more > 0:
        own = LISTED.get(what.rpartition(" ")[2])
        shown = f"{shown} and {more} more" if own is None else f"the {len(known)} names of 'plas list {own}'"
    return f"expected {what} ({shown}), got {name!r:.60}; {nearest(str(name), known, otherwise)}"


def near_file(path: PathOfFile, otherwise: str) -> str:
    """`did you mean runs/paper-nsga2-s0?` for what lies in the same folder under a close name, else another hint."""
    there: list[str] = []
    with suppress(OSError, ValueError):
        there = [name for name in os.listdir(path.parent) if name != path.name]
    close = difflib.get_close_matches(path.name, there, n=1, cutoff=CLOSE)
    return f"did you mean {path.parent / close[0]}?" if close else otherwise


@dataclass
class Faults:
    """Collects faults with the place each value came from."""

    origins: Mapping[Path, str] = field(default_factory=dict)
    lines: list[tuple[str, str]] = field(default_factory=list)
    coded: frozenset[str] | None = None  # keys that a user's own code gives; None on the command line

    def add(self, path: Path, message: str) -> None:
        """Record one fault at a path of the configuration; a flag is its own path."""
        origin, covered = self.origin(path)
        inner = tuple(part for part in path[covered:] if isinstance(part, str)) if origin.startswith("--") else path
        for line in message.splitlines():
            entry = (origin, f"{dotted(inner)}: {line}" if inner else line)
            if entry not in self.lines:
                self.lines.append(entry)

    def origin(self, path: Path) -> tuple[str, int]:
        """`file:line` or flag of the closest enclosing value that was given, and how much of the path it covers."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.origins:
                return self.origins[path[:end]], end
        return "", 0

    def typed(self, path: Path) -> bool:
        """Whether the user himself gave the value at a path: by a flag, or in code; a file could be anybody's."""
        return self.origin(path)[0].startswith("--") or path[0] in (self.coded or ())

    def add_validation(self, error: ValidationError, prefix: Path = (), model: type[BaseModel] | None = None) -> None:
        """Record every fault that pydantic found, in our words."""
        for detail in _of_what_was_meant(error.errors()):
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
            self.add(prefix + where, f"unknown key; {_known_keys(model, where, detail['input'])}")
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


def _of_what_was_meant(details: Sequence[Any]) -> list[Any]:
    """The faults without those of the alternative that was not meant where a name or other content may stand."""
    dropped: list[Any] = []
    for name in (d for d in details if d["type"] == "string_type" and d["loc"][-1:] == ("str",)):
        at = name["loc"][:-1]
        others = [d for d in details if d is not name and d["loc"][: len(at)] == at]
        refused = [d for d in others if d["type"].endswith("_type") and len(d["loc"]) == len(at) + 1]
        dropped += refused if len(refused) == len(others) else [name]
    return [d for d in details if all(d is not other for other in dropped)]


def _is_type_tag(part: Any) -> bool:
    return isinstance(part, str) and (
        part.endswith("]") or part in ("str", "int", "float", "dict", "Calibration", "constrained-str")
    )


def _known_keys(model: type[BaseModel] | None, where: Path, value: Any) -> str:
    hint = getattr(model, "hint", None)
    if hint is not None and len(where) == 1 and (line := hint(str(where[0]), value)):
        return str(line)
    for part in where[:-1]:
        model = _inner(model, part)
    if model is None:
        return "remove it"
    keys = [field.alias or name for name, field in model.model_fields.items()]
    if groups := [name for name in keys if (group := _inner(model, name)) and str(where[-1]) in group.model_fields]:
        return f"did you mean {groups[0]}.{where[-1]}?"
    close = nearest(str(where[-1]), keys)
    every = ", ".join(keys) if len(keys) <= MOST_LISTED else "what 'plas list --schema study' names"
    return close if close.startswith("did") else f"remove it; known are {every}"


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
    "tuple": "a list",
    "dict": "a mapping",
}


def plain(detail: Any) -> str:
    """`expected X, got Y; do Z` for pydantic's own checks."""
    kind, context, got = detail["type"], detail.get("ctx", {}), short(detail["input"])
    if kind == "missing":
        return "expected a value, got nothing; add it"
    if kind in ("too_short", "string_too_short") or (isinstance(detail["input"], list) and not detail["input"]):
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
        names = choices.replace(" or ", ", ").split(", ")
        if len(names) > MOST_SHOWN:
            return unknown("a format" if "int4" in names else "one", detail["input"], names)
        return f"expected {choices}, got {got}; {nearest(str(detail['input']), names)}"
    if kind == "string_pattern_mismatch":
        return f"expected up to 60 letters, digits, '.', '_' or '-', the first no '.', got {got}; rename it"
    for stem, words in _NUMBERS.items():
        if kind.startswith(stem):
            return f"expected {words}, got {got}; correct it"
    return f"expected {detail['msg'].removeprefix('Input should be ')}, got {got}; correct it"
