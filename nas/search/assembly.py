"""The one place that turns names into objects: a raw study becomes a problem and a strategy."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import BaseModel

from nas.errors import UsageError
from nas.exact.checkpoint import SolverCheckpoint
from nas.exact.solution import SMALL
from nas.files.faults import Path
from nas.problem.objective import (
    EXTRAPOLATION,
    INSIDE,
    OWN,
    Baseline,
    Budget,
    PickQuery,
    as_costs,
    built_in,
    cost_of,
    is_rate,
    limit_on_cost,
    limits_of_costs,
    rates_by_cost,
    unit_of,
)
from nas.problem.picks import MARGIN, least_of
from nas.problem.problem import METRIC_ORDER, Problem
from nas.problem.quantiles import about_quantiles, refuse_unclaimed, with_margins
from nas.search.cluster import few_whole_values, idle_workers, refuse_asynchronous
from nas.search.discovery import (
    ChosenStrategy,
    ConstraintHandling,
    handling_of,
    penalised,
    penalised_problem,
    start_of,
    without_effect,
)
from nas.search.known_results import Known, known_of
from nas.search.reading import ReadStudy, compared_with, read, with_choice
from nas.search.strategy import Strategy, StrategyContext, Traits, build_strategy, refuse_more_objectives
from nas.study import entry_points
from nas.study.baselines import baseline_questions
from nas.study.configuration import StudyConfig, marked
from nas.study.published import NEAREST, nearest
from nas.study.scenarios import (
    conditions_of,
    larger_rows,
    notices_of,
    scenario_in_formats,
    scenario_on_devices,
    served,
    slow,
    with_preset,
    with_text,
    words_of,
)
from nas.study.study_devices import refuse_several
from nas.study.study_laws import (
    in_tokens,
    notices_of_alternatives,
    notices_of_kinds,
    notices_of_text,
    notices_of_tokens,
)
from nas.study.value_parsers import Named, Recorded
from objectives.assessment import stating
from objectives.device import Calibration
from objectives.loss_law.law import Law
from objectives.scenario import Scenario
from objectives.transfers import Conditions
from search_spaces.arrays import IntArray, brief


@brief
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
    chosen: ChosenStrategy
    start: IntArray
    handling: ConstraintHandling
    notices: tuple[str, ...]
    calibration_note: str
    horizon: int | None = None
    laws: tuple[Law, ...] = ()
    known: Known | None = None

    @property
    def traits(self) -> Traits:
        """What the chosen strategy can do."""
        return self.chosen.traits

    @property
    def parameters(self) -> BaseModel:
        """The chosen strategy's parameters, for the evaluations that are asked for."""
        return self.chosen.fitted(self.limit, self.problem.space)

    @property
    def plug_ins(self) -> dict[str, str]:
        """Plug-ins of installed packages that decide the results, `metric energy`, with their distribution: recorded, not embedded."""
        asked = [("strategies", self.config.algo), *(("metrics", metric.name) for metric in self.problem.functions)]
        found = [plug_in for kind, name in asked if (plug_in := entry_points.found(kind, name)) is not None]
        return {plug_in.label: plug_in.distribution for plug_in in found}

    @property
    def limit(self) -> int | None:
        """Distinct evaluations that a run of this study asks for."""
        return (self.config.evaluations or self.traits.evaluations) if self.traits.takes_evaluations else None

    def asking(self, evaluations: int, seed: int) -> "Study":
        """The same study for another number of evaluations and another seed."""
        return replace(self, config=self.config.model_copy(update={"evaluations": evaluations, "seed": seed}))

    def strategy(
        self, checkpoint: SolverCheckpoint | None = None, report: Callable[[int], None] = lambda settled: None
    ) -> Strategy:
        """The strategy, built again from its seed; one that solves before it asks uses checkpoint and report."""
        seen, known, start = penalised_problem(self.problem, self.handling), None, self.start
        if self.known is not None:
            known = penalised(self.known.evaluations, self.handling, self.config.penalty_weight)
            start = start[~np.isin(self.problem.space.keys(start), known.keys)]
        most, kept, laws = self.horizon or self.limit, checkpoint or SolverCheckpoint(), self.laws[1:]
        asynchronous = self.config.asynchronous
        context = StrategyContext(
            seen, self.config.seed, start, most, kept, report, known=known, rivals=laws, asynchronous=asynchronous
        )
        return build_strategy(self.chosen.module, context, self.parameters)

    def as_begun(self, resolved: Mapping[str, Any]) -> "Study":
        """The study with the margins that a run recorded: earlier versions had none beside limits on times."""
        recorded = {*self.config.columns, *resolved.get("columns", [])}
        columns = tuple(name for name in self.problem.columns if name in recorded or not name.endswith(MARGIN))
        return replace(self, problem=replace(self.problem, columns=columns))

    def resolved(self) -> dict[str, Any]:
        """Everything of the study as plain content, each key as its declaration says: spaces, law and device embedded, no paths."""
        content = self.config.model_dump(mode="json")
        content |= {key: mark.content(self) for key, mark in marked(Recorded).items()}
        named = marked(Named)
        return {key: "none" if value is None else value for key, value in content.items() if value or key not in named}


QUICK_OBJECTIVES = 3  # whose exact frontier in a large space takes seconds or minutes
TRIED = 1000  # designs, for losses under each law
MOST_CHECKED = 64  # devices; more are made alike, from genes


def assemble(raw: Mapping[str, Any], origins: Mapping[Path, str]) -> Study:
    """The study that keys of a command line describe.

    Raises:
        UsageError: every fault at once, each with its line or flag.
    """
    return study_of(read(raw, origins))


Posed = tuple[Problem, list[str], str]  # a problem without questions, what its limits mean, how to name its calibration


def study_of(asked: ReadStudy, counted: int | None = None, *, told: bool = False, posed: Posed | None = None) -> Study:
    """The problem of a study that was read, with its questions, and what its strategy starts from.

    counted: distinct evaluations by which strategies are compared (`with_choice`); told: whether a caller tells the values;
    posed: its problem where that is made already.

    Raises:
        UsageError: what cannot be done together.
    """
    problem, limits, note = problem_of(asked) if posed is None else posed
    refuse_impossible(problem, asked.laws)
    if NEAREST in asked.config.baselines:
        models, notes = compared_with(nearest(problem), problem.space.specification.axes.tokens, asked.metrics)
        asked = replace(asked, baselines=(*asked.baselines, *models), notices=(*asked.notices, *notes))
    questions, left_out = _questions(asked, problem)
    problem = replace(problem, queries=questions)
    own, *others = asked.laws
    notices = [*notices_of(problem, limits), *larger_rows(problem)]
    notices += notices_of_text(own) if problem.of_text else []
    if problem.scenario.devices and asked.baselines:
        notices.append(f"published models are priced on {problem.scenario.devices[0][0]}, the first of the devices")
    notices += [*left_out, *asked.notices]
    notices += notices_of_tokens(asked.config, asked.laws, problem.space.specification.axes.tokens or [])
    notices += notices_of_kinds(own, problem.space) if asked.config.outside != "allow" else []
    notices += notices_of_alternatives(others, [*problem.scenario.by_format], notices)
    return _searched_by(with_choice(asked, problem, counted, told=told), problem, notices, note)


def _searched_by(asked: ReadStudy, problem: Problem, notices: list[str], note: str) -> Study:
    """The study with its strategy, given what the strategy can do."""
    config, traits = asked.config, asked.strategy.traits
    refuse_more_objectives(config.algo, traits, len(problem.objectives))
    refuse_asynchronous(config, traits, problem)
    handling = handling_of(config, traits, problem, notices)
    if config.algo == "exact" and problem.space.size > SMALL and len(problem.objectives) > QUICK_OBJECTIVES:
        notices.append(
            f"exact: the frontier of {len(problem.objectives)} objectives holds a large part of {problem.space.size:,} architectures and may take "
            "hours; cheaper: --algo nsga2, or two or three objectives and a limit on each other (--budget)"
        )
    notices += without_effect(config, traits, problem, handling, asked.typed)
    notices += [*idle_workers(config, asked.strategy.parameters, problem), *few_whole_values(config, traits, problem)]
    start, known = start_of(asked.start, config.algo, traits, problem), known_of(config, problem)
    laws = asked.laws if len(asked.laws) > 1 else ()
    said, chosen = tuple(notices), asked.strategy
    return Study(config, problem, asked.baselines, chosen, start, handling, said, note, laws=laws, known=known)


def _questions(asked: ReadStudy, problem: Problem) -> tuple[tuple[PickQuery, ...], list[str]]:
    """What is asked of the problem's frontier, and the baselines that are left out of it, with the reason."""
    limits, least = asked.applications.items(), least_of([objective.name for objective in problem.objectives])
    found = [
        PickQuery(OWN, None, least=least),
        *(PickQuery(label, limit_on_cost(*limit, problem.scenario), least=least) for label, limit in limits),
    ]
    left_out = []
    for known in asked.baselines:
        try:
            found += baseline_questions(problem, known)
        except ValueError as error:
            left_out.append(f"baseline {known.label} is left out of the comparison: {error}")
    return tuple(found), left_out


def problem_of(asked: ReadStudy) -> Posed:
    """The problem of a study that was read.

    Raises:
        UsageError: a precision, an option or a quantile that the device or the latency model does not have.
    """
    config, space, given = asked.config, asked.space, _with_default(asked)
    if space.own_heads:
        limited_there = [metric for metric, _ in asked.applications.values()]
        _refuse_per_token([*config.objectives, *given, *config.columns, *limited_there])
    conditions = conditions_of(config, experts=bool((space.experts > 1).any()))
    devices = asked.devices or {"": asked.device}
    scenario, note = scenario_on_devices(config, asked.laws[0], devices, space.formats, conditions, asked.trainer)
    scenario = served(scenario, config, space, asked.served_by.draft, _reader(asked, conditions))
    minimised, of_rates = as_costs(config.objectives)
    of_costs, on_rates = limits_of_costs(given, scenario)
    rates = (name for name in (*config.objectives, *given) if is_rate(name))
    own = {name for name, metric in asked.metrics.items() if metric.function is not None}
    limited = [cost_of(metric) for metric, _ in asked.applications.values()]
    of_applications = [metric for metric in limited if metric not in own and metric not in METRIC_ORDER]
    columns = tuple(dict.fromkeys([*config.columns, *rates, *of_applications]))
    shown = rates_by_cost(columns, scenario)
    problem = Problem(
        space,
        with_text(scenario, asked.text, None if space.own_heads else config.head[0]),
        tuple(asked.metrics.get(name) or built_in(name) for name in minimised),
        tuple(
            Budget(metric, limit, shown.get(metric), unit_of(metric, scenario.figures))
            for metric, limit in of_costs.items()
        ),
        tuple(metric for metric in asked.metrics.values() if metric.function is not None),
        *config.head,
        columns=columns,
    )
    refuse_unclaimed(problem)
    stated = tuple(name for name in columns if not name.endswith(MARGIN))  # of margins the answer itself speaks
    limits = [*of_rates, *on_rates, *about_quantiles(replace(problem, columns=stated))]
    return with_margins(problem, limited), limits, note


def _reader(asked: ReadStudy, conditions: Conditions) -> Scenario | None:
    """The scenario of the chip that reads prompts, None where it is the study's device; a profile that the study gives is of that device."""
    if asked.served_by.reader is None:
        return None
    own, study = asked.config.serving.phases.calibration, asked.config.calibration
    named = own or ("typical" if isinstance(study, Calibration) else study)
    config, formats = asked.config.model_copy(update={"calibration": named}), asked.space.formats
    return scenario_in_formats(config, asked.laws[0], asked.served_by.reader, formats, conditions, asked.trainer)[0]


def under_preset(study: Study, preset: str) -> Problem:
    """The study's problem with a preset's conventions, without budgets and questions; an LM head that it counts stays its own."""
    vocabulary, tied = study.config.head
    head = {"vocabulary": vocabulary, "tied": tied} if vocabulary else {}
    config, old = with_preset(study.config, preset).model_copy(update=head), study.problem
    return Problem(old.space, _scenario_under(config, old), old.objectives, (), (), *config.head)


def in_format(study: Study, precision: str) -> Scenario:
    """The scenario of a study of one format in another one, what its few bits cost in loss included.

    Raises:
        UsageError: a format that the device has no peak of.
    """
    config = study.config.model_copy(update={"precision": precision})
    scenario = _scenario_under(config, study.problem)
    return replace(scenario, law=scenario.law.at(precision))


def _scenario_under(config: StudyConfig, old: Problem) -> Scenario:
    """The scenario of a problem's devices, law, text and serving under another configuration."""
    if old.scenario.text is not None:
        config = in_tokens(config, old.scenario.text)
    trainer = old.scenario.training.device
    devices = {name: each.device for name, each in old.scenario.by_device.items()}
    scenario, _ = scenario_on_devices(
        config, old.scenario.law, devices, old.space.formats, conditions_of(config), trainer
    )
    scenario = scenario.served(old.scenario.serving)
    return with_text(scenario, old.scenario.text, None if old.space.own_heads else config.head[0])


def _with_default(asked: ReadStudy) -> dict[str, float]:
    """The limits of a study that was read, with that on the device's memory unless it has one of its own or none."""
    default, limits = asked.config.default_budget, asked.limits
    if default is not None:
        metric, limit = default.on(None if asked.devices else asked.device)
        typed = limits.get(metric, limits.get(default.metric, limit))
        if not {default.metric, metric} & limits.keys():
            limits = {metric: limit, **limits}
        elif typed is not None and metric in limits and typed > asked.device.memory_gb:
            refuse_more_memory(metric, typed, asked.device.memory_gb)
    if asked.config.outside != "allow" and asked.laws[0].knows_its_rows:
        limits = {**limits, EXTRAPOLATION: limits.get(EXTRAPOLATION, INSIDE)}
    memory = asked.device.slow_memory
    if memory is not None and slow(words_of(asked.config, asked.space)):
        refuse_several(asked.config, "beside experts in slow memory, whose size is a limit", "take one with --device")
        limits = {"slow_gb": memory.capacity_gb, **limits}
    return {metric: limit for metric, limit in limits.items() if limit is not None}


def refuse_more_memory(metric: str, limit: float, memory_gb: float) -> None:
    """Refuse a limit on memory that the device does not have.

    Raises:
        UsageError: always; it says what to write.
    """
    meant = f"MB? then write {metric}={limit / 1000:g}; " if limit / 1000 <= memory_gb else ""
    raise UsageError(
        f"budgets: {metric}: expected at most the device's {memory_gb:g} GB, got {limit:g} GB; {meant}{metric}=none removes the limit"
    )


def _refuse_per_token(names: Iterable[str]) -> None:
    """Refuse to compare times and rates of a token where tokens of different designs hold different text.

    Raises:
        UsageError: one is minimised, limited or kept.
    """
    for name in names:
        base, at, level = name.partition("@")
        if base in stating("OF_TEXT"):
            raise UsageError(
                f"{name}: expected a metric of text beside several vocabularies, whose tokens hold different text, got one of "
                f"a token; use {stating('OF_TEXT')[base]}{at}{level}"
            )


def refuse_impossible(problem: Problem, laws: Sequence[Law]) -> None:
    """Say what a problem's models and laws lack by what they give for some of its designs.

    Raises:
        UsageError: the first of it: no loss above 0 under a law, an option that a metric does not cover.
    """
    designs = problem.space.architectures(problem.space.sample(TRIED, np.random.default_rng(0)))
    for i, law in enumerate(laws):
        if not law.gives_losses(designs).any():
            raise UsageError(
                f"{'laws' if i else 'law'}: expected a formula that gives losses, got none above 0 from {law.name} for {len(designs):,} "
                f"designs of {problem.space.name}; correct its form or its coefficients"
            )
    if all(objective.name in problem.scenario.figures for objective in problem.objectives):
        names = ", ".join(objective.name for objective in problem.objectives)
        raise UsageError(
            f"objectives: expected one that architectures change, got {names} alone, of the device; add loss, or give it a limit"
        )
    places = [name for name, _ in problem.scenario.devices] or [""]
    checked = places if len(places) <= MOST_CHECKED else (places[0], places[-1])
    for axis, genotypes in problem.space.examples.items():
        for device in checked:
            try:
                assessment = problem.assess(problem.architectures(genotypes).on(device))
                for name in dict.fromkeys((*METRIC_ORDER, *problem.asked_besides, *problem.priors)):
                    assessment[name]
            except ValueError as error:
                origin = [f"{axis} as an axis of {problem.space.name}"] * bool(axis) + [device] * bool(device)
                raise UsageError(": ".join([*origin, str(error)])) from None
