"""The page of a fit, also on a prior: the verdict, rows and intervals to explore, then the document, and how to repeat it."""

from collections.abc import Iterator, Mapping
from typing import Any

from nas.pages.page import column, element, footer, numbers, page, paragraphs, section, section_html, shown, text
from plas_fit.fit_document import VERDICT, fit_document

SCRIPTS = ("linked.js", "fit.js")
KINDS = ("linear", "bootstrap")  # of intervals


def fit_page(name: str, content: Mapping[str, Any]) -> str:
    """A fit as one HTML file, from its report.json alone.

    Raises:
        PlasError: no BokehJS in this environment.
        KeyError, TypeError, ValueError: content that `fit` did not write.
    """
    document, drawn = fit_document(content), "prior" not in content
    verdict, *rest = content["verdict"]
    main = element(
        "main",
        section(VERDICT, element("p", element("strong", text(verdict))), paragraphs(rest)),
        *(_pictures(content) if drawn else ()),
        *(section_html(part) for part in document.sections if part.title != VERDICT),
        section(
            "Repeat it",
            paragraphs([f"In the folder that holds {content['table']}, whose SHA-256 stands above."]),
            element("pre", text(content["command"])),
        ),
        id="main",
    )
    head = element("header", element("h1", text(name)), paragraphs([f"{document.title}, {content['table']}"], "quiet"))
    data = fit_data(content) if drawn else {"metrics": [], "n": 0}
    return page(name, head + main + footer(), data, SCRIPTS if drawn else ())


def _pictures(content: Mapping[str, Any]) -> Iterator[str]:
    """What the page has beside the document; the page's script draws it."""
    yield section("Predicted and observed", _explore())
    linked = "A click marks the row in every picture. What bends or fans out is a shape that the form does not have."
    yield section(
        "Residuals against each factor", element("div", id="residuals", class_="several"), paragraphs([linked], "quiet")
    )
    label = "Each coefficient's 95 % intervals over its value; the table below holds the figures."
    hint = "Intervals over the value, cut at −2 and 4: one that reaches 0 does not settle its coefficient."
    chart = element("div", id="intervals", class_="chart", role="img", aria_label=label)
    yield section("Intervals of the coefficients", chart, paragraphs([hint], "quiet"))
    form = content["formula"]
    named = (("As the law file holds it", form["raw"]), ("About the reference design", form["reference"]))
    yield section("Formula", *(element("h3", text(title)) + element("pre", text(formula)) for title, formula in named))


_KEYS = (
    "Click a point, or focus the picture and press <kbd>←</kbd> <kbd>→</kbd> <kbd>Page Up</kbd> <kbd>Page Down</kbd> "
    "<kbd>Home</kbd> <kbd>End</kbd> <kbd>Esc</kbd>. Drag to zoom; point to read."
)


def _explore() -> str:
    """The chart of all rows with its panel; drawn by the page's script."""
    label = "Predicted and observed losses. Arrow keys walk along the predictions, Home and End go to the ends, Escape selects nothing."
    charts = element(
        "div",
        element("div", id="by", class_="controls"),
        element("div", id="predicted", class_="chart", tabindex=0, role="application", aria_label=label),
        element("p", _KEYS, class_="quiet keys"),
        element("p", id="said", class_="quiet", aria_live="polite"),
        element("noscript", element("p", "The pictures need JavaScript; the tables do not.")),
    )
    panel = element("aside", id="panel", class_="panel", aria_label="Selected row")
    return element("div", charts, element("div", panel, class_="side"), class_="explore")


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
    fitted = {name: c for name, c in coefficients.items() if not c["fixed"] and c["value"]}
    ends = {
        name: {kind: sorted(float(end) / c["value"] for end in c[kind]) for kind in KINDS} for name, c in fitted.items()
    }
    return [{"name": shown(name), "value": float(c["value"]), **ends[name]} for name, c in fitted.items()]
