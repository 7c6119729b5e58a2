"""Constants at the top of a written Python file: written as plain literals, read back without executing anything."""

import ast
from typing import Any


def literal(content: dict[str, Any]) -> str:
    """A dictionary as Python text, a key a line."""
    return "{\n" + "".join(f"    {key!r}: {value!r},\n" for key, value in content.items()) + "}"


def assigned(text: str) -> dict[str, ast.expr]:
    """Values that a file assigns to names at its top, as syntax."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
    return found
