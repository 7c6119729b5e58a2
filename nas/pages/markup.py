"""HTML of a page's sentences and tables; every text is escaped here."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from nas.files import yaml_source
from objectives.display_text import escaped

FIGURE = 10  # characters of the longest figure with its unit
WHOLE = re.compile(r"(?<![\w-])(?:--[a-z][\w-]*|top-\d+)(?![\w-])")  # what no line may break
LONGEST_CONFIG = 60_000  # characters of a configuration that are shown

WORDS = (
    "run",
    "strategy",
    "within",
    "family",
    "pick",
    "compared",
    "architecture",
    "architecture in convention",
    "second witness",
    "expected, and 90 % of measurements",
    "by the formulas alone",
    "device",
    "binds",
    "purpose",
    "what it is",
    "model",
    "remarks",
)  # columns of text


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


def footer(further: str = "") -> str:
    """The end of every page."""
    sentence = "Written by PLAS. One file, no network: send it as it is."
    return element("footer", paragraphs([f"{sentence} {further}".rstrip()], "quiet"))


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", indices: Sequence[int | None] = ()
) -> str:
    """A table of text; a row with an index shows that architecture when it is chosen."""
    named = [element("th", text(name), scope="col", class_="words" if name in WORDS else None) for name in header]
    marked = list(indices) or [None] * len(rows)
    body = [element("tr", *_cells(header, row), data_index=index) for row, index in zip(rows, marked, strict=True)]
    top = element("caption", text(caption)) if caption else ""
    inside = element("table", top, element("thead", element("tr", *named)), element("tbody", *body))
    return element("div", inside, class_="wide")


def _cells(header: Sequence[str], row: Sequence[str]) -> list[str]:
    return [element("td", flowing(cell), class_=_kind(name, cell)) for name, cell in zip(header, row, strict=True)]


def _kind(name: str, cell: str) -> str | None:
    """Words may break; a figure with its unit stays on one line, also on paper."""
    return "words" if name in WORDS else "figure" if 0 < len(cell) <= FIGURE else None


def facts(content: Mapping[str, str]) -> str:
    """Names with their values."""
    return element(
        "dl",
        *(element("div", element("dt", text(k)), element("dd", text(v))) for k, v in content.items()),
        class_="facts",
    )


def configuration(resolved: Mapping[str, Any]) -> str:
    """A resolved configuration, folded away; a very long one is cut, saying where all of it is."""
    written = yaml_source.dump(dict(resolved))
    cut = "" if len(written) <= LONGEST_CONFIG else "\n… config.yaml holds all of it"
    summary = element("summary", "The resolved configuration (config.yaml)")
    return element("details", summary, element("pre", text(written[:LONGEST_CONFIG] + cut)))
