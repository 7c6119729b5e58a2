"""The data of a run's page: rows, frontier, exact frontier, baselines, answers, details and convergence."""

from dataclasses import dataclass
from typing import Any

import moocore
import numpy as np

from nas.answer import plot_data
from nas.answer.device_times import TIMES, ranges_of_what, times_of
from nas.answer.outcome import Outcome, once
from nas.answer.palette import label
from nas.answer.sentences import baseline_metric, plot_axes
from nas.answer.sureness import beside_evidence, difference_in_words, model_witnesses
from nas.answer.take import tokens
from nas.pages.page import column
from nas.problem.breakdown import KINDS, by_format, operator_columns, resident_bytes, step_metrics, steps_from
from nas.problem.evaluations import Evaluations, rounded
from nas.problem.objective import EXTRAPOLATION, built_in, is_rate
from nas.problem.picks import MARGIN
from nas.problem.problem import Problem
from nas.problem.quantiles import with_margins, with_metrics
from nas.problem.uncertainty import from_models
from nas.terminal.doors import command
from objectives.loss_law.law import Law
from objectives.plugins import importable
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray
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
    if _solved(outcome) and outcome.study.problem.analytic:
        return _row_solved(outcome, usable)
    if len(usable) <= MOST:
        return Rows(usable, tuple(name for name in found.metrics if not is_rate(name)), True, "")
    return _of_many(outcome, usable)


def _row_solved(outcome: Outcome, usable: IntArray) -> Rows:
    """A run that kept its frontier and picks alone: tighter budgets on objectives choose among these."""
    objectives = outcome.frontier.objectives
    kept = usable[np.isin(usable, usable[plot_data.thinned(len(usable), PICKABLE)])]
    if not outcome.whole or not {"loss", "total_ms"} <= set(objectives) or len(kept) < len(usable):
        return Rows(kept, (), False, "The space was solved, not sampled: select solves it again for other budgets.")
    why = "The space was solved and its frontier kept: tightened budgets choose from it; select solves the space again."
    return Rows(kept, objectives, False, why)


def _of_many(outcome: Outcome, usable: IntArray) -> Rows:
    """A large run: its frontier, a share of its dots, and every row that some budgets on few metrics can pick."""
    found = priced(outcome)
    names = tuple(dict.fromkeys([*found.objectives, *(budget.metric for budget in found.budgets)]))
    limited = [*names, *(name + MARGIN for name in names if name + MARGIN in found.metrics)]
    columns = [np.arange(len(usable), dtype=np.float64), *(found.metrics[name][usable] for name in limited)]
    pickable = usable[moocore.is_nondominated(np.stack(columns, axis=1))]
    feasible = usable[found.feasible[usable]]
    frontier = np.flatnonzero(
        np.isin(found.keys, outcome.frontier.keys[plot_data.thinned(len(outcome.frontier), DRAWN)])
    )
    drawn = np.union1d(feasible[plot_data.thinned(len(feasible), DRAWN)], frontier)
    why = f"Budgets on {', '.join(names)} can be moved here; select takes any metric of all {len(found):,} evaluations."
    if len(pickable) > PICKABLE:
        pickable, names = pickable[:0], ()
        why = f"Too many of {len(found):,} evaluations can be picks to hold them here: select takes any budget."
    chosen = usable[np.isin(usable, np.union1d(drawn, pickable))]
    return Rows(chosen, names, True, why)


@once
def priced(outcome: Outcome) -> Evaluations:
    """Everything evaluated, with every time as picks keep a limit on it."""
    found = outcome.evaluations
    problem = with_margins(outcome.study.problem, found.metrics)
    return with_metrics(problem, found, tuple(name for name in problem.columns if name not in found.metrics))


def _place(found: Evaluations) -> IntArray:
    """Place of each row in the order of picks: lowest loss, then total_ms (both at 12 digits), then genotype."""
    with np.errstate(invalid="ignore"):
        total, loss = (rounded(found.metrics[name]) for name in ("total_ms", "loss"))
    return np.argsort(np.lexsort((found.keys, total, loss)))


DETAILED = 400  # frontier members that are taken apart
WORDS = {name: list(words) for name, words in CODES.items()}  # that columns of numbers stand for
MISSED = 3_000  # members of the exact frontier that the search did not find


def run_data(outcome: Outcome, rows: Rows) -> dict[str, Any]:
    """Everything that the scripts of a run's page need."""
    every, problem, doubt = outcome.evaluations, outcome.study.problem, outcome.doubt
    places = {int(key): place for place, key in enumerate(every.keys[rows.chosen].tolist())}
    held = np.array([key in places for key in outcome.frontier.keys.tolist()], dtype=bool)
    frontier = np.array([places[key] for key in outcome.frontier.keys[held].tolist()], dtype=np.int64)
    answered = [(int(row.keys[0]), labels) for row, labels in plot_data.answered_designs(outcome)]
    picks = [{"row": places[key], "labels": labels} for key, labels in answered if key in places]
    picked = np.array([pick["row"] for pick in picks], dtype=np.int64)  # taken apart, beside members of the frontier
    detailed = np.union1d(frontier[plot_data.thinned(len(frontier), DETAILED)], picked).astype(np.int64)
    genotypes, across = every.genotypes[rows.chosen[detailed]], axes_of(outcome)[0]
    curve, law = plot_data.convergence(outcome), problem.scenario.law
    return {
        "metrics": [metric_of(outcome, metric) for metric in every.metrics],
        "objectives": list(every.objectives),
        "axes": list(axes_of(outcome)),
        "budgets": [{"metric": budget.metric, "limit": budget.limit} for budget in every.budgets],
        "movable": [name for name in rows.movable if name != EXTRAPOLATION],
        "looser": rows.looser,
        "rows": _rows(outcome, rows),
        "words": WORDS | {"device": problem.space.specification.axes.device or []},
        "frontier": column(frontier),
        "frontierName": plot_data.frontier_name(outcome),
        "optimal": None if outcome.optimal is None else column(outcome.optimal[held]),
        "groups": None if doubt is None or doubt.groups is None else column(doubt.groups[held]),
        "steps": 0 if doubt is None else doubt.steps,
        "tokens": f" after {tokens(law.tokens)}" if law.sees_tokens and law.tokens else "",
        "differences": _differences(outcome, genotypes),
        "exact": _exact(outcome),
        "baselines": _baselines(outcome),
        "picks": picks,
        "evolving": _evolving(outcome, across),
        "convergence": curve
        and {
            "counts": column(curve.counts),
            "values": column(curve.values),
            "label": curve.label,
            "log": curve.to_exact,
        },
        "detailed": column(detailed),
        "details": details(problem, genotypes),
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
    found = priced(outcome)[rows.chosen]
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


def _differences(outcome: Outcome, genotypes: IntArray) -> list[dict[str, Any]]:
    """From each published model, in words, those of designs, with what `evidence` says of them; nothing of a law that does not say how sure it is."""
    law, models = outcome.study.problem.scenario.law, outcome.study.baselines
    designs, words = outcome.study.problem.architectures(genotypes), []
    by_evidence = model_witnesses(law, designs, models)
    for model, rows in from_models(law, designs, models).items():
        of = zip(rows, by_evidence.get(model, [None] * len(designs)), strict=True)
        said = [difference_in_words(each) + beside_evidence(witness, brief=True) for each, witness in of]
        words.append({"label": model, "words": said})
    return words


def _exact(outcome: Outcome) -> dict[str, Any] | None:
    """What the search missed of the exact frontier, as rows of their own."""
    if outcome.exact is None or len(outcome.exact.frontier) == 0:
        return None
    exact = outcome.exact.frontier
    missed = ~np.isin(exact.keys, outcome.frontier.keys)
    genotypes = exact.genotypes[missed][plot_data.thinned(int(missed.sum()), MISSED)]
    problem = outcome.study.problem
    return {
        "missed": int(missed.sum()),
        "metrics": {name: column(values) for name, values in problem.evaluate(genotypes).metrics.items()},
        "shape": _shape(problem.architectures(genotypes), problem.space),
    }


def _baselines(outcome: Outcome) -> list[dict[str, Any]]:
    extrapolating = {
        point.label for point in plot_data.baseline_points(outcome, "loss", "total_ms") if point.extrapolates
    }
    return [
        {
            "label": model.label,
            "metrics": {n: baseline_metric(outcome, model.architecture, n) for n in outcome.evaluations.metrics},
            "extrapolates": model.label in extrapolating,
        }
        for model in outcome.study.baselines
    ]


def _evolving(outcome: Outcome, across: str) -> list[dict[str, Any]]:
    if len(outcome.frontier) == 0:
        return []
    x, values = plot_data.evolution(outcome, plot_data.thinned(len(outcome.frontier), DRAWN), across)
    return [
        {"name": name, "label": text, "x": column(x), "median": column(plot_data.running_median(values[name]))}
        for name, text in plot_data.evolving(outcome)
    ]


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
        "ranges": _ranges(problem, architectures),
    }


def _ranges(problem: Problem, architectures: Architectures) -> list[str]:
    """Where measured times of each design lie, in words; "" where nothing says."""
    shown, times = times_of(problem)[:1], problem.metrics(architectures, TIMES)[0]
    rows = [(architectures[[i]], {name: float(times[name][i]) for name in TIMES}) for i in range(len(architectures))]
    return [ranges_of_what(problem.pricing(design), design, own, shown) for design, own in rows]


def _named(columns: dict[str, Any]) -> dict[str, Any]:
    return {"names": list(columns), "columns": [column(values) for values in columns.values()]}


def _phases(problem: Problem, architectures: Architectures) -> list[dict[str, Any]]:
    """Operators of prefill and decode: figures (n,), and milliseconds by what takes them."""
    every = by_format(_figures, architectures, problem.scenario)
    phases: dict[str, list[dict[str, Any]]] = {"prefill": [], "decode": []}
    for phase, name, part in dict.fromkeys(key[:3] for key in every):
        own = {figure: column(every[phase, name, part, figure]) for figure in ("instances", "gflop", "mb")}
        ms = [column(every[phase, name, part, kind]) for kind in KINDS]
        phases[phase].append({"name": name, "part": part, **own, "ms": ms})
    return [{"name": phase, "operators": operators} for phase, operators in phases.items()]


def _figures(architectures: Architectures, scenario: Scenario) -> dict[tuple[str, str, str, str], FloatArray]:
    """Every figure of every operator, (n,), by phase, operator, part and its own name."""
    return {
        (phase, of.operator, of.part, figure): values
        for phase, operators in operator_columns(scenario, architectures).items()
        for of in operators
        for figure, values in ({"instances": of.instances, "gflop": of.gflop, "mb": of.mb} | of.ms_by_kind).items()
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
