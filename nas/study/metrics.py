"""Objectives, budgets and applications by the names of metrics, a user's functions included."""

import importlib
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from nas.errors import UsageError
from nas.files.faults import Faults, Path, nearest, unknown
from nas.files.import_rights import refuse_import
from nas.problem.costly import COSTLY
from nas.problem.objective import KEEP, Objective, built_in, limit_of
from nas.problem.quantile_budgets import metric_of
from nas.study import entry_points
from nas.study.configuration import PAPER_APPLICATIONS, StudyConfig
from nas.study.own_modules import imported
from nas.study.written_budgets import split_budgets
from nas.study.written_values import ascending, split_names
from objectives.plugins import importable

FUNCTION = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
DIRECTIONS = ("minimize", "minimise")  # everything is minimised; a function may say so
QUANTILE = re.compile(r"^loss@q(?=.*[1-9])\d{1,2}(\.\d+)?$")


def objectives_of(raw: Mapping[str, Any], faults: Faults) -> dict[str, Objective]:
    """Objectives and budgeted user metrics by name."""
    given = raw.get("objectives", StudyConfig.model_fields["objectives"].default)
    names = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
    found: dict[str, Objective] = {}
    if not isinstance(names, list):
        return found
    for i, name in enumerate(names):
        if not isinstance(name, str):
            continue
        if name in found:
            faults.add(("objectives", i), f"expected each objective once, got {name!r} twice; remove one")
        _add_metric(name, ("objectives", i), found, faults)
    return found


def _add_metric(name: str, path: Path, found: dict[str, Objective], faults: Faults) -> bool:
    """Look a metric up, importing a user's function; False and a fault when there is none."""
    try:
        if faults.typed(path):
            entry_points.refuse_contested("metrics", name)
        if name in found:
            return True
        if name in importable("objectives.metrics") or QUANTILE.match(name):
            found[name] = built_in(name)
        elif name in COSTLY:
            found[name] = costly(name)
        elif plug_in := entry_points.found("metrics", name):
            refuse_import(name, typed=faults.typed(path))
            found[name] = installed_metric(plug_in)
        elif FUNCTION.match(name):
            refuse_import(name, typed=faults.typed(path))
            found[name] = user_metric(name)
        else:
            known = entry_points.named("metrics")
            faults.add(path, unknown("a metric", name, known, "package.module:function"))
    except UsageError as error:
        faults.add(path, str(error))
        return False
    return name in found


def costly(name: str) -> Objective:
    """A metric that ships and costs, `objective.py` of its command; its settings are the study's."""
    place = COSTLY[name]
    module = importlib.import_module(place)
    function = getattr(module, name)
    return Objective(
        name, module.UNIT, module.LOG_SCALE, function, f"{place}:{name}", module.PRIOR, module.COST_S, settings={}
    )


def user_metric(name: str) -> Objective:
    """A user's `package.module:function`, found on the Python path or in the current folder.

    Raises:
        UsageError: no such function, or one that is no metric.
    """
    return _metric(name, name, imported(name.partition(":")[0]))


def installed_metric(plug_in: entry_points.PlugIn) -> Objective:
    """A metric of an installed package, under its short name.

    Raises:
        UsageError: it cannot be imported, or is none, with its distribution.
    """
    module = plug_in.module()
    try:
        return _metric(plug_in.name, plug_in.place, module)
    except UsageError as error:
        raise UsageError(f"{plug_in}: {error}") from None


def _metric(name: str, place: str, module: ModuleType) -> Objective:
    """The function at a place, which takes `Architectures` (and a scenario) and returns (n,); UNIT, LOG_SCALE, PRIOR, COST_S and FIDELITIES are its own."""
    module_name, _, attribute = place.partition(":")
    function = getattr(module, attribute, None)
    if not callable(function):
        public = [n for n in vars(module) if callable(getattr(module, n)) and not n.startswith("_")]
        raise UsageError(f"expected a function of {module_name}, got {attribute!r}; {nearest(attribute, public)}")
    direction = getattr(function, "DIRECTION", "minimize")
    if direction not in DIRECTIONS:
        raise UsageError(
            f"expected a metric of which less is better, got DIRECTION {direction!r} of {place}; return its negative or its reciprocal"
        )
    unit, log_scale = str(getattr(function, "UNIT", "")), bool(getattr(function, "LOG_SCALE", False))
    told = Objective(name, unit, log_scale, function, place, _prior(function, place), _cost_s(function, place))
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


def budgets_of(given: Any, path: Path, objectives: dict[str, Objective], faults: Faults) -> dict[str, float | None]:
    """Limits per metric in the metric's unit, at most, of a rate at least; None removes a default budget."""
    try:
        items = split_budgets(given or {})
    except ValueError as error:
        faults.add(path, str(error))
        return {}
    if not isinstance(items, dict):
        return {}
    limits: dict[str, float | None] = {}
    for name, limit in items.items():
        try:
            metric = metric_of(name)
            if _add_metric(metric, (*path, name), objectives, faults):
                limits[name] = None if limit in ("none", None) else limit_of(name, objectives[metric].unit, limit)
        except ValueError as error:
            faults.add((*path, name), str(error))
    return limits


def columns_of(raw: Mapping[str, Any], faults: Faults) -> None:
    """See that the further columns are shipped metrics."""
    given = raw.get("columns") or []
    names = split_names(given)
    for i, name in enumerate(names if isinstance(names, list) else ()):
        if isinstance(name, str) and name not in importable("objectives.metrics"):
            faults.add(("columns", i), unknown("a shipped metric", name, importable("objectives.metrics")))


def applications_of(
    raw: Mapping[str, Any], limits: Mapping[str, float | None], objectives: dict[str, Objective], faults: Faults
) -> dict[str, tuple[str, float]]:
    """Applications by name, each a metric and its limit; left out, the paper's where the study has no budget of its own."""
    given = raw.get("applications")
    if given is None:
        given = {} if any(limit is not None for limit in limits.values()) else PAPER_APPLICATIONS
    found: dict[str, tuple[str, float]] = {}
    for label, limit in given.items() if isinstance(given, dict) else ():
        before = len(faults.lines)
        asked = budgets_of(limit, ("applications", label), objectives, faults) if isinstance(limit, dict) else {}
        if any(metric_of(name) != name for name in asked):
            faults.add(("applications", label), f"expected a metric without a quantile, got {limit!r}; drop the @")
        elif len(asked) == 1 and None not in asked.values():
            found[label] = next((metric, value) for metric, value in asked.items() if value is not None)
        elif isinstance(limit, dict) and len(faults.lines) == before:
            faults.add(
                ("applications", label),
                f"expected one metric and its limit, got {limit!r}; write for example {{decode_ms: 20}}",
            )
    return found
