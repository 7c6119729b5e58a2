"""The page of a reproduction: every claim with its printed value, ours and a verdict, to filter; numbers side by side; corrections."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from nas.pages.page import element, footer, page, paragraphs, section, table, text
from plas_paper.reproduce.claim import CONDITIONS, FAILS, HOLDS, UNKNOWN
from plas_paper.reproduce.record import ClaimRow, Record
from plas_paper.reproduce.sensitivity import HEADER

TITLE = "The paper's claims, recomputed"
LEAD = (
    "Sun et al. 2026, Hardware Co-Design Scaling Laws via Roofline Modelling for On-Device LLMs. Frontiers are exact, on Jetson AGX Orin 64 GB, "
    "1,024 tokens in and 16 out, FP16, operator model, unless a claim says otherwise. Losses are predictions of the paper's law. Labels are those "
    "of the paper's source."
)
ASSETS = files("plas_paper.reproduce").joinpath("assets")
SCRIPTS, STYLES = ("names.js", ASSETS.joinpath("reproduction.js")), (ASSETS.joinpath("reproduction.css"),)
SIGNS = {HOLDS: "✓", CONDITIONS: "◐", FAILS: "✗", UNKNOWN: "?"}
SHORT = {UNKNOWN: "cannot be checked"}
COMMAND = "plas reproduce --out reproduction.md"
_CHARTS = {
    "gains": ("Gains at equal latency", "Predicted perplexity below Qwen2.5-0.5B's over the weights that it takes."),
    "lengths": ("Exponents over input length", "Exponents of prefill and decoding between input lengths."),
    "exponents": ("Exponents", "Printed and recomputed exponents; the claims below hold them."),
    "numbers": ("Ours over printed", "Our numbers divided by the printed ones; the claims below hold them."),
}


def reproduction_page(record: Record) -> str:
    """A reproduction as one HTML file, from its record alone.

    Raises:
        PlasError: no BokehJS in this environment.
    """
    main = element(
        "main",
        section("Verdicts", paragraphs([_verdicts(record)]), _charts()),
        section("Exact frontiers", element("div", id="phases", class_="controls"), _chart("frontier", _FRONTIER)),
        section("Claims", _filters(record), *_claims(record)),
        section("What the paper leaves open", _sensitivity(record)),
        section("Every correction", _corrections(record)),
        section("Repeat it", element("pre", text(COMMAND))),
        id="main",
    )
    top = element("header", element("h1", text(TITLE)), paragraphs([LEAD], "quiet"))
    return page(TITLE, top + main + footer(), _data(record), SCRIPTS, STYLES)


_FRONTIER = (
    "Exact frontiers of loss over latency in both precisions, and depth, width, experts and FFN ratio along them."
)


def _verdicts(record: Record) -> str:
    return ", ".join(f"{n} × {verdict}" for verdict, n in record.verdicts.items()) + "."


def _charts() -> str:
    """The pictures of numbers; drawn by the page's script."""
    drawn = (
        element("div", element("h3", title), _chart(name, label), class_="picture")
        for name, (title, label) in _CHARTS.items()
    )
    hint = "Click a mark to read its claim; drag to zoom, point to read."
    return element("div", *drawn, class_="pictures") + paragraphs([hint], "quiet keys")


def _chart(name: str, label: str) -> str:
    return element("div", id=name, class_="chart", role="img", aria_label=label)


def _filters(record: Record) -> str:
    """Boxes to tick, by verdict and by section; the script obeys them."""
    sections = list(dict.fromkeys(claim.section for claim in record.claims))
    verdicts = [(v, f"{SIGNS[v]} {SHORT.get(v, v)}", sum(c.verdict == v for c in record.claims)) for v in SIGNS]
    places = [(name, name, sum(c.section == name for c in record.claims)) for name in sections]
    label = element("p", id="shown", class_="quiet", aria_live="polite")
    every = element("button", "Show all", type="button", id="all")
    boxes = _boxes("Verdict", "verdict", verdicts) + _boxes("Section", "section", places)
    return element("div", boxes, element("div", every, label, class_="controls"), class_="filters")


def _boxes(legend: str, kind: str, choices: list[tuple[str, str, int]]) -> str:
    boxes = (
        element("label", _input(kind, value), text(f" {words} ({n})"), class_="choice")
        for value, words, n in choices
        if n
    )
    return element("fieldset", element("legend", legend), *boxes)


def _input(kind: str, value: str) -> str:
    return element("input", type="checkbox", checked=True, data_filter=kind, value=value).removesuffix("</input>")


def _claims(record: Record) -> Iterator[str]:
    """A heading a section, with its claims."""
    for name in dict.fromkeys(claim.section for claim in record.claims):
        claims = (_claim(claim, len(record.corrections)) for claim in record.claims if claim.section == name)
        yield element("div", element("h3", text(name)), *claims, class_="part", data_section=name)


def _claim(claim: ClaimRow, corrections: int) -> str:
    """A claim: what is printed and what we find, and folded away how."""
    sign = element("span", SIGNS[claim.verdict], aria_hidden="true", class_="sign")
    head = element("h4", text(claim.text)) + element("p", sign, text(f" {claim.verdict}"), class_="verdict")
    links = [
        element("a", f"correction {n}", href=f"#correction-{n}") for n in claim.corrections if 0 < n <= corrections
    ]
    corrected = text(claim.corrected) + (f" ({', '.join(links)})" if links else "")
    beside = _facts(
        {"printed": text(claim.printed), "ours": text(claim.found.replace("`", "")), "corrected": corrected.strip()}
    )
    return element(
        "article",
        head,
        beside,
        _how(claim),
        id=f"claim-{claim.key}",
        class_="claim",
        tabindex=-1,
        data_verdict=claim.verdict,
        data_section=claim.section,
        data_key=claim.key,
    )


def _how(claim: ClaimRow) -> str:
    """The formula, how it was computed, what that took, its numbers, the command that repeats it."""
    took = (
        f"{claim.designs:,} designs in {claim.settings:,} setting{'s' * (claim.settings != 1)} of the model"
        if claim.designs
        else "no designs: formulas, the geometric program or single designs"
    )
    label = {
        "in the paper": element("code", text(claim.label)),
        "formula": text(claim.formula),
        "computed": text(claim.how),
        "took": text(took),
    }
    rows = [(n.name, f"{n.printed:g}", f"{n.ours:.5g}") for n in claim.numbers]
    numbers = table(("number", "printed", "ours"), rows) if rows else ""
    return element(
        "details",
        element("summary", "Formula, how it was computed, what it took"),
        _facts(label),
        numbers,
        element("pre", text(claim.command)),
    )


def _facts(content: dict[str, str]) -> str:
    """Names with finished HTML; what is empty is left out."""
    shown = (element("dt", text(name)) + element("dd", value) for name, value in content.items() if value)
    return element("dl", *shown, class_="beside")


def _sensitivity(record: Record) -> str:
    return table(HEADER, [[row.get(name, "") for name in HEADER] for row in record.sensitivity])


def _corrections(record: Record) -> str:
    """The list of corrections, each with a place to go to."""
    named = [
        element("th", text(name), scope="col", class_="words") for name in ("#", "label", "the paper", "what holds")
    ]
    rows = (
        element(
            "tr",
            element("th", str(i), scope="row"),
            element("td", element("code", text(c.label)), class_="words"),
            element("td", text(c.paper), class_="words"),
            element("td", text(c.holds), class_="words"),
            id=f"correction-{i}",
        )
        for i, c in enumerate(record.corrections, 1)
    )
    inside = element("table", element("thead", element("tr", *named)), element("tbody", *rows))
    return element("div", inside, class_="wide")


def _data(record: Record) -> dict[str, Any]:
    """The data of the pictures: numbers with their claims, frontiers, exponents, gains."""
    p = record.pictures
    numbers = [
        {
            "key": c.key,
            "verdict": c.verdict,
            "claim": c.text,
            "name": n.name,
            "printed": n.printed,
            "ours": n.ours,
            "exponent": n.exponent,
        }
        for c in record.claims
        for n in c.numbers
    ]
    return {
        "metrics": [],
        "verdicts": list(SIGNS),
        "numbers": numbers,
        "frontiers": [vars(f) for f in p.frontiers],
        "names": p.names,
        "lengths": p.lengths,
        "exponents": [vars(e) for e in p.exponents],
        "gains": {"printed": p.gains.printed, "memory": p.gains.memory_gb, "found": [vars(g) for g in p.gains.found]},
    }
