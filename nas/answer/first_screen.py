"""The answer of a run on one screen of 24 lines: the design, what it takes, how sure that is, the frontier, what to type next."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np

from nas.answer import sentences
from nas.answer import three_sentences as answering
from nas.answer.answer_document import LOSS, answer_document, on_devices
from nas.answer.design_words import count, describe_in_words, figure, figure_of
from nas.answer.device_times import PREFIX, counted, in_ms, limits, misses, times_of
from nas.answer.outcome import Outcome
from nas.answer.take import advice, tokens
from nas.answer.under_laws import TITLE as UNDER_LAWS
from nas.answer.under_laws import verdict_header, verdict_lines, verdict_rows
from nas.document.document import Column, Table, table_of
from nas.exact.gains import DIFFERENT
from nas.problem.diagnosis import Diagnosis, at_least, lines
from nas.problem.evaluations import Evaluations
from nas.problem.law_caveats import blind_lines
from nas.problem.objective import Baseline, unit_of
from nas.problem.picks import Pick
from nas.problem.problem import METRIC_ORDER, Problem
from nas.problem.quantiles import share_of, time_ranges
from nas.problem.uncertainty import AS_GOOD, Difference
from nas.study.configuration import StudyConfig
from nas.terminal.console import Line, sentence, write
from nas.terminal.doors import command
from nas.terminal.scatter import LINES, MARGIN, Series, scatter
from nas.terminal.screen_text import COMMAND, TITLE, Styled, columns, linked, rows, shown, wrapped
from nas.terminal.tables import show as show_document
from nas.terminal.tables import table_lines
from objectives.display_text import in_a_command
from objectives.loss_law.law import origin_line, verdict_line
from search_spaces.architectures import Architectures

COLUMNS, ROWS = 80, 24  # of the screen that the answer fits
LOWEST, HIGHEST = 4, 12  # lines of the plot
INDENT = "  "
COSTS = METRIC_ORDER[2:]  # all but the loss
WORDS = {  # of metrics whose limits people type
    "total_ms": "total time",
    "prefill_ms": "time to the first token",
    "decode_ms": "decode time",
    "tpot_ms": "time per token",
    "memory_gb": "memory",
    "resident_gb": "memory",
    "memory_share": "share of memory",
    "resident_share": "share of memory",
}


def show_head(problem: Problem, config: StudyConfig, calibration_note: str, *, verbose: bool) -> None:
    """Print what is searched and by which law, before anything else is done; verbose: with every setting."""
    settings = [*_sentences(sentences.headline(problem, config, calibration_note)), []] if verbose else []
    write([*_head(problem, config), *settings])


def show(outcome: Outcome, folder: Path, *, verbose: bool = False) -> None:
    """Print the answer of a finished run: on one screen, or everything that is known of it before that screen."""
    if verbose:
        show_document(answer_document(outcome))
        write([[]])
    show_first_screen(outcome, folder, steps=None if verbose else 1)


def show_first_screen(outcome: Outcome, folder: Path, *, steps: int | None) -> None:
    """Print the answer below the head and so many commands to type next; the plot takes the lines that are left."""
    first, last, study = _answer(outcome), _ending(outcome, folder, steps), outcome.study
    used = len(_head(study.problem, study.config)) + len(first) + len(last) + 1
    if used > ROWS and steps is not None:
        first = _answer(outcome, engines=False)
    if sys.stderr.isatty():  # warnings stand on the same screen
        used += len(_sentences([f"Warning: {text}" for text in study.notices]))
    height = HIGHEST + LINES if steps is None else (rows() or ROWS) - used
    middle = [[]] if outcome.diagnosis is None else _details(outcome, height)
    if outcome.diagnosis is None:
        middle = _tables(outcome) or _plot(outcome, height - LINES)
    write([*first, *middle, *last])


def _head(problem: Problem, config: StudyConfig) -> list[Line]:
    """Under which conventions, which device and workload; whose losses, and what that law is known to get wrong."""
    if sentences.is_of_the_paper(problem, config):
        name = "The paper's study"
    else:
        name = "On the device" if config.preset == "device" else "Paper's conventions"
    scenario, law = problem.scenario, problem.scenario.law
    formats = ", ".join(each.precision.name for each in scenario.formats or (scenario,))
    batch = f", batch {config.batch}" if config.batch > 1 else ""
    only = "".join(f", {axis}={sentences.in_short(list(map(str, values)))}" for axis, values in config.only.items())
    what = f"{sentences.devices_in_words(problem)}, {formats}, {config.request_words}{batch}{only}"
    losses = f"Law {law.name}"
    losses = f"{losses}: {law.caveat}" if law.caveat else origin_line(law).partition(", residual")[0] or losses
    chosen = [f"auto: {config.auto}; docs/strategies.md#which-one"] if config.auto else []
    return [*sentence(Styled(f"{name}: {what}", TITLE), most=COLUMNS), *_sentences([losses, *chosen]), []]


def _sentences(texts: Sequence[str], indent: str = "") -> list[Line]:
    """Sentences as lines of the screen; further lines of one are indented."""
    return [line for text in texts for line in sentence(f"{indent}{text}", most=COLUMNS)]


def _answer(outcome: Outcome, *, engines: bool = True) -> list[Line]:
    """The design, what it takes, how it compares, and every warning about it; of a study in which nothing fits, that."""
    if outcome.diagnosis is not None:
        nothing = answering.three_sentences(outcome)
        return [] if nothing is None else _sentences(nothing.sentences)
    pick = outcome.picks[0]
    if pick.answer is None:
        return []
    problem, metrics, law = outcome.study.problem, pick.answer.first, outcome.study.problem.scenario.law
    design = problem.architectures(pick.answer.genotypes)
    size, rest = describe_in_words(design, problem.space.settings)
    take = [] if outcome.take is None else [*advice(outcome.take)]
    titles = [f"Best design: {size}"]
    if outcome.take is not None and outcome.take.take:
        titles, take = [take[0], f"Or train: {size}"], take[1:]
    used = f", {count(metrics['params_active'], 'B')} used per token" if int(design.n_experts[0]) > 1 else ""
    facts = [
        answering.own_first(problem, metrics),
        f"{rest}, {count(metrics['params_total'], 'B')} parameters{used}",
        f"Predicted loss {metrics['loss']:.2f} nats{_doubt_of_loss(problem, design)}",
        *take,
        _takes(outcome, design, metrics),
        _speed(problem, metrics),
        answering.margin_line(problem, pick.answer, outcome.unsafe),
        *_on_the_device(outcome),
    ]
    further = [
        *_compared(outcome),
        answering.engines_line(problem, design) if engines else "",
        verdict_line(law),
        *blind_lines(law, outcome.blind),
    ]
    title = [line for text in titles for line in sentence(Styled(text, TITLE), most=COLUMNS)]
    choices = _choices(outcome, design, metrics)
    return [
        *title,
        *_sentences([*filter(None, facts)], INDENT),
        *choices,
        *_sentences([*filter(None, further)], INDENT),
    ]


def _takes(outcome: Outcome, design: Architectures, metrics: dict[str, float]) -> str:
    """`Takes total time 487 of 500 ms, memory 6.1 of 8 GB; total time limits it.`, else what the next better design needs."""
    problem, changes = outcome.study.problem, outcome.changes
    limited = limits(problem)
    names = answering.minimised_or_limited(problem, metrics)
    words = WORDS | ({"memory_gb": "weights"} if "resident_gb" in names else {})
    figures = [_figure(problem, name, metrics[name], limited.get(name), words) for name in names]
    where = f"On {problem.pricing(design).device.name} it takes" if problem.scenario.devices else "Takes"
    active = [words.get(budget.metric, budget.metric) for budget in answering.reached(changes, metrics)]
    held = _next_better(outcome, words)
    if active:
        held = f"; {' and '.join(dict.fromkeys(active))} {'limits' if len(active) == 1 else 'limit'} it"
    return f"{where} {', '.join(figures)}{held}."


def _next_better(outcome: Outcome, words: Mapping[str, str]) -> str:
    """Where no limit is known to be reached, the evaluated design that is better and misses limits the least; else the change that buys most."""
    problem, changes, every = outcome.study.problem, outcome.changes, outcome.evaluations
    if changes is not None and not changes.binding:
        best = changes.best
        better = "" if best is None else f"; better with {answering.changed(problem, best)}: loss {best.loss:.2f}"
        return f"; no limit is reached{better}"
    answer = outcome.picks[0].answer
    assert answer is not None
    lower = every.ok & (every.metrics["loss"] < answer.metrics["loss"][0] * (1.0 - DIFFERENT))
    if not lower.any() or not every.budgets:
        return ""
    over = np.where(lower, every.violations.max(axis=1), np.inf)
    row, by = every[np.array([np.argmin(over)])], every.violations[np.argmin(over)]
    needs = [
        _figure(problem, budget.metric, row.first[budget.metric], None, words)
        for budget, over_by in zip(every.budgets, by.tolist(), strict=True)
        if over_by > 0 and not budget.of_evidence
    ]
    none = "" if changes is None else "; no limit is reached"
    return f"{none}; the next better, loss {row.first['loss']:.2f}, needs {' and '.join(needs)}" if needs else none


def _speed(problem: Problem, metrics: Mapping[str, float]) -> str:
    """`First token after 177 ms, then 53 tokens per second.`"""
    rate = 1e3 * problem.scenario.batch / metrics["tpot_ms"] if metrics["tpot_ms"] > 0.0 else float("nan")
    then = f", then {in_ms(rate)} tokens per second" if np.isfinite(rate) else ""
    return f"First token after {in_ms(metrics['prefill_ms'])} ms{then}."


def _figure(problem: Problem, name: str, value: float, limit: float | None, words: Mapping[str, str]) -> str:
    if name not in words:
        return figure(problem, name, value) if limit is None else figure_of(problem, name, value, limit)
    most = "" if limit is None else f" of {in_ms(limit)}"
    return f"{words[name]} {in_ms(value)}{most} {unit_of(name)}".rstrip()


def _on_the_device(outcome: Outcome) -> list[str]:
    """The same time under preset `device`, where this study's own is another, and whether it misses a limit there."""
    problem, there = outcome.study.problem, outcome.device_times[0]
    if outcome.alike:
        return []
    times = times_of(problem)
    figures = " and ".join(f"{WORDS[name]} is about {in_ms(there[PREFIX + name])} ms" for name in times)
    missed = ", above the limit" if misses(limits(problem, outcome.picks[0].question), there) else ""
    added = ", ".join(counted(problem, outcome.on_device))
    return [f"On the real device {figures}{missed}: it adds {added}."]


def _choices(outcome: Outcome, design: Architectures, metrics: dict[str, float]) -> list[Line]:
    """Where measured times of such devices lie; the answer, and the fastest design whose loss is hardly higher."""
    problem, every = outcome.study.problem, outcome.evaluations[outcome.evaluations.feasible]
    time, answer = times_of(problem)[0], outcome.picks[0].answer
    scenario = problem.pricing(design)
    if answer is None or outcome.picks[0].question.least != "loss":
        return []
    good = np.where(every.metrics["loss"] <= metrics["loss"] + AS_GOOD, every.metrics[time], np.inf)
    fastest = every[np.array([np.argmin(good)])]
    choices = {"best": answer}
    choices |= {f"fastest, +{AS_GOOD:g}": fastest} if fastest.first[time] < metrics[time] else {}
    lines, ranges = list[str](), time_ranges(scenario, design, metrics)
    if time in ranges:
        (low, high), profile = ranges[time], scenario.calibration
        whose = "devices of this class" if profile is not None and profile.typical else "measured models"
        share = share_of(scenario, design)
        whose += "" if share >= 80 else " (of so few no more is claimed)"
        lines = [f"{share} % of {whose} take {in_ms(low)} to {in_ms(high)} ms."]
    if len(choices) == 1:
        return _sentences(lines, INDENT)
    memory = "resident_gb" if problem.scenario.complete else "memory_gb"
    body = [
        (name, f"{row.first['loss']:.2f}", in_ms(row.first[time]), in_ms(row.first[memory]), _size(problem, row))
        for name, row in choices.items()
    ]
    heads = ("loss", time.removeprefix("total_").replace("_", " "), "GB")
    named = (Column("", words=True), *map(Column, heads), Column("design", words=True))
    return [*_sentences(lines, INDENT), *table_lines(Table(named, tuple(body)))]


def _size(problem: Problem, row: Evaluations) -> str:
    design = problem.architectures(row.genotypes)
    experts = f"{design.n_experts[0]} experts, {design.top_k[0]} used" if design.n_experts[0] > 1 else "dense"
    return f"{design.depth[0]} layers, width {design.width[0]:,}, {experts}"


def _doubt_of_loss(problem: Problem, design: Architectures) -> str:
    """What is known of the error of one loss."""
    law = problem.scenario.law
    if law.extrapolates(design)[0]:
        return " (extrapolated: the law was fitted on other designs)"
    unknown = " (error unknown)" if law.residual_sd is None and not law.draws else ""
    return unknown + ("; what rounding costs is not in it" if answering.is_rounded_free(problem, design) else "")


def _compared(outcome: Outcome) -> list[str]:
    """The pick that is as fast as the first published model, beside it: by the study's law, then by published trainings."""
    vocabularies = (None, outcome.study.problem.vocabulary)
    for model in outcome.study.baselines[:1]:
        for at, pick in enumerate(outcome.picks):
            if pick.question.baseline == model.label and pick.question.vocabulary in vocabularies:
                return list(_beside(outcome, at, pick, model))
    return []


def _beside(outcome: Outcome, at: int, pick: Pick, model: Baseline) -> Iterator[str]:
    assert pick.question.budget is not None
    law, complete = outcome.study.problem.scenario.law, outcome.study.problem.scenario.complete
    theirs_ms, limited = pick.question.budget.limit, limits(outcome.study.problem)
    missed = ", above the limit" if theirs_ms > limited.get(pick.question.budget.metric, np.inf) else ""
    times = 1.0 if pick.answer is None else theirs_ms / pick.answer.first[pick.question.budget.metric]
    faster = f"{times:.3g} times as fast as" if missed else "As fast as"
    where = f"{faster} {model.label} ({in_ms(theirs_ms)} ms{missed})"
    if pick.answer is None:
        yield f"{where}: no design fits."
        return
    theirs = float(law.loss(model.architecture)[0])
    nats = float(pick.answer.metrics["loss"][0]) - theirs
    if not np.isfinite(nats):
        yield f"{where}: this law gives no loss for that model."
        return
    on = f", both on {tokens(law.tokens)}" if law.sees_tokens and law.tokens else ""
    name = "resident_gb" if complete else "memory_gb"
    held = sentences.baseline_metric(outcome, model.architecture, name)
    memories = "" if held is None else f", {pick.answer.first[name]:.2f} for {held:.2f} GB"
    of_equal_memory, by_law = outcome.picks[at + 1].answer, _by_law(outcome, at + 1, model)
    equal = "no design fits"
    if of_equal_memory is not None:
        undecided = by_law is not None and by_law.low < 0.0 < by_law.high
        own = float(of_equal_memory.metrics["loss"][0]) - theirs
        equal = "no difference" if undecided else _lower(by_law, own)
    yield f"{where}{on}: {_lower(_by_law(outcome, at, model), nats)}{memories}; in its memory {equal}."
    if (witness := outcome.witnesses[at]) is not None:
        verdict = "the opposite, " if witness.disagrees else ""
        verdict = "no difference shown, " if witness.undecided else verdict
        said = _lower(witness.difference, witness.difference.nats, "none of them is like this design")
        yield f"By published trainings: {verdict if witness.difference.known else ''}{said}."


def _by_law(outcome: Outcome, at: int, model: Baseline) -> Difference | None:
    return None if outcome.doubt is None else outcome.doubt.differences[at].get(model.label)


def _lower(difference: Difference | None, nats: float, unknown: str = "no training supports it") -> str:
    """`0.11 nats lower (90 %: 0.04 to 0.19)`, with the interval where a law has one."""
    nats = nats if difference is None else difference.nats
    words = f"{abs(nats):.2f} nats {'lower' if nats < 0 else 'higher'}"
    if difference is None:
        return words
    if not difference.known:
        return f"{words}, but {unknown}"
    low, high = round(difference.low, 2), round(difference.high, 2)
    between = "{:.2f} to {:.2f}".format(*sorted((abs(low), abs(high))))
    return f"{words} (90 %: {f'{-low:.2f} lower to {high:.2f} higher' if low < 0.0 < high else between})"


def _details(outcome: Outcome, room: int) -> list[Line]:
    """What is missing where nothing fits, as much as there is room for."""
    assert outcome.diagnosis is not None
    details = lines(outcome.diagnosis, outcome.diagnosis_covers_space)
    missing = [[], *_sentences(details[1:] if answering.three_sentences(outcome) is not None else details)]
    return [*missing[: max(room, LOWEST)], []]


def _tables(outcome: Outcome) -> list[Line]:
    """What was asked for instead of the picture: each device's answer, or the answer under each law."""
    shown: list[Line] = []
    if (by_device := on_devices(outcome)) is not None:
        shown += [[], *table_lines(Table(by_device.columns[:3], tuple(row[:3] for row in by_device.rows)))]
    if outcome.under_laws is not None:
        problem, answers = outcome.study.problem, outcome.under_laws
        table = table_of(verdict_header(answers.laws), verdict_rows(problem, answers), UNDER_LAWS)
        shown += [[], *table_lines(table), *_sentences(verdict_lines(problem, answers), INDENT)]
    return [*shown, []] if shown else []


def _plot(outcome: Outcome, height: int) -> list[Line]:
    """The frontier, the answer and the published models; nothing where there is no room for four lines of it."""
    problem, front, axes = outcome.study.problem, outcome.frontier, sentences.plot_axes(outcome.frontier.objectives)
    if axes is None or height < LOWEST:
        return [[]]
    across, up = axes
    log_x = next(o for o in problem.objectives if o.name == across).log_scale
    series = [Series("frontier", "·", front.metrics[across], front.metrics[up], "cyan")]
    if (answer := outcome.picks[0].answer) is not None:
        series.append(Series("best", "O", answer.metrics[across], answer.metrics[up], "bold yellow"))
    for model, mark in zip(outcome.study.baselines, cycle("◆◇▲△■□"), strict=False):
        x, y = (sentences.baseline_metric(outcome, model.architecture, name) for name in (across, up))
        if x is not None and y is not None:
            series.append(Series(model.label, mark, np.array([x]), np.array([y]), "bold magenta"))
    width = min(COLUMNS, columns()) - MARGIN - 1
    drawn = scatter(series, across, LOSS if up == "loss" else up, log_x=log_x, width=width, height=min(height, HIGHEST))
    return [[], *([shown(part, sys.stdout) for part in line] for line in drawn)]


def _ending(outcome: Outcome, folder: Path, most: int | None) -> list[Line]:
    """How close the search came to the exact frontier, where the files are, what to type next."""
    page = ", report.html" if (folder / "report.html").exists() else ""
    texts = ("Files: ", linked(folder, f"{folder}/"), f" (picks.csv{page}); more: --verbose")
    files = wrapped([shown(part, sys.stdout) for part in texts], min(columns(), COLUMNS))
    steps = [["Next: ", shown(Styled(step, COMMAND), sys.stdout)] for step in next_steps(outcome, folder)[:most]]
    return [*_sentences(sentences.certainty(outcome, brief=True)), *files, *steps]


def next_steps(outcome: Outcome, folder: Path) -> list[str]:
    """Commands to run next; every limit in them is one that opens a design of this run."""
    evaluated, diagnosis, problem = len(outcome.evaluations), outcome.diagnosis, outcome.study.problem
    if evaluated and not outcome.evaluations.ok.any():
        return []
    here, again = in_a_command(folder), f"{command('run')} --config {in_a_command(folder / 'config.yaml')}"
    steps, proved = [], False
    if diagnosis is None:
        steps += [f"{command('explain')} {here}", f"{command('select')} {here} --budget {tighter(outcome)}"]
    else:
        proved = outcome.diagnosis_covers_space and diagnosis.together > 0
        if diagnosis.together > 0 and (opening := relaxed(diagnosis, problem.scenario.device.memory_gb)):
            steps.append(f"{again} {opening}")
        if smaller := diagnosis.vocabulary:
            steps.append(f"{again} --vocabulary {smaller.size}")
    if outcome.study.config.algo != "exact" and evaluated < problem.space.size and not proved:
        more = min(2 * max(evaluated, 1), problem.space.size)
        steps.append(f"{command('run')} --resume {here} --evaluations {more}")
    return steps


def tighter(outcome: Outcome) -> str:
    """A budget at the middle of the frontier, as short as it can be written and still leave designs out."""
    metric = next((name for name in outcome.frontier.objectives if name in COSTS), "total_ms")
    values = np.sort(outcome.frontier.metrics[metric])
    middle = float(values[(len(values) - 1) // 2])
    written = [at_least(middle, digits) for digits in (2, 3, 4, 5)]
    return f"{metric}={next((limit for limit in written if float(limit) < values[-1]), at_least(middle))}"


def relaxed(diagnosis: Diagnosis, memory_gb: float) -> str:
    """The least relaxation of one budget that opens a design, else of all of them; "" where none is known to."""
    there = dict.fromkeys(answering.MEMORIES, memory_gb)  # a device has no more
    if diagnosis.outside is not None and not diagnosis.inside:
        return "--set outside=allow"
    alone = {r.budget: r.limit for r in diagnosis.relaxations if r.limit is not None and r.limit > r.budget.limit}
    alone = {b: limit for b, limit in alone.items() if limit <= there.get(b.metric, np.inf)}
    if alone:
        least = min(alone, key=lambda budget: alone[budget] / budget.limit)
        return f"--budget {least.metric}={at_least(alone[least])}"
    if not np.isfinite(diagnosis.together):
        return ""
    closest = diagnosis.closest
    missed = {b.metric for b in closest.budgets if closest.metrics[b.metric][0] > b.limit}
    limits = {r.budget.metric: (1.0 + diagnosis.together) * r.budget.limit for r in diagnosis.relaxations}
    every = {metric: at_least(limit) for metric, limit in limits.items() if metric in missed}
    if any(float(limit) > there.get(metric, np.inf) for metric, limit in every.items()):
        return ""
    return " ".join(f"--budget {metric}={limit}" for metric, limit in every.items())
