"""One offline HTML file: style, scripts and data inlined, a policy that allows these scripts alone and no network."""

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from nas.errors import PlasError
from nas.files.tables import finite
from nas.pages.markup import text
from search_spaces.arrays import AnyArray

SHARED = ("data.js", "theme.js", "series.js", "legend.js", "words.js")  # what every page's script begins with
LAST = "loaded.js"  # and what it ends with
Asset = str | Traversable  # a name in assets/, or a file of an installed package


def page(title: str, body: str, data: Any, scripts: Sequence[Asset], styles: Sequence[Asset] = ()) -> str:
    """A page: finished HTML as its body, data for its scripts, and scripts and further style sheets.

    Raises:
        PlasError: no BokehJS in this environment.
    """
    own = "\n".join(_asset(name) for name in (*SHARED, *scripts, LAST))
    words = f"const GLOSSARY = {_asset('glossary.json')};"
    inlined = [*bokeh_scripts(), f"(() => {{\n'use strict';\n{words}\n{own}\n}})();\n"]
    return Template(_asset("page.html")).substitute(
        policy=policy(inlined),
        title=text(title),
        style="\n".join(_asset(name) for name in ("page.css", *styles)),
        body=body,
        data=embedded(data),
        scripts="\n".join(f"<script>{script}</script>" for script in inlined),
    )


def policy(scripts: Sequence[str]) -> str:
    """A content security policy: nothing from anywhere, and no script but these, named by their digests."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _asset(asset: Asset) -> str:
    file = files("nas.pages").joinpath("assets", asset) if isinstance(asset, str) else asset
    return file.read_text(encoding="utf-8")


PARTS = ("bokeh.min.js", "bokeh-api.min.js")  # figures, tools and glyphs; then the plotting interface


def bokeh_scripts() -> tuple[str, ...]:
    """The text of each script, in loading order.

    Raises:
        PlasError: no bokeh, or one without its scripts.
    """
    spec = find_spec("bokeh")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise PlasError("report: expected bokeh in this environment, got none; install it, or use --no-plots")
    static = Path(folders[0], "server", "static", "js")
    try:
        return tuple((static / name).read_text(encoding="utf-8") for name in PARTS)
    except OSError as error:
        raise PlasError(f"report: expected BokehJS in {static} ({error.strerror}); install bokeh again") from None


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
