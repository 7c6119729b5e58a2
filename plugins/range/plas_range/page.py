"""The page of a device study: every case's pick, designs in each other's place, frontiers, published models ranked."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nas.answer.palette import label
from nas.pages.page import column, configuration, element, footer, page, paragraphs, section, section_html, text
from nas.terminal.doors import command
from objectives.display_text import in_a_command
from plas_range.device_document import LETTERS, cases_section, cell, ranking_sections, reading_section, short, warnings
from plas_range.result import DeviceStudy, Models, architecture
from plas_range.transfer import Optimum

SCRIPTS = ("devices.js",)
MOST_RANKED = 20  # devices whose published models the page lists
MOST_CASES = 60  # columns of designs in each other's place, and frontiers that are drawn
MOST_MEMBERS = 500  # designs of one frontier that are drawn
TONES = 5  # steps of shade between no loss and the largest


def devices_page(name: str, study: DeviceStudy | None, models: Models, resolved: Mapping[str, Any]) -> str:
    """A device study as one HTML file; nothing on it depends on the clock. Without a study: its models alone.

    Raises:
        PlasError: no BokehJS in this environment.
    """
    parts = [] if study is None else [_answer(study), _frontiers(study), _designs(study)]
    ranked = [section_html(each) for each in ranking_sections(models[:MOST_RANKED])]
    if len(models) > MOST_RANKED:
        ranked.append(section("Published models on further devices", paragraphs(["models.csv ranks them."])))
    main = element("main", *parts, *ranked, _repeat(name, resolved), id="main")
    body = element("header", element("h1", text(name))) + main + footer()
    return page(name, body, {"metrics": [], **({} if study is None else frontier_data(study))}, SCRIPTS)


def _answer(study: DeviceStudy) -> str:
    """What is to be read from the study, and a row per case."""
    cases, notices = cases_section(study), warnings([answer.case for answer in study.rows], designs=True)
    return section_html(reading_section(study, len(study.reasons))) + section_html(
        replace(cases, parts=(*cases.parts, *notices))
    )


def _frontiers(study: DeviceStudy) -> str:
    """The chart of all frontiers; drawn by the page's script."""
    sentence = (
        "The exact frontier of every case: loss over cost; the picks are marked. cases.csv and frontiers.csv hold it."
    )
    chart = element("div", id="frontiers", class_="chart", role="img", aria_label=sentence)
    legend = element("div", id="legend", class_="legend", role="group", aria_label="Cases shown")
    hint = "A name hides and shows its case, pointing at it or Tab lifts it out, Esc shows all; drag to zoom, point to read."
    more = f"The first {MOST_CASES} of {len(study.rows):,} cases." if len(study.rows) > MOST_CASES else ""
    return section(
        "Frontiers side by side",
        legend,
        chart,
        paragraphs(["Marks: the picks.", more], "quiet"),
        paragraphs([hint], "quiet keys"),
    )


def _designs(study: DeviceStudy) -> str:
    """Distinct designs by cases: nats lost, in shades, or per cent over a limit, hatched."""
    if not study.optima or len(study.rows) > MOST_CASES:
        return (
            section("Designs in each other's place", paragraphs(["transfer.csv holds them."])) if study.optima else ""
        )
    t, firsts = study.transfer, [optimum.cases[0] for optimum in study.optima]
    highest = float(np.max(np.where(t.within, np.clip(t.regret, 0.0, None), 0.0)[firsts]))
    named = [element("th", text(name), scope="col") for name in ("design", *(a.case.label for a in study.rows))]
    body = []
    for number, optimum in enumerate(study.optima, 1):
        title = f"{number}: {short(architecture(study.rows[optimum.cases[0]]))}"
        cells = (_cell(study, optimum, at, highest) for at in range(len(study.rows)))
        body.append(element("tr", element("th", text(title), scope="row"), *cells))
    inside = element("table", element("thead", element("tr", *named)), element("tbody", *body), class_="heat")
    sentence = f"Nats lost against the design picked there (=), the darker the more; hatched: by how much a limit is exceeded. {LETTERS}."
    return section(
        "Designs in each other's place", paragraphs([sentence], "quiet"), element("div", inside, class_="wide")
    )


def _cell(study: DeviceStudy, optimum: Optimum, at: int, highest: float) -> str:
    """A cell with its shade: 0 (nothing lost) to `TONES` (the highest loss of all), or over a limit."""
    t, row, own = study.transfer, optimum.cases[0], at in optimum.cases
    if study.rows[at].pick is None or own:
        tone = "tone0"
    elif t.violation[row, at] > 0.0:
        tone = "over"
    else:
        tone = f"tone{int(np.ceil(TONES * max(float(t.regret[row, at]), 0.0) / highest)) if highest > 0.0 else 0}"
    return element("td", text(cell(study, row, at, own)), class_=tone)


def _repeat(name: str, resolved: Mapping[str, Any]) -> str:
    """The command that repeats the study, and its configuration."""
    return section(
        "Repeat it",
        element("pre", text(f"{command('devices')} --config {in_a_command(name)}")),
        configuration(resolved),
    )


def frontier_data(study: DeviceStudy) -> dict[str, Any]:
    """Cost and loss of every case's frontier, costlier last, and of its pick, for the chart."""
    cost = study.transfer.cost
    cases = []
    for answer in study.rows[:MOST_CASES]:
        order = np.argsort(answer.frontier.metrics[cost], kind="stable")
        kept = order[np.unique(np.linspace(0, max(len(order) - 1, 0), min(len(order), MOST_MEMBERS)).astype(int))]
        pick = [] if answer.pick is None else [float(answer.pick.metrics[name][0]) for name in (cost, "loss")]
        values = {axis: column(answer.frontier.metrics[name][kept]) for axis, name in (("x", cost), ("y", "loss"))}
        cases.append({"name": answer.case.label, "n": len(kept), **values, "pick": pick})
    return {"cases": cases, "xLabel": label(cost), "yLabel": label("loss")}
