"""The picks of a run as tables: within your budgets, within each application's, beside each published model."""

import math
from dataclasses import dataclass, replace

from nas.answer.device_times import PREFIX, alike, limits, misses, times_of, verdict, verdict_in_short
from nas.answer.model_remarks import blind_spots, equal_heads
from nas.answer.outcome import Outcome
from nas.answer.sentences import baseline_metric, count, describe
from nas.exact.gains import DIFFERENT
from nas.frontier.picks import Pick
from nas.problem.problem import Problem
from nas.problem.questions import Baseline, Question
from nas.terminal.console import Line, sentence
from nas.terminal.styles import BAD, DOUBT, GOOD, TITLE, Styled
from nas.terminal.tables import fitted

EXACT = "exact"
BELOW = ("architecture", "active", "params", "memory", EXACT)  # in this order, where all is shown
HEADLINES = 2  # rows beside a published model: of any memory, and of its own

Asked = tuple[Pick, dict[str, float], float | None]  # with its times on the device and the loss of the exact one


@dataclass(frozen=True)
class Shown:
    """Lines, what they leave out, and whether they hold the exact pick's loss where the search missed it."""

    lines: list[Line]
    dropped: list[str]
    exact: bool


def pick_lines(outcome: Outcome, *, verbose: bool) -> Shown:
    """Lowest loss within your budgets, then within each application's, and the time a real device would show."""
    problem = outcome.study.problem
    rows = _rows(outcome, "")
    own_times = alike(problem, [(pick, there) for pick, there, _ in rows])
    header = ["Lowest predicted loss within", "loss", EXACT, "takes", f"{PREFIX}ms", "memory", "params", "active"]
    table = _table(
        [*header, "architecture"],
        [_pick_row(outcome, *row) for row in rows],
        {f"{PREFIX}ms"} if own_times else set(),
        () if verbose else ("params", "active", EXACT),
    )
    if not own_times:
        missed = [misses(limits(problem, pick.question), there) for pick, there, _ in rows]
        said = (verdict if verbose else verdict_in_short)(problem, outcome.on_device, missed)
        table.lines.extend(sentence(f"  {said}"))
    for line in regret_lines(outcome):
        table.lines.extend(sentence(f"  {line}"))
    return table


def _rows(outcome: Outcome, baseline: str) -> list[Asked]:
    """Picks beside a baseline ("": none)."""
    every = zip(outcome.picks, outcome.device_times, outcome.exact_losses, strict=True)
    return [row for row in every if row[0].question.baseline == baseline]


def _better(loss: float | None, best: float | None, theirs: float | None = None) -> str:
    """The exact pick's loss where the search did not find it, and its change of a baseline's perplexity."""
    if best is None or (loss is not None and best >= loss * (1.0 - DIFFERENT)):
        return ""
    return f"{best:.4f}" + ("" if theirs is None else f" ({_change(best, theirs)})")


def _change(loss: float, theirs: float) -> str:
    """How a loss changes another one's perplexity."""
    return f"{100 * (math.exp(loss - theirs) - 1):+.1f} %"


def _table(header: list[str], body: list[list[str]], without: set[str], spare: tuple[str, ...]) -> Shown:
    """A table without the columns that say nothing."""
    missed = any(row[header.index(EXACT)] for row in body)
    kept = [i for i, name in enumerate(header) if name not in without and (missed or name != EXACT)]
    below = BELOW if not spare else () if "architecture" in spare else BELOW[:1]
    chosen = [[row[i] for i in kept] for row in body]
    lines, dropped = fitted([header[i] for i in kept], chosen, below=below, spare=spare)
    return Shown(lines, dropped, missed and EXACT not in dropped)


def regret_lines(outcome: Outcome) -> list[str]:
    """What another evaluated design could gain over each pick, if the law carries draws."""
    known = [
        f"{p.question.label} {low:.4f} to {high:.4f}"
        for p, (low, high) in ((p, r) for p, r in zip(outcome.picks, outcome.regrets, strict=True) if r is not None)
    ]
    return [f"Regret of the picks over 90 % of the law's draws, nats: {'; '.join(known)}."] if known else []


def _pick_row(outcome: Outcome, pick: Pick, there: dict[str, float], best: float | None) -> list[str]:
    problem, question, answer = outcome.study.problem, pick.question, pick.answer
    name = question.label + ("" if question.budget is None else f": {question.budget}")
    if answer is None:
        return [name, Styled("none fits", BAD), _better(None, best), *[""] * 6]
    m = {metric: float(column[0]) for metric, column in answer.metrics.items()}
    architectures = problem.architectures(answer.genotypes)
    return [
        name,
        _loss(m["loss"], extrapolated=bool(problem.scenario.law.extrapolates(architectures)[0])),
        _better(m["loss"], best),
        ", ".join(_taken(problem, question, m)),
        _there(problem, question, there),
        f"{m['memory_gb']:.3g} GB",
        count(m["params_total"]),
        count(m["params_active"]),
        describe(architectures),
    ]


def _loss(loss: float, *, extrapolated: bool) -> str:
    return Styled(f"{loss:.4f}*", DOUBT) if extrapolated else Styled(f"{loss:.4f}", GOOD)


def _taken(problem: Problem, question: Question, m: dict[str, float]) -> list[str]:
    """What the limits are on, but for the memory, which has its column; the total time where none is on a time."""
    names = dict.fromkeys([*limits(problem, question), *times_of(problem, question)])
    shown = [name for name in names if name != "memory_gb"]
    named = question.budget is None or len(shown) > 1
    return [f"{name} {m[name]:.2f}" if named and name != "total_ms" else f"{m[name]:.2f}" for name in shown]


def _there(problem: Problem, question: Question, there: dict[str, float]) -> str:
    said = ", ".join(f"{there[PREFIX + name]:.4g}" for name in times_of(problem, question))
    return Styled(said, BAD) if misses(limits(problem, question), there) else said


def baseline_lines(outcome: Outcome, *, verbose: bool) -> Shown:
    """The picks that are as fast as each published model: of any memory and of its own; all, with the LM head, if verbose."""
    lines: list[Line] = []
    dropped: list[str] = []
    exact = False
    for known in outcome.study.baselines:
        rows = _rows(outcome, known.label)
        if not rows:
            continue
        table = _beside(outcome, known, rows if verbose else rows[:HEADLINES], verbose=verbose)
        lines += [[], *table.lines]
        remarks = [*(equal_heads(known) if verbose else []), *blind_spots(known, outcome.study.problem.scenario)]
        for line in remarks:
            lines += sentence(f"  {line}")
        dropped += [*table.dropped, f"{len(rows) - HEADLINES} more rows"] if not verbose else []
        exact = exact or table.exact
    return Shown(lines, dropped, exact)


def _beside(outcome: Outcome, known: Baseline, rows: list[Asked], *, verbose: bool) -> Shown:
    """The table beside one model, under its own figures."""
    law = outcome.study.problem.scenario.law
    loss, outside = float(law.loss(known.architecture)[0]), bool(law.extrapolates(known.architecture)[0])
    memory = baseline_metric(outcome, known.architecture, "memory_gb")
    limit = rows[0][0].question.budget
    own = [] if verbose or limit is None else [f"{limit.limit:.2f} ms"]
    own += [] if memory is None else [f"{memory:.3g} GB"]
    own += [
        f"predicted loss {loss:.4f}{'*' if outside else ''}",
        *([f"perplexity {math.exp(loss):.2f}"] if verbose else []),
    ]
    title = sentence(Styled(f"At most as slow as {known.label}", TITLE), f" ({', '.join(own)})")
    header = [
        "compared",
        "loss",
        EXACT,
        "perplexity",
        "its total_ms",
        "total_ms",
        f"{PREFIX}ms",
        "memory",
        "architecture",
    ]
    table = _table(
        header,
        [_baseline_row(outcome, *row, loss) for row in rows],
        set() if verbose else {"its total_ms"},
        () if verbose else ("architecture", EXACT),
    )
    return replace(table, lines=[*title, *table.lines])


def _baseline_row(outcome: Outcome, pick: Pick, there: dict[str, float], best: float | None, loss: float) -> list[str]:
    assert pick.question.budget is not None
    label, limit = pick.question.label.partition(", ")[2], f"{pick.question.budget.limit:.2f}"
    if pick.answer is None:
        return [label, Styled("none fits", BAD), _better(None, best, loss), "", limit, "", "", "", ""]
    problem = outcome.study.problem
    m = {name: float(column[0]) for name, column in pick.answer.metrics.items()}
    architectures = problem.architectures(pick.answer.genotypes)
    return [
        label,
        _loss(m["loss"], extrapolated=bool(problem.scenario.law.extrapolates(architectures)[0])),
        _better(m["loss"], best, loss),
        _change(m["loss"], loss),
        limit,
        f"{m['total_ms']:.2f}",
        f"{there[f'{PREFIX}total_ms']:.4g}",
        f"{m['memory_gb']:.3g} GB",
        describe(architectures),
    ]
