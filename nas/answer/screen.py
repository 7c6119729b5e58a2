"""The answer of a run on the screen: picks, baselines, frontier, distance to exact, limits, next steps."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import cycle
from pathlib import Path

import numpy as np

from nas.answer.law_sentences import TITLE as UNDER_LAWS
from nas.answer.law_sentences import caveats, notes, verdict_header, verdict_lines, verdict_rows
from nas.answer.law_verdicts import LawAnswers
from nas.answer.outcome import Outcome
from nas.answer.pick_tables import (
    CONVENTION,
    EXACT,
    EXACT_MEANS,
    LOSS,
    WITNESS,
    PickTable,
    beside_baselines,
    least_figures,
    on_devices,
    own_picks,
)
from nas.answer.sentences import (
    baseline_metric,
    certainty,
    certainty_in_short,
    headline,
    limits,
    limits_in_short,
    plot_axes,
    reading,
    section_lines,
)
from nas.answer.three_sentences import ANSWER, ThreeSentences, three_sentences
from nas.problem.diagnosis import Diagnosis, at_least, lines
from nas.problem.evaluations import Evaluations
from nas.problem.law_caveats import blind_lines
from nas.problem.problem import METRIC_ORDER, Problem
from nas.study.configuration import StudyConfig
from nas.terminal.console import Line, sentence, write
from nas.terminal.doors import command
from nas.terminal.scatter import MARGIN, Series, scatter
from nas.terminal.screen_text import COMMAND, TITLE, Styled, cells, columns, linked, rows, shown
from nas.terminal.tables import fitted
from objectives.display_text import in_a_command

COSTS = METRIC_ORDER[2:]  # all but the loss
WIDEST, LOWEST, HIGHEST = 72, 4, 16  # columns and lines of the plot
PROMPT = 1  # line of the screen that is not ours
SMALL = 24  # lines of a screen on which the answer stands without the head
NEXT, GAP = "Next: ", 3  # before the next steps; columns between a step and why


def show_head(problem: Problem, config: StudyConfig, calibration_note: str) -> None:
    """Print what is searched, before anything else is done."""
    write(_head(problem, config, calibration_note))


def _head(problem: Problem, config: StudyConfig, calibration_note: str) -> list[Line]:
    first, *others = headline(problem, config, calibration_note)
    return [*sentence(Styled(first, TITLE)), *(line for text in others for line in sentence(text)), []]


def show(outcome: Outcome, folder: Path, *, verbose: bool = False) -> None:
    """Print what a user needs from a finished run: the answer in three sentences, then a screen, or everything."""
    if verbose:
        write([line for part in _parts(outcome, folder, verbose=True) for line in part.lines])
    else:
        write(_on_one_screen(outcome, folder))


class _Needed(IntEnum):
    """How much a part of the screen is needed: the least gives way first."""

    FURTHER_STEPS = 0
    FURTHER_LIMITS = 1
    PLOT = 2
    BASELINES = 3
    SOURCE_OF_LOSSES = 4
    DIAGNOSIS = 5


@dataclass(frozen=True)
class _Part:
    """Lines of a screen; of two parts the one that is `needed` less gives way first where there is no room, None never does."""

    lines: list[Line]
    needed: _Needed | None = None


def _on_one_screen(outcome: Outcome, folder: Path) -> list[Line]:
    """The answer from its first line to its last on one screen: what is needed less gives way, in the order of what is needed least."""
    parts = _parts(outcome, folder, verbose=False)
    if (room := _room(outcome)) is None:
        return [line for part in parts for line in part.lines]
    if _height(parts) - (HIGHEST - LOWEST) > room:
        parts = _parts(outcome, folder, verbose=False, designs=False)
    least = [replace(part, lines=_plot(outcome, LOWEST)) if part.needed == _Needed.PLOT else part for part in parts]
    kept: set[_Needed | None] = {None}
    for needed in sorted({part.needed for part in parts if part.needed is not None}, reverse=True):
        if _height([part for part in least if part.needed in {*kept, needed}]) <= room:
            kept.add(needed)
    least = [part for part in least if part.needed in kept]
    height = room - _height(least) + LOWEST  # of the plot, where it is among them
    return [
        line for p in least for line in (_plot(outcome, height) if p.needed == _Needed.PLOT and p.lines else p.lines)
    ]


def _room(outcome: Outcome) -> int | None:
    """Lines of the screen for the answer: below the head where there is room for both; None where no screen is."""
    if (screen := rows()) is None:
        return None
    head = len(_head(outcome.study.problem, outcome.study.config, outcome.study.calibration_note))
    return max(screen - PROMPT - head, min(screen, SMALL) - PROMPT)


def _height(parts: Sequence[_Part]) -> int:
    return sum(len(part.lines) for part in parts)


def _parts(outcome: Outcome, folder: Path, *, verbose: bool, designs: bool = True) -> list[_Part]:
    """Everything that is printed of a run, from the first line to the last."""
    said = three_sentences(outcome)
    first = [] if said is None else _of_answer(said)
    if outcome.diagnosis is not None:
        details = lines(outcome.diagnosis, outcome.diagnosis_covers_space)[1 if first else 0 :]
        parts = [_Part(first), _Part([[], *_wrapped(details)], _Needed.DIAGNOSIS), _Part([[]])]
    else:
        picks, baselines = _tables(outcome, verbose=verbose, designs=designs)
        parts = [_Part(first), _Part([[], *picks] if picks else []), _Part(baselines, _Needed.BASELINES)]
        parts += [_Part(_plot(outcome, HIGHEST), None if verbose else _Needed.PLOT)]
        parts += [_Part([[]])]
    if verbose:
        parts += [_Part(_wrapped([*certainty(outcome), *reading(outcome), *limits(outcome)]))]
    else:
        parts += [_Part(_wrapped(certainty_in_short(outcome)))]
        said_of_losses = limits_in_short(outcome)
        parts += [_Part(_wrapped(said_of_losses[:1]), _Needed.SOURCE_OF_LOSSES)]
        parts += [_Part(_wrapped(said_of_losses[1:]), _Needed.FURTHER_LIMITS)]
    parts += [_Part(_wrapped(line for section in outcome.sections for line in section_lines(section)))]
    last = sentence(Styled(ANSWER, TITLE), said.short) if said is not None and said.short else []
    return [*parts, *_ending(outcome, folder, verbose=verbose), _Part(last)]


def _wrapped(sentences: Iterable[str]) -> list[Line]:
    return [line for text in sentences for line in sentence(text)]


def _of_answer(said: ThreeSentences) -> list[Line]:
    """The three sentences; the first one stands out."""
    first, *others = said.sentences
    return [*sentence(Styled(first, TITLE)), *_wrapped(others)]


def _tables(outcome: Outcome, *, verbose: bool, designs: bool) -> tuple[list[Line], list[Line]]:
    """Picks, baselines and rival laws."""
    picks = pick_lines(outcome, verbose=verbose, designs=designs)
    baselines = baseline_lines(outcome, verbose=verbose)
    blind = _wrapped(blind_lines(outcome.study.problem.scenario.law, outcome.blind))
    exact = sentence(f"  {EXACT_MEANS}") if picks.exact or baselines.exact else []
    laws = law_lines(outcome.study.problem, outcome.under_laws, verbose=verbose) if outcome.under_laws else []
    return [*blind, *picks.lines, *device_lines(outcome, verbose=verbose), *exact], [*baselines.lines, *laws]


def _ending(outcome: Outcome, folder: Path, *, verbose: bool) -> list[_Part]:
    """What a device's figure is at least, where the run lies, what to type next."""
    least = least_figures(outcome) if outcome.diagnosis is None else []
    drawn = "".join(f", {name}" for name in ("report.html",) if (folder / name).exists())
    more = "" if verbose else "; --verbose says more"
    files = sentence("Files: ", linked(folder, f"{folder}/"), f" (frontier.csv, picks.csv{drawn}, …){more}")
    first, *others = [list(line) for line in next_lines(outcome, folder)] or [[]]
    found = [line for text in least for line in sentence(Styled("Least: ", TITLE), text)]
    return [_Part(found), _Part(files), _Part([first] if first else []), _Part(others, _Needed.FURTHER_STEPS)]


def _plot(outcome: Outcome, height: int) -> list[Line]:
    problem, frontier = outcome.study.problem, outcome.frontier
    axes = plot_axes(frontier.objectives)
    if axes is None or outcome.diagnosis is not None:
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
    drawn = scatter(series, across, LOSS if up == "loss" else up, log_x=log_x, width=width, height=height)
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
        aligned = " " * (width - cells(step) + GAP)
        reason = aligned + why
        fits = len(NEXT) + width + GAP + len(why) <= columns()
        found.append([NEXT if number == 0 else " " * len(NEXT), Styled(step, COMMAND), *([reason] if fits else [])])
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


BELOW = ("architecture", WITNESS, "active", "params", "memory", EXACT)  # in this order, where all is shown


@dataclass(frozen=True)
class Shown:
    """Lines, what they leave out, and whether they hold the exact pick's loss where the search missed it."""

    lines: list[Line]
    dropped: list[str]
    exact: bool


def pick_lines(outcome: Outcome, *, verbose: bool, designs: bool = True) -> Shown:
    """Lowest loss within your budgets, then within each application's; the title is the first column's.

    designs: whether a design without a column is shown below its row.
    """
    table = own_picks(outcome, brief=not verbose)
    missed_unsaid = EXACT in table.header and outcome.changes is None
    if not verbose and len(table.rows) == 1 and not missed_unsaid and not table.below:
        return Shown([], [], exact=False)  # the three sentences say it
    below = BELOW[:2] if designs else (WITNESS,)
    spare = () if verbose else (CONVENTION, "params", "active", "memory", EXACT, *BELOW[: 0 if designs else 1])
    under = below if not verbose else (*BELOW[:2], CONVENTION) if {CONVENTION, WITNESS} & {*table.header} else ()
    return _laid_out(table, (table.title, *table.header[1:]), under, spare)


def baseline_lines(outcome: Outcome, *, verbose: bool) -> Shown:
    """The picks that are as fast as each published model, under its own figures."""
    found = Shown([], [], exact=False)
    for table in beside_baselines(outcome, brief=not verbose):
        title = sentence(Styled(table.title, TITLE), table.caption.removeprefix(table.title))
        part = _laid_out(
            table, table.header, BELOW if verbose else (WITNESS,), () if verbose else ("architecture", EXACT, "memory")
        )
        more = [] if verbose else [*part.dropped, f"{table.more} more picks"]
        found = Shown([*found.lines, [], *title, *part.lines], [*found.dropped, *more], found.exact or part.exact)
    return found


def device_lines(outcome: Outcome, *, verbose: bool) -> list[Line]:
    """The lowest loss within your budgets on each device of several; designs in devices.csv alone but for `verbose`."""
    if (found := on_devices(outcome)) is None:
        return []
    spare = () if verbose else ("architecture", "memory", "range")
    return [[], *_laid_out(found, found.header, BELOW[:1] if verbose else (), spare).lines]


def _laid_out(table: PickTable, header: Sequence[str], below: Sequence[str], spare: Sequence[str]) -> Shown:
    lines, dropped = fitted(header, table.rows, below=below, spare=spare)
    sentences = [line for text in table.below for line in sentence(f"  {text}")]
    return Shown([*lines, *sentences], dropped, EXACT in header and EXACT not in dropped)
