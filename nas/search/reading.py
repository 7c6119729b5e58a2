"""Reads a study once: keys as people write them become one checked object, and everything that they name is resolved."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from nas.files.faults import Faults, Path
from nas.problem.objective import Objective
from nas.problem.pick_queries import Baseline
from nas.search.discovery import ChosenStrategy, chosen_strategy
from nas.search.resolved_objectives import compared_with, resolve_expensive_objectives
from nas.search.worker_settings import own_cluster
from nas.study.baselines import baselines_of
from nas.study.catalogue import named, named_device, named_laws
from nas.study.configuration import PAPER_APPLICATIONS, StudyConfig
from nas.study.layer_requirements import layer_requirements
from nas.study.metrics import MetricReader
from nas.study.study_laws import study_laws
from nas.study.study_space import study_space
from objectives.device import Device
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import MeasuredDeltas
from search_spaces.axes_schema import CAPABILITIES
from search_spaces.space import SearchSpace
from search_spaces.specification import SpaceSpecification


@dataclass(frozen=True, eq=False)
class ReadStudy:
    """A study that was read: its checked keys, and the objects that they name.

    laws: its own, then the alternative ones, for the study's tokens and formats. trainer: the device that models are
    trained on. metrics: everything minimised or limited. limits: by metric, None removes a default budget.
    notices: what must be said of it.
    """

    config: StudyConfig
    space: SearchSpace
    laws: tuple[Law, ...]
    device: Device
    trainer: Device | None
    metrics: dict[str, Objective]
    limits: dict[str, float | None]
    applications: dict[str, tuple[str, float]]
    baselines: tuple[Baseline, ...]
    strategy: ChosenStrategy
    notices: tuple[str, ...] = ()

    def searched_by(self, algo: str, params: Mapping[str, Any], origins: Mapping[Path, str]) -> "ReadStudy":
        """The same study with another strategy.

        Raises:
            UsageError: an unknown one, or wrong parameters.
        """
        faults = Faults(origins)
        strategy = chosen_strategy(algo, params, faults)
        faults.raise_if_any()
        assert strategy is not None
        config = self.config.model_copy(update={"algo": algo, "params": dict(params)})
        return replace(self, config=config, strategy=strategy)


def read(raw: Mapping[str, Any], origins: Mapping[Path, str], coded: frozenset[str] | None = None) -> ReadStudy:
    """A study from its keys as they were written; `coded` are those that a user's own code gives (None: a command line).

    Raises:
        UsageError: every fault at once, each with its line or flag.
    """
    faults = Faults(origins, coded=coded)
    config = checked_config(raw, faults)
    space = named("space", config.space, SpaceSpecification, faults)
    law, others = named("law", config.law, Law, faults), named_laws(config.laws, faults)
    deltas = named("deltas", config.deltas, MeasuredDeltas, faults)
    device = named_device(config.device, faults)
    trainer = _trainer(config, faults)
    metrics = MetricReader(faults)
    limits, applications = _asked_of_metrics(config, metrics)
    baselines = baselines_of(config.baselines, faults)
    strategy = chosen_strategy(config.algo, config.params, faults)
    required = layer_requirements(config.budgets, faults)
    space = None if space is None else study_space(config, space, required, faults)
    own_cluster(config, faults)
    faults.raise_if_any()
    if space is None or law is None or deltas is None or device is None or strategy is None:
        raise AssertionError("what is missing is a fault")
    axis = space.axes.tokens or []
    laws = study_laws(config, law, others, deltas, axis)
    config, known, said = resolve_expensive_objectives(config, metrics.known, SearchSpace(space))
    compared, alone = compared_with(baselines, axis, known)
    return ReadStudy(
        config=config,
        space=SearchSpace(space),
        laws=laws,
        device=device,
        trainer=trainer,
        metrics=known,
        limits=limits,
        applications=applications,
        baselines=tuple(compared),
        strategy=strategy,
        notices=(*said, *alone),
    )


def checked_config(raw: Mapping[str, Any], faults: Faults) -> StudyConfig:
    """The study's keys, checked; a key with a fault has its default, so that what the others name is looked up all the same."""
    try:
        return StudyConfig.model_validate(dict(raw))
    except ValidationError as error:
        faults.add_validation(error, model=StudyConfig)
        wrong = {detail["loc"][0] for detail in error.errors()}
        wrong |= {"params"} if "algo" in wrong else set()  # they are that strategy's
        return StudyConfig.model_validate({key: value for key, value in raw.items() if key not in wrong})


def _trainer(config: StudyConfig, faults: Faults) -> Device | None:
    given = config.training.device
    return None if given is None else named_device(given, faults, ("training", "device"))


def _asked_of_metrics(
    config: StudyConfig, metrics: MetricReader
) -> tuple[dict[str, float | None], dict[str, tuple[str, float]]]:
    """The limits and the applications; left out, these are the paper's where the study has no limit of its own."""
    metrics.objectives(config.objectives)
    metrics.columns(config.columns)
    budgets = {name: limit for name, limit in config.budgets.items() if name not in CAPABILITIES}
    limits = metrics.budgets(budgets, ("budgets",))
    unlimited = all(limit is None for limit in limits.values())
    given = (PAPER_APPLICATIONS if unlimited else {}) if config.applications is None else config.applications
    return limits, metrics.applications(given)
