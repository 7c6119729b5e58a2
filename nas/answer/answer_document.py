"""Everything that a run says, as a document: what `--verbose` prints and the page shows."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nas.answer.device_times import latency_certainty
from nas.answer.law_sentences import TITLE, notes, verdict_header, verdict_lines, verdict_rows
from nas.answer.outcome import Outcome
from nas.answer.pick_tables import beside_baselines, least_figures, on_devices, own_picks
from nas.answer.score_tables import design_table, scored, step_table
from nas.answer.sentences import certainty, in_words, limits, reading, section_lines
from nas.answer.take import advice, offers_table
from nas.answer.three_sentences import three_sentences
from nas.document.document import Document, Part, Section, table_of
from nas.problem.diagnosis import lines
from nas.problem.law_caveats import blind_lines
from nas.search.strategy import ReportSection


def answer_document(outcome: Outcome) -> Document:
    """The answer of a run: sections with the keys answer, devices, take, compared, laws, scores, certain; what the strategy says stands between."""
    return Document(outcome.study.config.name, tuple(section for section in _sections(outcome) if section.parts))


def _sections(outcome: Outcome) -> Iterator[Section]:
    answer = three_sentences(outcome)
    sentences = () if answer is None else answer.sentences
    if outcome.diagnosis is not None:
        details = lines(outcome.diagnosis, outcome.diagnosis_covers_space)[1 if sentences else 0 :]
        yield Section("No feasible architecture", (*sentences, *details), "answer")
    else:
        yield Section("Answer", (*sentences, own_picks(outcome)), "answer")
        if (by_device := on_devices(outcome)) is not None:
            yield Section(by_device.title, (replace(by_device, title=""),), "devices")
        yield Section("Train or take", tuple(_taken(outcome)), "take")
        yield Section("Beside published models", tuple(beside_baselines(outcome)), "compared")
        yield Section("If another law is right", tuple(_under_laws(outcome)), "laws")
        yield Section("Predicted scores", tuple(_scores(outcome)), "scores")
    yield from map(_of_strategy, outcome.ending.sections)
    yield Section("How sure", tuple(_certain(outcome)), "certain")


def _taken(outcome: Outcome) -> Iterator[Part]:
    """The published models that fit, and the tokens until the pick is level with each."""
    pick, choice = outcome.picks[0].answer, outcome.take
    if choice is not None and pick is not None:
        yield from advice(choice)
        dense = int(outcome.study.problem.architectures(pick.genotypes).n_experts[0]) == 1
        yield offers_table(choice, dense=dense)


def _under_laws(outcome: Outcome) -> Iterator[Part]:
    """The picks' regrets under each law, and where along the frontier the laws agree."""
    answers, problem = outcome.under_laws, outcome.study.problem
    if answers is not None:
        yield table_of(verdict_header(answers.laws), verdict_rows(problem, answers), TITLE)
        yield from verdict_lines(problem, answers)
        yield from notes(answers.laws)


def _scores(outcome: Outcome) -> Iterator[Part]:
    """Scores of tasks of the picks beside published models, and the steps of the frontier that each tells apart."""
    study = outcome.study
    answered = [pick for pick in outcome.picks if pick.answer is not None and not pick.question.baseline]
    if study.scores is None or not answered:
        return
    genotypes = np.concatenate([pick.answer.genotypes[:1] for pick in answered if pick.answer is not None])
    try:
        picks = scored(study, study.problem.architectures(genotypes), study.baselines)
        frontier = scored(study, study.problem.architectures(outcome.frontier.genotypes), ())
    except ValueError as error:
        yield f"Not computed: {error}"
        return
    if picks is not None and frontier is not None:
        beside, steps = design_table(picks, [pick.question.label for pick in answered]), step_table(frontier)
        yield beside.title
        yield replace(beside, title="Picks")
        yield replace(
            steps, title="Steps of the frontier", notes=tuple(note for note in steps.notes if note not in beside.notes)
        )


def _of_strategy(section: ReportSection) -> Section:
    """What the strategy says: sentences and a table."""
    parts: list[Part] = [*section_lines(section)]
    if (shown := section.table) is not None:
        rows = [list(map(in_words, row)) for row in shown.rows]
        parts.append(table_of(shown.header, rows, shown.caption, [shown.explained] if shown.explained else []))
    return Section(section.title, tuple(parts), "strategy")


def _certain(outcome: Outcome) -> Iterator[str]:
    """Every sentence on what the answer rests on."""
    problem = outcome.study.problem
    yield from certainty(outcome)
    yield from reading(outcome)
    yield from limits(outcome)
    yield from blind_lines(problem.scenario.law, outcome.blind)
    yield latency_certainty(problem.scenario)
    yield from (f"Least: {figures}" for figures in least_figures(outcome) if outcome.diagnosis is None)
