"""A fleet on one screen: what each further model buys, who is served by what, what each case gives up, what is proved."""

from collections.abc import Iterator

from nas.devices.screen import columns, cut, formats, wrapped

from nas.answer.design_words import describe
from nas.answer.pick_tables import LOSS
from plas_fleet.answers import Described, FleetAnswer, Model, fullest
from plas_fleet.setting import Fleet
from plas_fleet.solution import Fleets

MOST_CASES = 16  # rows of cases on the screen; fleet.csv has all
NAME_WIDTH = 30
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def lines_of(answer: FleetAnswer) -> list[str]:
    """The answer on one screen for a dozen cases."""
    lines = [line for text in (*lost(answer), *head(answer)) for line in wrapped(text)]
    if not answer.described:
        return [*lines, *(line for text in reading(answer) for line in wrapped(text))]
    chosen = answer.described[-1]
    return [
        *lines,
        "",
        *columns(value_header(answer.fleets), value_rows(answer), left=1, last=False, gap=2),
        "",
        *_cases(answer, chosen),
        "",
        *(line for text in (*member_lines(answer, chosen), *reading(answer)) for line in wrapped(text)),
    ]


def lost(answer: FleetAnswer) -> Iterator[str]:
    """Cases that are left out, and why."""
    for label, why in answer.lost.items():
        yield f"Left out, since no design fits: {label}: {why}"
    if answer.fleets.undecided:
        names = ", ".join(case.label for case in answer.fleets.undecided)
        yield f"Left out, since time was over before a design was found: {names}"


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
    yield f"Minimise {objective_in_words(fleets)}"


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


def objective_in_words(fleets: Fleets) -> str:
    """What is minimised, within what."""
    asked = fleets.asked
    what = "the weighted mean loss" if asked.minimise == "loss" else "the worst loss over a case's own best"
    what += f", training of all models within {asked.written_budget}" if asked.written_budget else ""
    if asked.family == "depth":
        return f"{what}; a family: the same in all but depth, each the first layers of the largest"
    return f"{what}; a family: the same in all but experts and top_k" if asked.family else what


def value_header(fleets: Fleets) -> tuple[str, ...]:
    """Columns of the table of fleets."""
    value = LOSS if fleets.asked.minimise == "loss" else "worst regret (nats)"
    other = "worst regret (nats)" if fleets.asked.minimise == "loss" else LOSS
    return ("models", value, "buys (nats)", other, "training", "proved")


def value_rows(answer: FleetAnswer) -> list[list[str]]:
    """A row per number of models."""
    gains = {each.fleet.most: gain for each, gain in zip(answer.described, answer.gains, strict=True)}
    full = {each.fleet.most: each for each in answer.described}
    return [_value_row(answer, fleet, full.get(fleet.most), gains.get(fleet.most)) for fleet in answer.fleets.fleets]


def _value_row(answer: FleetAnswer, fleet: Fleet, each: Described | None, gain: float | None) -> list[str]:
    if each is None:
        why = "none serves all" if fleet.bound == float("inf") else "none found in time"
        return [str(fleet.most), why, "", "", "", "exact" if fleet.bound == float("inf") else ""]
    mean = f"{float(fleet.loss @ answer.fleets.weights):.4f}"
    of_loss = answer.fleets.asked.minimise == "loss"
    first, second = (mean, f"{each.worst:.4f}") if of_loss else (f"{fleet.value:.4f}", mean)
    proved = "exact" if fleet.proved else f"gap {gap_of(fleet):.2g} nats"
    return [
        str(fleet.most),
        first,
        "" if gain is None else f"{gain:.4f}",
        second,
        training_in_words(each.training),
        proved,
    ]


def gap_of(fleet: Fleet) -> float:
    """How far a fleet may be above the best, nats."""
    return fleet.value - fleet.bound


def training_in_words(training: dict[str, float]) -> str:
    """`1,234 h` or `3.2e+19 FLOP`; a dash where nothing states the tokens."""
    if "train_hours" in training:
        return f"{training['train_hours']:,.4g} h"
    return f"{training['train_flops']:.3g} FLOP" if "train_flops" in training else "-"


def _cases(answer: FleetAnswer, chosen: Described) -> list[str]:
    """Who is served by what: a row per case of the largest fleet."""
    fleets = answer.fleets
    weighted = bool(weights_in_words(fleets))
    rows = []
    for number, case in enumerate(fleets.cases[:MOST_CASES]):
        place = int(chosen.fleet.serves[number])
        metric, share = fullest(chosen.models[place], number)
        weight = [weight_in_words(case.weight)] if weighted else []
        full = f"{metric} {percent(share)}" if metric else "none"
        loss, regret = f"{chosen.fleet.loss[number]:.4f}", f"{chosen.regret[number]:.4f}"
        rows.append([cut(case.label, NAME_WIDTH), *weight, answer.name(chosen, number), loss, regret, full])
    header = (
        "case",
        *(["weight"] if weighted else []),
        "model",
        LOSS,
        "over own best (nats)",
        "fullest limit",
    )
    more = len(fleets.cases) - MOST_CASES
    title = f"Fleet of {len(chosen.models)}"
    return [
        title,
        *columns(header, rows, left=1, last=True, gap=2),
        *([f"  and {more:,} more, see fleet.csv"] if more > 0 else []),
    ]


def percent(share: float) -> str:
    """How full a limit is; never 100 % of one that is not quite reached."""
    return "100 %" if share >= 1.0 else f"{min(100 * share, 99.9):.3g} %"


def member_lines(answer: FleetAnswer, chosen: Described) -> Iterator[str]:
    """A sentence per model: its design, how many cases it serves, and what holds it back."""
    designs = answer.architectures([model.key for model in chosen.models])
    for place, model in enumerate(chosen.models):
        n = len(model.cases)
        held = held_by(answer.fleets, model)
        yield f"{answer.names[model.key]}: {describe(designs[place : place + 1])}; serves {n} {'case' if n == 1 else 'cases'}; {held}"


def held_by(fleets: Fleets, model: Model) -> str:
    """The case without which, alone, the model would be better, with its fullest limit there; else the fullest of all."""
    budget = next((hold for hold in model.holds if hold.case is None), None)
    of_cases = [hold for hold in model.holds if hold.case is not None]
    further = f"; the training budget costs it {budget.nats:.4f} nats" if budget else ""
    if of_cases and of_cases[0].case is not None:
        hold = of_cases[0]
        number = of_cases[0].case
        metric, share = fullest(model, number)
        return f"held by {fleets.cases[number].label} ({metric} {percent(share)}): {hold.nats:.4f} nats better without it{further}"
    number = max(model.cases, key=lambda case: fullest(model, case)[1])
    metric, share = fullest(model, number)
    if not metric:
        return f"no limit holds it{further}"
    known = "is known to hold" if len(fleets.designs.unsettled) else "holds"
    alone = "its limit" if len(model.cases) == 1 else f"no case alone {known} it; fullest"
    return f"{alone}: {metric} {percent(share)} of {fleets.cases[number].label}{further}"


def reading(answer: FleetAnswer) -> Iterator[str]:
    """What each further model buys, where more buy nothing, what training counts, what is proved."""
    if not answer.described:
        yield none_serves(answer)
        return
    yield from buys(answer)
    if answer.fleets.asked.family:
        yield "Training of a family: that of its largest member. Each loss is the law's of a model trained alone: what sharing weights costs it does not know."
    further = float((answer.fleets.best - answer.fleets.least).max())
    if further > 0.0:
        yield f"Own bests are those that were found in time: a case's may be up to {further:.4f} nats lower, and its regret higher."
    yield proof(answer)


def none_serves(answer: FleetAnswer) -> str:
    """Why there is no fleet at all."""
    fleets = answer.fleets
    if not fleets.cases:
        return "No design fits any case."
    most = fleets.fleets[-1].most
    if fleets.fleets[-1].bound < float("inf"):
        return f"No fleet of {most} that serves all {len(fleets.cases)} cases was found in time."
    within = f" within {fleets.asked.written_budget}" if fleets.asked.written_budget else ""
    kind = "family" if fleets.asked.family else "fleet"
    return f"No {kind} of {most} serves all {len(fleets.cases)} cases{within}."


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


def proof(answer: FleetAnswer) -> str:
    """What is proved, and how the space was covered."""
    loose = [each.fleet for each in answer.described if not each.fleet.proved]
    if not loose:
        return f"Exact: no fleet is better; {answer.fleets.designs.how}."
    gaps = ", ".join(f"{fleet.most}: at least {fleet.bound:.6g} nats" for fleet in loose)
    return f"Time was over: what is not exact is bounded from below, by models {gaps}; {answer.fleets.designs.how}."
