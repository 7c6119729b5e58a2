"""The page of a fit: the verdict first, rows to explore, coefficients and terms, what the rows cannot tell, how to repeat it; that of a prior with own rows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nas.fit.prior_text import prior_sections
from nas.fit.text import LINE, Part, Section, sections
from nas.pages.page import column, element, footer, numbers, page, paragraphs, section, shown, table, text


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


SCRIPTS = ("linked.js", "fit.js")


class Finished(str):
    """HTML among lines of text."""

    __slots__ = ()


def fit_page(name: str, content: Mapping[str, Any]) -> str:
    """A fit as one HTML file, from its report.json alone.

    Raises:
        PlasError: no BokehJS in this environment.
        KeyError, TypeError, ValueError: content that `fit` did not write.
    """
    parts = _sections(content)
    verdict, provenance = part_of(parts, "verdict"), part_of(parts, "provenance")
    head = f"{content['form']} fitted to {content['data']['rows']:,} trained models of {content['table']}"
    main = element(
        "main",
        section("Verdict", element("p", element("strong", text(verdict[0]))), paragraphs(verdict[1:])),
        section("Predicted and observed", _explore(content)),
        section("Residuals against each factor", element("div", id="residuals", class_="several"), _quiet(_LINKED)),
        *(
            section(each.title, _beside(each.part, content), *html_lines(each.lines))
            for each in parts
            if each.part not in ("verdict", "provenance")
        ),
        section("Provenance", paragraphs(provenance)),
        repeat_section(content),
        id="main",
    )
    body = element("header", element("h1", text(name)), paragraphs([head], "quiet")) + main + footer()
    return page(name, body, fit_data(content), SCRIPTS)


def _quiet(line: str) -> str:
    return paragraphs([line], "quiet")


_LINKED = "A click marks the row in every picture. What bends or fans out is a shape that the form does not have."
_KEYS = (
    "Click a point, or focus the picture and press <kbd>←</kbd> <kbd>→</kbd> <kbd>Page Up</kbd> <kbd>Page Down</kbd> "
    "<kbd>Home</kbd> <kbd>End</kbd> <kbd>Esc</kbd>. Drag to zoom; point to read."
)


def part_of(among: Sequence[Section], part: Part) -> list[str]:
    """The lines of one part of a fit."""
    return next(each.lines for each in among if each.part == part)


def _sections(content: Mapping[str, Any]) -> list[Section]:
    """The report's sections, tables as HTML; a row of the table can be shown where its line is told."""
    places = {str(line): row for row, line in enumerate(content["rows"]["line"])}

    def drawn(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
        indices = [places.get(row[0]) for row in rows] if header[0] == LINE else []
        return [Finished(table(header, rows, indices=indices))] if rows else []

    return list(sections(dict(content), drawn))


def html_lines(lines: Sequence[str]) -> Iterator[str]:
    """Each line as a paragraph; what is HTML already as it is."""
    for line in lines:
        yield line if isinstance(line, Finished) else paragraphs([line])


def _explore(content: Mapping[str, Any]) -> str:
    """The chart of all rows with its panel; drawn by the page's script."""
    label = "Predicted and observed losses. Arrow keys walk along the predictions, Home and End go to the ends, Escape selects nothing."
    chart = element("div", id="predicted", class_="chart", tabindex=0, role="application", aria_label=label)
    charts = element(
        "div",
        element("div", id="by", class_="controls"),
        chart,
        element("p", _KEYS, class_="quiet keys"),
        element("p", id="said", class_="quiet", aria_live="polite"),
        element("noscript", element("p", "The pictures need JavaScript; the tables do not.")),
    )
    panel = element("aside", id="panel", class_="panel", aria_label="Selected row")
    return element("div", charts, element("div", panel, class_="side"), class_="explore")


def _beside(part: Part | None, content: Mapping[str, Any]) -> str:
    """What the page has beyond the report's words in a section."""
    if part == "coefficients":
        label = "Each coefficient's 95 % intervals over its value; the table below holds the figures."
        chart = element("div", id="intervals", class_="chart", role="img", aria_label=label)
        hint = "Intervals over the value, cut at −2 and 4: one that reaches 0 does not settle its coefficient."
        return chart + _quiet(hint)
    if part == "terms":
        form = content["formula"]
        named = (("As the law file holds it", form["raw"]), ("About the reference design", form["reference"]))
        return "".join(element("h3", text(name)) + element("pre", text(formula)) for name, formula in named)
    return ""


def repeat_section(content: Mapping[str, Any]) -> str:
    """The command that makes a report again."""
    where = f"In the folder that holds {content['table']}, whose SHA-256 stands above."
    return section("Repeat it", paragraphs([where]), element("pre", text(content["command"])))


def fit_data(content: Mapping[str, Any]) -> dict[str, Any]:
    """Rows as columns, and the intervals of the coefficients.

    Raises:
        ValueError: columns of different lengths.
    """
    rows = content["rows"]
    n = len(rows["line"])
    names = [shown(str(name)) for name in rows["name"]] or [""] * n
    single = {name: numbers(rows[name], n) for name in ("observed", "predicted", "unseen", "residual", "design")}
    return {
        "metrics": [],
        "n": n,
        "lines": [shown(str(line)) for line in rows["line"]],
        "names": names if len(names) == n else [""] * n,
        "rows": {name: column(values) for name, values in single.items()},
        "factors": _named(rows["factors"], n),
        "terms": _named(rows["terms"], n),
        "ofLog": content["adds_up_to"] == "log_loss",
        "inLog": content["provenance"]["residuals"] == "log_loss",
        "sd": float(content["quality"]["robust_sd"]),
        "influential": [rows["line"].index(row["line"]) for row in content["influence"] if row["line"] in rows["line"]],
        "coefficients": _intervals(content["coefficients"]),
    }


def _named(columns: Mapping[str, Any], n: int) -> list[dict[str, Any]]:
    return [{"name": shown(name), "values": column(numbers(values, n))} for name, values in columns.items()]


def _intervals(coefficients: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Ends of both intervals of each fitted coefficient over its value, where it has one that is not zero."""
    return [
        {
            "name": shown(name),
            "value": float(each["value"]),
            **{
                kind: sorted(float(end) / float(each["value"]) for end in each[kind])
                for kind in ("linear", "bootstrap")
            },
        }
        for name, each in coefficients.items()
        if not each["fixed"] and each["value"]
    ]
