"""The data of a run's page: rows, frontier, exact frontier, baselines, answers, details and convergence."""

from dataclasses import dataclass
from typing import Any

import moocore
import numpy as np

from nas.answer.outcome import Outcome
from nas.answer.palette import label
from nas.answer.plot_data import (
    answered_designs,
    baseline_points,
    convergence,
    evolution,
    evolving,
    frontier_name,
    running_median,
    thinned,
)
from nas.answer.sentences import baseline_metric, plot_axes
from nas.answer.sureness import beside_evidence, difference_in_words, model_witnesses
from nas.pages.page import column
from nas.problem.breakdown import KINDS, by_format, operator_columns, resident_bytes, step_metrics, steps_from
from nas.problem.evaluations import Evaluations, rounded
from nas.problem.objective import EXTRAPOLATION, built_in, is_rate
from nas.problem.problem import Problem
from nas.problem.uncertainty import from_models
from nas.terminal.doors import command
from objectives.loss_law.law import Law
from objectives.plugins import importable
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from search_spaces.axes import position
from search_spaces.columns import CODES, SHAPE
from search_spaces.space import SearchSpace

MOST = 10_000  # rows that are held whole
PICKABLE = 20_000  # rows held so that budgets can be moved
DRAWN = 4_000  # dots of a larger run, and its frontier's


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the evaluations in pick order: the first that meets the budgets is the pick.

    movable: metrics whose budgets may be moved. looser: whether a budget may also be raised above the run's own,
    and removed. why: a sentence on what cannot be moved, "" where everything can.
    """

    chosen: IntArray
    movable: tuple[str, ...]
    looser: bool
    why: str


def rows_of(outcome: Outcome) -> Rows:
    """Rows of a run's page, such that its picks are those of `select --select best`."""
    found = outcome.evaluations
    usable = np.flatnonzero(found.ok)
    usable = usable[np.argsort(_place(found)[usable])]
    solved = outcome.study.config.algo == "exact" and len(found) < outcome.study.problem.space.size
    if solved and outcome.study.problem.analytic:
        return _row_solved(outcome, usable)
    if len(usable) <= MOST:
        return Rows(usable, tuple(name for name in found.metrics if not is_rate(name)), True, "")
    return _of_many(outcome, usable)


def _row_solved(outcome: Outcome, usable: IntArray) -> Rows:
    """A run that kept its frontier and picks alone: tighter budgets on objectives choose among these."""
    objectives = outcome.frontier.objectives
    kept = usable[np.isin(usable, usable[thinned(len(usable), PICKABLE)])]
    if not outcome.whole or not {"loss", "total_ms"} <= set(objectives) or len(kept) < len(usable):
        return Rows(kept, (), False, "The space was solved, not sampled: select solves it again for other budgets.")
    why = f"The space was solved and its frontier kept: budgets on {' and '.join(objectives)} can be tightened here; "
    return Rows(kept, objectives, False, f"{why}select solves the space again for any other.")


def _of_many(outcome: Outcome, usable: IntArray) -> Rows:
    """A large run: its frontier, a share of its dots, and every row that some budgets on few metrics can pick."""
    found = outcome.evaluations
    names = tuple(dict.fromkeys([*found.objectives, *(budget.metric for budget in found.budgets)]))
    columns = [np.arange(len(usable), dtype=np.float64), *(found.metrics[name][usable] for name in names)]
    pickable = usable[moocore.is_nondominated(np.stack(columns, axis=1))]
    feasible = usable[found.feasible[usable]]
    frontier = np.flatnonzero(np.isin(found.keys, outcome.frontier.keys[thinned(len(outcome.frontier), DRAWN)]))
    drawn = np.union1d(feasible[thinned(len(feasible), DRAWN)], frontier)
    why = f"Budgets on {', '.join(names)} can be moved here; select takes any metric of all {len(found):,} evaluations."
    if len(pickable) > PICKABLE:
        pickable, names = pickable[:0], ()
        why = f"Too many of {len(found):,} evaluations can be picks to hold them here: select takes any budget."
    chosen = usable[np.isin(usable, np.union1d(drawn, pickable))]
    return Rows(chosen, names, True, why)


def _place(found: Evaluations) -> IntArray:
    """Place of each row in the order of picks: lowest loss, then total_ms (both at 12 digits), then genotype."""
    order = np.lexsort((found.keys, _rounded(found.metrics["total_ms"]), _rounded(found.metrics["loss"])))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place


def _rounded(values: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return rounded(values)


DETAILED = 400  # frontier members that are taken apart
WORDS = {name: list(words) for name, words in CODES.items()}  # that columns of numbers stand for
MISSED = 3_000  # members of the exact frontier that the search did not find


def run_data(outcome: Outcome, rows: Rows) -> dict[str, Any]:
    """Everything that the scripts of a run's page need."""
    found = outcome.evaluations
    places = {int(key): place for place, key in enumerate(found.keys[rows.chosen].tolist())}
    frontier = np.array([places[key] for key in outcome.frontier.keys.tolist() if key in places], dtype=np.int64)
    across = axes_of(outcome)[0]
    answered = _answers(outcome, places)
    detailed = _detailed(frontier, [pick["row"] for pick in answered])
    problem = outcome.study.problem
    return {
        "metrics": [metric_of(outcome, metric) for metric in found.metrics],
        "objectives": list(found.objectives),
        "axes": list(axes_of(outcome)),
        "budgets": [{"metric": budget.metric, "limit": budget.limit} for budget in found.budgets],
        "movable": [name for name in rows.movable if name != EXTRAPOLATION],
        "looser": rows.looser,
        "rows": _rows(outcome, rows),
        "words": WORDS | {"device": problem.space.specification.axes.device or []},
        "frontier": column(frontier),
        "frontierName": frontier_name(outcome),
        "optimal": _optimal(outcome, places),
        "groups": _groups(outcome, places),
        "steps": 0 if outcome.doubt is None else outcome.doubt.steps,
        "differences": _differences(outcome, found.genotypes[rows.chosen[detailed]]),
        "exact": _exact(outcome),
        "baselines": _baselines(outcome),
        "picks": answered,
        "evolving": _evolving(outcome, across),
        "convergence": _convergence(outcome),
        "detailed": column(detailed),
        "details": details(problem, found.genotypes[rows.chosen[detailed]]),
        "solved": _solved(outcome),
        "commands": {"select": f"{command('select')} RUN --select best", "explain": f"{command('explain')} RUN"},
    }


def axes_of(outcome: Outcome) -> tuple[str, str]:
    """Two metrics to draw: two objectives where there are, else the one and the loss, or total_ms and the loss."""
    names = tuple(outcome.evaluations.objectives)
    return plot_axes(names) or (("total_ms" if names[0] == "loss" else names[0]), "loss")


def metric_of(outcome: Outcome, name: str) -> dict[str, Any]:
    """A metric's name, label and scale."""
    known = {o.name: o.log_scale for o in outcome.study.problem.objectives}
    shipped = name.partition("@")[0] in importable("objectives.metrics")
    log = known[name] if name in known else shipped and built_in(name).log_scale
    values = outcome.evaluations.metrics[name]
    positive = bool((values[np.isfinite(values)] > 0).all())
    return {"name": name, "label": label(name), "log": bool(log and positive)}


def _solved(outcome: Outcome) -> bool:
    return outcome.study.config.algo == "exact" and len(outcome.evaluations) < outcome.study.problem.space.size


def _rows(outcome: Outcome, rows: Rows) -> dict[str, Any]:
    found = outcome.evaluations[rows.chosen]
    architectures = outcome.study.problem.architectures(found.genotypes)
    return {
        "n": len(found),
        "index": column(rows.chosen),
        "metrics": {name: column(values, exactly=True) for name, values in found.metrics.items()},
        "shape": _shape(architectures, outcome.study.problem.space),
    }


def _shape(architectures: Architectures, space: SearchSpace) -> dict[str, Any]:
    """The columns that make an architecture, and further ones that differ from their defaults; a word is its number."""
    names = [*SHAPE, *architectures.further_columns(space.further)]
    columns = {name: getattr(architectures, name) for name in names}
    if "device" in space.settings:
        columns["device"] = position(space.settings["device"], architectures.device)
    return {name: column(values) for name, values in columns.items()}


def _detailed(frontier: IntArray, picked: list[int]) -> IntArray:
    """Places of the rows that are taken apart: evenly spaced members of the frontier, and the answers."""
    return np.union1d(frontier[thinned(len(frontier), DETAILED)], np.array(picked, dtype=np.int64)).astype(np.int64)


def _answers(outcome: Outcome, places: dict[int, int]) -> list[dict[str, Any]]:
    found = [(int(row.keys[0]), labels) for row, labels in answered_designs(outcome)]
    return [{"row": places[key], "labels": labels} for key, labels in found if key in places]


def _optimal(outcome: Outcome, places: dict[int, int]) -> dict[str, Any] | None:
    return None if outcome.optimal is None else column(outcome.optimal[_held(outcome, places)])


def _groups(outcome: Outcome, places: dict[int, int]) -> dict[str, Any] | None:
    """Of the frontier's members the group that each is not told apart in."""
    if outcome.doubt is None or outcome.doubt.groups is None:
        return None
    return column(outcome.doubt.groups[_held(outcome, places)])


def _held(outcome: Outcome, places: dict[int, int]) -> BoolArray:
    """Which of the frontier's members the page holds."""
    return np.isin(outcome.frontier.keys, np.fromiter(places, dtype=np.int64, count=len(places)))


def _differences(outcome: Outcome, genotypes: IntArray) -> list[dict[str, Any]]:
    """From each published model, in words, those of designs, with what `evidence` says of them; nothing of a law that does not say how sure it is."""
    law, models = outcome.study.problem.scenario.law, outcome.study.baselines
    designs = outcome.study.problem.architectures(genotypes)
    found, told = from_models(law, designs, models), model_witnesses(law, designs, models)
    nothing = [None] * len(designs)
    return [
        {
            "label": label,
            "words": [
                difference_in_words(each) + beside_evidence(witness, brief=True)
                for each, witness in zip(rows, told.get(label, nothing), strict=True)
            ],
        }
        for label, rows in found.items()
    ]


def _exact(outcome: Outcome) -> dict[str, Any] | None:
    """What the search missed of the exact frontier, as rows of their own."""
    if outcome.exact is None or len(outcome.exact.frontier) == 0:
        return None
    exact = outcome.exact.frontier
    missed = ~np.isin(exact.keys, outcome.frontier.keys)
    genotypes = exact.genotypes[missed][thinned(int(missed.sum()), MISSED)]
    problem = outcome.study.problem
    return {
        "missed": int(missed.sum()),
        "metrics": {name: column(values) for name, values in problem.evaluate(genotypes).metrics.items()},
        "shape": _shape(problem.architectures(genotypes), problem.space),
    }


def _baselines(outcome: Outcome) -> list[dict[str, Any]]:
    extrapolating = {point.label for point in baseline_points(outcome, "loss", "total_ms") if point.extrapolates}
    return [
        {
            "label": known.label,
            "metrics": {
                name: baseline_metric(outcome, known.architecture, name) for name in outcome.evaluations.metrics
            },
            "extrapolates": known.label in extrapolating,
        }
        for known in outcome.study.baselines
    ]


def _evolving(outcome: Outcome, across: str) -> list[dict[str, Any]]:
    if len(outcome.frontier) == 0:
        return []
    x, values = evolution(outcome, thinned(len(outcome.frontier), DRAWN), across)
    return [
        {"name": name, "label": text, "x": column(x), "median": column(running_median(values[name]))}
        for name, text in evolving(outcome)
    ]


def _convergence(outcome: Outcome) -> dict[str, Any] | None:
    found = convergence(outcome)
    if found is None:
        return None
    return {"counts": column(found.counts), "values": column(found.values), "label": found.label, "log": found.to_exact}


ENDS = (0.05, 0.95)
NORMAL = 1.645  # sds between which a normal variable lies nine times of ten


def details(problem: Problem, genotypes: IntArray) -> dict[str, Any]:
    """Loss terms, operators, resident bytes, neighbours and the loss's interval of each genotype (n, g)."""
    architectures = problem.architectures(genotypes)
    law = problem.scenario.law
    return {
        "n": len(genotypes),
        "kinds": [{"name": name, "words": words} for name, words in KINDS.items()],
        "lossTerms": _named(law.terms(architectures)),
        "phases": _phases(problem, architectures),
        "resident": _named(by_format(resident_bytes, architectures, problem.scenario)),
        "steps": _steps(problem, genotypes),
        "interval": interval(law, architectures),
        "extrapolates": column(law.extrapolates(architectures)),
    }


def _named(columns: dict[str, Any]) -> dict[str, Any]:
    return {"names": list(columns), "columns": [column(values) for values in columns.values()]}


def _phases(problem: Problem, architectures: Architectures) -> list[dict[str, Any]]:
    """Operators of prefill and decode: figures (n,), and milliseconds by what takes them."""
    found = by_format(_figures, architectures, problem.scenario)
    operators = {phase: dict.fromkeys(key[1:3] for key in found if key[0] == phase) for phase in ("prefill", "decode")}
    return [
        {
            "name": phase,
            "operators": [
                {
                    "name": name,
                    "part": part,
                    **{figure: column(found[phase, name, part, figure]) for figure in ("instances", "gflop", "mb")},
                    "ms": [column(found[phase, name, part, kind]) for kind in KINDS],
                }
                for name, part in rows
            ],
        }
        for phase, rows in operators.items()
    ]


def _figures(architectures: Architectures, scenario: Scenario) -> dict[tuple[str, str, str, str], FloatArray]:
    """Every figure of every operator, (n,), by phase, operator, part and its own name."""
    return {
        (phase, operator.operator, operator.part, figure): values
        for phase, found in operator_columns(scenario, architectures).items()
        for operator in found
        for figure, values in (
            *(("instances", operator.instances), ("gflop", operator.gflop), ("mb", operator.mb)),
            *operator.ms_by_kind.items(),
        )
    }


def _steps(problem: Problem, genotypes: IntArray) -> dict[str, Any]:
    """Neighbours one step away: how many each member has, their names, and the changes of each metric."""
    found = steps_from(problem, genotypes) if len(genotypes) else []
    every = [step for steps in found for step in steps]
    names, metrics = sorted({step.step for step in every}), step_metrics(problem)
    place = {name: i for i, name in enumerate(names)}
    return {
        "counts": column(np.array([len(steps) for steps in found], dtype=np.int64)),
        "names": names,
        "name": column(np.array([place[step.step] for step in every], dtype=np.int64)),
        "metrics": list(metrics),
        "changes": [column(np.array([step.change[metric] for step in every])) for metric in metrics],
    }


def interval(law: Law, architectures: Architectures) -> dict[str, Any] | None:
    """Between which losses nine of ten draws of the law lie, or nine of ten residuals; None where the law states neither."""
    if len(architectures) == 0:
        return None
    if law.draws:
        low, high = np.quantile(law.spread_losses(architectures), ENDS, axis=0)
        return {"low": column(low), "high": column(high), "of": "draws of the law"}
    if law.residual_sd is None:
        return None
    loss, half = law.loss(architectures), NORMAL * law.residual_sd
    return {"low": column(loss - half), "high": column(loss + half), "of": "residuals of the law's fit"}
