"""Values as JSON knows them; light to import, since every command prints."""

import math
from typing import Any


def finite(content: Any) -> Any:
    """The same content with null for numbers that JSON does not know."""
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
