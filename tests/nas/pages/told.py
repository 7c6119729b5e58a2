"""Pages read as a reader and as a script would: words without markup, the data inside, columns as numbers."""

import base64
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np

KINDS = {"u8": "<u1", "u16": "<u2", "i32": "<i4", "f32": "<f4", "f64": "<f8"}


def words(page: Path) -> str:
    """The page's text without markup and scripts."""
    shown = re.sub(r"<(script|style).*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", shown)))


def data(page: Path) -> dict[str, Any]:
    """What the page's script reads."""
    found = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def decoded(column: dict[str, Any]) -> Any:
    """A column of the data as numbers."""
    if "all" in column:
        return np.full(column["n"], column["all"])
    return np.frombuffer(base64.b64decode(column["base64"]), dtype=KINDS[column["kind"]])
