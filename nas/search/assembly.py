"""The one place that turns names into objects: a raw study becomes a problem and a strategy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from nas.exact.checkpoint import Notebook
from nas.files.faults import Faults, Path
from nas.problem.energy_words import about_energy
from nas.problem.objective import Budget, Objective, built_in, limit_on_cost
from nas.problem.problem import Problem
from nas.problem.quantile_budgets import plain_limits
from nas.problem.questions import OWN, Baseline, Question
from nas.problem.rates import as_costs, is_rate, limits_of_costs, rate_over
from nas.problem.training_words import about_training
from nas.search.asking import built
from nas.search.constraints import Handling, as_seen, handling_of, problem_as_seen
from nas.search.costly_objectives import compared_with, furnished
from nas.search.discovery import parameters_of, strategy_module
from nas.search.impossible import refuse_impossible
from nas.search.known_results import KNOWN_FILE, Known, known_of
from nas.search.placement import few_whole_values, idle_workers, own_cluster, refuse_misplaced, refuse_unasynchronous
from nas.search.scenarios import asked_of, beyond_in_formats, recorded_calibration, scenario_in_formats, with_preset
from nas.search.start_designs import start_of
from nas.search.strategy import Brief, Strategy, Traits, refuse_more_objectives
from nas.study import entry_points
from nas.study.asked_laws import about_tokens, asked_laws, priced_alone, said_of_formats, said_of_rivals
from nas.study.asked_space import asked_space
from nas.study.baselines import baseline_questions, baselines_of
from nas.study.capabilities import set_apart
from nas.study.catalogue import named, named_device, named_laws, named_training_device
from nas.study.configuration import StudyConfig
from nas.study.metrics import applications_of, budgets_of, columns_of, objectives_of
from nas.study.written_values import without_password
from objectives.device import Device
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import MeasuredDeltas
from search_spaces.arrays import IntArray
from search_spaces.columns import SHAPE, worded
from search_spaces.space import SearchSpace
from search_spaces.specification import SpaceSpecification


@dataclass(frozen=True, eq=False)
class Study:
    """An assembled study: what to search, what to ask of the result, how to search.

    horizon: distinct evaluations that a schedule is spread over when the run was laid out for
    another number than it is asked for now (None: the same). laws: the study's own and its rivals, where there are any.
    known: results from before the run (None: none).
    """

    config: StudyConfig
    problem: Problem
    baselines: tuple[Baseline, ...]
    parameters: BaseModel
    start: IntArray
    handling: Handling
    notices: tuple[str, ...]
    calibration_note: str
    horizon: int | None = None
    laws: tuple[Law, ...] = ()
    known: Known | None = None

    @property
    def traits(self) -> Traits:
        """What the chosen strategy can do."""
        found: Traits = strategy_module(self.config.algo).TRAITS
        return found

    @property
    def plug_ins(self) -> dict[str, str]:
        """What of installed packages decides its results, `metric energy`, with the distribution: recorded, not embedded."""
        asked = [("strategies", self.config.algo), *(("metrics", metric.name) for metric in self.problem.functions)]
        found = [plug_in for kind, name in asked if (plug_in := entry_points.found(kind, name)) is not None]
        return {plug_in.label: plug_in.distribution for plug_in in found}

    @property
    def limit(self) -> int | None:
        """Distinct evaluations that a run of this study asks for."""
        return (self.config.evaluations or self.traits.evaluations) if self.traits.takes_evaluations else None

    def strategy(
        self, notebook: Notebook | None = None, report: Callable[[int], None] = lambda settled: None
    ) -> Strategy:
        """The strategy, built anew from its seed; one that solves before it asks uses notebook and report."""
        seen, known, start = problem_as_seen(self.problem, self.handling), None, self.start
        if self.known is not None:
            known = as_seen(self.known.evaluations, self.handling, self.config.penalty_weight)
            start = start[~np.isin(self.problem.space.keys(start), known.keys)]
        most, kept, laws = self.horizon or self.limit, notebook or Notebook(), self.laws[1:]
        asynchronous = self.config.asynchronous
        brief = Brief(
            seen, self.config.seed, start, most, kept, report, known=known, rivals=laws, asynchronous=asynchronous
        )
        return built(strategy_module(self.config.algo), brief, self.parameters)

    def resolved(self) -> dict[str, Any]:
        """Everything of the study as plain content: spaces, law and device embedded, no paths."""
        problem, scenario = self.problem, self.problem.scenario
        trainer = scenario.training.device
        content = self.config.model_dump(mode="json") | {"deltas": {}}  # which the laws hold
        content |= {
            "space": problem.space.mapping(),
            "precisions": [],  # the space holds them
            "law": scenario.law.mapping(),
            "laws": [law.mapping() for law in self.laws[1:]],
            "device": scenario.device.mapping(),
            "calibration": recorded_calibration(self.config, scenario),
            "tokens": self.config.tokens if isinstance(self.config.tokens, float) else None,
            "training": {**content["training"], "device": trainer and trainer.mapping()},
            "objectives": [objective.name for objective in problem.objectives],
            "columns": list(problem.columns),
            "budgets": {budget.metric: budget.limit for budget in problem.budgets},
            "default_budget": "none",
            "applications": {
                q.label: {q.budget.metric: q.budget.limit} for q in problem.questions if q.budget and not q.baseline
            },
            "baselines": [baseline.mapping() for baseline in self.baselines],
            "params": self.parameters.model_dump(mode="json"),
            "constraints": self.handling,
            "seed_from": self._start_rows() or None,
            "known": [] if self.known is None else [KNOWN_FILE],
            "known_as": {},
            "executor": None,  # named anew by whoever goes on with the run
            "optuna_storage": self.config.optuna_storage and without_password(self.config.optuna_storage),
        }
        return {key: "none" if value is None else value for key, value in content.items()}

    def _start_rows(self) -> list[dict[str, Any]]:
        space = self.problem.space
        designs, names = space.architectures(self.start), (*SHAPE, *space.mixes.names)
        columns = (worded(name, getattr(designs, name)).tolist() for name in names)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def assemble(raw: Mapping[str, Any], origins: Mapping[Path, str], coded: frozenset[str] | None = None) -> Study:
    """A study from its raw configuration; `coded` are the keys that a user's own code gives (None: a command line).

    Raises:
        UsageError: every fault at once, each with its line or flag.
    """
    faults = Faults(origins, coded=coded)
    config = _checked_config(raw, faults)
    space = named(raw, "space", SpaceSpecification, faults)
    law = named(raw, "law", Law, faults)
    rivals = named_laws(raw, faults)
    deltas = named(raw, "deltas", MeasuredDeltas, faults)
    device = named_device(raw, faults)
    trainer = named_training_device(raw, faults)
    objectives = objectives_of(raw, faults)
    raw, least = set_apart(raw, faults)
    budgets = budgets_of(raw.get("budgets"), ("budgets",), objectives, faults)
    applications = applications_of(raw, budgets, objectives, faults)
    published = baselines_of(raw, faults)
    columns_of(raw, faults)
    parameters = parameters_of(raw, faults)
    space = None if config is None or space is None else asked_space(config, space, least, faults)
    own_cluster(config, faults)
    faults.raise_if_any()
    if config is None or space is None or law is None or deltas is None or device is None or parameters is None:
        raise AssertionError("what is missing is a fault")
    axis = space.axes.tokens or []
    own, *others = asked_laws(config, law, rivals, deltas, axis)
    config, objectives, said = furnished(config, objectives, SearchSpace(space))
    baselines, alone = compared_with(published, axis, objectives)
    problem, notices, note = _joined(
        config, SearchSpace(space), own, device, trainer, objectives, budgets, applications, baselines
    )
    formats = problem.space.formats if problem.scenario.formats else [config.precision]
    notices += [*said, *alone, *about_tokens(config, (own, *others), axis), *said_of_rivals(own, others, formats)]
    study = _searched_by(parameters, config, problem, baselines, notices, note)
    return replace(study, laws=(own, *others)) if others else study


def _searched_by(
    parameters: BaseModel,
    config: StudyConfig,
    problem: Problem,
    baselines: list[Baseline],
    notices: list[str],
    note: str,
) -> Study:
    """The study with its strategy, given what the strategy can do."""
    traits: Traits = strategy_module(config.algo).TRAITS
    refuse_more_objectives(config.algo, traits, len(problem.objectives))
    refuse_unasynchronous(config, traits)
    handling = handling_of(config, traits, problem, notices)
    notices += [*idle_workers(config, parameters, problem), *few_whole_values(config, traits, problem)]
    start, known = start_of(config, traits, problem), known_of(config, problem)
    return Study(config, problem, tuple(baselines), parameters, start, handling, tuple(notices), note, known=known)


def _joined(
    config: StudyConfig,
    space: SearchSpace,
    law: Law,
    device: Device,
    trainer: Device | None,
    objectives: dict[str, Objective],
    budgets: dict[str, float | None],
    applications: dict[str, tuple[str, float]],
    baselines: list[Baseline],
) -> tuple[Problem, list[str], str]:
    """The problem with its questions, what is to be said of it, and how its calibration is called."""
    problem, notices, note = problem_of(config, space, law, device, objectives, budgets, trainer)
    asked = [
        Question(OWN, None),
        *(Question(label, limit_on_cost(*asked, problem.scenario)) for label, asked in applications.items()),
    ]
    for known in baselines:
        try:
            asked += baseline_questions(problem, known)
        except ValueError as error:
            notices.append(f"baseline {known.label} is left out of the comparison: {error}")
    problem = replace(problem, questions=tuple(asked))
    refuse_misplaced(config, problem)
    return problem, notices, note


def problem_of(
    config: StudyConfig,
    space: SearchSpace,
    law: Law,
    device: Device,
    objectives: Mapping[str, Objective],
    budgets: Mapping[str, float | None],
    trainer: Device | None = None,
) -> tuple[Problem, list[str], str]:
    """The problem of a configuration on a device, without questions; notices; how to name its calibration.

    `objectives` are the configuration's and those that are budgeted, `budgets` limits by metric, `trainer` trains models.

    Raises:
        UsageError: a precision, an option or a quantile that the device or the latency model does not have.
    """
    asked = asked_of(config, experts=bool((space.experts > 1).any()))
    scenario, note = scenario_in_formats(config, law, device, space.formats, asked, trainer)
    minimised, of_rates = as_costs(config.objectives)
    of_costs, on_rates = limits_of_costs(budgets, scenario)
    plain, at_quantiles = plain_limits(of_costs, scenario.calibration, note, asked, scenario.energy)
    limits = _with_default(config, device, plain)
    named = (*config.objectives, *(name for name, limit in budgets.items() if limit is not None))
    columns = dict.fromkeys([*config.columns, *(name.partition("@")[0] for name in named if is_rate(name))])
    problem = Problem(
        space,
        scenario,
        tuple(objectives.get(name) or built_in(name) for name in minimised),
        tuple(Budget(metric, limit, rate_over(metric, columns, scenario)) for metric, limit in limits.items()),
        tuple(o for o in objectives.values() if o.function is not None),
        config.vocabulary,
        config.tied,
        columns=tuple(columns),
    )
    refuse_impossible(problem)
    of_energy = about_energy(scenario, experts=asked.experts) if problem.of_energy else []
    formats = said_of_formats(law, space.formats if scenario.formats else [config.precision])
    of_law = [*priced_alone(law), *formats, *about_training(problem)]
    said = [*beyond_in_formats(scenario, asked), *of_rates, *on_rates, *at_quantiles, *of_energy, *of_law]
    return problem, [*([warning] if (warning := device.warning()) else []), *said], note


def under_preset(study: Study, preset: str) -> Problem:
    """The study's problem with a preset's conventions, without budgets and questions; an LM head that it counts stays its own."""
    head = {"vocabulary": study.config.vocabulary, "tied": study.config.tied} if study.config.vocabulary else {}
    config, old = with_preset(study.config, preset).model_copy(update=head), study.problem
    scenario, _ = scenario_in_formats(
        config, old.scenario.law, old.scenario.device, old.space.formats, trainer=old.scenario.training.device
    )
    return Problem(old.space, scenario, old.objectives, (), (), config.vocabulary, config.tied)


def _checked_config(raw: Mapping[str, Any], faults: Faults) -> StudyConfig | None:
    try:
        return StudyConfig.model_validate(dict(raw))
    except ValidationError as error:
        faults.add_validation(error, model=StudyConfig)
        return None


def _with_default(config: StudyConfig, device: Device, budgets: dict[str, float | None]) -> dict[str, float]:
    default = config.default_budget
    limits = dict(budgets)
    if default is not None and default.metric not in limits:
        limits = {default.metric: default.share * device.memory_gb, **limits}
    return {metric: limit for metric, limit in limits.items() if limit is not None}
