"""The picks of a run as tables: within your budgets, within each application's, beside each published model."""

import math
from collections.abc import Sequence

import numpy as np

from nas.answer.design_words import blind_spots, count, describe, equal_heads
from nas.answer.device_times import PREFIX, alike, limits, misses, ranges_in_words, times_of, verdict
from nas.answer.on_each_device import OnDevice
from nas.answer.outcome import Outcome, PickRegret
from nas.answer.sentences import baseline_metric, question_text
from nas.answer.sureness import difference_in_short, witness_in_words
from nas.answer.witness import EVIDENCE
from nas.document.document import Table, table_of
from nas.exact.gains import DIFFERENT
from nas.problem.objective import OWN, Baseline, PickQuery, unit_of
from nas.problem.picks import Pick
from nas.problem.problem import Problem
from nas.problem.uncertainty import FROM_LOSS
from nas.terminal.screen_text import BAD, DOUBT, GOOD, Styled
from nas.terminal.tables import SAID
from objectives.metrics.perplexity import of_losses, perplexity_percent
from objectives.quantities import day_in_words

EXACT = "exact (nats)"
EXACT_MEANS = "exact: the lowest loss there is, where this search missed it (--algo exact finds it)"
NATS = "nats (90 %), better"  # in a column: the difference with its interval, the probability that the pick is the better one
OF_FIRST = "nats from {}, better"
(WITNESS,) = SAID  # in a column or below its row: what `evidence` says of a difference of another law
OF_SIZE = ("memory", "params", "active")
LARGE = 1e9  # from here on figures are shown by their powers of ten
SUFFIXES = {"ms": "_ms", "GB": "_gb", "J": "_j", "W": "_w", "h": "_hours"}  # of metrics' names, by unit
CONVENTION = "architecture in convention"
TOTAL = "total "  # the time that is meant where none is named
SHOWN = 12  # devices in a table

LOSS = "loss (nats)"
WITHIN = "Lowest predicted loss (nats)"
PickRow = tuple[Pick, dict[str, float], float | None]  # with its times on the device and the loss of the exact one


def own_picks(outcome: Outcome) -> Table:
    """Lowest loss within your budgets, then within each application's, and its difference from the first published model.

    Where times on the device are others, what holds there stands first, the study's own convention apart.
    """
    rows = [(pick, there) for pick, there, _ in _rows(outcome, "")]
    same = alike(outcome.study.problem, rows)
    return _as_it_is(outcome) if same else _in_convention(outcome)


def _as_it_is(outcome: Outcome) -> Table:
    rows, first = _rows(outcome, ""), _first_label(outcome)
    header = ("within", LOSS, OF_FIRST.format(first), EXACT, "takes", *OF_SIZE, "architecture", WITNESS)
    without = set() if first else {OF_FIRST.format(first)}
    body = [_pick_row(outcome, pick, best) for pick, _, best in rows]
    below = expected_regrets(outcome)
    return _table(WITHIN, header, body, without, below)


def _in_convention(outcome: Outcome) -> Table:
    """The same with what holds on the device first."""
    problem, rows, first = outcome.study.problem, _rows(outcome, ""), _first_label(outcome)
    convention = ("in convention", OF_FIRST.format(first), EXACT, f"{PREFIX}ms")
    figures = ("on the device", *OF_SIZE, *convention) if outcome.held else (*convention, *OF_SIZE)
    header = ("within", *figures, "architecture", WITNESS, *[CONVENTION] * bool(outcome.held))
    without = set() if first else {OF_FIRST.format(first)}
    held = outcome.held or [None] * len(rows)
    body = [_both_rows(outcome, *row, each) for row, each in zip(rows, held, strict=True)]
    missed = [misses(limits(problem, pick.question), there) for pick, there, _ in rows]
    below = (verdict(problem, outcome.on_device, missed), *expected_regrets(outcome))
    return _table(WITHIN, header, body, without, below)


def _both_rows(
    outcome: Outcome, pick: Pick, there: dict[str, float], best: float | None, held: Pick | None
) -> list[str]:
    """What holds on the device and how large it is, then the study's own pick; that one's size where nothing is known of the device's."""
    name, loss, difference, missed, taken, *sizes, design, witness = _pick_row(outcome, pick, best)
    here, problem = Styled("none fits", BAD), outcome.study.problem
    if pick.answer is not None:
        over = " !" if misses(limits(problem, pick.question), there) else ""
        style = BAD if over else DOUBT if loss.endswith("*") else GOOD
        here = Styled(f"{loss} at {_alone(taken)}{over}", style)
    at = "" if pick.answer is None else ", ".join(f"{there[PREFIX + n]:.4g}" for n in times_of(problem, pick.question))
    convention = [here, difference, missed, at]
    if held is None:
        return [name, *convention, *sizes, design, witness]
    *figures, design_there = _held(outcome, held)
    return [name, *figures, *convention, design_there, witness, design]


def _held(outcome: Outcome, held: Pick) -> list[str]:
    """What holds on the device: `3.5128 at 19.9 ms`, its memory, parameters, the active ones, the design."""
    if held.answer is None:
        return [Styled("none fits", BAD), "", "", "", ""]
    m = held.answer.first
    problem = outcome.on_device
    design = problem.architectures(held.answer.genotypes)
    star = "*" if problem.scenario.law.extrapolates(design)[0] else ""
    taken = ", ".join(_taken(outcome.study.problem, held.question, m))
    words = Styled(f"{m['loss']:.4f}{star} at {_alone(taken)}", DOUBT if star else GOOD)
    return [words, *_sizes(m), describe(design, problem.space.settings)]


def _alone(taken: str) -> str:
    """What is taken, without the name of the total where that is all."""
    return taken if ", " in taken else taken.removeprefix(TOTAL)


def _sizes(m: dict[str, float]) -> list[str]:
    return [f"{m['memory_gb']:.3g} GB", count(m["params_total"]), count(m["params_active"])]


def on_devices(outcome: Outcome) -> Table | None:
    """The lowest loss within your budgets on each device of several, what it takes with the range of measured times there; None of one."""
    if not outcome.on_each_device:
        return None
    header = ("on each device", LOSS, "takes", "memory", "of the frontier", "range", "architecture")
    every = outcome.on_each_device
    most = sorted(every, key=lambda each: -each.on_frontier)[:SHOWN]
    body = [_on_device(outcome, each) for each in every if len(every) <= SHOWN or each in most]
    searched = () if outcome.whole else ("Among what was evaluated on each; --algo exact solves each.",)
    left = f"Of {len(every)} devices those with most of the frontier; all are in devices.csv."
    searched = (*searched, *([left] if len(every) > SHOWN else []))
    without = set[str]() if any(row[5] for row in body) else {"range"}
    return _table("On each device", header, body, without, searched)


def _on_device(outcome: Outcome, each: OnDevice) -> list[str]:
    problem, members = outcome.study.problem, f"{each.on_frontier:,}"
    if each.pick is None:
        short = ", ".join(figure(problem, metric, value) for metric, value in each.missed.items())
        return [each.name, Styled("none fits", BAD), f"closest: {short}" if short else "", "", members, "", ""]
    designs = problem.architectures(each.pick.genotypes)
    m = each.pick.first
    own = PickQuery(OWN, None)
    outside = bool(problem.scenario.law.extrapolates(designs)[0])
    times = ranges_in_words(problem.pricing(designs), designs, m, times_of(problem, own)[:1])
    figures_asked = [name for name in problem.metric_names if name in problem.scenario.figures]
    minimised = [o.name for o in problem.objectives if o.name not in FROM_LOSS]
    taken = dict.fromkeys([*minimised, *figures_asked, *times_of(problem, own)])
    figures = ", ".join(figure(problem, name, m[name]) for name in taken)
    return [
        each.name,
        _loss(m["loss"], extrapolated=outside),
        figures,
        f"{m['memory_gb']:.3g} GB",
        members,
        times,
        describe(designs.on(""), problem.space.settings),
    ]


def _rows(outcome: Outcome, baseline: str) -> list[PickRow]:
    """Picks beside a baseline ("": none)."""
    every = zip(outcome.picks, outcome.device_times, outcome.exact_losses, strict=True)
    return [row for row in every if row[0].question.baseline == baseline]


def _better(loss: float | None, best: float | None, theirs: float | None = None) -> str:
    """The exact pick's loss where the search did not find it, and its change of a baseline's perplexity where that has one."""
    if best is None or (loss is not None and best >= loss * (1.0 - DIFFERENT)):
        return ""
    return f"{best:.4f}" + (f" (ppl {_change(best, theirs)})" if theirs is not None and math.isfinite(theirs) else "")


def _change(loss: float, theirs: float) -> str:
    """How a loss changes another one's perplexity; nothing of one that the law does not price."""
    if not math.isfinite(theirs):
        return "-"
    return f"{perplexity_percent(loss - theirs):+.1f} %"


def _table(title: str, header: Sequence[str], body: list[list[str]], without: set[str], below: Sequence[str]) -> Table:
    """A table without the columns that say nothing."""
    silent = {name for name in (EXACT, WITNESS) if name in header and not any(row[header.index(name)] for row in body)}
    kept = [i for i, name in enumerate(header) if name not in without | silent]
    shown = [header[i] for i in kept]
    notes = [*[EXACT_MEANS] * (EXACT in shown), *below]
    return table_of(shown, [[row[i] for i in kept] for row in body], title, notes)


def expected_regrets(outcome: Outcome) -> list[str]:
    """Each pick's expected regret beside the least one."""
    if outcome.doubt is None:
        return []
    regrets = [
        f"{pick.question.label} {regret_in_words(outcome.study.problem, found)}"
        for pick, found in zip(outcome.picks, outcome.doubt.regrets, strict=True)
        if found is not None
    ]
    return [f"Expected regret over the law's draws, nats: {'; '.join(regrets)}."] if regrets else []


def regret_in_words(problem: Problem, found: PickRegret) -> str:
    """`0.0122, least 0.0085 at l 21, …`."""
    own, least = f"{found.nats:.4f}", f"{found.least.expected_regret:.4f}"
    among = "" if found.least.proven else " of the frontier"
    if own == least:
        return f"{own}, the least{among}"
    design = problem.architectures(found.least.genotype[None])
    return f"{own}, least{among} {least} at {describe(design)}"


def _pick_row(outcome: Outcome, pick: Pick, best: float | None) -> list[str]:
    problem, question, answer = outcome.study.problem, pick.question, pick.answer
    name = question.label + ("" if question.budget is None else f": {question.budget}")
    if answer is None:
        return [name, Styled("none fits", BAD), "", _better(None, best), *[""] * 6]
    m = answer.first
    architectures = problem.architectures(answer.genotypes)
    return [
        name,
        _loss(m["loss"], extrapolated=bool(problem.scenario.law.extrapolates(architectures)[0])),
        from_model(outcome, pick, _first_label(outcome)),
        _better(m["loss"], best),
        ", ".join(_taken(problem, question, m)),
        *_sizes(m),
        describe(architectures, problem.space.settings),
        by_witness(outcome, pick),
    ]


def _first_label(outcome: Outcome) -> str:
    """The first published model, under a law that says how sure it is; "" of another, and without a model."""
    return outcome.study.baselines[0].label if outcome.doubt is not None and outcome.study.baselines else ""


def from_model(outcome: Outcome, pick: Pick, label: str) -> str:
    """How a pick's loss differs from a published model's, in short; "" where the law does not say how sure it is."""
    if outcome.doubt is None or not label:
        return ""
    found = outcome.doubt.differences[outcome.picks.index(pick)].get(label)
    return "" if found is None else difference_in_short(found)


def by_witness(outcome: Outcome, pick: Pick) -> str:
    """What `evidence` says of a pick beside its model, in words; "" of a law that rests on it."""
    found = outcome.witnesses[outcome.picks.index(pick)]
    if found is None:
        return ""
    said = f"{EVIDENCE}: {witness_in_words(found)}"
    return said if found.confirms else Styled(said, DOUBT)


def _loss(loss: float, *, extrapolated: bool) -> str:
    return Styled(f"{loss:.4f}*", DOUBT) if extrapolated else Styled(f"{loss:.4f}", GOOD)


def _taken(problem: Problem, question: PickQuery, m: dict[str, float]) -> list[str]:
    """Metrics with limits, objectives first, but for the memory, which has its column; the total time where no time has a limit."""
    limited = [*limits(problem, question), *times_of(problem, question)]
    ordered = [*(o.name for o in problem.objectives if o.name in limited), *limited]
    shown = [name for name in dict.fromkeys(ordered) if name != "memory_gb"]
    named = question.budget is None or len(shown) > 1  # else the row's first column names it
    return [figure(problem, name, m[name], named=named) for name in shown]


def figure(problem: Problem, metric: str, value: float, *, named: bool = True) -> str:
    """A metric by its name, with its unit: `total 482.9 ms`, `resident 3.88 GB`, `train 1.2e+21 FLOP`."""
    own = {function.name: function.unit for function in problem.functions}
    unit = own[metric] if metric in own else unit_of(metric, problem.scenario.figures)
    if unit == "date":
        return f"{metric * named} {day_in_words(value)}".strip()
    name = metric.rpartition(":")[2].removesuffix(SUFFIXES.get(unit, ""))
    number = f"{value:,.0f}" if 1e4 <= value < LARGE else f"{value:.4g}"
    return f"{name * named} {number} {unit}".strip()


def figure_of(problem: Problem, metric: str, value: float, limit: float) -> str:
    """A metric beside its limit: `total 486.9 of 500 ms`, `memory_share 0.41 of 1`."""
    at_most = figure(problem, metric, limit, named=False)
    unit = "".join(at_most.partition(" ")[1:])
    return f"{figure(problem, metric, value).removesuffix(unit)} of {at_most}"


def least_figures(outcome: Outcome) -> list[str]:
    """Of each figure of devices that is minimised the frontier's least: on which device, and the lowest loss there."""
    problem, found = outcome.study.problem, outcome.frontier
    minimised = [o.name for o in problem.objectives if o.name in problem.scenario.figures]
    sentences = []
    for name in minimised if len(found) else ():
        row = int(np.lexsort((found.metrics["loss"], found.metrics[name]))[0])
        m = {metric: float(column[row]) for metric, column in found.metrics.items()}
        design = describe(problem.architectures(found.genotypes[[row]]), problem.space.settings)
        named = [figure(problem, metric, m[metric]) for metric in (name, *times_of(problem, PickQuery(OWN, None)))]
        sentences.append(f"{', '.join(named)}, predicted loss {m['loss']:.4f}: {design}")
    return sentences


OWN_HEADER = ("within", LOSS, "total (ms)", "memory", "params", "active", "architecture")


def own_pick(outcome: Outcome) -> tuple[str, ...]:
    """The pick within your budgets under `OWN_HEADER`."""
    pick = outcome.picks[0]
    within = question_text(outcome.study.problem, pick.question)
    if pick.answer is None:
        return (within, "none fits", "", "", "", "", "")
    m = pick.answer.first
    architecture = outcome.study.problem.architectures(pick.answer.genotypes)
    mark = "*" if outcome.study.problem.scenario.law.extrapolates(architecture)[0] else ""
    figures = (f"{m['loss']:.4f}{mark}", f"{m['total_ms']:.2f}", f"{m['memory_gb']:.3g} GB")
    return (
        within,
        *figures,
        count(m["params_total"]),
        count(m["params_active"]),
        describe(architecture, outcome.study.problem.space.settings),
    )


def beside_baselines(outcome: Outcome) -> list[Table]:
    """The picks that are as fast as each published model, a table each: of any memory and of its own, with every LM head."""
    asked = [(known, rows) for known in outcome.study.baselines if (rows := _rows(outcome, known.label))]
    return [_beside(outcome, known, rows) for known, rows in asked]


def _beside(outcome: Outcome, known: Baseline, rows: list[PickRow]) -> Table:
    """The table beside one model, under its own figures."""
    problem = outcome.study.problem
    scenario = problem.scenario
    loss = float(scenario.law.loss(known.architecture)[0])
    memory = baseline_metric(outcome, known.architecture, "memory_gb")
    facts = [] if memory is None else [f"{memory:.3g} GB"]
    facts += _predicted(loss, outside=bool(scenario.law.extrapolates(known.architecture)[0]))
    header = (
        *("compared", LOSS, NATS, EXACT, "perplexity change", "its total_ms", "total_ms", f"{PREFIX}ms", "memory"),
        *("architecture", WITNESS),
    )
    body = [_baseline_row(outcome, *row, known.label, loss) for row in rows]
    below = (*([] if problem.space.own_heads else equal_heads(known)), *blind_spots(known, scenario))
    without = set[str]() if outcome.doubt is not None else {NATS}
    on = f" on {scenario.devices[0][0]}" if scenario.devices else ""
    return _table(f"At most as slow as {known.label}{on} ({', '.join(facts)})", header, body, without, below)


def _predicted(loss: float, *, outside: bool) -> list[str]:
    """A published model's loss by the law, and its perplexity; that there is none where the law does not price it."""
    if not math.isfinite(loss):
        return ["no loss by this law"]
    return [f"predicted loss {loss:.4f}{'*' * outside} nats", f"perplexity {of_losses(loss):.2f}"]


def _baseline_row(
    outcome: Outcome, pick: Pick, there: dict[str, float], best: float | None, of: str, loss: float
) -> list[str]:
    assert pick.question.budget is not None
    label, limit = pick.question.label.partition(", ")[2], f"{pick.question.budget.limit:.2f}"
    if pick.answer is None:
        return [label, Styled("none fits", BAD), "", _better(None, best, loss), "", limit, *[""] * 5]
    problem = outcome.study.problem
    m = pick.answer.first
    architectures = problem.architectures(pick.answer.genotypes)
    return [
        label,
        _loss(m["loss"], extrapolated=bool(problem.scenario.law.extrapolates(architectures)[0])),
        from_model(outcome, pick, of),
        _better(m["loss"], best, loss),
        _change(m["loss"], loss),
        limit,
        f"{m['total_ms']:.2f}",
        f"{there[f'{PREFIX}total_ms']:.4g}",
        f"{m['memory_gb']:.3g} GB",
        describe(architectures, problem.space.settings),
        by_witness(outcome, pick),
    ]
