"""YAML with 1.2 numbers and words (`1e-4` is a number, `no` a word) and the line of every value."""

import math
import re
from copy import deepcopy
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any

import yaml
from yaml.composer import Composer

from nas.errors import UsageError
from nas.files.faults import Path
from objectives import outside

STRING = "tag:yaml.org,2002:str"
MOST_BYTES, MOST_VALUES, DEEPEST = 8_000_000, 1_000_000, 50
MOST_KEPT = 100_000  # characters of a text whose content is kept
_Bases: Any = (Composer, yaml.CSafeLoader) if hasattr(yaml, "CSafeLoader") else (yaml.SafeLoader,)


class _Loader(*_Bases):  # type: ignore[misc]
    """SafeLoader without YAML 1.1's yes/no, octal, sexagesimal and dates; it reads with libyaml where that is there.

    Values are composed in Python either way: libyaml's own composer overruns the stack on deep nesting.
    """

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (PyYAML copies it per class)

    def __init__(self, text: str) -> None:
        _Bases[-1].__init__(self, text)
        Composer.__init__(self)
        self.depth = self.count = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """As PyYAML's, as far down as a study can go."""
        self.depth, self.count = self.depth + 1, self.count + 1
        if self.depth > DEEPEST or self.count > MOST_VALUES:
            line = self.peek_event().start_mark.line + 1
            most = f"{DEEPEST} levels" if self.depth > DEEPEST else f"{MOST_VALUES:,} values"
            raise TooMuch(f"{line}: expected at most {most}, got more; write less")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class TooMuch(Exception):
    """More than a study can hold: `line: expected X, got Y; do Z`."""


for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789"),
    (
        "float",
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        "-+0123456789.",
    ),
    ("null", r"^(?:~|null|Null|NULL|)$", "~nN\0"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), [c if c != "\0" else "" for c in _first]
    )


def read(path: FilePath, *, own: bool = False) -> tuple[Any, dict[Path, str]]:
    """Content of a YAML file, and `file:line` per path; of a run folder's `own`, no link is followed.

    Raises:
        UsageError: unreadable, not YAML, or a key given twice.
    """
    try:
        text = outside.content(path, MOST_BYTES, own=own).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise UsageError(f"{path}: expected a readable YAML file, got {reason}; check the path") from None
    return parse(text, str(path))


def keys_of(content: Any, path: FilePath, remedy: str) -> dict[str, Any]:
    """The content of a file of keys and values.

    Raises:
        UsageError: a list, a word, a number, or nothing.
    """
    if isinstance(content, dict):
        return content
    kinds = {list: "a list", str: "a text", bool: "true or false", type(None): "an empty file"}
    got = kinds.get(type(content), "a number")
    raise UsageError(f"{path}:1: expected keys and values, got {got}; {remedy}")


def parse(text: str, label: str) -> tuple[Any, dict[Path, str]]:
    """As `read`, from text; what was parsed before is copied, so that spaces, laws and devices are parsed once in a process."""
    if len(text) > MOST_BYTES:
        raise UsageError(f"{label}: expected at most {MOST_BYTES // 10**6} MB of YAML, got more; write less")
    if len(text) > MOST_KEPT:
        return _parsed.__wrapped__(text, label)
    content, origins = _parsed(text, label)
    return deepcopy(content), dict(origins)


@lru_cache(maxsize=128)
def _parsed(text: str, label: str) -> tuple[Any, dict[Path, str]]:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        origins: dict[Path, str] = {(): f"{label}:1"}
        return (None if node is None else _construct(loader, node, (), label, origins)), origins
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f":{mark.line + 1}"
        raise UsageError(f"{label}{line}: expected YAML, got {error.problem}; correct the syntax") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{label}: expected YAML, got {str(error).splitlines()[0]}; correct the file") from None
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise UsageError(f"{label}: expected YAML, got {error}; correct the value") from None
    except TooMuch as error:
        raise UsageError(f"{label}:{error}") from None


def _construct(loader: Any, node: yaml.Node, path: Path, label: str, origins: dict[Path, str]) -> Any:
    line = node.start_mark.line + 1
    origins.setdefault(path, f"{label}:{line}")
    if len(path) > DEEPEST:
        raise TooMuch(f"{line}: expected plain YAML, got an anchor inside itself; remove it")
    if len(origins) > MOST_VALUES:
        raise TooMuch(f"{line}: expected at most {MOST_VALUES:,} values, aliases counted, got more; write less")
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, path, label, origins)
    if isinstance(node, yaml.SequenceNode):
        return [_construct(loader, item, (*path, i), label, origins) for i, item in enumerate(node.value)]
    return loader.construct_object(node, deep=True)


def _mapping(loader: Any, node: yaml.MappingNode, path: Path, label: str, origins: dict[Path, str]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise TooMuch(f"{line}: expected a word as key, got a list or mapping; correct it")
        key = str(loader.construct_object(key_node, deep=True))
        if key in content:
            raise UsageError(f"{label}:{line}: {key}: expected each key once, got it twice; remove one")
        origins[(*path, key)] = f"{label}:{line}"
        content[key] = _construct(loader, value_node, (*path, key), label, origins)
    return content


_Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: outside.whole_number(node.value))


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes what `_Loader` reads back to the same values; with libyaml where that is there."""


_Dumper.add_representer(float, lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:float", _float(value)))
_Dumper.add_representer(str, lambda dumper, value: dumper.represent_scalar(STRING, value, style=_style(value)))
_Dumper.yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


def _style(value: str) -> str | None:
    """Quotes around line breaks that are no newline: bare, they would be read back as spaces."""
    return '"' if any(c in value for c in "\x85\u2028\u2029") else None


def _float(value: float) -> str:
    """Full precision, with the point that YAML 1.1 readers (PyYAML) want of a number: 1.0e-06, not 1e-06."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    mantissa, exponent, power = repr(value).partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{exponent}{power}"


def dump(content: Any) -> str:
    """YAML text of plain content, keys in their order, full precision."""
    text: str = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text
