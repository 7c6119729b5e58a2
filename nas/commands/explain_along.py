"""`explain --along N`: what more of the device buys along a run's frontier, under each of its laws."""

from dataclasses import replace
from typing import Any

from nas.answer.design_words import describe
from nas.answer.past_run import recorded_run, study_of
from nas.answer.plot_data import thinned
from nas.commands.requests import ExplainRequest
from nas.errors import InfeasibleError, UsageError
from nas.exact.decomposition.branch_and_bound import Exceeded
from nas.exact.device_gains import STEP, DeviceGain, device_gains, on_its_device
from nas.exact.gains import best_within, covered
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from nas.problem.uncertainty import FROM_LOSS
from nas.search.assembly import Study
from nas.terminal.console import say, say_json
from nas.terminal.screen_text import TITLE, Styled
from nas.terminal.tables import table
from objectives.loss_law.law import Law


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
        found = {law.name: [_at(study.problem, members[i : i + 1], law) for i in range(len(members))] for law in laws}
    except Exceeded:
        raise UsageError(
            "--along: expected a space that is solved in seconds, got a larger one; take fewer axes"
        ) from None
    _say_along(study, members, found, json=request.json)


def _at(problem: Problem, member: Evaluations, law: Law) -> tuple[DeviceGain, ...]:
    """What more of a member's device buys under a law, within the budgets and what the member costs."""
    figures = problem.scenario.figures
    costs = [o.name for o in problem.objectives if o.name not in FROM_LOSS and o.name not in figures]
    own = problem.evaluate(member.genotypes)
    limits = tuple(Budget(name, float(own.metrics[name][0]) * (1.0 + 1e-12)) for name in costs)
    budgets = tuple(b for b in problem.budgets if b.metric not in (*costs, *figures, *FROM_LOSS))
    scenario = replace(problem.scenario, law=law)
    asked = replace(problem, scenario=scenario, budgets=(*budgets, *limits), queries=())
    there, _ = on_its_device(asked, own)
    pick = best_within(covered(there), there.budgets)
    return () if pick is None else device_gains(there, pick, ranges=False)


def _say_along(
    study: Study, members: Evaluations, found: dict[str, list[tuple[DeviceGain, ...]]], *, json: bool
) -> None:
    problem = study.problem
    rows = [_row(problem, members[i : i + 1]) for i in range(len(members))]
    if json:
        say_json(
            {law: [row | _numbers(gains) for row, gains in zip(rows, each, strict=True)] for law, each in found.items()}
        )
        return
    percent = f"{100 * STEP:g} % more"
    for law, each in found.items():
        say(
            Styled(
                f"Nats that {percent} of the device buys at what each member costs, law {law}, solved exactly", TITLE
            )
        )
        names = list(dict.fromkeys(gain.resource for gains in each for gain in gains))
        seen = any(gain.tokens is not None for gains in each for gain in gains)
        header = (*members.objectives, *names, *(["or more tokens"] if seen else []), "architecture")
        body = [
            [
                *(f"{row[name]:.5g}" for name in members.objectives),
                *(_nats(gains, name) for name in names),
                *([_tokens(gains)] if seen else []),
                row["design"],
            ]
            for row, gains in zip(rows, each, strict=True)
        ]
        table(header, body, left=0, below=("architecture",))


def _row(problem: Problem, member: Evaluations) -> dict[str, Any]:
    design = describe(problem.architectures(member.genotypes), problem.space.settings)
    return {**{name: float(member.metrics[name][0]) for name in member.objectives}, "design": design}


def _nats(gains: tuple[DeviceGain, ...], name: str) -> str:
    gain = next((gain for gain in gains if gain.resource == name), None)
    return "-" if gain is None or gain.bought is None else f"{gain.nats:.2g}"


def _tokens(gains: tuple[DeviceGain, ...]) -> str:
    """How many more training tokens buy as much as what buys most."""
    largest = max(gains, key=lambda gain: gain.nats, default=None)
    return "-" if largest is None or largest.tokens is None else f"+{100 * (largest.tokens - 1.0):.2g} %"


def _numbers(gains: tuple[DeviceGain, ...]) -> dict[str, Any]:
    return {gain.resource: {"nats": gain.nats, "tokens": gain.tokens} for gain in gains}
