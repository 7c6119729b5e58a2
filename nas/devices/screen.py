"""A device study on one screen: cases with their picks, designs in each other's place, what changes, the one for all."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np

from nas.answer.design_words import describe
from nas.answer.sentences import WORKLOAD_WORDS, formats_in_words
from nas.devices.answers import Answer
from nas.devices.cases import Case
from nas.devices.models import speed_note
from nas.devices.result import DeviceStudy, architecture, perplexity_percent, shortage, spread
from nas.problem.energy_words import is_energy
from nas.search.scenarios import larger_rows
from search_spaces.architectures import Architectures

MOST_ROWS = 12  # cases that get a row and a column each on the screen
MOST_DESIGNS = 6  # designs that get a row in each other's place
LEAST_REASONS = 1
TIE = 1e-11  # nats
LETTERS = "Loss in nats; l layers, d width, E experts, K active, r FFN ratio, kv KV heads"  # of `short`


def lines_of(study: DeviceStudy, below: int) -> list[str]:
    """The answer of a study: at most one screen for a dozen cases, with `below` further lines after it."""
    few = len(study.rows) <= MOST_ROWS
    lines = [line for text in (*head(study), *speed_lines([a.case for a in study.rows])) for line in wrapped(text)]
    lines += ["", *(_cases(study) if few else _designs(study)), ""]
    if few and len(study.optima) > 1:
        lines += [*_matrix(study), ""]
    first, *rest = reading(study)
    end = [line for text in rest for line in wrapped(text)]
    lines += wrapped(first)
    for number, why in enumerate(study.reasons, 1):
        text = wrapped(f"{number} ({_members(study, number - 1)}): {why}.")
        if number > LEAST_REASONS and len(lines) + len(text) + len(end) + below > HEIGHT:
            break
        lines += text
    return lines + end


def head(study: DeviceStudy) -> list[str]:
    """How many cases over which space, in which format, and what a pick is."""
    problem, n = study.cases.base.problem, len(study.rows)
    objectives = ", ".join(o.name for o in problem.objectives)
    lines = [
        f"{n:,} {'case' if n == 1 else 'cases'}: {problem.space.name} space, {problem.space.size:,} architectures, law "
        f"{problem.scenario.law.name}; {objectives}",
        formats([answer.case for answer in study.rows]),
    ]
    references = {a.case.question.baseline for a in study.rows}
    if references - {""}:
        where = ", where a case has no limit" if "" in references else ""
        lines.append(
            f"Pick: lowest loss in memory and total_ms at most {'/'.join(sorted(references - {''}))}'s there{where}"
        )
    return lines


def formats(cases: Sequence[Case]) -> str:
    """Precision, latency model, workload and speeds, each where all cases share it."""
    configs = [case.config for case in cases]
    shared = (
        _one([formats_in_words(case.problem) for case in cases], "precisions"),
        _one([WORKLOAD_WORDS[config.latency] for config in configs], "latency models"),
        _one([workload(case) for case in cases], "workloads"),
    )
    notes = dict.fromkeys(speed_note(case) for case in cases)
    return ", ".join(shared) + (f"; {next(iter(notes))}" if len(notes) == 1 else "")


def speed_lines(cases: Sequence[Case]) -> list[str]:
    """How fast each device is taken to be, by letters; nothing where one sentence holds for all or rows have no letter."""
    letters_of: dict[str, list[str]] = {}
    for letter, case in zip(ascii_lowercase, cases, strict=False):
        letters_of.setdefault(speed_note(case), []).append(letter)
    if len(letters_of) == 1:
        return []
    if len(cases) > MOST_ROWS:
        return [f"{len(letters_of)} ways of knowing a device's speed: column speed of cases.csv and models.csv"]
    return [f"{' '.join(letters)}: {note}" for note, letters in letters_of.items()]


def warnings(cases: Sequence[Case], *, designs: bool, letters: bool = True) -> list[str]:
    """Notes on cases, and on the designs of their space, each once: by letters, or names, where it concerns some of a few, by number of many."""
    marks_of: dict[str, list[str]] = {}
    for i, case in enumerate(cases):
        for text in (*case.notices, *(larger_rows(case.problem) if designs else ())):
            mark = ascii_lowercase[i] if letters and i < MOST_ROWS else case.label
            marks_of.setdefault(text, []).append(mark)

    def where(marks: list[str]) -> str:
        if len(marks) == len(cases):
            return ""
        few = len(cases) <= MOST_ROWS
        return f" ({(' ' if letters else ', ').join(marks)})" if few else f" ({len(marks):,} of {len(cases):,} cases)"

    return [f"Warning: {text}{where(marks)}" for text, marks in marks_of.items()]


def _one(values: Sequence[str], several: str) -> str:
    distinct = dict.fromkeys(values)
    return next(iter(distinct)) if len(distinct) == 1 else f"{len(distinct)} {several}"


def workload(case: Case) -> str:
    return f"{case.config.request_words}, batch {case.config.batch}"


def _cases(study: DeviceStudy) -> list[str]:
    """A row per case: the loss, the least energy within the limits where it is an objective, what binds, the design."""
    design, rows = study.design_of(), []
    energies = [o.name for o in study.cases.base.problem.objectives if is_energy(o.name)]
    metrics = {answer.binding[:1] for answer in study.rows if answer.pick is not None}
    alike = len(metrics) == 1 and metrics != {()}
    for i, answer in enumerate(study.rows):
        if answer.pick is None:
            rows.append([ascii_lowercase[i], answer.case.label, "none", *("" for _ in energies), "", shortage(answer)])
            continue
        law = answer.case.problem.scenario.law
        star = "*" if law.extrapolates(architecture(answer))[0] else ""
        binds = binding(answer).split(" ")[-1] if alike else binding(answer)
        drawn = f"{design[i]} {short(architecture(answer))}"
        joules = [f"{float(answer.frontier.metrics[name].min()):.4g}" for name in energies]
        rows.append([ascii_lowercase[i], answer.case.label, f"{answer.loss:.4f}{star}", *joules, binds, drawn])
    least = [f"least {name}" for name in energies]
    limit = f"{next(iter(metrics))[0]} <=" if alike else "binds"
    return [*fitted(("", "case", "loss", *least, limit, "design"), rows, cut), *wrapped(LETTERS)]


def binding(answer: Answer) -> str:
    """The limit that costs most loss, `total_ms 93.42`."""
    limits = {budget.metric: budget for budget in answer.case.budgets}
    return " ".join(f"{metric} {limits[metric].limit:.4g}" for metric in answer.binding[:1]) or "nothing"


def short(design: Architectures) -> str:
    """`l16 d2048 E16K1 r0.5 kv4`; its tokens, `t10B`, where they are searched."""
    a = {name: column[0] for name, column in design.columns().items()}
    experts = "dense" if a["n_experts"] == 1 else f"E{a['n_experts']}K{a['top_k']}"
    heads = "" if a["n_heads"] * a["head_dim"] == a["width"] else f" h{a['n_heads']}x{a['head_dim']}"
    tokens = f" t{a['tokens'] / 1e9:g}B" if a.get("tokens") else ""
    return f"l{a['depth']} d{a['width']} {experts} r{a['expert_ffn_ratio']:.3g}{heads} kv{a['n_kv_heads']}{tokens}"


def _designs(study: DeviceStudy) -> list[str]:
    """A row per distinct design, those of most cases first."""
    rows = []
    for number, optimum in enumerate(study.optima[:MOST_ROWS], 1):
        first = study.rows[optimum.cases[0]]
        names = ", ".join(study.rows[i].case.label for i in optimum.cases)
        rows.append([str(number), names, f"{len(optimum.cases):,}", f"{first.loss:.4f}", short(architecture(first))])
    lines = fitted(("", "picked in", "cases", "loss", "design"), rows, cut_end)
    lines += wrapped(LETTERS)
    more = len(study.optima) - MOST_ROWS
    lines += [f"  and {more:,} more designs, see picks.csv"] if more > 0 else []
    lost = [answer for answer in study.rows if answer.pick is None]
    if lost:
        why = f"{lost[0].case.label}: {shortage(lost[0])}"
        lines += wrapped(f"Nothing fits in {len(lost):,} of {len(study.rows):,} cases, see cases.csv: {why}")
    return lines


def _matrix(study: DeviceStudy) -> list[str]:
    """Distinct designs by cases: nats lost, or per cent over a limit."""
    t, n = study.transfer, len(study.rows)
    limits = [answer.case.budgets for answer in study.rows]
    over = {limits[c][int(t.missed[r, c])].metric for r, c in np.argwhere(t.violation > 0.0).tolist()}
    what = f", or % over {' or '.join(sorted(over))}" if over else ""
    body = []
    for number, optimum in enumerate(study.optima[:MOST_DESIGNS], 1):
        cells = (cell(study, optimum.cases[0], column, column in optimum.cases) for column in range(n))
        body.append([str(number), *cells])
    more = len(study.optima) - MOST_DESIGNS
    return [
        *wrapped(f"Each design in each case (= picked there): nats lost{what}"),
        *columns(("", *ascii_lowercase[:n]), body, left=1, last=False, gap=1),
        *([f"  and {more} more designs, see transfer.csv"] if more > 0 else []),
    ]


def cell(study: DeviceStudy, row: int, column: int, own: bool) -> str:
    """A case's design in another case: `.036` nats lost, `+19%` over a limit, `=` its own."""
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
    """How many optima and how sure; the design for all, what carries at equal cost, what is not known."""
    numbers = spread(study)
    n, given = numbers["optima"], numbers["answered"]
    if not n:
        return [f"Nothing fits in any case; {study.answers.proof}."]
    of = f"{numbers['cases']:,}" if given == numbers["cases"] else f"{given:,} of {numbers['cases']:,}"
    lines = [
        f"{n:,} distinct {'optimum' if n == 1 else 'optima'} in {of} {'case' if of == '1' else 'cases'}; {study.answers.proof}."
    ]
    if n > 1 and study.universal is not None:
        lines.append(_for_all(study))
    if n > 1 and numbers["worst_pick_at_equal_cost_nats"] is not None:
        lines.append(_equal(numbers))
    return lines + unknowns(study)


def _members(study: DeviceStudy, number: int) -> str:
    """The cases of an optimum: letters where the cases have them, else how many."""
    cases = study.optima[number].cases
    return " ".join(ascii_lowercase[i] for i in cases) if len(study.rows) <= MOST_ROWS else f"{len(cases):,} cases"


def _for_all(study: DeviceStudy) -> str:
    best = study.universal
    assert best is not None
    problem = study.cases.base.problem
    design = describe(problem.space.architectures(problem.space.genotypes(np.array([best.key]))))
    scope = "" if best.exact else " among the frontiers' members"
    if not best.for_all:
        return f"No design{scope} is within the limits of all {best.of:,} cases; {design} is in {best.fits:,} and loses up to {best.worst:.3f} nats there."
    mean = float(np.nanmean(best.regret))
    return (
        f"One for all{scope}: {design} loses {mean:.3f} nats on average, at most {best.worst:.3f} nats "
        f"({perplexity_percent(best.worst):.1f} % perplexity)."
    )


def _equal(n: Mapping[str, Any]) -> str:
    """Losses of designs in other cases against those that cost no more there."""
    lost = n["worst_pick_at_equal_cost_nats"]
    picks = f"a pick loses up to {lost:.3f} nats elsewhere" if lost > TIE else "no pick loses anything elsewhere"
    return (
        f"At equal {n['cost']} {picks}; of a frontier {100 * n['least_frontier_shared']:.0f} to 100 % is on another, its members "
        f"lose {n['mean_frontier_at_equal_cost_nats']:.3f} nats on average, at most {n['worst_frontier_at_equal_cost_nats']:.3f} nats."
    )


def unknowns(study: DeviceStudy) -> list[str]:
    """Differences between these cases that law and latency cannot see."""
    lines = []
    configs = [answer.case.config for answer in study.rows]
    if len({config.precision for config in configs}) > 1:
        lines.append("Losses do not know the precision: what quantisation costs is not in them.")
    starred = any(
        a.pick is not None and a.case.problem.scenario.law.extrapolates(architecture(a))[0] for a in study.rows
    )
    if starred:
        lines.append("* outside what the law was fitted on: an extrapolation.")
    return lines


WIDTH, HEIGHT = 80, 40


def wrapped(text: str) -> list[str]:
    """A sentence on lines of the screen's width, further ones indented."""
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int, last: bool, gap: int) -> list[str]:
    """Aligned columns `gap` apart: the first `left` to the left, and the last one where `last` says so."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [
            cell.ljust(width) if i < left or (last and i == len(header) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + (" " * gap).join(cells).rstrip())
    return lines


def fitted(header: Sequence[str], rows: Sequence[Sequence[str]], cutter: Callable[[str, int], str]) -> list[str]:
    """Columns of at most the screen's width: the second is cut by `cutter`, the last at its end."""
    fixed = [[*row[:-1], cut_end(row[-1], 40)] for row in rows]
    others = sum(max(len(row[i]) for row in (header, *fixed)) + 2 for i in range(len(header)) if i != 1)
    most = max(WIDTH - 2 - others, 12)
    shown = [[cutter(cell, most) if i == 1 else cell for i, cell in enumerate(row)] for row in fixed]
    return columns(header, shown, left=2, last=True, gap=2)


def cut(text: str, most: int) -> str:
    """A text of at most so many characters, its middle left out."""
    return text if len(text) <= most else f"{text[: (most - 1) // 2]}…{text[len(text) - most // 2 :]}"


def cut_end(text: str, most: int) -> str:
    """A text of at most so many characters, its end left out."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
