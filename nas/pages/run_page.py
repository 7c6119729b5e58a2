"""The page of a run: the frontier with the recommended design and its budgets; below, folded, what that rests on and how to repeat it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nas.answer.answer_document import answer_document
from nas.answer.design_words import figure
from nas.answer.device_times import PREFIX, times_of
from nas.answer.outcome import Outcome
from nas.answer.plot_data import HEADER as OF_CONTEXTS
from nas.answer.plot_data import UNSEEN, cells, convergence, curves
from nas.answer.sentences import devices_in_words, formats_in_words, headline
from nas.answer.take import advice
from nas.answer.three_sentences import three_sentences
from nas.document.document import Section, Table
from nas.pages import page as html
from nas.pages.run_data import rows_of, run_data
from nas.problem.uncertainty import has_doubt
from nas.terminal.doors import command

SCRIPTS = ("names.js", "chart.js", "panel.js", "budgets.js", "run.js")


def run_page(outcome: Outcome, name: str, resolved: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """A run as one HTML file; `name` is its folder's, as commands beside it need.

    Raises:
        PlasError: no BokehJS in this environment.
    """
    rows, title = rows_of(outcome), _title(outcome)
    problem, config = outcome.study.problem, outcome.study.config
    how = f"{formats_in_words(problem)}, {config.request_words}; run {name}"
    strips = html.element("div", id="strips", class_="several")
    sections = {section.title: section for section in answer_document(outcome).sections}
    first = [title for title, section in sections.items() if section.key in ("answer", "devices", "take")]
    main = html.element(
        "main",
        _opening(outcome, name, rows.why),
        *(_folded(outcome, sections.pop(title)) for title in first),
        html.folded("The selected design, part by part", html.element("div", id="panel", class_="panel")),
        html.folded("What changes along the frontier", strips) if len(outcome.frontier) > 1 else "",
        _along_the_context(outcome),
        *(_folded(outcome, section) for section in sections.values()),
        _repeat(outcome, name, resolved, versions),
        id="main",
    )
    header = html.element("header", html.element("h1", html.text(title)), html.paragraphs([how], "quiet"))
    body = header + main + html.footer("BokehJS is inside under its BSD-3-Clause licence.")
    return html.page(f"{name}: {title}", body, run_data(outcome, rows), SCRIPTS)


def _title(outcome: Outcome) -> str:
    """`Lowest loss within 500 ms and 7.2 GB on NVIDIA Jetson Orin Nano Super 8 GB`; quantities are named where their units do not tell them."""
    problem = outcome.study.problem
    amounts = [figure(problem, budget.metric, budget.limit, named=False) for budget in problem.limits]
    units = {amount.partition(" ")[2] for amount in amounts} - {""}
    if len(units) < len(amounts):
        amounts = [figure(problem, budget.metric, budget.limit) for budget in problem.limits]
    within = f" within {' and '.join(amounts)}" if amounts else ""
    return f"Lowest loss{within} on {devices_in_words(problem)}"


def _opening(outcome: Outcome, name: str, why: str) -> str:
    """The frontier, the recommended design in a sentence, and the budgets to move; drawn and kept up by the page's scripts."""
    answer, take = three_sentences(outcome), outcome.take
    most = 2 if outcome.diagnosis is None else 3
    sentences = "" if answer is None else html.paragraphs(answer.sentences[:most])
    design = html.element("div", sentences, id="pick", class_="answer", aria_live="polite")
    taken = "" if take is None else html.paragraphs([*advice(take)])
    advised = [taken, design] if take is not None and take.take else [design, taken]
    budgets = html.element(
        "fieldset", html.element("legend", "Move the budgets"), html.element("div", id="budgets"), class_="budgets"
    )
    run = f"The same in a terminal, where RUN is the folder of this run, {name}:"
    typed = html.element("div", html.paragraphs([run], "quiet"), html.element("pre", id="command"), class_="typed")
    noscript = html.element(
        "noscript", html.element("p", "Picture and sliders need JavaScript; answer and tables do not.")
    )
    label = "Frontier. Arrow keys move along it, Home and End go to its ends, Escape selects nothing."
    frontier = html.element("div", id="frontier", class_="chart", tabindex=0, role="application", aria_label=label)
    charts = html.element(
        "div", frontier, html.element("p", id="said", class_="quiet", aria_live="polite"), class_="charts"
    )
    moved = html.element("div", budgets, html.paragraphs([why], "quiet"), typed)
    beside = html.element("div", html.element("div", *advised, _cautions(outcome)), moved, class_="side")
    menus = html.element("div", id="axes", class_="controls") + html.element("p", _KEYS, class_="quiet keys")
    explore = html.element("div", charts, beside, class_="explore")
    return html.element("section", noscript, explore, menus, class_="opening", aria_label="Frontier")


def _cautions(outcome: Outcome) -> str:
    """What must be read with the answer: a law's known fault, other times on the device, warnings."""
    problem, pick, there = outcome.study.problem, outcome.picks[0], outcome.device_times[0]
    law = problem.scenario.law
    doubts = [law.caveat, "" if has_doubt(law) else "error unknown"]
    cautions = [f"Law {law.name}: {'; '.join(filter(None, doubts))}."] if any(doubts) else []
    if not outcome.alike:
        times = ", ".join(figure(problem, name, there[PREFIX + name]) for name in times_of(problem, pick.question))
        cautions.append(f"Times are in this study's convention; under preset device the answer takes {times}.")
    warnings = outcome.study.notices
    summary = html.element("summary", f"{len(warnings)} warning{'s' * (len(warnings) > 1)} on these figures")
    further = (
        html.element("details", summary, html.paragraphs(warnings, "quiet"), class_="warnings") if warnings else ""
    )
    return html.paragraphs(cautions, "quiet") + further


def _folded(outcome: Outcome, section: Section) -> str:
    """A section of the answer, with what only a page has: rows that choose their design, pictures."""
    parts = [
        replace(part, indices=_places(outcome)) if isinstance(part, Table) and section.key == "answer" else part
        for part in section.parts
    ]
    chart = section.key == "certain" and convergence(outcome) is not None
    pictures = [html.element("div", id="convergence", class_="chart")] if chart else []
    return html.folded(section.title, *map(html.part_html, parts), *pictures)


def _places(outcome: Outcome) -> tuple[int | None, ...]:
    """Where the design of each of your picks stands among everything evaluated."""
    places = {int(key): row for row, key in enumerate(outcome.evaluations.keys.tolist())}
    own = [pick.answer for pick in outcome.picks if not pick.question.baseline]
    return tuple(None if row is None else places.get(int(row.keys[0])) for row in own)


def _along_the_context(outcome: Outcome) -> str:
    """Time and memory of the picks and of the models beside them over the prompt, where contexts are what the study is about."""
    if not (found := curves(outcome)):
        return ""
    device = outcome.study.problem.scenario.device
    rows = [(curve.label, *cells(row)) for curve in found for row in curve.rows]
    sentence = f"Every prompt of 1,024 to 131,072 tokens, all else as the study has it; fits: within the {device.memory_gb:g} GB of the device."
    figures = html.table(("compared", *OF_CONTEXTS), rows)
    return html.folded("Along the context", figures, html.paragraphs([sentence, UNSEEN], "quiet"))


_KEYS = (
    "Click a point, or focus the frontier and press <kbd>←</kbd> <kbd>→</kbd> <kbd>Page Up</kbd> <kbd>Page Down</kbd> "
    "<kbd>Home</kbd> <kbd>End</kbd> <kbd>Esc</kbd>. Drag to zoom; a name below the picture shows or hides what it marks."
)


def _repeat(outcome: Outcome, name: str, resolved: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """The study in words, the command that repeats it, its configuration, what it ran with."""
    study = outcome.study
    where = f"RUN is this run's folder, {name}; without it save the configuration below as a file and give that."
    return html.folded(
        "The study, and how to repeat it",
        html.paragraphs(headline(study.problem, study.config, study.calibration_note)),
        html.element("pre", html.text(f"{command('run')} --config RUN")),
        html.paragraphs([where], "quiet"),
        html.configuration(resolved),
        html.element("h3", "Versions"),
        html.facts(versions),
    )
