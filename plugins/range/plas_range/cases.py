"""A case: a device in a precision and workload, its problem, its question."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from nas.errors import UsageError
from nas.files.faults import Faults, unknown
from nas.problem.objective import OWN, Baseline, Budget, Objective, PickQuery, limit_on_cost
from nas.problem.problem import Problem
from nas.search.assembly import Study, problem_of, refuse_impossible, study_of
from nas.search.reading import ReadStudy
from nas.study.baselines import baseline
from nas.study.catalogue import load_device
from nas.study.configuration import IN_TOKENS, StudyConfig
from nas.study.metrics import MetricReader
from nas.study.scenarios import notices_of
from nas.study.study_devices import ColumnTable
from nas.study.study_laws import in_format, in_tokens, refuse_both, with_request
from nas.study.study_space import run_by_engine
from objectives.device import Device
from objectives.device_columns import NONE
from objectives.display_text import shown_name
from objectives.loss_law.law import Law
from objectives.loss_law.precision_cost import FULL
from objectives.precision import precision
from plas_range.configuration import CASE_KEYS, CaseList, Row

NEUTRAL: dict[str, Any] = {
    "precision": "fp16",
    "latency": "operator",
    "vocabulary": 0,
}  # of the study of space and law alone


@dataclass(frozen=True, eq=False)
class Case:
    """A problem on a device with its query.

    `question` adds at most one limit to the problem's budgets, that of an application or of a reference model, which
    the pick meets and the frontier does not know. `named` is how the device was named, `note` how its speed is known, `weight`
    what it counts where an installed package weighs cases.
    """

    label: str
    named: str
    config: StudyConfig
    problem: Problem
    question: PickQuery
    note: str
    notices: tuple[str, ...] = ()
    weight: float = 1.0

    @property
    def device(self) -> Device:
        """The device, in its power mode."""
        return self.problem.scenario.device

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """Every limit that the pick meets."""
        return (*self.problem.budgets, *self.question.budgets)

    @property
    def limits(self) -> tuple[Budget, ...]:
        """Those on what a design takes."""
        return tuple(budget for budget in self.budgets if not budget.of_evidence)

    @property
    def format(self) -> tuple[Any, ...]:
        """Quantities that the costs depend on besides the device: equal formats share operators, counts and losses."""
        return tuple(getattr(self.config, name) for name in CASE_KEYS)


@dataclass(frozen=True, eq=False)
class Cases:
    """All cases over one space, law and set of objectives, which are those of `base`."""

    base: Study
    cases: tuple[Case, ...]
    objectives: dict[str, Objective]
    reference: Baseline | None


def priced_cases(wanted: CaseList) -> Cases:
    """The cases as problems.

    Raises:
        UsageError: every fault of every row at once.
    """
    devices, metrics = dict(wanted.devices), dict(wanted.shared.metrics)
    rows = [_checked(wanted, row, devices, metrics) for row in wanted.rows]
    faults = Faults()
    faults.lines = list(dict.fromkeys([*wanted.faults, *(line for _, lines in rows for line in lines)]))
    faults.raise_if_any()
    base = study_of(_alone(wanted.shared, devices[_named(wanted, wanted.rows[0])]))
    reference = None if wanted.config.as_fast_as is None else _reference(wanted.config.as_fast_as)
    studies = [replace(study, metrics=metrics) for study, _ in rows]
    cases = tuple(_case(wanted, base, row, study, reference) for row, study in zip(wanted.rows, studies, strict=True))
    return Cases(base, cases, metrics, reference)


def _alone(shared: ReadStudy, device: Device) -> ReadStudy:
    """The study that only space, law and objectives are taken from."""
    config = shared.config.model_copy(update=NEUTRAL)
    metrics = {name: shared.metrics[name] for name in config.objectives}
    shared = replace(shared, config=config, laws=_laws(shared, config.precision), device=device, metrics=metrics)
    return replace(shared, limits={}, applications={}, notices=())


def _reference(item: str | Mapping[str, Any]) -> Baseline:
    try:
        return baseline(item)
    except (UsageError, ValueError) as error:
        raise UsageError(f"--as-fast-as: {error}") from None


def _checked(
    wanted: CaseList, row: Row, devices: dict[str, Device], metrics: dict[str, Objective]
) -> tuple[ReadStudy, list[tuple[str, str]]]:
    """The study of a row, and what is wrong with it; devices and metrics that it names are `known` from then on."""
    faults, config = Faults({**wanted.origins, **row.origins}), wanted.shared.config
    refuse_both(row.values, faults)
    lengths = {name: None for name, other in IN_TOKENS.items() if other in row.values}
    try:
        config = StudyConfig.model_validate({**config.model_dump(), **lengths, **row.values, "device": ""})
        config = in_tokens(config, wanted.shared.text)
    except ValidationError as error:
        faults.add_validation(error, model=StudyConfig)
    except UsageError as error:
        faults.add(("vocabulary",), str(error).removeprefix("vocabulary: "))
    text, named = with_request(wanted.shared.text, config), _named(wanted, row)
    _check_device(row, named, devices, config, wanted.shared.table, faults)
    reader = MetricReader(faults, metrics, devices[named].columns if named in devices else NONE)
    limits = {**wanted.shared.limits, **reader.budgets(row.budgets, ("budgets",))}
    metrics |= reader.known
    applications = wanted.shared.applications
    if row.application and row.application not in applications:
        faults.add(("application",), unknown("an application", row.application, applications))
    _refuse_own_losses(wanted.shared.laws[0], config.precision, faults)
    device, laws = devices.get(named, wanted.shared.device), _laws(wanted.shared, config.precision)
    return replace(wanted.shared, config=config, laws=laws, text=text, device=device, limits=limits), faults.lines


def _laws(shared: ReadStudy, precision: str) -> tuple[Law, ...]:
    return tuple(in_format(law, precision) for law in shared.laws)


def _refuse_own_losses(law: Law, precision: str, faults: Faults) -> None:
    """Designs are compared by one loss in all cases: what few bits cost in one of them cannot be in it."""
    if law.precision_law is not None and precision not in FULL:
        faults.add(
            ("precision_law",),
            f"expected one loss of a design in all cases, got {law.precision_law} beside {precision}; "
            f"drop it, or run each case: plas run --precision {precision} --set precision_law={law.precision_law}",
        )


def _check_device(
    row: Row, named: str, devices: dict[str, Device], config: StudyConfig, table: ColumnTable, faults: Faults
) -> None:
    """Load a row's device unless it is known; see that it has the precision's peak and that names can be shown."""
    for key, text in (("case", row.label), ("device", named)):
        try:
            shown_name(text)
        except ValueError as error:
            faults.add((key,), str(error))
    try:
        devices[named] = table.over(named, named, devices.get(named) or load_device(named), faults)
    except UsageError as error:
        faults.add(("device",), str(error).removeprefix("--device: "))
        return
    try:
        devices[named].peak(precision(config.precision, own=config.formats).on(devices[named]).linear_peak)
    except ValueError as error:
        faults.add(("precision",), f"{config.precision}: {error}")


def _named(wanted: CaseList, row: Row) -> str:
    return str(row.values.get("device", wanted.named))


def _case(wanted: CaseList, base: Study, row: Row, study: ReadStudy, reference: Baseline | None) -> Case:
    if base.problem.scenario.formats:
        raise UsageError(
            f"space: expected one whose designs have the case's precision, got {base.problem.space.name} with precision as "
            "an axis; leave the axis out and name --precisions"
        )
    if base.problem.space.own_heads:
        raise UsageError(
            f"space: expected one of a vocabulary that each case says, got {base.problem.space.name} with vocabulary as an axis; "
            "give --vocabulary or the cases one, or plas run over each device"
        )
    if "device" in base.problem.space.settings:
        raise UsageError(
            f"space: expected one whose designs run on the case's device, got {base.problem.space.name} with device as an axis; "
            "leave the axis out and name --set devices=a,b"
        )
    try:
        problem, limits, note = problem_of(study)
        refuse_impossible(problem, study.laws)
        question = _question(wanted, row, problem, study.limits, reference)
    except UsageError as error:
        raise UsageError(f"{row.origins.get((), row.label)}: {error}") from None
    _, unrun = run_by_engine(study.config, problem.space.specification, (), Faults())
    notices = tuple(notices_of(problem, limits))
    notices += tuple(f"cases share one space, which engine narrows for all of them; not {said}" for said in unrun)
    return Case(row.label, _named(wanted, row), study.config, problem, question, note, notices, row.weight)


def _question(
    wanted: CaseList, row: Row, problem: Problem, limits: Mapping[str, float | None], reference: Baseline | None
) -> PickQuery:
    """An application's limit; else, where a case has no limit of its own or names a reference, the reference's time."""
    if row.application:
        return PickQuery(row.application, limit_on_cost(*wanted.shared.applications[row.application], problem.scenario))
    limited = any(limit is not None for limit in limits.values())
    if reference is None or (limited and not wanted.referred):
        return PickQuery(OWN, None)
    try:
        theirs = problem.assess(problem.headed(reference.architecture))["total_ms"]
    except ValueError as error:
        raise UsageError(f"as_fast_as: {reference.label}: {error}, or choose another model") from None
    return PickQuery(f"as fast as {reference.label}", Budget("total_ms", float(theirs[0])), baseline=reference.label)
