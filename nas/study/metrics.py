"""Objectives, budgets and applications by the names of metrics, a user's functions included."""

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files.faults import Faults, Path, nearest, unknown
from nas.problem.evaluations import Evaluations, Scale, frontier_rows
from nas.problem.objective import KEEP, Budget, Objective, built_in, costs, is_rate, limit_on_cost, rate_of, unit_of
from nas.problem.picks import PickRule, least_of
from nas.problem.quantiles import at_a_quantile
from nas.problem.uncertainty import cheapest, cost_among
from nas.study import entry_points
from nas.study.entry_points import PlugIn
from nas.study.user_code import code_named, loaded_code
from nas.study.value_parsers import ascending, split_budget
from nas.terminal.doors import EXPENSIVE, command
from objectives.device_columns import NONE, Figure, taken
from objectives.plugins import importable
from objectives.quantities import quantity_in
from objectives.scenario import Workload
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.axes_schema import CAPABILITIES, Axes

DIRECTIONS = ("minimize", "minimise")  # everything is minimised; a function may say so


class MetricReader:
    """Looks up the metrics that a study's values name, each once; what cannot be had is a fault at its place.

    known: what is looked up so far, shipped metrics and a user's own, by name; figures: those of the device.
    """

    def __init__(
        self, faults: Faults, known: Mapping[str, Objective] | None = None, figures: Mapping[str, Figure] = NONE
    ) -> None:
        self.faults, self.figures = faults, figures
        self.known = dict(known or {})

    def objectives(self, names: Sequence[str]) -> None:
        """Look up what is minimised, each name once."""
        for i, name in enumerate(names):
            if name in self.known:
                self.faults.add(("objectives", i), f"expected each objective once, got {name!r} twice; remove one")
            self._look_up(name, ("objectives", i))

    def columns(self, names: Sequence[str]) -> None:
        """See that each metric to keep besides ships, or is a figure of the device."""
        shipped = [*importable("objectives.metrics"), *self.figures]
        for i, name in enumerate(names):
            try:
                if not (at_a_quantile(name) or name in shipped):
                    self.faults.add(("columns", i), unknown("a shipped metric", name, shipped))
            except UsageError as error:
                self.faults.add(("columns", i), str(error))

    def budgets(self, given: Mapping[str, Any], path: Path) -> dict[str, float | None]:
        """Limits per metric in the metric's unit, at most, of a rate at least; None removes a default budget."""
        limits: dict[str, float | None] = {}
        for name, limit in given.items():
            if name in Axes.model_fields and name not in self.figures:
                text = str(limit).removeprefix("<=")
                values = f"{text[2:].strip()}.." if text.startswith(">=") else text if text == "1" else f"..{text}"
                self.faults.add(
                    (*path, name), f"expected a metric, got {name}, which is an axis; write --only {name}={values}"
                )
                continue
            try:
                if self._look_up(name, (*path, name)):
                    unit = self.known[name].unit
                    limits[name] = None if limit in ("none", None) else limit_of(name, unit, limit)
            except ValueError as error:
                self.faults.add((*path, name), str(error))
        return limits

    def applications(self, given: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, float]]:
        """Applications by name, each a metric and its limit."""
        limits: dict[str, tuple[str, float]] = {}
        for label, limit in given.items():
            path, before = ("applications", label), len(self.faults.lines)
            read = [(metric, value) for metric, value in self.budgets(limit, path).items() if value is not None]
            if len(read) == 1 == len(limit):
                limits[label] = read[0]
            elif len(self.faults.lines) == before:
                self.faults.add(
                    path, f"expected one metric and its limit, got {limit!r}; write for example {{decode_ms: 20}}"
                )
        return limits

    def _look_up(self, name: str, path: Path) -> bool:
        """Find a metric, importing a user's function; False and a fault when there is none."""
        try:
            typed = self.faults.typed(path)
            code = code_named("metrics", name, typed=typed)
            if name in self.figures and name not in self.known and code is not None:
                raise UsageError(f"columns of the device: {taken(name, str(code))}")
            if name not in self.known:
                of_device = name in self.figures
                self.known[name] = (
                    built_in(name, self.figures)
                    if of_device
                    else metric_named(name, code, typed=typed, figures=self.figures)
                )
        except UsageError as error:
            self.faults.add(path, str(error))
            return False
        return True


def limit_of(metric: str, unit: str, written: Any) -> float:
    """A limit as written, in the metric's unit: at most, of a rate, `20` or `>=20`, at least.

    Raises:
        ValueError: not a positive quantity of that unit, or a limit on the wrong side.
    """
    text = written.strip() if isinstance(written, str) else ""
    least = text.removeprefix(">=").strip() if text.startswith(">=") else None
    if not is_rate(metric) and least is not None:
        raise ValueError(
            f"expected {metric}<=limit, at most, got {metric}{text}; only rates have a lower limit "
            f"({', '.join(costs())}), drop it"
        )
    return quantity_in(unit, written if least is None else least)


def metric_named(name: str, code: PlugIn | None, *, typed: bool, figures: Mapping[str, Figure] = NONE) -> Objective:
    """The metric of a name, and of the code under it that is not ours, imported where the user `typed` it or the command evaluates.

    Raises:
        UsageError: no such metric, or one that cannot be had.
    """
    if code is not None:
        with loaded_code(code, typed=typed) as module:
            return user_metric(code, module)
    if name in EXPENSIVE:
        return expensive(name)
    if name in importable("objectives.metrics") or at_a_quantile(name):
        return built_in(name)
    raise UsageError(unknown("a metric", name, [*entry_points.named("metrics"), *figures], "package.module:function"))


def expensive(name: str) -> Objective:
    """A metric that ships and costs, `objective.py` of its command; its settings are the study's."""
    place = EXPENSIVE[name]
    module = importlib.import_module(place)
    function = getattr(module, name)
    return Objective(
        name, module.UNIT, module.LOG_SCALE, function, f"{place}:{name}", module.PRIOR, module.COST_S, settings={}
    )


def user_metric(code: PlugIn, module: ModuleType) -> Objective:
    """The function of a package's or a user's module, which takes `Architectures` (and a scenario) and returns (n,).

    UNIT, LOG_SCALE, PRIOR, COST_S and FIDELITIES are its own.

    Raises:
        UsageError: no such function, or one that is no metric.
    """
    place = code.place
    module_name, _, attribute = place.partition(":")
    function = getattr(module, attribute.partition(".")[0], None)
    if not callable(function):
        public = [n for n in vars(module) if callable(getattr(module, n)) and not n.startswith("_")]
        raise UsageError(f"expected a function of {module_name}, got {attribute!r}; {nearest(attribute, public)}")
    direction = getattr(function, "DIRECTION", "minimize")
    if direction not in DIRECTIONS:
        raise UsageError(
            f"expected a metric of which less is better, got DIRECTION {direction!r} of {place}; return its negative or its reciprocal"
        )
    unit, log_scale = str(getattr(function, "UNIT", "")), bool(getattr(function, "LOG_SCALE", False))
    told = Objective(code.name, unit, log_scale, function, place, _prior(function, place), _cost_s(function, place))
    return replace(told, **_fidelities(function, place))


def _fidelities(function: Any, place: str) -> dict[str, Any]:
    """The fidelities at which a function evaluates, its FIDELITIES, and the share that goes on from each, its KEEP; nothing where it has none."""
    given, keep = getattr(function, "FIDELITIES", ()), getattr(function, "KEEP", KEEP)
    try:
        found = ascending(given) if len(given) else ()
    except (TypeError, ValueError) as error:
        raise UsageError(f"FIDELITIES of {place}: {error}") from None
    if isinstance(keep, bool) or not isinstance(keep, (int, float)) or not 0.0 < keep < 1.0:
        raise UsageError(f"KEEP of {place}: expected a share between 0 and 1, got {keep!r}; correct it")
    return {"fidelities": found, "keep": float(keep)}


def _cost_s(function: Any, place: str) -> float:
    """Seconds that a function says one architecture takes, its COST_S; 0 where it says nothing."""
    cost = getattr(function, "COST_S", 0.0)
    if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0.0 <= cost < math.inf:
        raise UsageError(f"COST_S of {place}: expected seconds, 0 or more, got {cost!r}; correct it")
    return float(cost)


def _prior(function: Any, place: str) -> str:
    """The shipped metric that a function says approximates it, its PRIOR; "" where it says none."""
    prior = getattr(function, "PRIOR", "")
    if prior and prior not in importable("objectives.metrics"):
        raise UsageError(
            f"PRIOR of {place}: {unknown('a shipped metric', str(prior), importable('objectives.metrics'))}"
        )
    return str(prior)


Groups = Callable[[IntArray], IntArray]
FORMS = "frontier, best, knee, diverse:K or budget:metric=limit"


def select(
    evaluations: Evaluations, how: str, scale: Scale, workload: Workload, groups: Groups | None = None
) -> IntArray:
    """Rows chosen by `how`, in frontier order; none when nothing is feasible. `workload` is what the metrics are of.

    groups: of frontier rows, the group that each is not told apart in; then the choice is among the cheapest of each.

    Raises:
        UsageError: an unknown form.
    """
    check_form(how)
    kind, _, rest = how.partition(":")
    if groups is not None:
        limit = parse_budget(rest, tuple(evaluations.metrics), workload) if kind == "budget" else None
        rows = _of_each_step(evaluations, limit, groups)
        if limit is not None or how == "best":
            return rows[:1]
        frontier = frontier_rows(evaluations)
        return _among(evaluations, frontier[np.isin(frontier, rows)], how, scale)
    if kind == "budget":
        limit, least = parse_budget(rest, tuple(evaluations.metrics), workload), least_of(evaluations.objectives)
        return _some(PickRule(limit, least=least).row(evaluations))
    if how == "best":
        return _some(PickRule(None, least=least_of(evaluations.objectives)).row(evaluations))
    return _among(evaluations, frontier_rows(evaluations), how, scale)


def _of_each_step(evaluations: Evaluations, limit: Budget | None, groups: Groups) -> IntArray:
    """The cheapest frontier row of each group that is told apart, within a limit, from the lowest loss on."""
    rows = frontier_rows(evaluations)
    rows = rows if limit is None else rows[evaluations.metrics[limit.metric][rows] <= limit.limit]
    cost, loss = evaluations.metrics[cost_among(evaluations.objectives)], evaluations.metrics["loss"]
    return rows[cheapest(groups(rows), cost[rows], loss[rows])] if len(rows) else rows


def _among(evaluations: Evaluations, rows: IntArray, how: str, scale: Scale) -> IntArray:
    """All frontier rows, their knee or a diverse few."""
    if len(rows) == 0 or how == "frontier":
        return rows
    kind, _, rest = how.partition(":")
    points = scale.normalise(evaluations.values[rows])
    return rows[[knee(points)]] if kind == "knee" else rows[np.sort(diverse(points, int(rest)))]


def check_form(how: str) -> None:
    """Refuse an unknown form before anything is read.

    Raises:
        UsageError: with the known forms.
    """
    kind, _, rest = how.partition(":") if isinstance(how, str) else ("", "", "")
    counted = kind == "diverse" and rest.isascii() and rest.isdigit() and int(rest) > 0
    if how not in ("frontier", "best", "knee") and not (kind == "budget" and rest) and not counted:
        raise UsageError(f"select: expected {FORMS}, got {how!r}; choose one")


def parse_budget(text: str, metrics: tuple[str, ...], workload: Workload) -> Budget:
    """A budget from `metric=limit`, `metric<=limit` or `rate>=limit`, the limit with or without its unit.

    Of a rate it is the limit on the cost that a rate of this workload is over.

    Raises:
        UsageError: an unknown metric or a limit that is none.
    """
    try:
        metric, limit = split_budget(text)
        if metric in CAPABILITIES:
            raise ValueError(
                f"{metric}: expected a metric, got a limit that every design of a space is within; give it to {command('run')}"
            )
        rate = rate_of(metric, workload)
        if metric not in metrics and (rate is None or rate.cost not in metrics):
            known = (*metrics, *(name for name, cost in costs().items() if cost in metrics and name not in metrics))
            raise ValueError(f"{unknown('a metric', metric, known)}")
        number = limit_of(metric, unit_of(metric, workload.figures), limit)
        return limit_on_cost(metric, number, workload)
    except ValueError as error:
        raise UsageError(f"budget: {error}") from None


def _some(row: int | None) -> IntArray:
    return np.array([] if row is None else [row], dtype=np.int64)


def knee(points: FloatArray) -> int:
    """Row of (n, m) farthest below the plane through the points that are best in each objective.

    Ties, and a frontier without a plane, go to the row nearest the ideal, then to the first.
    """
    corners = points[[int(np.lexsort((points.sum(axis=1), points[:, i]))[0]) for i in range(points.shape[1])]]
    try:
        normal = np.linalg.solve(corners, np.ones(len(corners)))
    except np.linalg.LinAlgError:
        normal = np.ones(len(corners))
    if not np.isfinite(normal).all() or (normal < 0).any():
        normal = np.ones(len(corners))
    below = (1.0 - points @ normal) / np.linalg.norm(normal)
    return int(np.lexsort((points.sum(axis=1), -np.round(below, 12)))[0])


def diverse(points: FloatArray, k: int) -> IntArray:
    """k rows of (n, m): those best in each objective, then greedily the farthest from all chosen."""
    chosen: list[int] = []
    for i in range(points.shape[1]):
        end = int(np.lexsort((points.sum(axis=1), points[:, i]))[0])
        chosen += [end] if end not in chosen else []
    chosen = chosen[:k]
    nearest = np.min([np.linalg.norm(points - points[c], axis=1) for c in chosen], axis=0)
    while len(chosen) < min(k, len(points)):
        nearest[chosen] = -1.0
        farthest = int(np.argmax(nearest))
        chosen.append(farthest)
        nearest = np.minimum(nearest, np.linalg.norm(points - points[farthest], axis=1))
    return np.array(chosen, dtype=np.int64)
