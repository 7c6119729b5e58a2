"""Everything that a run says, as a document: what `--verbose` prints and the page shows, with the tables of its picks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nas.answer.design_words import blind_spots, count, describe, equal_heads, figure
from nas.answer.device_times import PREFIX, latency_certainty, limits, misses, ranges_in_words, times_of, verdict
from nas.answer.on_each_device import OnDevice
from nas.answer.outcome import Outcome, PickRegret
from nas.answer.sentences import baseline_metric, certainty, reading
from nas.answer.sentences import limits as law_limits
from nas.answer.sureness import EVIDENCE, difference_in_words, witness_in_words
from nas.answer.take import advice, offers_table
from nas.answer.three_sentences import three_sentences
from nas.answer.under_laws import TITLE, notes, verdict_header, verdict_lines, verdict_rows
from nas.document.document import Document, Part, Section, Table, table_of
from nas.exact.gains import DIFFERENT
from nas.problem.diagnosis import lines
from nas.problem.law_caveats import blind_lines
from nas.problem.objective import Baseline, PickQuery
from nas.problem.picks import Pick
from nas.problem.problem import Problem
from nas.problem.uncertainty import FROM_LOSS
from nas.terminal.screen_text import BAD, DOUBT, GOOD, Styled
from nas.terminal.tables import SAID
from objectives.metrics.perplexity import of_losses, perplexity_percent

LOSS = "loss (nats)"
WITHIN = "Lowest predicted loss (nats)"
EXACT = "exact (nats)"
EXACT_MEANS = "exact: the lowest loss there is, where this search missed it (--algo exact finds it)"
NATS = "nats (90 %), better"  # in a column: the difference with its interval, the probability that the pick is the better one
OF_FIRST = "nats from {}, better"
(WITNESS,) = SAID  # in a column or below its row: what `evidence` says of a difference of another law
SILENT = (EXACT, WITNESS, NATS, "range")  # columns that are left out where they say nothing
SIZES = ("memory", "params", "active")
CONVENTION = "architecture in convention"
DEVICE_MS = f"{PREFIX}ms"
TOTAL = "total "  # the time that is meant where none is named
SHOWN = 12  # devices in a table
NONE_FITS = Styled("none fits", BAD)
Cells = dict[str, str]  # of a row, by the heads of their columns


def answer_document(outcome: Outcome) -> Document:
    """The answer of a run: sections with the keys answer, devices, take, compared, laws, certain; what the strategy says stands between."""
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
    yield from (Section(each.title, tuple(each.sentences), "strategy") for each in outcome.ending.sections)
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


def _certain(outcome: Outcome) -> Iterator[str]:
    """Every sentence on what the answer rests on."""
    problem = outcome.study.problem
    yield from certainty(outcome)
    yield from reading(outcome)
    yield from law_limits(outcome)
    yield from blind_lines(problem.scenario.law, outcome.blind)
    yield latency_certainty(problem.scenario)
    yield from least_figures(outcome)


def least_figures(outcome: Outcome) -> Iterator[str]:
    """Of each figure of devices that is minimised the frontier's least: on which device, and the lowest loss there."""
    problem, front = outcome.study.problem, outcome.frontier
    minimised = [o.name for o in problem.objectives if o.name in problem.scenario.figures]
    for name in minimised if len(front) else ():
        row = front[np.lexsort((front.metrics["loss"], front.metrics[name]))[:1]]
        m, design = row.first, describe(problem.architectures(row.genotypes), problem.space.settings)
        named = [figure(problem, metric, m[metric]) for metric in (name, *times_of(problem))]
        yield f"Least: {', '.join(named)}, predicted loss {m['loss']:.4f}: {design}"


def _places(outcome: Outcome, baseline: str) -> list[int]:
    return [at for at, pick in enumerate(outcome.picks) if pick.question.baseline == baseline]


def _table(title: str, header: Sequence[str], rows: Sequence[Mapping[str, str]], below: Sequence[str]) -> Table:
    """A table without the columns that say nothing."""
    heads = [head for head in header if head not in SILENT or any(row.get(head) for row in rows)]
    notes = [*[EXACT_MEANS] * (EXACT in heads), *below]
    return table_of(heads, [[row.get(head, "") for head in heads] for row in rows], title, notes)


def _cells(outcome: Outcome, at: int, label: str, head: str = NATS) -> Cells:
    """What every table says of a pick; under `head` its difference from the model of this label."""
    answer, problem = outcome.picks[at].answer, outcome.study.problem
    if answer is None:
        return {LOSS: NONE_FITS}
    m, design = answer.first, problem.architectures(answer.genotypes)
    difference = outcome.doubt.differences[at].get(label) if outcome.doubt is not None else None
    witness = outcome.witnesses[at]
    by_evidence = "" if witness is None else f"{EVIDENCE}: {witness_in_words(witness)}"
    return {
        LOSS: _loss(m["loss"], extrapolated=bool(problem.scenario.law.extrapolates(design)[0])),
        head: "" if difference is None else difference_in_words(difference, brief=True),
        **_sizes(m),
        "architecture": describe(design, problem.space.settings),
        WITNESS: by_evidence if witness is None or witness.confirms else Styled(by_evidence, DOUBT),
    }


def _loss(loss: float, *, extrapolated: bool) -> str:
    return Styled(f"{loss:.4f}*", DOUBT) if extrapolated else Styled(f"{loss:.4f}", GOOD)


def _sizes(m: Mapping[str, float]) -> Cells:
    figures = (f"{m['memory_gb']:.3g} GB", count(m["params_total"]), count(m["params_active"]))
    return dict(zip(SIZES, figures, strict=True))


def own_picks(outcome: Outcome) -> Table:
    """Lowest loss within your budgets, then within each application's, and its difference from the first published model.

    Where times on the device are others, what holds there stands first, the study's own convention apart.
    """
    problem, same, places = outcome.study.problem, outcome.alike, _places(outcome, "")
    first = outcome.study.baselines[0].label if outcome.doubt is not None and outcome.study.baselines else ""
    apart = OF_FIRST.format(first)
    between = (*([apart] if first else []), EXACT)
    rows = []
    for at, held in zip(places, outcome.held or [None] * len(places), strict=True):
        pick, best, row = outcome.picks[at], outcome.exact_losses[at], _cells(outcome, at, first, apart)
        question = pick.question
        row["within"] = question.label + ("" if question.budget is None else f": {question.budget}")
        row[EXACT] = _better(None if pick.answer is None else pick.answer.first["loss"], best)
        if pick.answer is not None:
            row["takes"] = ", ".join(_takes(problem, question, pick.answer.first))
        rows.append(row if same else _in_convention(outcome, at, row, held))
    regrets = expected_regrets(outcome)
    if same:
        return _table(WITHIN, ("within", LOSS, *between, "takes", *SIZES, "architecture", WITNESS), rows, regrets)
    convention = ("in convention", *between, DEVICE_MS)
    figures = ("on the device", *SIZES, *convention) if outcome.held else (*convention, *SIZES)
    header = ("within", *figures, "architecture", WITNESS, *[CONVENTION] * bool(outcome.held))
    missed = [misses(limits(problem, outcome.picks[at].question), outcome.device_times[at]) for at in places]
    return _table(WITHIN, header, rows, (verdict(problem, outcome.on_device, missed), *regrets))


def _in_convention(outcome: Outcome, at: int, row: Cells, held: Pick | None) -> Cells:
    """A row in which the study's own pick is one in convention, with its times on the device, beside what holds there."""
    pick, there, problem = outcome.picks[at], outcome.device_times[at], outcome.study.problem
    row["in convention"] = row[LOSS]
    if pick.answer is not None:
        over = " !" if misses(limits(problem, pick.question), there) else ""
        style = BAD if over else DOUBT if row[LOSS].endswith("*") else GOOD
        row["in convention"] = Styled(f"{row[LOSS]} at {_alone(row['takes'])}{over}", style)
        row[DEVICE_MS] = ", ".join(f"{there[PREFIX + n]:.4g}" for n in times_of(problem, pick.question))
    if held is None:
        return row
    row[CONVENTION] = row.get("architecture", "")
    if held.answer is None:
        return row | dict.fromkeys((*SIZES, "architecture"), "") | {"on the device": NONE_FITS}
    m, design = held.answer.first, outcome.on_device.architectures(held.answer.genotypes)
    loss = _loss(m["loss"], extrapolated=bool(outcome.on_device.scenario.law.extrapolates(design)[0]))
    words = f"{loss} at {_alone(', '.join(_takes(problem, held.question, m)))}"
    here = {"on the device": Styled(words, DOUBT if loss.endswith("*") else GOOD)}
    return row | here | _sizes(m) | {"architecture": describe(design, outcome.on_device.space.settings)}


def _alone(taken: str) -> str:
    """What is taken, without the name of the total where that is all."""
    return taken if ", " in taken else taken.removeprefix(TOTAL)


def _takes(problem: Problem, question: PickQuery, m: Mapping[str, float]) -> list[str]:
    """Metrics with limits, objectives first, but for the memory, which has its column; the total time where no time has a limit."""
    limited = [*limits(problem, question), *times_of(problem, question)]
    ordered = [*(o.name for o in problem.objectives if o.name in limited), *limited]
    names = [name for name in dict.fromkeys(ordered) if name != "memory_gb"]
    named = question.budget is None or len(names) > 1  # else the row's first column names it
    return [figure(problem, name, m[name], named=named) for name in names]


def _better(loss: float | None, best: float | None, theirs: float = math.nan) -> str:
    """The exact pick's loss where the search did not find it, and its change of a baseline's perplexity where that has one."""
    if best is None or (loss is not None and best >= loss * (1.0 - DIFFERENT)):
        return ""
    return f"{best:.4f}" + (f" (ppl {_change(best, theirs)})" if math.isfinite(theirs) else "")


def _change(loss: float, theirs: float) -> str:
    """How a loss changes another one's perplexity; nothing of one that the law does not price."""
    return f"{perplexity_percent(loss - theirs):+.1f} %" if math.isfinite(theirs) else "-"


def expected_regrets(outcome: Outcome) -> list[str]:
    """Each pick's expected regret beside the least one."""
    every = zip(outcome.picks, () if outcome.doubt is None else outcome.doubt.regrets, strict=False)
    problem = outcome.study.problem
    regrets = [f"{pick.question.label} {regret_in_words(problem, own)}" for pick, own in every if own is not None]
    return [f"Expected regret over the law's draws, nats: {'; '.join(regrets)}."] if regrets else []


def regret_in_words(problem: Problem, regret: PickRegret) -> str:
    """`0.0122, least 0.0085 at l 21, …`."""
    own, least = f"{regret.nats:.4f}", f"{regret.least.expected_regret:.4f}"
    among = "" if regret.least.proven else " of the frontier"
    if own == least:
        return f"{own}, the least{among}"
    return f"{own}, least{among} {least} at {describe(problem.architectures(regret.least.genotype[None]))}"


def on_devices(outcome: Outcome) -> Table | None:
    """The lowest loss within your budgets on each device of several, what it takes with the range of measured times there; None of one."""
    every = outcome.on_each_device
    if not every:
        return None
    most = sorted(every, key=lambda each: -each.on_frontier)[:SHOWN]
    rows = [_on_device(outcome.study.problem, each) for each in every if each in most]
    searched = [] if outcome.whole else ["Among what was evaluated on each; --algo exact solves each."]
    left = f"Of {len(every)} devices those with most of the frontier; all are in devices.csv."
    header = ("on each device", LOSS, "takes", "memory", "of the frontier", "range", "architecture")
    return _table("On each device", header, rows, [*searched, *([left] if len(every) > SHOWN else [])])


def _on_device(problem: Problem, each: OnDevice) -> Cells:
    row = {"on each device": each.name, "of the frontier": f"{each.on_frontier:,}"}
    if each.pick is None:
        short = ", ".join(figure(problem, metric, value) for metric, value in each.missed.items())
        return row | {LOSS: NONE_FITS, "takes": f"closest: {short}" if short else ""}
    design, m = problem.architectures(each.pick.genotypes), each.pick.first
    times = times_of(problem)
    asked = [name for name in problem.metric_names if name in problem.scenario.figures]
    minimised = [o.name for o in problem.objectives if o.name not in FROM_LOSS]
    return row | {
        LOSS: _loss(m["loss"], extrapolated=bool(problem.scenario.law.extrapolates(design)[0])),
        "takes": ", ".join(figure(problem, name, m[name]) for name in dict.fromkeys([*minimised, *asked, *times])),
        "memory": f"{m['memory_gb']:.3g} GB",
        "range": ranges_in_words(problem.pricing(design), design, m, times[:1]),
        "architecture": describe(design.on(""), problem.space.settings),
    }


def beside_baselines(outcome: Outcome) -> list[Table]:
    """The picks that are as fast as each published model, a table each: of any memory and of its own, with every LM head."""
    asked = [(model, places) for model in outcome.study.baselines if (places := _places(outcome, model.label))]
    return [_beside(outcome, model, places) for model, places in asked]


def _beside(outcome: Outcome, model: Baseline, places: Sequence[int]) -> Table:
    """The table beside one model, under its own figures."""
    problem, scenario = outcome.study.problem, outcome.study.problem.scenario
    loss = float(scenario.law.loss(model.architecture)[0])
    memory = baseline_metric(outcome, model.architecture, "memory_gb")
    facts = [] if memory is None else [f"{memory:.3g} GB"]
    if math.isfinite(loss):
        star = "*" * bool(scenario.law.extrapolates(model.architecture)[0])
        facts += [f"predicted loss {loss:.4f}{star} nats", f"perplexity {of_losses(loss):.2f}"]
    else:
        facts.append("no loss by this law")
    head = ("compared", LOSS, NATS, EXACT, "perplexity change", "its total_ms", "total_ms", DEVICE_MS, "memory")
    rows = [_beside_row(outcome, at, model.label, loss) for at in places]
    below = (*([] if problem.space.own_heads else equal_heads(model)), *blind_spots(model, scenario))
    on = f" on {scenario.devices[0][0]}" if scenario.devices else ""
    title = f"At most as slow as {model.label}{on} ({', '.join(facts)})"
    return _table(title, (*head, "architecture", WITNESS), rows, below)


def _beside_row(outcome: Outcome, at: int, label: str, theirs: float) -> Cells:
    pick, best = outcome.picks[at], outcome.exact_losses[at]
    assert pick.question.budget is not None
    row = {"compared": pick.question.label.partition(", ")[2], "its total_ms": f"{pick.question.budget.limit:.2f}"}
    row |= _cells(outcome, at, label)
    if pick.answer is None:
        return row | {EXACT: _better(None, best, theirs)}
    m = pick.answer.first
    times = {"total_ms": f"{m['total_ms']:.2f}", DEVICE_MS: f"{outcome.device_times[at][f'{PREFIX}total_ms']:.4g}"}
    return row | times | {EXACT: _better(m["loss"], best, theirs), "perplexity change": _change(m["loss"], theirs)}
