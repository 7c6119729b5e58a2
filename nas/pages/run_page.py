"""The page of a run: the answer first, then the frontier to explore, what it rests on, and how to repeat it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nas.answer.device_times import latency_certainty
from nas.answer.law_sentences import TITLE, notes, verdict_header, verdict_lines, verdict_rows
from nas.answer.outcome import Outcome
from nas.answer.pick_tables import PickTable, beside_baselines, on_devices, own_picks
from nas.answer.plot_data import HEADER as OF_CONTEXTS
from nas.answer.plot_data import UNSEEN, cells, convergence, curves
from nas.answer.score_tables import design_table, scored, step_table
from nas.answer.sentences import certainty, headline, in_words, limits, reading, section_lines
from nas.answer.three_sentences import three_sentences
from nas.pages.page import configuration, element, facts, footer, image, page, paragraphs, section, table, text
from nas.pages.run_data import rows_of, run_data
from nas.problem.diagnosis import lines
from nas.problem.law_caveats import blind_lines
from nas.search.strategy import ReportSection
from nas.terminal.doors import command
from objectives.display_text import in_a_command

SCRIPTS = ("names.js", "chart.js", "panel.js", "budgets.js", "run.js")


def run_page(outcome: Outcome, name: str, resolved: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """A run as one HTML file; `name` is its folder's, as commands beside it need.

    Raises:
        PlasError: no BokehJS in this environment.
    """
    written, rows = in_a_command(name), rows_of(outcome)
    body = "".join(
        [
            element(
                "header",
                element("h1", text(name)),
                paragraphs(
                    headline(outcome.study.problem, outcome.study.config, outcome.study.calibration_note), "quiet"
                ),
            ),
            element(
                "main",
                _answer(outcome),
                _on_devices(outcome),
                _explore(outcome, rows.why),
                _along_the_context(outcome),
                _scores(outcome),
                _under_laws(outcome),
                *map(_of_strategy, outcome.sections),
                _compared(outcome),
                _certain(outcome),
                _repeat(written, resolved, versions),
                id="main",
            ),
            footer("BokehJS is inside under its BSD-3-Clause licence."),
        ]
    )
    return page(name, body, run_data(outcome, rows, written), SCRIPTS)


def _answer(outcome: Outcome) -> str:
    """The answer in three sentences, then the picks, or why there are none."""
    said = three_sentences(outcome)
    first = "" if said is None else paragraphs(said.sentences, "answer")
    if outcome.diagnosis is not None:
        sentences = lines(outcome.diagnosis, outcome.diagnosis_covers_space)
        return section("No feasible architecture", first, paragraphs(sentences))
    shown = own_picks(outcome)
    own = [pick for pick in outcome.picks if not pick.question.baseline]
    places = {int(key): row for row, key in enumerate(outcome.evaluations.keys.tolist())}
    indices = [None if pick.answer is None else places.get(int(pick.answer.keys[0])) for pick in own]
    sentence = f"{shown.caption} your budgets" + ", and within an application's besides." * (len(shown.rows) > 1)
    picks = paragraphs([sentence]) + table(shown.header, shown.rows, indices=indices)
    return section("Answer", first, element("div", picks, paragraphs(shown.explained, "quiet"), class_="picks"))


def _on_devices(outcome: Outcome) -> str:
    """The answer on each device of several."""
    if (found := on_devices(outcome)) is None:
        return ""
    sentence = (
        "Lowest predicted loss within your budgets on each device, what it takes there, and where measured times lie."
    )
    return section(
        found.title, paragraphs([sentence]), table(found.header, found.rows), paragraphs(found.below, "quiet")
    )


def _explore(outcome: Outcome, why: str) -> str:
    """The frontier with its strips, the panel and the budgets; drawn by the page's scripts."""
    blind = blind_lines(outcome.study.problem.scenario.law, outcome.blind)
    budgets = element(
        "fieldset",
        element("legend", "Move the budgets"),
        element("div", id="budgets"),
        element("p", id="pick", class_="answer", aria_live="polite"),
        element("pre", id="command"),
        paragraphs([why], "quiet"),
        class_="budgets",
    )
    charts = element(
        "div",
        element("div", id="axes", class_="controls"),
        element(
            "div",
            id="frontier",
            class_="chart",
            tabindex=0,
            role="application",
            aria_label="Frontier. Arrow keys move along it, Home and End go to its ends, Escape selects nothing.",
        ),
        element("p", _KEYS, class_="quiet keys"),
        element("p", id="said", class_="quiet", aria_live="polite"),
        element("noscript", element("p", "The pictures need JavaScript; the tables do not.")),
        class_="charts",
    )
    panel = element("aside", id="panel", class_="panel", aria_label="Selected architecture")
    explore = element("div", charts, element("div", budgets, panel, class_="side"), class_="explore")
    return section("Frontier", paragraphs(blind), explore, class_="explored")


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
    return section(
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
        return section("Predicted scores", paragraphs([f"Not computed: {error}"]))
    if picks is None or frontier is None:
        return ""
    beside, steps = design_table(picks, [pick.question.label for pick in answered]), step_table(frontier)
    own = [line for line in steps.below if line not in beside.below]
    return section(
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
    return section("If another law is right", sentences, shown, paragraphs(notes(answers.laws), "quiet"))


def _of_strategy(said: ReportSection) -> str:
    """What the strategy says: sentences, a table, a picture."""
    parts = [paragraphs(section_lines(said))]
    if (shown := said.table) is not None:
        rows = [list(map(in_words, row)) for row in shown.rows]
        parts += [table(shown.header, rows, shown.caption), paragraphs([shown.explained], "quiet")]
    if said.panels:
        from nas.answer.pictures import panels_png

        parts.append(image(panels_png(said.panels), said.pictured))
    return section(said.title, *parts)


_KEYS = (
    "Click a point, or focus the frontier and press <kbd>←</kbd> <kbd>→</kbd> <kbd>Page Up</kbd> <kbd>Page Down</kbd> "
    "<kbd>Home</kbd> <kbd>End</kbd> <kbd>Esc</kbd>. Drag to zoom; names in the legend hide what they mark."
)


def _compared(outcome: Outcome) -> str:
    """The picks beside each published model."""
    shown = [] if outcome.diagnosis is not None else beside_baselines(outcome)
    return section("Beside published models", *(_table(each) for each in shown))


def _table(shown: PickTable) -> str:
    return table(shown.header, shown.rows, shown.caption) + paragraphs(shown.explained, "quiet")


def _certain(outcome: Outcome) -> str:
    """Convergence, and every sentence on what the answer rests on."""
    scenario = outcome.study.problem.scenario
    warnings = [f"Warning: {text}" for text in outcome.study.notices]
    sentences = [*certainty(outcome), *reading(outcome), *limits(outcome), latency_certainty(scenario)]
    drawn = convergence(outcome) is not None
    chart = element("div", id="convergence", class_="chart") if drawn else ""
    return section("How sure", paragraphs([*sentences, *warnings]), chart)


def _repeat(name: str, resolved: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """The command that repeats the run, its configuration, what it ran with."""
    return section(
        "Repeat it",
        paragraphs(["In the folder that holds the run's folder:"]),
        element("pre", text(f"{command('run')} --config {name}")),
        configuration(resolved),
        element("h3", "Versions"),
        facts(versions),
    )
