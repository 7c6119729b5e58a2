"""A fleet as a document: what each further model buys, who is served by what, what each case gives up, what is proved."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from nas.answer.design_words import describe
from nas.document.document import Cell, Column, Document, Section, Table
from plas_fleet.answers import Described, FleetAnswer, fullest, held_by, percent
from plas_fleet.solution import Fleet, Fleets
from plas_fleet.tables import described
from plas_range.device_document import formats

MOST_CASES = 16  # rows of cases on the terminal; fleet.csv has all
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
LOSS, REGRET = Column("loss", "nats", ".4f"), Column("regret", "nats", ".4f")
OVER_OWN = "the worst loss over a case's own best"
WORST = Column("worst regret", "nats", ".4f")


def fleet_document(answer: FleetAnswer, folder: Path | None = None) -> Document:
    """The answer: what every fleet is worth, and the largest in full. folder: where its files are."""
    data = ({} if folder is None else {"folder": str(folder)}) | described(answer)
    opening = opening_lines(answer)
    sections = [Section("", tuple(opening))]
    if answer.chosen is not None:
        sections += [value_section(answer), fleet_section(answer, answer.chosen, MOST_CASES), sure_section(answer)]
    return Document(opening[0], tuple(sections), data)


def opening_lines(answer: FleetAnswer) -> list[str]:
    """Cases that are left out, how many there are over which space, what is minimised; why there is no fleet at all."""
    return [*lost(answer), *head(answer), *([] if answer.described else [none_serves(answer)])]


def value_section(answer: FleetAnswer) -> Section:
    """A row per number of models, and what a further one buys."""
    of_loss = answer.fleets.asked.minimise == "loss"
    values = (LOSS, Column("buys", "nats", ".4f"), WORST) if of_loss else (WORST, Column("buys", "nats", ".4f"), LOSS)
    gains = dict(zip((each.fleet.most for each in answer.described), answer.gains, strict=True))
    full = {each.fleet.most: each for each in answer.described}
    rows = tuple(
        _value_row(answer, fleet, full.get(fleet.most), gains.get(fleet.most)) for fleet in answer.fleets.fleets
    )
    table = Table((Column("models"), *values, Column("training")), rows)
    return Section("What each further model buys", (table, *buys(answer)))


def _value_row(answer: FleetAnswer, fleet: Fleet, each: Described | None, gain: float | None) -> tuple[Cell, ...]:
    if each is None:
        return str(fleet.most), "none serves all", "", "", ""
    mean = float(fleet.loss @ answer.fleets.weights)
    first, second = (mean, each.worst) if answer.fleets.asked.minimise == "loss" else (fleet.value, mean)
    return str(fleet.most), first, gain, second, training_in_words(each.training)


def fleet_section(answer: FleetAnswer, each: Described, most: int | None = None) -> Section:
    """One fleet: who is served by what, a row per case, of at most so many; and its models, with what holds each back."""
    fleets = answer.fleets
    weighted, rows = bool(weights_in_words(fleets)), list[tuple[Cell, ...]]()
    for number, case in enumerate(fleets.cases[:most]):
        metric, share = fullest(each.models[int(each.fleet.serves[number])], number)
        full = f"{metric} {percent(share)}" if metric else "none"
        weight = [weight_in_words(case.weight)] if weighted else []
        loss, regret = float(each.fleet.loss[number]), float(each.regret[number])
        rows.append((case.label, *weight, answer.name(each, number), loss, regret, full))
    weights = [Column("weight")] if weighted else []
    figures = (*weights, Column("model"), replace(LOSS, narrow="left out"), REGRET)
    columns = (Column("case", words=True), *figures, Column("fullest limit", words=True))
    more = len(fleets.cases) - len(rows)
    notes = (f"and {more:,} more, see fleet.csv",) if more else ()
    parts = Table(columns, tuple(rows), notes=notes), _models(answer, each)
    return Section(f"Fleet of {len(each.models)}", parts)


def _models(answer: FleetAnswer, each: Described) -> Table:
    designs = answer.architectures([model.key for model in each.models])
    settings, law = answer.fleets.problem.space.settings, answer.fleets.problem.scenario.law
    rows = list[tuple[Cell, ...]]()
    for place, model in enumerate(each.models):
        design, training = designs[place : place + 1], training_in_words(model.training)
        loss = f"{model.loss:.4f}{'*' if law.extrapolates(design)[0] else ''}"
        words = f"{describe(design, settings)}; {held_by(answer.fleets, model)}"
        rows.append((answer.names[model.key], loss, len(model.cases), training, words))
    held = Column("design and what holds it back", words=True, narrow="below")
    return Table((Column("model"), LOSS, Column("cases"), Column("training"), held), tuple(rows))


def sure_section(answer: FleetAnswer) -> Section:
    """What is proved, and how the space was covered."""
    return Section("How sure", (f"Exact: no fleet is better; {answer.fleets.designs.how}.",))


def lost(answer: FleetAnswer) -> Iterator[str]:
    """Cases that are left out, and why."""
    for label, why in answer.lost.items():
        yield f"Left out, since no design fits: {label}: {why}"


def head(answer: FleetAnswer) -> Iterator[str]:
    """How many cases, over which space, and what is minimised."""
    fleets = answer.fleets
    space, n = fleets.problem.space, len(fleets.cases)
    if n == 0:
        return
    yield (
        f"{n:,} {'case' if n == 1 else 'cases'}{weights_in_words(fleets)}: {space.name} space, {space.size:,} architectures, law "
        f"{fleets.problem.scenario.law.name}"
    )
    yield formats(fleets.cases)
    of_loss = fleets.asked.minimise == "loss"
    yield f"Minimise {'the weighted mean loss' if of_loss else OVER_OWN}"


def weights_in_words(fleets: Fleets) -> str:
    """`, weights 1 to 30`, nothing where all are the same."""
    weights = [case.weight for case in fleets.cases]
    return (
        ""
        if min(weights) == max(weights)
        else f", weights {weight_in_words(min(weights))} to {weight_in_words(max(weights))}"
    )


def weight_in_words(weight: float) -> str:
    """A weight; units sold with all their digits, 3,000,000."""
    return f"{weight:,.0f}" if weight.is_integer() else f"{weight:g}"


def training_in_words(training: dict[str, float]) -> str:
    """`1,234 h` or `3.2e+19 FLOP`; a dash where nothing states the tokens."""
    if "train_hours" in training:
        return f"{training['train_hours']:,.4g} h"
    return f"{training['train_flops']:.3g} FLOP" if "train_flops" in training else "-"


def none_serves(answer: FleetAnswer) -> str:
    """Why there is no fleet at all."""
    fleets = answer.fleets
    if not fleets.cases:
        return "No design fits any case."
    most = fleets.fleets[-1].most
    return f"No fleet of {most} serves all {len(fleets.cases)} cases."


def buys(answer: FleetAnswer) -> Iterator[str]:
    """`The second model buys .012 nats, the third .005.`"""
    what = "nats" if answer.fleets.asked.minimise == "loss" else "nats of regret"
    said = [
        f"the {ORDINALS[each.fleet.most - 1] if each.fleet.most <= 10 else f'{each.fleet.most}th'} {'model buys ' if i == 0 else ''}{gain:.4f} {what}"
        for i, (each, gain) in enumerate(
            [(e, g) for e, g in zip(answer.described, answer.gains, strict=True) if g is not None]
        )
    ]
    if said:
        text = ", ".join(said)
        yield f"{text[0].upper()}{text[1:]}."
    chosen = answer.described[-1]
    if (chosen.regret <= 1e-12).all() and len(answer.fleets.cases) > 1:
        yield f"With {len(chosen.models)} every case has its own best design: more models buy nothing."
