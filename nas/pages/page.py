"""One offline HTML file: style, scripts and data inlined, a policy that allows these scripts alone and no network."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

from nas.errors import PlasError
from nas.pages.embedding import embedded
from nas.pages.markup import text

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
