"""One case: a device in a precision and workload, its problem, its question; all cases from what was asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from nas.devices.configuration import CASE_KEYS, Asked, Row
from nas.errors import UsageError
from nas.files.faults import Faults, unknown
from nas.problem.objective import Budget, Objective, limit_on_cost
from nas.problem.problem import Problem
from nas.problem.questions import OWN, Baseline, Question
from nas.search.assembly import Study, assemble, problem_of
from nas.study.baselines import baseline
from nas.study.capabilities import set_apart
from nas.study.catalogue import load_device
from nas.study.configuration import StudyConfig
from nas.study.metrics import budgets_of, objectives_of
from objectives.device import Device
from objectives.scenario import precision
from objectives.written_text import shown_name

NEUTRAL: dict[str, Any] = {  # of the study that only space, law and objectives are taken from
    "precision": "fp16",
    "latency": "operator",
    "vocabulary": 0,
    "budgets": {},
    "applications": {},
    "baselines": [],
    "params": {},
}


@dataclass(frozen=True, eq=False)
class Case:
    """A problem on a device with the question that is asked of it.

    `question` adds at most one limit to the problem's budgets, that of an application or of a reference model, which
    the pick meets and the frontier does not know. `named` is how the device was named, `note` how its speed is known.
    """

    label: str
    named: str
    config: StudyConfig
    problem: Problem
    question: Question
    note: str
    notices: tuple[str, ...] = ()

    @property
    def device(self) -> Device:
        """The device, in its power mode."""
        return self.problem.scenario.device

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """Every limit that the pick meets."""
        return (*self.problem.budgets, *self.question.budgets)

    @property
    def format(self) -> tuple[Any, ...]:
        """What the costs depend on besides the device: equal formats share operators, counts and losses."""
        return tuple(getattr(self.config, name) for name in CASE_KEYS)


@dataclass(frozen=True, eq=False)
class Cases:
    """All cases over one space, law and set of objectives, which are those of `base`."""

    base: Study
    cases: tuple[Case, ...]
    objectives: dict[str, Objective]
    reference: Baseline | None


def built(asked: Asked) -> Cases:
    """The cases as problems.

    Raises:
        UsageError: every fault of every row at once.
    """
    found, known = Faults(asked.origins), dict(asked.devices)
    objectives = objectives_of(asked.raw, found)
    of_metrics, least = set_apart(asked.raw, found)
    shared = budgets_of(of_metrics.get("budgets"), ("budgets",), objectives, found)
    rows = [_checked(asked, row, known, shared, objectives) for row in asked.rows]
    faults = Faults()
    faults.lines = list(dict.fromkeys([*asked.faults, *(line for _, lines in rows for line in lines)]))
    faults.raise_if_any()
    of_space = {"budgets": {name: f">={limit}" for name, limit in least.items()}}
    base = assemble({**asked.raw, **NEUTRAL, **of_space, "device": _first_device(asked)}, asked.origins)
    reference = None if asked.config.as_fast_as is None else _reference(asked.config.as_fast_as)
    cases = tuple(
        _case(asked, base, row, config, limits, known, objectives, reference)
        for row, ((config, limits), _) in zip(asked.rows, rows, strict=True)
    )
    return Cases(base, cases, objectives, reference)


def _first_device(asked: Asked) -> Any:
    named = asked.rows[0].values.get("device", asked.raw.get("device", StudyConfig.model_fields["device"].default))
    return asked.devices[named].mapping() if isinstance(named, str) and named in asked.devices else named


def _reference(item: str | Mapping[str, Any]) -> Baseline:
    try:
        return baseline(item)
    except (UsageError, ValueError) as error:
        raise UsageError(f"--as-fast-as: {error}") from None


Checked = tuple[StudyConfig, dict[str, float | None]]


def _checked(
    asked: Asked, row: Row, known: dict[str, Device], shared: dict[str, float | None], objectives: dict[str, Objective]
) -> tuple[Checked, list[tuple[str, str]]]:
    """A row's configuration and limits, and what is wrong with it."""
    faults = Faults({**asked.origins, **row.origins})
    besides: dict[str, Any] = {"device": "", "budgets": {}, "applications": None, "baselines": [], "params": {}}
    config = StudyConfig()
    try:
        config = StudyConfig.model_validate({**asked.raw, **row.values, **besides})
    except ValidationError as error:
        faults.add_validation(error, model=StudyConfig)
    _check_device(row, _named(asked, row), known, config, faults)
    own = budgets_of(row.budgets, ("budgets",), objectives, faults)
    if row.application and row.application not in asked.raw["applications"]:
        faults.add(("application",), unknown("an application", row.application, asked.raw["applications"]))
    return (config, {**shared, **own}), faults.lines


def _check_device(row: Row, named: str, known: dict[str, Device], config: StudyConfig, faults: Faults) -> None:
    """Load a row's device unless it is known; see that it has the precision's peak and that names can be shown."""
    for key, text in (("case", row.label), ("device", named)):
        try:
            shown_name(text)
        except ValueError as error:
            faults.add((key,), str(error))
    try:
        known[named] = known.get(named) or load_device(named)
    except UsageError as error:
        faults.add(("device",), str(error).removeprefix("--device: "))
        return
    try:
        known[named].peak(precision(config.precision).linear_peak)
    except ValueError as error:
        faults.add(("precision",), f"{config.precision}: {error}")


def _named(asked: Asked, row: Row) -> str:
    given = row.values.get("device", asked.raw.get("device", StudyConfig.model_fields["device"].default))
    return str(given.get("name", "device")) if isinstance(given, dict) else str(given)


def _case(
    asked: Asked,
    base: Study,
    row: Row,
    config: StudyConfig,
    limits: dict[str, float | None],
    known: dict[str, Device],
    objectives: dict[str, Objective],
    reference: Baseline | None,
) -> Case:
    named = _named(asked, row)
    device, scenario = known[named], base.problem.scenario
    if scenario.formats:
        raise UsageError(
            f"space: expected one whose designs have the case's precision, got {base.problem.space.name} with precision as "
            "an axis; leave the axis out and name --precisions"
        )
    try:
        trainer = scenario.training.device
        space, law = base.problem.space, scenario.law
        problem, notices, note = problem_of(config, space, law, device, objectives, limits, trainer)
        question = _question(asked, row, problem, limits, objectives, reference)
    except UsageError as error:
        raise UsageError(f"{row.origins.get((), row.label)}: {error}") from None
    return Case(row.label, named, config, problem, question, note, tuple(notices))


def _question(
    asked: Asked,
    row: Row,
    problem: Problem,
    limits: dict[str, float | None],
    objectives: dict[str, Objective],
    reference: Baseline | None,
) -> Question:
    """An application's limit; else, where a case has no limit of its own or it was asked for, the reference's time."""
    if row.application:
        found = budgets_of(
            asked.raw["applications"][row.application],
            ("applications", row.application),
            objectives,
            faults := Faults(),
        )
        faults.raise_if_any()
        (metric, limit), *more = found.items()
        if more or limit is None:
            raise UsageError(
                f"applications.{row.application}: expected one metric and its limit, got {found}; correct it"
            )
        return Question(row.application, limit_on_cost(metric, limit, problem.scenario))
    limited = any(limit is not None for limit in limits.values())
    if reference is None or (limited and not asked.referred):
        return Question(OWN, None)
    try:
        theirs = problem.assess(problem.headed(reference.architecture))["total_ms"]
    except ValueError as error:
        raise UsageError(f"as_fast_as: {reference.label}: {error}, or choose another model") from None
    return Question(f"as fast as {reference.label}", Budget("total_ms", float(theirs[0])), baseline=reference.label)
