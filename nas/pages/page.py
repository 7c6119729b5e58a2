"""One offline HTML file: style, scripts and data inlined, a policy that allows these scripts alone and no network."""

import base64
import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from nas.document.document import SHARED as SHARED_COLUMNS
from nas.document.document import Figure, Part, Section
from nas.errors import PlasError
from nas.files import report_json, yaml_source
from nas.files.tables import finite, refuse_existing, write
from nas.terminal.console import notice
from objectives.display_text import escaped
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
    with np.errstate(over="ignore"):  # infinite where four bytes hold no such number
        packed = flat.astype(f"<{kind}").tobytes()
    return {"kind": KINDS[kind], "base64": base64.b64encode(packed).decode("ascii")}


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


FIGURE = 10  # characters of the longest figure with its unit
WHOLE = re.compile(r"(?<![\w-])(?:--[a-z][\w-]*|top-\d+)(?![\w-])")  # what no line may break
LONGEST_CONFIG = 60_000  # characters of a configuration that are shown

WORDS = {  # columns of text
    *(head for head, shared in SHARED_COLUMNS.items() if shared.words),
    *("architecture in convention", "second witness", "expected, and 90 % of measurements", "by the formulas alone"),
}


def element(tag: str, *children: str, **attributes: str | int | bool | None) -> str:
    """An element around finished HTML; attributes are escaped, `class_` is `class`, `data_x` is `data-x`, False and None none."""
    written = "".join(
        f" {name.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(shown(str(value)))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    return f"<{tag}{written}>{''.join(children)}</{tag}>"


def shown(text: str) -> str:
    """Text without marks that are obeyed instead of shown; line breaks stay."""
    return "\n".join(escaped(line) for line in text.split("\n"))


def text(content: str) -> str:
    """Text as HTML."""
    return escape(shown(content))


def flowing(content: str) -> str:
    """Text as HTML whose flags and `top-1` stay whole at the end of a line."""
    return WHOLE.sub(lambda found: element("span", found[0], class_="whole"), text(content))


def paragraphs(lines: Sequence[str], class_: str | None = None) -> str:
    """A paragraph a line."""
    return "".join(element("p", flowing(line), class_=class_) for line in lines if line)


def image(content: bytes, alt: str) -> str:
    """A PNG inside the page."""
    source = b64encode(content).decode("ascii")
    return f'<img src="data:image/png;base64,{source}" alt="{escape(shown(alt))}" style="max-width:100%">'


def section(title: str, *children: str, **attributes: str) -> str:
    """A headed section; nothing where it holds nothing."""
    inside = "".join(children)
    return element("section", element("h2", text(title)), inside, **attributes) if inside else ""


def section_html(of: Section) -> str:
    """A section of a document; folded, its title alone until it is opened."""
    return (folded if of.folded else section)(of.title, *map(part_html, of.parts))


def folded(title: str, *children: str) -> str:
    """A headed section whose title alone is seen until it is opened; nothing where it holds nothing."""
    inside, summary = "".join(children), element("summary", element("h2", text(title)))
    return element("details", summary, inside, class_="fold") if inside else ""


def part_html(part: Part) -> str:
    """A sentence, a table, or a picture that came with its PNG."""
    if isinstance(part, str):
        return paragraphs([part])
    if isinstance(part, Figure):
        return image(part.png, part.alt) if part.png else ""
    words = WORDS | {column.head for column in part.columns if column.words}
    return table(part.header, part.texts, part.title, part.indices, words) + paragraphs(part.notes, "quiet")


def footer(further: str = "") -> str:
    """The end of every page."""
    sentence = "Written by PLAS. One file, no network: send it as it is."
    return element("footer", paragraphs([f"{sentence} {further}".rstrip()], "quiet"))


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    indices: Sequence[int | None] = (),
    words: Collection[str] = WORDS,
) -> str:
    """A table of text; a row with an index shows that architecture when it is chosen. words: heads of columns that may break."""
    of_words, marked = [name in words for name in header], list(indices) or [None] * len(rows)
    kinds = ("words" if of_word else None for of_word in of_words)
    named = [element("th", text(name), scope="col", class_=kind) for name, kind in zip(header, kinds, strict=True)]
    body = [
        element("tr", *map(_cell, row, of_words), data_index=index) for row, index in zip(rows, marked, strict=True)
    ]
    top = element("caption", text(caption)) if caption else ""
    inside = element("table", top, element("thead", element("tr", *named)), element("tbody", *body))
    return element("div", inside, class_="wide")


def _cell(content: str, words: bool) -> str:
    """Words may break; a figure with its unit stays on one line, also on paper."""
    class_ = "words" if words else "figure" if 0 < len(content) <= FIGURE else None
    return element("td", flowing(content), class_=class_)


def facts(content: Mapping[str, str]) -> str:
    """Names with their values."""
    named = (element("div", element("dt", text(k)), element("dd", text(v))) for k, v in content.items())
    return element("dl", *named, class_="facts")


def configuration(resolved: Mapping[str, Any]) -> str:
    """A resolved configuration, folded away; a very long one is cut, saying where all of it is."""
    written = yaml_source.dump(dict(resolved))
    cut = "" if len(written) <= LONGEST_CONFIG else "\n… config.yaml holds all of it"
    summary = element("summary", "The resolved configuration (config.yaml)")
    return element("details", summary, element("pre", text(written[:LONGEST_CONFIG] + cut)))


FILE = "report.html"
DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # what content that was changed ends in
Page = Callable[[str, Mapping[str, Any]], str]


def delivered(request: Any, page: Callable[[], str]) -> Path:
    """Write a page to the given place, else beside the files of the folder; returns where it is.

    request: `run`, `out` and `quiet` of a report's.

    Raises:
        UsageError: a file that exists.
        PlasError: a folder that cannot be written.
    """
    target: Path = request.out or request.run / FILE
    if request.out is not None:
        refuse_existing("--out", target)
    write(target, page())
    if not request.quiet:
        notice(f"{target}: open it in a browser; it needs no network")
    return target


def page_of(folder: Path, pages: Mapping[str, Page]) -> str:
    """The page of a folder with a report.json.

    Raises:
        UsageError: there is none.
        PlasError: it is damaged.
    """
    content = report_json.read_report(folder)
    try:
        return pages[content["kind"]](name_of(folder), content)
    except DAMAGE as error:
        place = folder / report_json.FILE
        raise PlasError(
            f"{place}: expected what PLAS writes, got changed content ({type(error).__name__}: {error}); make it again"
        ) from None


def write_page(folder: Path, kind: str, page: Page) -> Path:
    """Write the page of a fit or a calibration that has just ended into its folder.

    Raises:
        PlasError: the folder cannot be written.
    """
    write(folder / FILE, page_of(folder, {kind: page}))
    return folder / FILE


def name_of(folder: Path) -> str:
    """A folder's own name, also of `.`."""
    return folder.resolve().name
