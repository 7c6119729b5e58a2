"""The documents of a device study and of a ranking of published models: what the terminal prints, the page shows, and `--json` writes."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np

from nas.answer.design_words import count, describe
from nas.answer.sentences import WORKLOAD_WORDS, formats_in_words
from nas.document.document import SHARED, Cell, Column, Document, Part, Section, Table
from nas.problem.objective import is_energy
from nas.study.scenarios import larger_rows
from objectives.metrics.perplexity import perplexity_percent
from objectives.quantities import bytes_in_words
from plas_range.answers import Answer
from plas_range.cases import Case
from plas_range.models import ModelRow, memory_limit, speed_note
from plas_range.result import DeviceStudy, Models, architecture, shortage, spread
from plas_range.tables import described
from search_spaces.architectures import Architectures

MOST_ROWS = 12  # cases or designs that get a row, and cases that get a column, on the terminal
MOST_DESIGNS = 6  # designs that get a row in each other's place
MOST_REASONS = 3  # designs of which the terminal says why they differ
MOST_NAMES = 2  # cases of a design that are named beside many others
TIE = 1e-11  # nats
LETTERS = "Loss in nats; l layers, d width, E experts, K active, r FFN ratio, kv KV heads"  # of `short`


def device_document(study: DeviceStudy | None, models: Models, folder: Path | None = None) -> Document:
    """The answer of a study; without one that of the ranked models. folder: where its files are."""
    data = ({} if folder is None else {"folder": str(folder)}) | described(study, models)
    sections = tuple(_sections(study, models))
    return Document(sections[0].title, sections, data)


def _sections(study: DeviceStudy | None, models: Models) -> Iterator[Section]:
    if study is None:
        yield ranking_sections(models)[0] if len(models) == 1 else _speeds_section(models)
        return
    if len(study.rows) > MOST_ROWS:
        yield _designs_section(study)
    else:
        yield cases_section(study)
        if len(study.optima) > 1:
            yield _transfer_section(study)
    yield reading_section(study, MOST_REASONS)


def _head(study: DeviceStudy) -> tuple[str, list[str]]:
    """How many cases over which space; in which format, what a pick is, and how fast each device is taken to be."""
    problem, cases = study.cases.base.problem, [answer.case for answer in study.rows]
    title = (
        f"{len(cases):,} {'case' if len(cases) == 1 else 'cases'}: {problem.space.name} space, {problem.space.size:,} architectures, "
        f"law {problem.scenario.law.name}; {', '.join(o.name for o in problem.objectives)}"
    )
    lines, references = [formats(cases)], {case.question.baseline for case in cases}
    if references - {""}:
        where = ", where a case has no limit" if "" in references else ""
        lines.append(
            f"Pick: lowest loss in memory and total_ms at most {'/'.join(sorted(references - {''}))}'s there{where}"
        )
    return title, [*lines, *speed_lines(cases)]


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


def cases_section(study: DeviceStudy) -> Section:
    """A row per case: the loss, the least energy within the limits where it is an objective, what binds, the design."""
    design, rows = study.design_of(), list[tuple[Cell, ...]]()
    energies = [o.name for o in study.cases.base.problem.objectives if is_energy(o.name)]
    metrics = {answer.binding[:1] for answer in study.rows if answer.pick is not None}
    alike = len(metrics) == 1 and metrics != {()}
    for i, answer in enumerate(study.rows):
        case, blank = answer.case, [""] * len(energies)
        label = f"{ascii_lowercase[i]} {case.label}" if len(study.rows) <= MOST_ROWS else case.label
        under = f"{device_name(case)}, {case.config.precision}, {workload(case)}"
        if answer.pick is None:
            rows.append((label, "none fits", *blank, "", shortage(answer), under, ""))
            continue
        chosen = architecture(answer)
        star = "*" if case.problem.scenario.law.extrapolates(chosen)[0] else ""
        binds = binding(answer).split(" ")[-1] if alike else binding(answer)
        joules = [float(answer.frontier.metrics[name].min()) for name in energies]
        words = describe(chosen, case.problem.space.settings)
        rows.append((label, f"{answer.loss:.4f}{star}", *joules, binds, f"{design[i]} {short(chosen)}", under, words))
    columns = (
        Column("case", words=True),
        Column("loss"),
        *(Column(f"least {name}") for name in energies),
        Column(f"{next(iter(metrics))[0]} <=" if alike else "binds"),
        Column("design", words=True),
        Column("conditions", words=True, narrow="left out"),
        Column("architecture", words=True, narrow="left out"),
    )
    title, lines = _head(study)
    return Section(title, (*lines, Table(columns, tuple(rows), notes=(LETTERS,))))


def device_name(case: Case) -> str:
    """A case's device with its power mode."""
    return f"{case.device.name}{f' @{case.device.mode}' if case.device.mode else ''}"


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


def _designs_section(study: DeviceStudy) -> Section:
    """A row per distinct design, those of most cases first."""
    rows = list[tuple[Cell, ...]]()
    for number, optimum in enumerate(study.optima[:MOST_ROWS], 1):
        first, n = study.rows[optimum.cases[0]], len(optimum.cases)
        names = ", ".join(study.rows[i].case.label for i in optimum.cases[:MOST_NAMES])
        names += f" and {n - MOST_NAMES:,} more" if n > MOST_NAMES else ""
        rows.append((f"{number} {short(architecture(first))}", first.loss, n, names))
    columns = (
        Column("design", words=True),
        Column("loss", format=".4f"),
        Column("cases"),
        Column("picked in", words=True),
    )
    more, lost = len(study.optima) - MOST_ROWS, [answer for answer in study.rows if answer.pick is None]
    notes = [LETTERS, *([f"and {more:,} more designs, see picks.csv"] if more > 0 else [])]
    if lost:
        why = f"{lost[0].case.label}: {shortage(lost[0])}"
        notes.append(f"Nothing fits in {len(lost):,} of {len(study.rows):,} cases, see cases.csv: {why}")
    title, lines = _head(study)
    return Section(title, (*lines, Table(columns, tuple(rows), notes=tuple(notes))))


def _transfer_section(study: DeviceStudy) -> Section:
    """Distinct designs by cases: nats lost, or per cent over a limit."""
    t, n = study.transfer, len(study.rows)
    limits = [answer.case.budgets for answer in study.rows]
    over = {limits[c][int(t.missed[r, c])].metric for r, c in np.argwhere(t.violation > 0.0).tolist()}
    what = f", or % over {' or '.join(sorted(over))}" if over else ""
    rows = [
        (str(number), *(cell(study, optimum.cases[0], column, column in optimum.cases) for column in range(n)))
        for number, optimum in enumerate(study.optima[:MOST_DESIGNS], 1)
    ]
    more = len(study.optima) - MOST_DESIGNS
    notes = (f"and {more} more designs, see transfer.csv",) if more > 0 else ()
    table = Table(tuple(map(Column, ("", *ascii_lowercase[:n]))), tuple(rows), notes=notes, matrix=True)
    return Section(f"Each design in each case (= picked there): nats lost{what}", (table,))


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


def reading_section(study: DeviceStudy, most: int) -> Section:
    """How many optima and how sure; why up to `most` designs differ, the design for all, what carries at equal cost, what is not known."""
    numbers = spread(study)
    n, given = numbers["optima"], numbers["answered"]
    if not n:
        return Section("Nothing fits in any case", (f"{study.answers.proof}.",))
    of = f"{numbers['cases']:,}" if given == numbers["cases"] else f"{given:,} of {numbers['cases']:,}"
    title = f"{n:,} distinct {'optimum' if n == 1 else 'optima'} in {of} {'case' if of == '1' else 'cases'}; {study.answers.proof}"
    lines = [f"{number} ({_members(study, number - 1)}): {why}." for number, why in enumerate(study.reasons[:most], 1)]
    if n > 1 and study.universal is not None:
        lines.append(_for_all(study))
    if n > 1 and numbers["worst_pick_at_equal_cost_nats"] is not None:
        lines.append(_equal(numbers))
    return Section(title, (*lines, *_unknowns(study)))


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


def _unknowns(study: DeviceStudy) -> list[str]:
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


def ranking_sections(models: Models) -> tuple[Section, ...]:
    """Published models on each device, the fastest that fits first; a page folds all but the first device's."""
    cases = [rows[0].case for rows in models]
    return tuple(_ranking(rows, cases, folded=rows is not models[0]) for rows in models)


def _ranking(rows: Sequence[ModelRow], cases: Sequence[Case], *, folded: bool) -> Section:
    case, limit = rows[0].case, memory_limit(rows[0].case)
    several = len({row.vocabulary for row in rows}) > 1
    own = "each with its own vocabulary" if several else f"vocabulary {rows[0].vocabulary:,}"
    text = case.config.input_text
    prompt = f"{case.config.input_tokens:,} tokens" if text is None else bytes_in_words(text)
    columns = (
        SHARED["model"],
        Column("tokens/s"),
        Column("TTFT ms"),
        Column(limit.metric.replace("_gb", " GB"), format=".2f"),
        Column("fits"),
        Column("parameters", narrow="left out"),
        Column("loss"),
        Column("remarks", words=True, narrow="left out"),
    )
    parts: tuple[Part, ...] = (
        formats([case]),
        f"Fits: {limit} GB; {own}. TTFT is the prefill of {prompt}. Losses in nats.",
        Table(columns, tuple(_model(row, limit.metric) for row in rows)),
        *_largest(rows),
        _losses_note(case),
    )
    return Section(f"Published models on {', '.join([device_name(case), *_apart(case, cases)])}", parts, folded=folded)


def _model(row: ModelRow, memory: str) -> tuple[Cell, ...]:
    """A model's row."""
    first = row.metrics["prefill_ms"]
    return (
        row.model,
        row.tokens_per_second,
        f"{first:,.{0 if first >= 100 else 1}f}",
        row.metrics[memory],
        "no" if not row.fits else f"over {row.missed[0].metric}" if row.missed else "yes",
        count(row.metrics["params_total"]),
        f"{row.loss:.3f}{'*' if row.extrapolates else ''}" if np.isfinite(row.loss) else "-",
        "; ".join([*(f"over {limit}" for limit in row.missed), *row.remarks]),
    )


def _largest(rows: Sequence[ModelRow]) -> list[str]:
    """The model of most parameters that fits, and that is within all limits."""
    fitting = [row for row in rows if row.fits]
    if not fitting:
        least = min(rows, key=lambda row: row.metrics["resident_gb"])
        return [f"None fits; {least.model} needs least, {least.metrics['resident_gb']:.3g} GB resident."]
    largest = max(fitting, key=lambda row: row.metrics["params_total"])
    lines = [f"Largest that fits: {largest.model}, {largest.tokens_per_second:.3g} tokens/s."]
    if able := [row for row in fitting if not row.missed]:
        best = max(able, key=lambda row: row.metrics["params_total"])
        if any(row.missed for row in rows):
            lines.append(f"Largest within all limits: {best.model}, {best.tokens_per_second:.3g} tokens/s.")
    else:
        lines.append("None is within all limits.")
    return lines


def _losses_note(case: Case) -> str:
    """Note on the losses, and on which are extrapolations or missing."""
    law = case.problem.scenario.law
    tokens = f" after {law.tokens / 1e9:g} B training tokens" if law.tokens else ""
    return (
        f"loss: what law {law.name} predicts of the shape{tokens}, not the published model's own; * extrapolates; "
        "- no value (queries wider or narrower than the width, layers of several kinds)."
    )


def _speeds_section(models: Models) -> Section:
    """Tokens per second of models by devices."""
    cases = [rows[0].case for rows in models]
    names = "; ".join(
        f"{letter} {' '.join([case.named, *_apart(case, cases)])}"
        for letter, case in zip(ascii_lowercase, cases[:MOST_ROWS], strict=False)
    )
    more = len(cases) - MOST_ROWS
    by_id = [{row.id: row for row in rows} for rows in models[:MOST_ROWS]]
    order = sorted(models[0], key=lambda row: row.metrics["params_total"])
    columns = (SHARED["model"], *map(Column, ascii_lowercase[: len(by_id)]))
    rows = tuple((row.model, *(_speed(device[row.id]) for device in by_id)) for row in order)
    lines = [formats(cases), names, *([f"and {more:,} more, see models.csv (--out)"] if more > 0 else [])]
    title = "Tokens per second, the smallest model first; - does not fit, ! misses a limit"
    return Section(title, (*lines, *speed_lines(cases), Table(columns, rows, matrix=True)))


def _apart(case: Case, cases: Sequence[Case]) -> list[str]:
    """The precision and the workload of a case, each where not all cases share it."""
    precision = [case.config.precision] if len({c.config.precision for c in cases}) > 1 else []
    return precision + ([workload(case)] if len({workload(c) for c in cases}) > 1 else [])


def _speed(row: ModelRow) -> str:
    if not row.fits:
        return "-"
    n = row.tokens_per_second
    text = f"{n:.1f}" if n < 10 else f"{n:.0f}" if n < 10_000 else f"{n / 1000:.0f}k"
    return text + ("!" if row.missed else "")
