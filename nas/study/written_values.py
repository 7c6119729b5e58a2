"""Values of a study as people write them in a flag: nothing, names by comma."""

from typing import Any


def none_word(value: Any) -> Any:
    """The word `none` means no value."""
    return None if value == "none" else value


def split_names(value: Any) -> Any:
    """`loss,total_ms` as a list of names."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
