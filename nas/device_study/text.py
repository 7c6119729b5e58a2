"""A device study on one screen: cases with their picks, the transfer matrix, what changes, the design for all."""

import textwrap
from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np

from nas.answer.sentences import WORKLOAD_WORDS, count
from nas.device_study.answers import Answer
from nas.device_study.cases import Case
from nas.device_study.models import ModelRow, memory_limit, speed_note
from nas.device_study.reasons import architecture, what_is_short
from nas.device_study.result import DeviceStudy, Models, perplexity_percent, spread
from nas.terminal.console import say, table
from search_spaces.architectures import Architectures

WIDTH = 80
MOST_ROWS = 12  # cases that get a row and a column each on the screen
MOST_REASONS = 5
MODEL_COLUMN = 18
TIE = 1e-11  # nats


def show(study: DeviceStudy) -> None:
    """The answer of a study, at most one screen for a dozen cases."""
    for line in (*head(study), *speed_lines([answer.case for answer in study.rows])):
        wrapped(line)
    say()
    (_cases if len(study.rows) <= MOST_ROWS else _designs)(study)
    say()
    if len(study.rows) <= MOST_ROWS and study.optima:
        _matrix(study)
        say()
    for line in reading(study):
        wrapped(line)


def wrapped(text: str) -> None:
    """A sentence on lines of the screen's width, further ones indented."""
    for line in textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False) or [""]:
        say(line)


def head(study: DeviceStudy) -> list[str]:
    """How many cases over which space, in which format, and what a pick is."""
    problem, n = study.cases.base.problem, len(study.rows)
    objectives = ", ".join(o.name for o in problem.objectives)
    said = [
        f"{n:,} {'case' if n == 1 else 'cases'}: {problem.space.name} space, {problem.space.size:,} architectures, law "
        f"{problem.scenario.law.name}; {objectives}",
        formats([answer.case for answer in study.rows]),
    ]
    references = {a.case.question.baseline for a in study.rows}
    if references - {""}:
        where = ", where a case has no limit" if "" in references else ""
        said.append(
            f"Pick: lowest loss in memory and total_ms at most {'/'.join(sorted(references - {''}))}'s there{where}"
        )
    return said


def formats(cases: Sequence[Case]) -> str:
    """Precision, latency model, workload and speeds, each where all cases share it."""
    configs = [case.config for case in cases]
    shared = (
        _one([config.precision for config in configs], "precisions"),
        _one([WORKLOAD_WORDS[config.latency] for config in configs], "latency models"),
        _one([_workload(case) for case in cases], "workloads"),
    )
    notes = dict.fromkeys(speed_note(case) for case in cases)
    return ", ".join(shared) + (f"; {next(iter(notes))}" if len(notes) == 1 else "")


def speed_lines(cases: Sequence[Case]) -> list[str]:
    """How fast each device is taken to be, by letters; nothing where one sentence holds for all or rows have no letter."""
    found: dict[str, list[str]] = {}
    for letter, case in zip(ascii_lowercase, cases, strict=False):
        found.setdefault(speed_note(case), []).append(letter)
    if len(found) == 1:
        return []
    if len(cases) > MOST_ROWS:
        return [f"{len(found)} ways of knowing a device's speed: column speed of cases.csv and models.csv"]
    return [f"{' '.join(letters)}: {note}" for note, letters in found.items()]


def _one(values: Sequence[str], several: str) -> str:
    distinct = dict.fromkeys(values)
    return next(iter(distinct)) if len(distinct) == 1 else f"{len(distinct)} {several}"


def _workload(case: Case) -> str:
    c = case.config
    return f"{c.input_tokens:,} in / {c.output_tokens:,} out, batch {c.batch}"


def _cases(study: DeviceStudy) -> None:
    """A row per case: what binds, the loss, the design."""
    design, rows = study.design_of(), []
    metrics = {answer.binding[:1] for answer in study.rows if answer.pick is not None}
    alike = len(metrics) == 1 and metrics != {()}
    for i, answer in enumerate(study.rows):
        if answer.pick is None:
            rows.append([ascii_lowercase[i], answer.case.label, "none", "", what_is_short(answer)])
            continue
        law = answer.case.problem.scenario.law
        star = "*" if law.extrapolates(architecture(answer))[0] else ""
        binds = binding(answer).split(" ")[-1] if alike else binding(answer)
        drawn = f"{design[i]} {short(architecture(answer))}"
        rows.append([ascii_lowercase[i], answer.case.label, f"{answer.loss:.4f}{star}", binds, drawn])
    _fitted(("", "case", "loss", f"{next(iter(metrics))[0]} <=" if alike else "binds", "design"), rows)


def _fitted(header: tuple[str, ...], rows: list[list[str]], flexible: int = 1) -> None:
    """A table of at most the screen's width: the flexible column is cut in the middle, the last at its end."""
    rows = [[*row[:-1], textwrap.shorten(row[-1], 40, placeholder=" …")] for row in rows]
    others = sum(max(len(row[i]) for row in (list(header), *rows)) + 2 for i in range(len(header)) if i != flexible)
    most = max(WIDTH - 2 - others, 12)
    table(header, [[cut(cell, most) if i == flexible else cell for i, cell in enumerate(row)] for row in rows], left=2)


def cut(text: str, most: int) -> str:
    """A text of at most so many characters, its middle left out."""
    return text if len(text) <= most else f"{text[: (most - 1) // 2]}…{text[len(text) - most // 2 :]}"


def binding(answer: Answer) -> str:
    """The limit that costs most loss, `total_ms 93.42`."""
    limits = {budget.metric: budget for budget in answer.case.budgets}
    return " ".join(f"{metric} {limits[metric].limit:.4g}" for metric in answer.binding[:1]) or "nothing"


def short(design: Architectures) -> str:
    """`l16 d2048 E16K1 r0.5 kv4`."""
    a = {name: column[0] for name, column in design.columns().items()}
    experts = "dense" if a["n_experts"] == 1 else f"E{a['n_experts']}K{a['top_k']}"
    return f"l{a['depth']} d{a['width']} {experts} r{a['expert_ffn_ratio']:.3g} kv{a['n_kv_heads']}"


def _designs(study: DeviceStudy) -> None:
    """A row per distinct design, those of most cases first."""
    rows = []
    for number, optimum in enumerate(study.optima[:MOST_ROWS], 1):
        first = study.rows[optimum.cases[0]]
        names = ", ".join(study.rows[i].case.label for i in optimum.cases)
        rows.append([str(number), names, f"{len(optimum.cases):,}", f"{first.loss:.4f}", short(architecture(first))])
    _fitted(("", "picked in", "cases", "loss", "design"), rows)
    more = len(study.optima) - MOST_ROWS
    if more > 0:
        say(f"  and {more:,} more designs, see picks.csv")
    lost = [answer for answer in study.rows if answer.pick is None]
    if lost:
        wrapped(
            f"Nothing fits in {len(lost):,} of {len(study.rows):,} cases, see cases.csv: {lost[0].case.label}: {what_is_short(lost[0])}"
        )


def _matrix(study: DeviceStudy) -> None:
    """Distinct designs by cases: nats lost, or per cent over a limit."""
    over = {
        a.case.budgets[int(m)].metric
        for a, column, v in zip(study.rows, study.transfer.missed.T, study.transfer.violation.T, strict=True)
        for m in column[v > 0.0]
    }
    what = f", or % over {' or '.join(sorted(over))}" if over else ""
    say(f"Each design in each case (= picked there): nats lost{what}")
    body = []
    for number, optimum in enumerate(study.optima, 1):
        row = optimum.cases[0]
        body.append(
            [str(number), *(_cell(study, row, column, column in optimum.cases) for column in range(len(study.rows)))]
        )
    _narrow(("", *ascii_lowercase[: len(study.rows)]), body)


def _cell(study: DeviceStudy, row: int, column: int, own: bool) -> str:
    t = study.transfer
    if study.rows[column].pick is None:
        return ""
    if own:
        return "="
    violation = float(t.violation[row, column])
    if violation > 0.0:
        return f"+{100 * violation:.0f}%" if violation < 9.995 else f"{1 + violation:.0f}x"
    return f"{t.regret[row, column]:.3f}".lstrip("0")


def reading(study: DeviceStudy) -> list[str]:
    """How many optima and how sure, what changes, the design for all, what carries at equal cost, what is not known."""
    numbers = spread(study)
    n, given = numbers["optima"], numbers["answered"]
    of = f"{numbers['cases']:,}" if given == numbers["cases"] else f"{given:,} of {numbers['cases']:,}"
    if not n:
        return [f"Nothing fits in any case; {study.answers.said}."]
    said = [f"{n:,} distinct {'optimum' if n == 1 else 'optima'} in {of} cases; {study.answers.said}."]
    said += [f"{i} ({_members(study, i - 1)}): {why}." for i, why in enumerate(study.reasons[:MOST_REASONS], 1)]
    if n > 1 and study.universal is not None:
        said.append(_for_all(study))
    if n > 1 and numbers["worst_pick_at_equal_cost_nats"] is not None:
        said.append(_equal(numbers))
    return said + unknowns(study)


def _members(study: DeviceStudy, number: int) -> str:
    """The cases of an optimum: letters where the cases have them, else how many."""
    cases = study.optima[number].cases
    return " ".join(ascii_lowercase[i] for i in cases) if len(study.rows) <= MOST_ROWS else f"{len(cases):,} cases"


def _for_all(study: DeviceStudy) -> str:
    best = study.universal
    assert best is not None
    problem = study.cases.base.problem
    design = short(problem.space.architectures(problem.space.genotypes(np.array([best.key]))))
    scope = "" if best.exact else " among the frontiers' members"
    if not best.for_all:
        return f"No design{scope} is within the limits of all {best.of:,} cases; {design} is in {best.fits:,} and loses up to {best.worst:.3f} nats there."
    mean = float(np.nanmean(best.regret))
    return (
        f"One for all{scope}: {design} loses {mean:.3f} nats on average, at most {best.worst:.3f} "
        f"({perplexity_percent(best.worst):.1f} % perplexity)."
    )


def _equal(n: Mapping[str, Any]) -> str:
    """What designs lose elsewhere against those that cost no more there."""
    lost = n["worst_pick_at_equal_cost_nats"]
    picks = f"a pick loses up to {lost:.3f} nats elsewhere" if lost > TIE else "every pick is on every frontier"
    return (
        f"At equal {n['cost']} {picks}; of a frontier {100 * n['least_frontier_shared']:.0f} to 100 % is on another, its members "
        f"lose {n['mean_frontier_at_equal_cost_nats']:.3f} on average, at most {n['worst_frontier_at_equal_cost_nats']:.3f}."
    )


def unknowns(study: DeviceStudy) -> list[str]:
    """What law and latency cannot tell between these cases."""
    said = []
    configs = [answer.case.config for answer in study.rows]
    if len({config.precision for config in configs}) > 1:
        said.append("Losses do not know the precision: what quantisation costs is not in them.")
    starred = any(
        a.pick is not None and a.case.problem.scenario.law.extrapolates(architecture(a))[0] for a in study.rows
    )
    if starred:
        said.append("* outside what the law was fitted on: an extrapolation.")
    return said


def show_models(models: Models) -> None:
    """The ranking on one device in full, or tokens per second on several."""
    if len(models) == 1:
        _one_device(models[0])
    else:
        _several(models)


def _one_device(rows: Sequence[ModelRow]) -> None:
    case = rows[0].case
    limit = memory_limit(case)
    mode = f"@{case.device.mode}" if case.device.mode else ""
    wrapped(f"{case.device.name}{mode}, {formats([case])}")
    wrapped(
        f"Fits: {limit} GB; each with its own vocabulary. TTFT is the prefill of {case.config.input_tokens:,} tokens."
    )
    say()
    limits = any(row.missed for row in rows)
    body = [
        [
            row.model,
            f"{row.tokens_per_second:.4g}",
            f"{row.metrics['prefill_ms']:,.{0 if row.metrics['prefill_ms'] >= 100 else 1}f}",
            f"{row.metrics[limit.metric]:.2f}",
            "no" if not row.fits else f"over {row.missed[0].metric}" if row.missed else "yes",
            count(row.metrics["params_total"]),
            _loss(row),
        ]
        for row in rows
    ]
    table(("model", "tokens/s", "TTFT ms", limit.metric.replace("_gb", " GB"), "fits", "parameters", "loss"), body)
    say()
    for line in (*largest(rows, limits), *model_notes(rows)):
        wrapped(line)


def _loss(row: ModelRow) -> str:
    return "-" if not np.isfinite(row.loss) else f"{row.loss:.3f}{'*' if row.extrapolates else ' '}"


def largest(rows: Sequence[ModelRow], limits: bool) -> list[str]:
    """The model of most parameters that fits, and that is within all limits."""
    fitting = [row for row in rows if row.fits]
    if not fitting:
        least = min(rows, key=lambda row: row.metrics["resident_gb"])
        return [f"None fits; {least.model} needs least, {least.metrics['resident_gb']:.3g} GB resident."]
    found = max(fitting, key=lambda row: row.metrics["params_total"])
    said = [f"Largest that fits: {found.model}, {found.tokens_per_second:.3g} tokens/s."]
    able = [row for row in fitting if not row.missed]
    if limits and able:
        best = max(able, key=lambda row: row.metrics["params_total"])
        said.append(f"Largest within all limits: {best.model}, {best.tokens_per_second:.3g} tokens/s.")
    elif limits:
        said.append("None is within all limits.")
    return said


def model_notes(rows: Sequence[ModelRow]) -> list[str]:
    """What the losses are, which are extrapolations or cannot be told, what costs do not know of a model."""
    law = rows[0].case.problem.scenario.law
    tokens = f" after {law.tokens / 1e9:g} B training tokens" if law.tokens else ""
    said = [
        f"loss: what law {law.name} predicts of the shape{tokens}, not the published model's own; * extrapolates; - it cannot tell (queries wider or narrower than the width)."
    ]
    windows = [row.model for row in rows if any(remark.startswith("Sliding window") for remark in row.remarks)]
    if windows:
        said.append(f"Sliding windows are costed as full attention: {', '.join(windows)}.")
    return said


def _several(models: Models) -> None:
    cases = [rows[0].case for rows in models]
    shown = cases[:MOST_ROWS]
    wrapped(formats(cases))
    wrapped("; ".join(f"{ascii_lowercase[i]} {_named(case, cases)}" for i, case in enumerate(shown)))
    if len(cases) > len(shown):
        say(f"and {len(cases) - len(shown):,} more, see models.csv (--out)")
    for line in speed_lines(cases):
        wrapped(line)
    say()
    found = [{row.id: row for row in rows} for rows in models[:MOST_ROWS]]
    order = sorted(models[0], key=lambda row: row.metrics["params_total"])
    body = [[cut(row.model, MODEL_COLUMN), *(_speed(column[row.id]) for column in found)] for row in order]
    say("Tokens per second, the smallest model first; - does not fit, ! misses a limit")
    _narrow(("model", *ascii_lowercase[: len(shown)]), body)


def _narrow(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns of numbers a space apart."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows):
        cells = [
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        say("  " + " ".join(cells).rstrip())


def _named(case: Case, cases: Sequence[Case]) -> str:
    """A case of models: the device, and its format where these differ."""
    further: list[str] = [case.config.precision] if len({c.config.precision for c in cases}) > 1 else []
    further += [_workload(case)] if len({_workload(c) for c in cases}) > 1 else []
    return " ".join([case.named, *further])


def _speed(row: ModelRow) -> str:
    if not row.fits:
        return "-"
    n = row.tokens_per_second
    text = f"{n:.1f}" if n < 10 else f"{n:.0f}" if n < 10_000 else f"{n / 1000:.0f}k"
    return text + ("!" if row.missed else "")
