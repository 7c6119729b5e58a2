"""Data inside a page: columns of numbers as base64, JSON that no HTML parser takes for markup."""

import base64
import json
from typing import Any

import numpy as np

from nas.files.tables import finite
from search_spaces.arrays import AnyArray

#: What would end a script element, begin a comment in one, or end a line of one, as JSON escapes.
HARMLESS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
KINDS = {"u1": "u8", "u2": "u16", "i4": "i32", "f4": "f32", "f8": "f64"}


def embedded(content: Any) -> str:
    """Content as JSON for an inline script element."""
    text = json.dumps(finite(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, written in HARMLESS.items():
        text = text.replace(character, written)
    return text


def column(values: AnyArray, *, exactly: bool = False) -> dict[str, Any]:
    """A column (n, …), flattened, little-endian: whole numbers in as few bytes as hold them, others in four, or eight exactly.

    A column of one value is that value and its length.
    """
    flat = np.ravel(np.asarray(values))
    if len(flat) and (flat == flat[0]).all():
        return {"all": flat[0].item(), "n": len(flat)}
    kind = _kind(flat, exactly)
    return {"kind": KINDS[kind], "base64": base64.b64encode(flat.astype(f"<{kind}").tobytes()).decode("ascii")}


def _kind(flat: AnyArray, exactly: bool) -> str:
    if flat.dtype.kind not in "iub" or len(flat) == 0:
        return "f8" if exactly else "f4"
    low, high = int(flat.min()), int(flat.max())
    fitting = (kind for kind in ("u1", "u2", "i4") if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return next(fitting, "f8")


def numbers(values: Any, n: int) -> np.ndarray[Any, Any]:
    """A column of n numbers.

    Raises:
        ValueError: other than n, or no numbers.
    """
    found = np.asarray(values)
    if found.shape != (n,) or found.dtype.kind not in "if":
        raise ValueError(f"expected {n} numbers in a column, got {found.shape} of {found.dtype}")
    return found
