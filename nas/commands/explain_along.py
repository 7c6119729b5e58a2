"""`explain --along N`: what more of the device buys along a run's frontier, under each of its laws."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nas.answer.design_words import describe
from nas.answer.past_run import recorded_run, study_of
from nas.answer.plot_data import thinned
from nas.commands.requests import ExplainRequest
from nas.document.document import SHARED, Document, Section, Table, figures
from nas.errors import InfeasibleError, UsageError
from nas.exact.decomposition.branch_and_bound import Exceeded
from nas.exact.device_gains import STEP, DeviceGain, device_gains, on_its_device
from nas.exact.gains import best_within, covered
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from nas.problem.uncertainty import FROM_LOSS
from nas.search.assembly import Study
from nas.terminal.tables import show
from objectives.loss_law.law import Law

Gained = tuple[DeviceGain, ...]
ABOUT = "Nats that {:g} % more of the device buys at what each member costs, law {}, solved exactly"


def explain_along(request: ExplainRequest) -> None:
    """Print, for some members of a run's frontier, what more of each one's device buys at what the member costs.

    Raises:
        UsageError: no run, or a space that cannot be solved in seconds.
        InfeasibleError: a run without a frontier.
    """
    if request.run is None:
        raise UsageError("--along: expected a run folder, whose frontier it goes along, got none; name one")
    run = recorded_run(request.run)
    study = study_of(run, request.flags, request.settings)
    if study.problem.space.fingerprint != run.space.fingerprint:
        raise UsageError(
            "--along: expected the run's own space, whose designs it goes along, got another; leave it as it is"
        )
    front = run.evaluations[frontier_rows(run.evaluations)]
    if len(front) == 0:
        raise InfeasibleError(f"{request.run}: nothing feasible, so no frontier to go along")
    members = front[thinned(len(front), request.along)]
    laws = study.laws or (study.problem.scenario.law,)
    try:
        gains = {law.name: [_at(study.problem, members[i : i + 1], law) for i in range(len(members))] for law in laws}
    except Exceeded:
        raise UsageError(
            "--along: expected a space that is solved in seconds, got a larger one; take fewer axes"
        ) from None
    show(_document(study, members, gains), as_json=request.json)


def _at(problem: Problem, member: Evaluations, law: Law) -> Gained:
    """What more of a member's device buys under a law, within the budgets and what the member costs."""
    figures = problem.scenario.figures
    costs = [o.name for o in problem.objectives if o.name not in FROM_LOSS and o.name not in figures]
    own = problem.evaluate(member.genotypes)
    limits = tuple(Budget(name, float(own.metrics[name][0]) * (1.0 + 1e-12)) for name in costs)
    budgets = tuple(b for b in problem.budgets if b.metric not in (*costs, *figures, *FROM_LOSS))
    scenario = replace(problem.scenario, law=law)
    within = replace(problem, scenario=scenario, budgets=(*budgets, *limits), queries=())
    there, _ = on_its_device(within, own)
    pick = best_within(covered(there), there.budgets)
    return () if pick is None else device_gains(there, pick, ranges=False)


def _document(study: Study, members: Evaluations, gains: Mapping[str, Sequence[Gained]]) -> Document:
    rows = [_row(study.problem, members[i : i + 1]) for i in range(len(members))]
    sections = (_section(law, rows, of_rows) for law, of_rows in gains.items())
    numbers = {
        law: [row | _numbers(own) for row, own in zip(rows, of_rows, strict=True)] for law, of_rows in gains.items()
    }
    return Document("", tuple(sections), numbers)


def _section(law: str, rows: Sequence[Mapping[str, Any]], of_rows: Sequence[Gained]) -> Section:
    """The members, and what a share more of each resource of their device buys under a law, nats."""
    resources = dict.fromkeys(gain.resource for gained in of_rows for gain in gained)
    tokens = ["or more tokens"] if any(gain.tokens is not None for gained in of_rows for gain in gained) else []
    cells = []
    for row, gained in zip(rows, of_rows, strict=True):
        *costs, design = row.values()
        cells.append((*costs, *(_nats(gained, name) for name in resources), *[_tokens(gained)] * len(tokens), design))
    objectives = [name for name in rows[0] if name != "design"]
    formats = dict.fromkeys(objectives, ".5g") | dict.fromkeys([*resources, *tokens], ".2g")
    return Section(ABOUT.format(100 * STEP, law), (Table((*figures(formats), SHARED["architecture"]), tuple(cells)),))


def _row(problem: Problem, member: Evaluations) -> dict[str, Any]:
    design = describe(problem.architectures(member.genotypes), problem.space.settings)
    return {**{name: float(member.metrics[name][0]) for name in member.objectives}, "design": design}


def _nats(gains: Gained, name: str) -> float:
    return next((gain.nats for gain in gains if gain.resource == name and gain.bought is not None), float("nan"))


def _tokens(gains: Gained) -> str:
    """How many more training tokens buy as much as what buys most."""
    largest = max(gains, key=lambda gain: gain.nats, default=None)
    return "-" if largest is None or largest.tokens is None else f"+{100 * (largest.tokens - 1.0):.2g} %"


def _numbers(gains: Gained) -> dict[str, Any]:
    return {gain.resource: {"nats": gain.nats, "tokens": gain.tokens} for gain in gains}
