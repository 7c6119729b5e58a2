"""YAML with 1.2 numbers and words (`1e-4` is a number, `no` a word) and the line of every value."""

import math
import re
from pathlib import Path as FilePath
from typing import Any

import yaml

from nas.errors import UsageError
from nas.faults import Path


class _Loader(yaml.SafeLoader):
    """SafeLoader without YAML 1.1's yes/no, octal, sexagesimal and dates."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (PyYAML copies it per class)


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


def read(path: FilePath) -> tuple[Any, dict[Path, str]]:
    """Content of a YAML file, and `file:line` per path.

    Raises:
        UsageError: unreadable, not YAML, or a key given twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise UsageError(f"{path}: expected a readable YAML file, got {reason}; check the path") from None
    return parse(text, str(path))


def parse(text: str, label: str) -> tuple[Any, dict[Path, str]]:
    """As `read`, from text."""
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
    except RecursionError:
        raise UsageError(f"{label}: expected plain YAML, got an anchor inside itself; remove it") from None


def _construct(loader: Any, node: yaml.Node, path: Path, label: str, origins: dict[Path, str]) -> Any:
    origins.setdefault(path, f"{label}:{node.start_mark.line + 1}")
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, path, label, origins)
    if isinstance(node, yaml.SequenceNode):
        return [_construct(loader, item, (*path, i), label, origins) for i, item in enumerate(node.value)]
    return loader.construct_object(node, deep=True)


def _mapping(loader: Any, node: yaml.MappingNode, path: Path, label: str, origins: dict[Path, str]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key, line = str(loader.construct_object(key_node, deep=True)), key_node.start_mark.line + 1
        if key in content:
            raise UsageError(f"{label}:{line}: {key}: expected each key once, got it twice; remove one")
        origins[(*path, key)] = f"{label}:{line}"
        content[key] = _construct(loader, value_node, (*path, key), label, origins)
    return content


def _integer(_: Any, node: yaml.ScalarNode) -> int:
    """Decimal whatever it starts with (08 is eight), octal after 0o, hexadecimal after 0x."""
    base = {"0o": 8, "0x": 16}.get(node.value[:2], 10)
    return int(node.value, base)


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)


class _Dumper(yaml.SafeDumper):
    """Writes what `_Loader` reads back to the same values."""


_Dumper.add_representer(float, lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:float", _float(value)))
_Dumper.yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


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
