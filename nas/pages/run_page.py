"""The page of a run: the frontier with the recommended design and its budgets; below, folded, what that rests on and how to repeat it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nas.answer.device_times import PREFIX, alike, latency_certainty, times_of
from nas.answer.law_sentences import TITLE, notes, verdict_header, verdict_lines, verdict_rows
from nas.answer.outcome import Outcome
from nas.answer.pick_tables import PickTable, beside_baselines, figure, on_devices, own_picks
from nas.answer.plot_data import HEADER as OF_CONTEXTS
from nas.answer.plot_data import UNSEEN, cells, convergence, curves
from nas.answer.score_tables import design_table, scored, step_table
from nas.answer.sentences import (
    certainty,
    devices_in_words,
    formats_in_words,
    headline,
    in_words,
    limits,
    reading,
    section_lines,
)
from nas.answer.three_sentences import three_sentences
from nas.pages.page import configuration, element, facts, folded, footer, image, page, paragraphs, table, text
from nas.pages.run_data import rows_of, run_data
from nas.problem.diagnosis import lines
from nas.problem.law_caveats import blind_lines
from nas.problem.uncertainty import has_doubt
from nas.search.strategy import ReportSection
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
    strips = element("div", id="strips", class_="several")
    main = element(
        "main",
        _opening(outcome, name, rows.why),
        _answers(outcome),
        folded("The selected design, part by part", element("div", id="panel", class_="panel")),
        _on_devices(outcome),
        folded("What changes along the frontier", strips) if len(outcome.frontier) > 1 else "",
        _along_the_context(outcome),
        _scores(outcome),
        _under_laws(outcome),
        *map(_of_strategy, outcome.sections),
        _compared(outcome),
        _certain(outcome),
        _repeat(outcome, name, resolved, versions),
        id="main",
    )
    header = element("header", element("h1", text(title)), paragraphs([how], "quiet"))
    body = header + main + footer("BokehJS is inside under its BSD-3-Clause licence.")
    return page(f"{name}: {title}", body, run_data(outcome, rows), SCRIPTS)


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
    said = three_sentences(outcome)
    sentences = "" if said is None else paragraphs(said.sentences[:2] if outcome.diagnosis is None else said.sentences)
    answer = element("div", sentences, id="pick", class_="answer", aria_live="polite")
    budgets = element("fieldset", element("legend", "Move the budgets"), element("div", id="budgets"), class_="budgets")
    run = f"The same in a terminal, where RUN is the folder of this run, {name}:"
    typed = element("div", paragraphs([run], "quiet"), element("pre", id="command"), class_="typed")
    noscript = element("noscript", element("p", "Picture and sliders need JavaScript; answer and tables do not."))
    label = "Frontier. Arrow keys move along it, Home and End go to its ends, Escape selects nothing."
    frontier = element("div", id="frontier", class_="chart", tabindex=0, role="application", aria_label=label)
    charts = element("div", frontier, element("p", id="said", class_="quiet", aria_live="polite"), class_="charts")
    moved = element("div", budgets, paragraphs([why], "quiet"), typed)
    beside = element("div", element("div", answer, _cautions(outcome)), moved, class_="side")
    explore = element("div", charts, beside, class_="explore")
    menus = element("div", id="axes", class_="controls") + element("p", _KEYS, class_="quiet keys")
    return element("section", noscript, explore, menus, class_="opening", aria_label="Frontier")


def _cautions(outcome: Outcome) -> str:
    """What must be read with the answer: a law's known fault, other times on the device, warnings."""
    problem, pick, there = outcome.study.problem, outcome.picks[0], outcome.device_times[0]
    law = problem.scenario.law
    doubts = [law.caveat, "" if has_doubt(law) else "error unknown"]
    cautions = [f"Law {law.name}: {'; '.join(filter(None, doubts))}."] if any(doubts) else []
    if not alike(problem, [(pick, there)]):
        times = ", ".join(figure(problem, name, there[PREFIX + name]) for name in times_of(problem, pick.question))
        cautions.append(f"Times are in this study's convention; under preset device the answer takes {times}.")
    warnings = outcome.study.notices
    summary = element("summary", f"{len(warnings)} warning{'s' * (len(warnings) > 1)} on these figures")
    further = element("details", summary, paragraphs(warnings, "quiet"), class_="warnings") if warnings else ""
    return paragraphs(cautions, "quiet") + further


def _answers(outcome: Outcome) -> str:
    """The answer in three sentences, then the picks, or why there are none."""
    said = three_sentences(outcome)
    first = "" if said is None else paragraphs(said.sentences)
    if outcome.diagnosis is not None:
        sentences = lines(outcome.diagnosis, outcome.diagnosis_covers_space)
        return folded("Why nothing fits", first, paragraphs(sentences))
    shown = own_picks(outcome)
    own = [pick for pick in outcome.picks if not pick.question.baseline]
    places = {int(key): row for row, key in enumerate(outcome.evaluations.keys.tolist())}
    indices = [None if pick.answer is None else places.get(int(pick.answer.keys[0])) for pick in own]
    sentence = f"{shown.caption} your budgets" + ", and within an application's besides." * (len(shown.rows) > 1)
    return folded("The answer in full", first, paragraphs([sentence]), _table(shown, "", indices))


def _on_devices(outcome: Outcome) -> str:
    """The answer on each device of several."""
    shown = on_devices(outcome)
    what = "The lowest predicted loss within your budgets on each, what it takes there, and where measured times lie."
    return "" if shown is None else folded(shown.title, paragraphs([what]), _table(shown, ""))


def _along_the_context(outcome: Outcome) -> str:
    """Time and memory of the picks and of the models beside them over the prompt, where contexts are what the study is about."""
    if not (found := curves(outcome)):
        return ""
    from nas.answer.pictures import curves_png

    device = outcome.study.problem.scenario.device
    alt = "Prefill, time per output token and resident memory over prompts of 1k to 128k tokens; the table below holds the figures."
    rows = [(curve.label, *cells(row)) for curve in found for row in curve.rows]
    sentence = f"Every prompt of 1,024 to 131,072 tokens, all else as the study has it; fits: within the {device.memory_gb:g} GB of the device."
    shown = element("details", element("summary", "The figures"), table(("compared", *OF_CONTEXTS), rows))
    return folded(
        "Along the context",
        image(curves_png(found, device.memory_gb), alt),
        shown,
        paragraphs([sentence, UNSEEN], "quiet"),
    )


def _scores(outcome: Outcome) -> str:
    """Scores of tasks of the picks beside published models, and the steps of the frontier that each tells apart."""
    study = outcome.study
    answered = [pick for pick in outcome.picks if pick.answer is not None and not pick.question.baseline]
    if study.scores is None or outcome.diagnosis is not None or not answered:
        return ""
    genotypes = np.concatenate([pick.answer.genotypes[:1] for pick in answered if pick.answer is not None])
    try:
        picks = scored(study, study.problem.architectures(genotypes), study.baselines)
        frontier = scored(study, study.problem.architectures(outcome.frontier.genotypes), ())
    except ValueError as error:
        return folded("Predicted scores", paragraphs([f"Not computed: {error}"]))
    if picks is None or frontier is None:
        return ""
    beside, steps = design_table(picks, [pick.question.label for pick in answered]), step_table(frontier)
    own = [line for line in steps.below if line not in beside.below]
    return folded(
        beside.title,
        table(beside.header, beside.rows, "Picks"),
        paragraphs(beside.below, "quiet"),
        table(steps.header, steps.rows, "Steps of the frontier"),
        paragraphs(own, "quiet"),
    )


def _under_laws(outcome: Outcome) -> str:
    """The picks' regrets under each law, and where along the frontier the laws agree."""
    answers, problem = outcome.under_laws, outcome.study.problem
    if answers is None or outcome.diagnosis is not None:
        return ""
    sentences = paragraphs(verdict_lines(problem, answers))
    shown = table(verdict_header(answers.laws), verdict_rows(problem, answers), TITLE)
    return folded("If another law is right", sentences, shown, paragraphs(notes(answers.laws), "quiet"))


def _of_strategy(said: ReportSection) -> str:
    """What the strategy says: sentences, a table, a picture."""
    parts = [paragraphs(section_lines(said))]
    if (shown := said.table) is not None:
        rows = [list(map(in_words, row)) for row in shown.rows]
        parts += [table(shown.header, rows, shown.caption), paragraphs([shown.explained], "quiet")]
    if said.panels:
        from nas.answer.pictures import panels_png

        parts.append(image(panels_png(said.panels), said.pictured))
    return folded(said.title, *parts)


_KEYS = (
    "Click a point, or focus the frontier and press <kbd>←</kbd> <kbd>→</kbd> <kbd>Page Up</kbd> <kbd>Page Down</kbd> "
    "<kbd>Home</kbd> <kbd>End</kbd> <kbd>Esc</kbd>. Drag to zoom; a name below the picture shows or hides what it marks."
)


def _compared(outcome: Outcome) -> str:
    """The picks beside each published model."""
    shown = [] if outcome.diagnosis is not None else beside_baselines(outcome)
    return folded("Beside published models", *(_table(of_model, of_model.caption) for of_model in shown))


def _table(shown: PickTable, caption: str, indices: Sequence[int | None] = ()) -> str:
    return table(shown.header, shown.rows, caption, indices) + paragraphs(shown.explained, "quiet")


def _certain(outcome: Outcome) -> str:
    """Convergence, and every sentence on what the answer rests on."""
    scenario = outcome.study.problem.scenario
    sentences = [*certainty(outcome), *reading(outcome), *limits(outcome), latency_certainty(scenario)]
    unseen = blind_lines(scenario.law, outcome.blind)
    chart = element("div", id="convergence", class_="chart") if convergence(outcome) is not None else ""
    return folded("How sure", paragraphs([*sentences, *unseen]), chart)


def _repeat(outcome: Outcome, name: str, resolved: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """The study in words, the command that repeats it, its configuration, what it ran with."""
    study = outcome.study
    where = f"RUN is this run's folder, {name}; without it save the configuration below as a file and give that."
    return folded(
        "The study, and how to repeat it",
        paragraphs(headline(study.problem, study.config, study.calibration_note)),
        element("pre", text(f"{command('run')} --config RUN")),
        paragraphs([where], "quiet"),
        configuration(resolved),
        element("h3", "Versions"),
        facts(versions),
    )
