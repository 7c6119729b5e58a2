"""The answer of a run on the screen: picks, baselines, frontier, distance to exact, limits, next steps."""

import sys
from itertools import cycle
from pathlib import Path

import numpy as np

from nas.answer.correction_lines import learned_lines
from nas.answer.law_sentences import TITLE as UNDER_LAWS
from nas.answer.law_sentences import caveats, notes, verdict_header, verdict_lines, verdict_rows
from nas.answer.law_verdicts import LawAnswers
from nas.answer.outcome import Outcome
from nas.answer.pick_lines import baseline_lines, device_lines, pick_lines
from nas.answer.pick_tables import EXACT_MEANS, answer, least_figures
from nas.answer.sentences import (
    baseline_metric,
    certainty,
    certainty_in_short,
    headline,
    limits,
    limits_in_short,
    plot_axes,
    reading,
)
from nas.problem.blind_axes import blind_lines
from nas.problem.diagnosis import Diagnosis, at_least, lines
from nas.problem.evaluations import Evaluations
from nas.problem.problem import METRIC_ORDER, Problem
from nas.study.configuration import StudyConfig
from nas.terminal.console import Line, sentence, write
from nas.terminal.program import command
from nas.terminal.scatter import LINES, MARGIN, Series, scatter
from nas.terminal.styles import COMMAND, FAINT, TITLE, Styled, linked, shown
from nas.terminal.tables import fitted
from nas.terminal.width import cells, columns, rows
from objectives.display_text import in_a_command

COSTS = METRIC_ORDER[2:]  # all but the loss
WIDEST, LOWEST, HIGHEST = 72, 5, 16  # columns and lines of the plot
PROMPT = 1  # line of the screen that is not ours
NOTATION = "l depth, d width, E experts, K active, r_single FFN ratio each, n_kv KV heads"
OF_HEADS = ", n_h query heads and their size"  # where they are free of the width


def show_head(problem: Problem, config: StudyConfig, calibration_note: str) -> None:
    """Print what is searched, before anything else is done."""
    write(_head(problem, config, calibration_note))


def _head(problem: Problem, config: StudyConfig, calibration_note: str) -> list[Line]:
    first, *others = headline(problem, config, calibration_note)
    return [*sentence(Styled(first, TITLE)), *(line for text in others for line in sentence(text)), []]


def show(outcome: Outcome, folder: Path, *, verbose: bool = False) -> None:
    """Print what a user needs from a finished run: a screen, or everything."""
    below = _ending(outcome, folder, verbose=verbose)
    if outcome.diagnosis is not None:
        write([*_diagnosed(outcome), *below])
    elif verbose:
        write([*_answered(outcome, verbose=True), *_plot(outcome, HIGHEST), *below])
    else:
        write([*_on_one_screen(outcome, len(below)), *below])


def _on_one_screen(outcome: Outcome, below: int) -> list[Line]:
    """The answer with as much of the picks' designs and the plot as leaves room for so many lines below."""
    study = outcome.study
    room = rows() - PROMPT - 1 - below - len(_head(study.problem, study.config, study.calibration_note))
    for designs in (True, False):
        above = _answered(outcome, verbose=False, designs=designs)
        if (height := room - len(above) - LINES) >= LOWEST:
            return [*above, *_plot(outcome, height)]
    return [*above, []]


def _diagnosed(outcome: Outcome) -> list[Line]:
    assert outcome.diagnosis is not None
    sentences = lines(outcome.diagnosis, outcome.diagnosis_covers_space)
    return [*(line for text in sentences for line in sentence(text)), []]


def _answered(outcome: Outcome, *, verbose: bool, designs: bool = True) -> list[Line]:
    """Picks and baselines, and what of them is shown elsewhere."""
    found: list[Line] = []
    for text in blind_lines(outcome.study.problem.scenario.law, outcome.blind):
        found += sentence(text)
    picks = pick_lines(outcome, verbose=verbose, designs=designs)
    baselines = baseline_lines(outcome, verbose=verbose)
    each = device_lines(outcome, verbose=verbose)
    notation = f"  {NOTATION}{OF_HEADS * outcome.study.problem.space.free_heads}"
    found += [*picks.lines, *each, *sentence(Styled(notation, FAINT)), *baselines.lines]
    if picks.exact or baselines.exact:
        found += sentence(f"  {EXACT_MEANS}")
    if outcome.under_laws is not None:
        found += law_lines(outcome.study.problem, outcome.under_laws, verbose=verbose)
    if more := list(dict.fromkeys([*picks.dropped, *baselines.dropped])):
        found += sentence(Styled(f"  In picks.csv and --verbose: {', '.join(more)}", FAINT))
    return found


def _ending(outcome: Outcome, folder: Path, *, verbose: bool) -> list[Line]:
    """How sure the answer is, where it lies, what to type next."""
    if verbose:
        sentences = [*certainty(outcome), *reading(outcome), *limits(outcome)]
    else:
        sentences = [*certainty_in_short(outcome), *limits_in_short(outcome)]
    sentences += [] if outcome.lessons is None else learned_lines(outcome.study.problem, outcome.lessons)
    found = [line for text in sentences for line in sentence(text)]
    if outcome.diagnosis is None and (best := answer(outcome)):
        found += sentence(Styled("Answer: ", TITLE), best)
        found += [line for text in least_figures(outcome) for line in sentence(Styled("Least: ", TITLE), text)]
    drawn = "".join(f", {name}" for name in ("report.html", "plots/") if (folder / name).exists())
    found += sentence("Files: ", linked(folder, f"{folder}/"), f" (frontier.csv, picks.csv{drawn}, …)")
    return found + [list(line) for line in next_lines(outcome, folder)]


def _plot(outcome: Outcome, height: int) -> list[Line]:
    problem, frontier = outcome.study.problem, outcome.frontier
    axes = plot_axes(frontier.objectives)
    if axes is None:
        return []
    across, up = axes
    log_x = next(o for o in problem.objectives if o.name == across).log_scale
    series = [Series("frontier", "·", frontier.metrics[across], frontier.metrics[up], "cyan")]
    applications = [p.answer for p in outcome.picks if p.answer is not None and not p.question.baseline]
    series.append(Series("pick", "o", _metric(applications, across), _metric(applications, up), "bold yellow"))
    for known, mark in zip(outcome.study.baselines, cycle("◆◇▲△■□"), strict=False):
        there = [baseline_metric(outcome, known.architecture, name) for name in (across, up)]
        if None not in there:
            x, y = (np.array([value], dtype=np.float64) for value in there)
            series.append(Series(known.label, mark, x, y, "bold magenta"))
    width = min(WIDEST, columns() - MARGIN - 1)
    height = min(max(height, LOWEST), HIGHEST)
    drawn = scatter(series, across, up, log_x=log_x, width=width, height=height)
    return [[], *([shown(part, sys.stdout) for part in line] for line in drawn)]


def _metric(rows: list[Evaluations], name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([row.metrics[name][0] for row in rows], dtype=np.float64)


def next_steps(outcome: Outcome, folder: Path) -> list[tuple[str, str]]:
    """Commands to run next, and why; every limit in them is one that opens a design of this run."""
    if len(outcome.evaluations) and not outcome.evaluations.ok.any():
        return []
    steps = []
    if outcome.diagnosis is None:
        steps.append(
            (f"{command('select')} {in_a_command(folder)} --budget {tighter(outcome)}", "within a tighter budget")
        )
        steps.append((f"{command('explain')} {in_a_command(folder)} --select knee", "where time and loss come from"))
    elif outcome.diagnosis.together > 0 and (opening := relaxed(outcome.diagnosis)):
        steps.append(
            (
                f"{command('run')} --config {in_a_command(folder / 'config.yaml')} {opening}",
                "relax until a design fits",
            )
        )
    if outcome.diagnosis is not None and (smaller := outcome.diagnosis.vocabulary):
        again = f"{command('run')} --config {in_a_command(folder / 'config.yaml')} --vocabulary {smaller.size}"
        steps.append((again, "a vocabulary at which a design fits"))
    evaluated, size = len(outcome.evaluations), outcome.study.problem.space.size
    proved = outcome.diagnosis_covers_space and outcome.diagnosis is not None and outcome.diagnosis.together > 0
    if outcome.study.config.algo != "exact" and evaluated < size and not proved:
        more = min(2 * max(evaluated, 1), size)
        steps.append((f"{command('run')} --resume {in_a_command(folder)} --evaluations {more}", "search on"))
    return steps


def next_lines(outcome: Outcome, folder: Path) -> list[Line]:
    """Next steps, a line each, whose commands are never broken; why they are worth it where there is room."""
    found: list[Line] = []
    steps = [(shown(step, sys.stdout), why) for step, why in next_steps(outcome, folder)]
    width = max((cells(step) for step, _ in steps), default=0)
    for number, (step, why) in enumerate(steps):
        aligned = " " * (width - cells(step) + 3)
        reason = aligned + why
        fits = 6 + width + 3 + len(why) <= columns()
        found.append(["Next: " if number == 0 else " " * 6, Styled(step, COMMAND), *([reason] if fits else [])])
    return found


def tighter(outcome: Outcome) -> str:
    """A budget at the middle of the frontier, as short as it can be written and still leave designs out."""
    frontier = outcome.frontier
    metric = next((name for name in frontier.objectives if name in COSTS), "total_ms")
    values = np.sort(frontier.metrics[metric])
    middle = float(values[(len(values) - 1) // 2])
    written = [at_least(middle, digits) for digits in (2, 3, 4, 5)]
    return f"{metric}={next((limit for limit in written if float(limit) < values[-1]), at_least(middle))}"


def relaxed(diagnosis: Diagnosis) -> str:
    """The least relaxation of one budget that opens a design, else of all of them; "" where none is known to."""
    alone = [r for r in diagnosis.relaxations if r.limit is not None and r.limit > r.budget.limit]
    if alone:
        least = min(alone, key=lambda r: (r.limit or 0.0) / r.budget.limit)
        return f"--budget {least.budget.metric}={at_least(least.limit or 0.0)}"
    if not np.isfinite(diagnosis.together):
        return ""
    factor = 1.0 + diagnosis.together
    every = [(r.budget.metric, at_least(factor * r.budget.limit)) for r in diagnosis.relaxations]
    return " ".join(f"--budget {metric}={limit}" for metric, limit in every)


def law_lines(problem: Problem, answers: LawAnswers, *, verbose: bool) -> list[Line]:
    """The table of the picks' regrets, the shares of laws under which each is right, where the frontier's designs are; notes on each law."""
    lines, _ = fitted(verdict_header(answers.laws), verdict_rows(problem, answers), 2)
    sentences = [*verdict_lines(problem, answers), *(notes if verbose else caveats)(answers.laws)]
    below = [line for text in sentences for line in sentence(f"  {text}")]
    return [[], *sentence(Styled(UNDER_LAWS, TITLE)), *lines, *below]
