"""Objectives, budgets and applications by the names of metrics, a user's functions included."""

import re
from collections.abc import Mapping
from typing import Any

from nas.errors import UsageError
from nas.files.faults import Faults, Path, nearest, unknown
from nas.problem.objective import Objective, built_in, limit_in_unit
from nas.problem.quantile_budgets import metric_of
from nas.study.configuration import PAPER_APPLICATIONS, StudyConfig, split_budgets
from nas.study.own_modules import imported
from objectives.plugins import importable

FUNCTION = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
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
    if name in found:
        return True
    if name in importable("objectives.metrics") or QUANTILE.match(name):
        found[name] = built_in(name)
        return True
    if not FUNCTION.match(name):
        faults.add(path, unknown("a metric", name, importable("objectives.metrics"), "package.module:function"))
        return False
    try:
        found[name] = user_metric(name)
    except UsageError as error:
        faults.add(path, str(error))
    return name in found


def user_metric(name: str) -> Objective:
    """A user's `package.module:function`, found on the Python path or in the current folder.

    The function takes `Architectures` and returns (n,); attributes LOG_SCALE and UNIT are honoured.
    """
    module_name, _, attribute = name.partition(":")
    module = imported(module_name)
    function = getattr(module, attribute, None)
    if not callable(function):
        public = [n for n in vars(module) if callable(getattr(module, n)) and not n.startswith("_")]
        raise UsageError(f"expected a function of {module_name}, got {attribute!r}; {nearest(attribute, public)}")
    return Objective(name, str(getattr(function, "UNIT", "")), bool(getattr(function, "LOG_SCALE", False)), function)


def budgets_of(given: Any, path: Path, objectives: dict[str, Objective], faults: Faults) -> dict[str, float | None]:
    """Limits per metric in the metric's unit; None removes a default budget."""
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
                limits[name] = None if limit in ("none", None) else limit_in_unit(objectives[metric].unit, limit)
        except ValueError as error:
            faults.add((*path, name), str(error))
    return limits


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
