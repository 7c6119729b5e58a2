"""The page of own rows over a prior: the verdict first, what the rows changed, what surprises, how to repeat it."""

from collections.abc import Mapping, Sequence
from typing import Any

from nas.fit.page import Finished, html_lines, part_of, repeat_section
from nas.fit.prior_text import prior_sections
from nas.pages.markup import element, footer, paragraphs, section, table, text
from nas.pages.page import page


def prior_page(name: str, content: Mapping[str, Any]) -> str:
    """Own rows over a prior as one HTML file, from its report.json alone.

    Raises:
        PlasError: no BokehJS in this environment.
        KeyError, TypeError, ValueError: content that `fit` did not write.
    """
    parts = list(prior_sections(content, _drawn))
    verdict = part_of(parts, "verdict")
    head = f"{content['data']['rows']:,} own trainings of {content['table']} on the law {content['prior']}"
    main = element(
        "main",
        section("Verdict", element("p", element("strong", text(verdict[0]))), paragraphs(verdict[1:])),
        *(section(each.title, *html_lines(each.lines)) for each in parts if each.part != "verdict"),
        repeat_section(content),
        id="main",
    )
    body = element("header", element("h1", text(name)), paragraphs([head], "quiet")) + main + footer()
    return page(name, body, {"metrics": [], "n": 0}, ())


def _drawn(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [Finished(table(header, rows))] if rows else []
