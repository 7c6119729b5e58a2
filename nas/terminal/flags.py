"""Flags of commands: a request is a dataclass whose fields are flags; those of a study's keys come from the study itself, by groups.

An entry of `StudyConfig` is all there is of a key. It is read here as text: to import it takes longer than all of `--help`.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from objectives.plugins import folder

SEARCH, SPACE, DEVICE, OUTPUT = "How to search", "What to search", "On what", "Output"
DESIGN = SPACE, DEVICE  # what designs there are, and what they cost
Given = Mapping[str, Any]  # keys that were given


@dataclass(frozen=True)
class Flag:
    """A flag: `--name`, its help, its group there, what stands for its value, its bounds.

    `--no-x` of a field whose default is True switches it off. `kind` is the value's type where no field says it: in a table.
    brief: `-h` shows it. needs: the flag or word without which it has no effect, `--next`, or a flag and its value, `--backend llama-bench`.
    bars: flags and words that have no effect beside it, in a row, or `all but` those that have.
    """

    name: str
    help: str | None = None
    group: str | None = None
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    show_default: bool = True
    kind: Any = str
    brief: bool = False
    needs: str = ""
    bars: str = ""


@dataclass(frozen=True)
class Word:
    """A word without a flag: a file, a folder, a name."""

    help: str
    metavar: str | None = None
    show_default: bool = False


@dataclass(frozen=True)
class Key:
    """What a key of a study is besides its type and the help below it: its group, and its flag where it has one; the others are given by --set.

    unit: of its number. kind: of the flag's value. brief: `-h` shows it. typed: the type that `load_study` takes, where it does
    not follow. How a key identifies a run and what may vary it are marks beside this one (`nas/study/value_parsers.py`).
    """

    group: str
    flag: str = ""
    metavar: str | None = None
    kind: Any = str
    unit: str = ""
    brief: bool = False
    typed: str = ""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        """The key's schema with group, flag and unit."""
        words = {"group": self.group, "flag": self.flag, "unit": self.unit}
        return {**handler(core), **{name: word for name, word in words.items() if word}}


@dataclass(frozen=True)
class Entry:
    """A key as it is read: what it is, its help, its default where that is a plain value, the names of its marks."""

    key: Key
    help: str
    default: Any
    marks: tuple[str, ...]


@cache
def study_keys() -> dict[str, Entry]:
    """Every key of a study by name, in order, as `nas/study/configuration.py` has it."""
    source = folder("nas.study") / "configuration.py"
    tree = ast.parse(source.read_text(encoding="utf-8"))
    study = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "StudyConfig")
    return {
        ast.unparse(key.target): _entry(key, ast.literal_eval(below.value))
        for key, below in pairwise(study.body)
        if isinstance(key, ast.AnnAssign) and isinstance(below, ast.Expr)
    }


def _entry(node: ast.AnnAssign, below: str) -> Entry:
    """The entry of `name: Annotated[type, Key(...), MARK] = default` with the text below it."""
    parts = node.annotation.slice.elts  # type: ignore[attr-defined]
    calls = {ast.unparse(part.func): part for part in parts if isinstance(part, ast.Call)}
    try:
        default = ast.literal_eval(node.value)  # type: ignore[arg-type]
    except ValueError:
        default = None
    key = eval(compile(ast.Expression(calls["Key"]), "Key", "eval"))  # our own literals
    first, sign, others = below.removesuffix(".").partition("; ")
    text = f"{first} ({key.unit}){sign}{others}" if key.unit else f"{first}{sign}{others}"
    return Entry(key, text, default, (*calls, *(part.id for part in parts if isinstance(part, ast.Name))))


WITH_DEVICE = {"preset": ", device with --device", "vocabulary": ", 151936 with --device"}  # shipped presets decide


def flag_of(name: str) -> Flag:
    """The flag of a key of the study, with its default; of one that has none by its name, for a command that takes it all the same."""
    entry = study_keys()[name]
    key, default = entry.key, entry.default
    shown = isinstance(default, str | int | float | list) and not isinstance(default, bool) and default not in ("", [])
    words = ",".join(default) if isinstance(default, list) else default
    text = f"{entry.help}; default {words}{WITH_DEVICE.get(name, '')}" if shown else entry.help
    text += "; repeats" if key.kind == list[str] else ""
    return Flag(
        key.flag or f"--{name.replace('_', '-')}", f"{text}.", key.group, key.metavar, kind=key.kind, brief=key.brief
    )


def flag_name(key: str) -> str:
    """How a key of a study is typed: by its flag, or by --set."""
    entry = study_keys().get(key)
    return entry.key.flag if entry is not None and entry.key.flag else f"--set {key}"


@dataclass(frozen=True)
class Keys:
    """Flags of a study's keys that one field takes in, those given, by their keys: of whole groups.

    without: keys, or marks of keys, that this command decides itself or does not read, in a row. own: keys of the command's own file, with their flags.
    """

    groups: tuple[str, ...] = ()
    without: str = ""
    own: Mapping[str, Flag] = field(default_factory=dict)

    def shown(self) -> dict[str, Flag]:
        """The flag of each key of the study."""
        return {name: flag_of(name) for name, entry in study_keys().items() if entry.key.flag and self.takes(name)}

    def takes(self, name: str) -> bool:
        """Whether the command takes a key of the study."""
        entry = study_keys()[name]
        return entry.key.group in self.groups and not {name, *entry.marks} & {*self.without.split()}


Config = Flag("--config", "A study: YAML file, run folder, or a shipped name.", SPACE, brief=True)
Settings = Flag("--set", "key=value, any key of the study: 'plas list --schema study'; repeats.", SPACE, "KEY=VALUE")
Verbose = Flag("--verbose", "Print every detail, not just one screen.", OUTPUT)
Quiet = Flag("--quiet", "No progress, no notices.", OUTPUT)
NoPlots = Flag("--no-plots", "Draw no pictures; existing ones stay.", OUTPUT)
Json = Flag("--json", "Print the result as JSON.", OUTPUT, bars="--verbose --rows")
Selected = Flag(
    "--select",
    "frontier, best, knee, diverse:K or budget:metric=limit; left out: a run's frontier, all of a file.",
    show_default=False,
)


WORD = re.compile(r"[^\s,:=]+")


def modules_for_files(text: str) -> str:
    """Return a text with each file of this folder as the module that it is: `./lab/search.py:energy` is `lab.search:energy`."""
    return WORD.sub(lambda match: _module_of(match[0]) if match[0].endswith(".py") else match[0], text)


def _module_of(file: str) -> str:
    place, here = Path(file).resolve(), Path.cwd().resolve()
    inside = place.is_file() and place.is_relative_to(here)
    return ".".join(place.relative_to(here).with_suffix("").parts) if inside else file
