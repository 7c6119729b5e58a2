"""Reads a study once: keys as people write them become one checked object, and everything that they name is resolved."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from nas.errors import UsageError
from nas.files.faults import Faults, Path
from nas.problem.objective import Baseline, Objective
from nas.problem.problem import Problem
from nas.search.discovery import ChosenStrategy, chosen_strategy, given_designs, strategy_module
from nas.study.baselines import baseline, baselines_of, model_named
from nas.study.catalogue import named, named_device, with_format
from nas.study.configuration import StudyConfig
from nas.study.entry_points import AUTO
from nas.study.metrics import MetricReader
from nas.study.published import NEAREST
from nas.study.study_devices import (
    ColumnTable,
    column_table,
    devices_of,
    figures_of,
    given_devices,
    in_one_place,
    with_chips,
    with_figures,
)
from nas.study.study_laws import cost_beside, in_tokens, of_own_vocabulary, refuse_both, study_laws, with_request
from nas.study.study_space import narrowed, run_by_engine, study_space, without_axes
from nas.terminal.doors import EXPENSIVE
from objectives.device import Device
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import MeasuredDeltas
from objectives.token_curve import Text, TokenCurve
from search_spaces.architectures import Architectures
from search_spaces.layer_kinds import COUNTS
from search_spaces.space import SearchSpace
from search_spaces.specification import SpaceSpecification

OF_STRATEGIES = {"constraints", "penalty_weight"}  # keys that count for some strategies alone


@dataclass(frozen=True, eq=False)
class ServedBy:
    """The model that drafts and the chip that reads prompts, None where the study names none."""

    draft: Architectures | None = None
    reader: Device | None = None


@dataclass(frozen=True, eq=False)
class ReadStudy:
    """A study that was read: its checked keys, and the objects that they name.

    laws: its own, then the alternative ones, for the study's tokens, formats and vocabularies. text: that of its requests and of its metrics per byte. trainer: the device that models are
    trained on. devices: all that designs may be on, by name, where there are several; `device` is the first. table: figures of devices that the study gives.
    metrics: everything minimised or limited. limits: by metric, None removes a default budget.
    start: designs to start from, None where the study names none. served_by: what its keys of serving name. typed: keys that flags gave.
    """

    config: StudyConfig
    space: SearchSpace
    laws: tuple[Law, ...]
    text: Text
    device: Device
    trainer: Device | None
    metrics: dict[str, Objective]
    limits: dict[str, float | None]
    applications: dict[str, tuple[str, float]]
    baselines: tuple[Baseline, ...]
    strategy: ChosenStrategy
    start: Architectures | None
    served_by: ServedBy = ServedBy()
    notices: tuple[str, ...] = ()
    devices: Mapping[str, Device] = field(default_factory=dict)
    table: ColumnTable = field(default_factory=ColumnTable)
    typed: frozenset[str] = frozenset()

    def searched_by(self, algo: str, params: Mapping[str, Any], origins: Mapping[Path, str]) -> "ReadStudy":
        """The same study with another strategy, one of several: keys of strategies are typed for all of them.

        Raises:
            UsageError: an unknown one, or wrong parameters.
        """
        faults = Faults(origins)
        strategy = chosen_strategy(algo, params, faults)
        faults.raise_if_any()
        assert strategy is not None
        config = self.config.model_copy(update={"algo": algo, "params": dict(params)})
        return replace(self, config=config, strategy=strategy, typed=self.typed - OF_STRATEGIES)


def read(raw: Mapping[str, Any], origins: Mapping[Path, str], coded: frozenset[str] | None = None) -> ReadStudy:
    """A study from its keys as they were written; `coded` are those that a user's own code gives (None: a command line).

    Raises:
        UsageError: every fault at once, each with its line or flag.
    """
    faults = Faults(origins, coded=coded)
    config = checked_config(raw, faults)
    specification = named("space", config.space, SpaceSpecification, faults)
    law = named("law", config.law, Law, faults)
    others = [named("law", item, Law, faults, ("laws", i)) for i, item in enumerate(config.laws)]
    deltas = named("deltas", {} if config.deltas == "none" else config.deltas, MeasuredDeltas, faults)
    curve = named("token_curve", config.token_curve, TokenCurve, faults)
    config, of_own = of_own_vocabulary(config, law, origins, specification)
    config, made = with_chips(config, None if specification is None else specification.chip, raw, faults)
    config = in_one_place(config, raw, None if specification is None else specification.axes, faults)
    table = column_table(config.device_columns, faults)
    devices = with_figures(devices_of(config, made, faults), config, table, faults)
    served_by = _of_serving(config, faults)
    trainer = named_device(config.training.device, faults, ("training", "device"))
    reader = MetricReader(faults, figures=figures_of(devices, config, faults))
    reader.objectives(config.objectives)
    reader.columns(config.columns)
    limits = reader.budgets(config.metric_budgets, ("budgets",))
    applications = reader.applications(config.applications_to_answer)
    named_models = [item for item in config.baselines if item != NEAREST]
    baselines, strategy = baselines_of(named_models, faults), chosen_strategy(config.algo, config.params, faults)
    specification = study_space(config, specification, curve, faults)
    if specification is not None and config.only:
        specification = narrowed(specification, config.only, faults)
    specification, unrun = run_by_engine(config, specification, devices.values(), faults)
    faults.raise_if_any()
    if specification is None or law is None or deltas is None or curve is None or not devices or strategy is None:
        raise AssertionError("what is missing is a fault")
    space, axes = SearchSpace(specification), specification.axes
    config, known, said = resolve_expensive_objectives(without_axes(config, axes), reader.known, space)
    text, compared = with_request(Text(curve, cost_beside(law)), config), compared_with(baselines, axes.tokens, known)
    return ReadStudy(
        config=in_tokens(config, text),
        space=space,
        laws=study_laws(config, law, [other for other in others if other is not None], deltas, space),
        text=text,
        device=next(iter(devices.values())),
        trainer=trainer,
        metrics=known,
        limits=limits,
        applications=applications,
        baselines=tuple(compared[0]),
        strategy=strategy,
        start=given_designs(config.seed_from),
        served_by=served_by,
        notices=(*unrun, *of_own, *said, *compared[1], *table.left_out(given_devices(config, devices))),
        devices=devices if config.devices else {},
        table=table,
        typed=frozenset(key for key in raw if faults.origin((key,))[0].startswith("--")),
    )


def _of_serving(config: StudyConfig, faults: Faults) -> ServedBy:
    """The model that drafts and the chip that reads prompts."""
    asked = config.serving
    reader = named_device(asked.phases.prefill, faults, ("serving", "phases", "prefill"))
    if asked.draft is None:
        return ServedBy(reader=reader)
    path = ("serving", "draft")
    try:
        named = asked.draft if isinstance(asked.draft, Mapping) else model_named(asked.draft)
        return ServedBy((named if isinstance(named, Baseline) else baseline(named)).architecture, reader)
    except (UsageError, ValueError) as error:
        faults.add(path, str(error))
        return ServedBy(reader=reader)


def checked_config(raw: Mapping[str, Any], faults: Faults) -> StudyConfig:
    """The study's keys, checked; a key with a fault has its default, so that what the others name is looked up all the same."""
    refuse_both(raw, faults)
    raw = with_format(raw, faults)
    try:
        config = StudyConfig.model_validate(dict(raw))
    except ValidationError as error:
        faults.add_validation(error, model=StudyConfig)
        wrong = {detail["loc"][0] for detail in error.errors()}
        wrong |= {"params"} if "algo" in wrong else set()  # they are that strategy's
        wrong |= {"precision"} if "formats" in wrong else set()  # it may be one of these
        config = StudyConfig.model_validate({key: value for key, value in raw.items() if key not in wrong})
    if config.executor is not None and not faults.typed(("executor",)):  # its scheduler may run code here
        where = "on the command line" if faults.coded is None else "in the call"
        what = f"--set executor={config.executor}" if faults.coded is None else f"executor={config.executor!r}"
        faults.add(
            ("executor",),
            f"expected a cluster to be named {where}, got {config.executor} in a file alone, which connects to nothing; add {what}",
        )
    return config


def resolve_expensive_objectives(
    config: StudyConfig, objectives: dict[str, Objective], space: SearchSpace
) -> tuple[StudyConfig, dict[str, Objective], list[str]]:
    """Configuration and metrics with settings that are complete, and notices.

    Raises:
        UsageError: settings that are missing or of nothing, or what a metric cannot do in this study.
    """
    notices: list[str] = []
    for name in EXPENSIVE:
        if name in objectives:
            settings, prior, lines = _module(name).resolved_settings(config, space)
            config = config.model_copy(update={name: settings})
            given = settings.model_dump(mode="json")
            metric = replace(objectives[name], prior=prior, settings=given)
            objectives = objectives | {name: replace(metric, fidelities=settings.fidelities, keep=settings.share)}
            notices += lines
    stepped = [metric.name for metric in objectives.values() if metric.fidelities]
    if len(stepped) > 1:
        raise UsageError(
            f"fidelities: expected steps of one metric, got {', '.join(stepped)}; give the others one fidelity"
        )
    if stepped and stepped[0] not in config.objectives:
        raise UsageError(
            f"fidelities: expected steps of an objective, got {stepped[0]}, a budget alone; minimise it, or drop them"
        )
    return config, objectives, notices


def _module(name: str) -> ModuleType:
    return importlib.import_module(EXPENSIVE[name])


def compared_with(
    published: Sequence[Baseline], axis: Sequence[float] | None, objectives: Mapping[str, Objective]
) -> tuple[Sequence[Baseline], list[str]]:
    """The models to compare with, and a notice where an axis of tokens, or evaluating everything once more, leaves them out."""
    again = ", ".join(name for name, metric in objectives.items() if metric.settings is not None)
    if not published or not (again or axis):
        return published, []
    why = (
        f", for which {again} of every design would be had once more"
        if again
        else ": tokens are an axis, on which nobody says where it stands"
    )
    names = ", ".join(known.label for known in published)
    return [], [f"{names} left out of the comparison{why}"]


def refuse_without_workers(config: StudyConfig, problem: Problem) -> None:
    """Refuse to begin where no evaluation is possible: an answer is kept as it arrives from a worker.

    Raises:
        UsageError: no workers, or this machine lacks what they need.
    """
    for metric in problem.functions:
        if config.executor is not None or (metric.settings is None and not metric.fidelities):
            continue
        if config.workers is None:
            raise UsageError(
                f"workers: expected workers for {metric.name}, got none; add --workers 1 or more, or --set executor=URL"
            )
        if metric.settings is not None:
            _module(metric.name).refuse_here(metric.settings)


def refuse_settings(metric: str, space: SearchSpace) -> None:
    """Refuse axes that are none of the architecture: every training is of one number of tokens, every run in one format.

    Raises:
        UsageError: naming the axis.
    """
    for axis in space.settings:
        raise UsageError(
            f"{metric}: expected a space whose designs are architectures alone, got {axis} as an axis of {space.name}; "
            f"name one value, or drop {metric}"
        )


def refuse_layers(metric: str, space: SearchSpace) -> None:
    """Refuse layers that no class of transformers and no backend of ours builds as they are priced.

    Raises:
        UsageError: naming the columns.
    """
    columns = space.mixes.columns
    others = [name for name in COUNTS if name in columns and columns[name][space.mixes.valid].any()]
    if others:
        raise UsageError(
            f"{metric}: expected full attention and an FFN in every layer, got {', '.join(others)} in space {space.name}; "
            f"narrow axes.layers, or drop {metric}"
        )


@dataclass(frozen=True)
class Asked:
    """What a study asks of its search, besides the problem.

    evaluations: distinct ones (None: no number was given); at_once: designs that are evaluated together; bound: a clause, why the space is not to be
    covered whole ("" where it may be); told: whether a caller tells values in place of the study's formulas.
    """

    evaluations: int | None
    at_once: int = 1
    bound: str = ""
    told: bool = False


@dataclass(frozen=True)
class Choice:
    """A strategy with parameters that differ from its own, and the reason: a clause without `since`."""

    algo: str
    because: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def with_choice(asked: ReadStudy, problem: Problem, counted: int | None, *, told: bool = False) -> ReadStudy:
    """A study with the strategy that `auto` picks, and the reason as its key `auto`; any other study without a reason of another's.

    counted: distinct evaluations by which strategies are compared, None of a run by itself; told: whether a caller tells the values.
    """
    config = asked.config
    if config.algo != AUTO:
        said = config.auto if config.auto.startswith(f"{config.algo}, since ") else ""
        return replace(asked, config=config.model_copy(update={"auto": said}))
    found: Choice = strategy_module(AUTO).choose(problem, replace(asked_of(config, counted), told=told))
    strategy = chosen_strategy(found.algo, found.parameters, Faults())
    assert strategy is not None
    picked: dict[str, Any] = {
        "algo": found.algo,
        "params": dict(found.parameters),
        "auto": f"{found.algo}, since {found.because}",
    }
    if not strategy.traits.takes_evaluations:
        picked["evaluations"] = None
    return replace(asked, config=config.model_copy(update=picked), strategy=strategy)


def asked_of(config: StudyConfig, counted: int | None) -> Asked:
    """What a study's keys ask."""
    reasons = {
        "evaluations are what is compared": counted is not None,
        "seed_from is given": bool(config.seed_from),
        f"constraints are {config.constraints}": config.constraints not in (None, "native"),
        "asynchronous is asked": config.asynchronous,
    }
    bound = next((reason for reason, holds in reasons.items() if holds), "")
    return Asked(counted or config.evaluations, config.workers or 1, bound)
