"""The picks of a run as tables: within your budgets, within each application's, beside each published model."""

import math
from collections.abc import Sequence

from nas.answer.device_times import PREFIX, alike, limits, misses, times_of, verdict
from nas.answer.model_remarks import blind_spots, equal_heads
from nas.answer.outcome import Outcome, asked_text
from nas.answer.sentences import baseline_metric, count, describe
from nas.exact.gains import DIFFERENT
from nas.frontier.picks import Pick
from nas.terminal.console import say
from nas.terminal.tables import table

EXACT = "exact"


def show_picks(outcome: Outcome) -> None:
    """Lowest loss within your budgets, then within each application's, and the time a real device would show."""
    problem = outcome.study.problem
    rows = _rows(outcome, "")
    say("Lowest predicted loss within your budgets" + ", and within an application's besides" * (len(rows) > 1))
    header = ("within", "loss", EXACT, "takes", f"{PREFIX}ms", "parameters", "active", "memory", "architecture")
    own_times = alike(problem, [(pick, there) for pick, there, _ in rows])
    _table(header, [_pick_row(outcome, *row) for row in rows], {f"{PREFIX}ms"} if own_times else set())
    if not own_times:
        say(
            f"  {verdict(problem, outcome.on_device, [misses(limits(problem, p.question), there) for p, there, _ in rows])}"
        )
    for line in regret_lines(outcome):
        say(line)
    say()


def _rows(outcome: Outcome, baseline: str) -> list[tuple[Pick, dict[str, float], float | None]]:
    """Picks beside a baseline ("": none), each with its times on the device and the loss of the exact one."""
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


def _table(header: Sequence[str], body: list[list[str]], without: set[str]) -> None:
    """A table without the columns that say nothing; what the exact column means is said below it."""
    missed = any(row[header.index(EXACT)] for row in body)
    kept = [i for i, name in enumerate(header) if name not in without and (missed or name != EXACT)]
    table([header[i] for i in kept], [[row[i] for i in kept] for row in body])
    if missed:
        say(f"  {EXACT}: the lowest loss there is, where this search did not find it; --algo exact gives the design")


def regret_lines(outcome: Outcome) -> list[str]:
    """What another evaluated design could gain over each pick, if the law carries draws."""
    known = [
        f"{p.question.label} {low:.4f} to {high:.4f}"
        for p, (low, high) in ((p, r) for p, r in zip(outcome.picks, outcome.regrets, strict=True) if r is not None)
    ]
    return [f"Regret of the picks over 90 % of the law's draws, nats: {'; '.join(known)}."] if known else []


def _pick_row(outcome: Outcome, pick: Pick, there: dict[str, float], best: float | None) -> list[str]:
    problem, question, answer = outcome.study.problem, pick.question, pick.answer
    added = "" if question.budget is None else f": {question.budget}"
    name = asked_text(problem, question) + added
    if answer is None:
        return [name, "none fits", _better(None, best), "", "", "", "", "", ""]
    m = {metric: float(column[0]) for metric, column in answer.metrics.items()}
    limited, times = limits(problem, question), times_of(problem, question)
    takes = [f"{m[metric]:.2f}" for metric in limited] + [f"{t} {m[t]:.2f}" for t in times if t not in limited]
    architectures = problem.architectures(answer.genotypes)
    mark = "*" if problem.scenario.law.extrapolates(architectures)[0] else ""
    return [
        name,
        f"{m['loss']:.4f}{mark}",
        _better(m["loss"], best),
        ", ".join(takes),
        ", ".join(f"{there[PREFIX + t]:.4g}" for t in times),
        count(m["params_total"]),
        count(m["params_active"]),
        f"{m['memory_gb']:.3g} GB",
        describe(architectures),
    ]


def show_baselines(outcome: Outcome) -> None:
    """The picks that are as fast as each published model, of any memory and of its own, without and with the LM head."""
    problem = outcome.study.problem
    for known in outcome.study.baselines:
        rows = _rows(outcome, known.label)
        if not rows:
            continue
        loss = float(problem.scenario.law.loss(known.architecture)[0])
        mark = "*" if problem.scenario.law.extrapolates(known.architecture)[0] else ""
        memory = baseline_metric(outcome, known.architecture, "memory_gb")
        say(
            f"At most as slow as {known.label} ({memory:.3g} GB of weights; predicted loss {loss:.4f}{mark}, "
            f"perplexity {math.exp(loss):.2f})"
        )
        header = ("compared", "its total_ms", "pick's", f"{PREFIX}ms", "memory", "loss", EXACT, "perplexity", "change")
        _table((*header, "architecture"), [_baseline_row(outcome, *row, loss) for row in rows], set())
        for line in (*equal_heads(known), *blind_spots(known, problem.scenario)):
            say(f"  {line}")
        say()


def _baseline_row(outcome: Outcome, pick: Pick, there: dict[str, float], best: float | None, loss: float) -> list[str]:
    assert pick.question.budget is not None
    label, limit = pick.question.label.partition(", ")[2], f"{pick.question.budget.limit:.2f}"
    if pick.answer is None:
        return [label, limit, "none fits", "", "", "", _better(None, best, loss), "", "", ""]
    m = {name: float(column[0]) for name, column in pick.answer.metrics.items()}
    return [
        label,
        limit,
        f"{m['total_ms']:.2f}",
        f"{there[f'{PREFIX}total_ms']:.4g}",
        f"{m['memory_gb']:.3g} GB",
        f"{m['loss']:.4f}",
        _better(m["loss"], best, loss),
        f"{math.exp(m['loss']):.2f}",
        _change(m["loss"], loss),
        describe(outcome.study.problem.architectures(pick.answer.genotypes)),
    ]
