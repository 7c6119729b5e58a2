"""The one place that turns names into objects: a raw study becomes a problem and a strategy."""

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path as FilePath
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from nas import yaml_source
from nas.candidates import read_candidates
from nas.errors import UsageError
from nas.faults import Faults, Path, nearest, unknown
from nas.handling import Handling, problem_as_seen
from nas.notebook import Notebook
from nas.objective import Budget, Objective, built_in, limit_in_unit
from nas.problem import Problem
from nas.quantile_budgets import metric_of, plain_limits
from nas.questions import Baseline, Question
from nas.strategy import Brief, Strategy, Traits, refuse_more_objectives
from nas.study_config import StudyConfig, split_budgets, without_password
from objectives.device import Calibration, Device
from objectives.law import Law
from objectives.plugins import documents, importable
from objectives.scenario import Scenario, precision
from search_spaces.architectures import SHAPE, Architectures, one, stack
from search_spaces.arrays import IntArray
from search_spaces.space import SearchSpace
from search_spaces.specification import SpaceSpecification, expert_faults_of

M = TypeVar("M", bound=BaseModel)
FUNCTION = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
RUN_MARKS = ("manifest.json", "evaluations.sqlite")
EXTRAS = {"torch": "gp", "numba": "numba"}
FOLDERS = {"space": "search_spaces.spaces", "law": "objectives.laws", "device": "objectives.devices"}


@dataclass(frozen=True, eq=False)
class Study:
    """An assembled study: what to search, what to ask of the result, how to search.

    horizon: distinct evaluations that a schedule is spread over when the run was laid out for
    another number than it is asked for now (None: the same).
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

    @property
    def traits(self) -> Traits:
        """What the chosen strategy can do."""
        found: Traits = strategy_module(self.config.algo).TRAITS
        return found

    @property
    def limit(self) -> int | None:
        """Distinct evaluations that a run of this study asks for."""
        return (self.config.evaluations or self.traits.evaluations) if self.traits.takes_evaluations else None

    def strategy(
        self, notebook: Notebook | None = None, report: Callable[[int], None] = lambda settled: None
    ) -> Strategy:
        """The strategy, built anew from its seed; one that solves before it asks uses notebook and report."""
        seen = problem_as_seen(self.problem, self.handling)
        brief = Brief(seen, self.config.seed, self.start, self.horizon or self.limit, notebook or Notebook(), report)
        built: Strategy = strategy_module(self.config.algo).build(brief, self.parameters)
        return built

    def resolved(self) -> dict[str, Any]:
        """Everything of the study as plain content: spaces, law and device embedded, no paths."""
        problem, scenario = self.problem, self.problem.scenario
        content = self.config.model_dump(mode="json")
        content |= {
            "space": problem.space.mapping(),
            "law": scenario.law.mapping(),
            "device": scenario.device.mapping(),
            "calibration": "none"
            if scenario.calibration is None
            else scenario.calibration.model_dump(mode="json", exclude_none=True),
            "budgets": {budget.metric: budget.limit for budget in problem.budgets},
            "default_budget": "none",
            "applications": {
                q.label: {q.budget.metric: q.budget.limit} for q in problem.questions if q.budget and not q.baseline
            },
            "baselines": [baseline.mapping() for baseline in self.baselines],
            "params": self.parameters.model_dump(mode="json"),
            "constraints": self.handling,
            "seed_from": self._start_rows() or None,
            "optuna_storage": self.config.optuna_storage and without_password(self.config.optuna_storage),
        }
        return {key: "none" if value is None else value for key, value in content.items()}

    def _start_rows(self) -> list[dict[str, Any]]:
        columns = self.problem.space.architectures(self.start)
        return [{name: int(getattr(columns, name)[i]) for name in SHAPE} for i in range(len(self.start))]


def assemble(raw: Mapping[str, Any], origins: Mapping[Path, str]) -> Study:
    """A study from its raw configuration.

    Raises:
        UsageError: every fault at once, each with its line or flag.
    """
    faults = Faults(origins)
    config = _checked_config(raw, faults)
    space = _named(raw, "space", SpaceSpecification, faults)
    law = _named(raw, "law", Law, faults)
    device = _device(raw, faults)
    objectives = _objectives(raw, faults)
    budgets = _budgets(raw.get("budgets"), ("budgets",), objectives, faults)
    applications = _applications(raw, objectives, faults)
    baselines = _baselines(raw, faults)
    parameters = _parameters(raw, faults)
    faults.raise_if_any()
    assert config is not None
    assert space is not None
    assert law is not None
    assert device is not None
    assert parameters is not None
    return _joined(config, SearchSpace(space), law, device, objectives, budgets, applications, baselines, parameters)


def _joined(
    config: StudyConfig,
    space: SearchSpace,
    law: Law,
    device: Device,
    objectives: dict[str, Objective],
    budgets: dict[str, float | None],
    applications: dict[str, tuple[str, float]],
    baselines: list[Baseline],
    parameters: BaseModel,
) -> Study:
    scenario, note = scenario_of(config, law, device)
    budgets, at_quantiles = plain_limits(budgets, scenario.calibration, note)
    limits = _with_default(config, device, budgets)
    problem = Problem(
        space,
        scenario,
        tuple(objectives[name] for name in config.objectives),
        tuple(Budget(metric, limit) for metric, limit in limits.items()),
        tuple(o for o in objectives.values() if o.function is not None),
        config.vocabulary,
        config.tied,
    )
    _refuse_impossible(problem)
    asked = [Question(label, Budget(*limit)) for label, limit in applications.items()]
    notices = [*([warning] if (warning := device.warning()) else []), *at_quantiles]
    for known in baselines:
        try:
            asked += baseline_questions(problem, known)
        except ValueError as error:
            notices.append(f"baseline {known.label} is left out of the comparison: {error}")
    problem = replace(problem, questions=tuple(asked))
    if config.evaluation_timeout is not None and config.workers is None:
        raise UsageError("evaluation_timeout: expected workers with a timeout, got none; add --workers 1 or more")
    traits: Traits = strategy_module(config.algo).TRAITS
    refuse_more_objectives(config.algo, traits, len(problem.objectives))
    handling = handling_of(config, traits, problem, notices)
    start = start_of(config, traits, problem)
    return Study(config, problem, tuple(baselines), parameters, start, handling, tuple(notices), note)


def handling_of(config: StudyConfig, traits: Traits, problem: Problem, notices: list[str]) -> Handling:
    """Native where the strategy can, else penalty, said so; an explicit native that cannot be is refused."""
    able = traits.constraints or not problem.budgets
    if not traits.takes_evaluations and config.constraints not in (None, "native"):
        raise UsageError(
            f"constraints: expected native with {config.algo}, which covers the whole space, got {config.constraints}; drop it"
        )
    if config.constraints is not None and (able or config.constraints != "native"):
        return config.constraints
    if able:
        return "native"
    if config.constraints == "native":
        raise UsageError(
            f"constraints: expected penalty or reject with {config.algo}, which has no constraints of its own, got native; "
            f"choose one, or a strategy that has: {', '.join(able_to('constraints'))}"
        )
    notices.append(
        f"{config.algo} has no constraints of its own: budgets become a penalty of weight {config.penalty_weight:g}; "
        "--constraints reject is the alternative"
    )
    return "penalty"


def able_to(trait: str) -> list[str]:
    """Strategies with a trait; those whose extra is missing are left out."""
    found = []
    for name in importable("nas.strategies"):
        with suppress(UsageError):
            if getattr(strategy_module(name).TRAITS, trait):
                found.append(name)
    return found


def start_of(config: StudyConfig, traits: Traits, problem: Problem) -> IntArray:
    """Genotypes of the designs to start from, distinct, in their order.

    Raises:
        UsageError: a strategy that cannot, or designs outside the space.
    """
    if not config.seed_from:
        return np.zeros((0, len(problem.space.gene_sizes)), dtype=np.int64)
    if not traits.seedable:
        raise UsageError(
            f"seed_from: expected a strategy that starts from given designs ({', '.join(able_to('seedable'))}), got {config.algo}; choose one"
        )
    keys = problem.space.find(given_designs(config.seed_from))
    if (keys < 0).any():
        outside = int((keys < 0).argmax())
        raise UsageError(
            f"seed_from: expected designs of the {problem.space.name} space, got row {outside + 1} outside it "
            f"({int((keys < 0).sum())} of {len(keys)} are); remove them"
        )
    return problem.space.genotypes(keys[np.sort(np.unique(keys, return_index=True)[1])])


def given_designs(source: str | list[dict[str, Any]]) -> Architectures:
    """The designs of a candidate file, or written out in the study.

    Raises:
        UsageError: rows that are no architectures.
    """
    if isinstance(source, str):
        return read_candidates(FilePath(source))[0]
    try:
        return stack(source)
    except ValueError as error:
        raise UsageError(f"seed_from: {error}") from None


def baseline_questions(problem: Problem, known: Baseline) -> list[Question]:
    """The pick at most as slow as a baseline, without the LM head on both, and with it on both.

    Raises:
        ValueError: the latency model does not cover the baseline.
    """
    own = int(known.architecture.vocabulary[0])
    with_head = () if problem.scenario.latency == "closed_form" or not own else (own,)
    asked = []
    for vocabulary in dict.fromkeys((0, problem.vocabulary, *with_head)):
        variant = problem.with_vocabulary(vocabulary)
        total_ms = float(variant.assess(variant.dressed(known.architecture))["total_ms"][0])
        label = f"{known.label}, {f'LM head of {vocabulary:,}' if vocabulary else 'layers alone'}"
        asked.append(Question(label, Budget("total_ms", total_ms), vocabulary, known.label))
    return asked


def scenario_of(config: StudyConfig, law: Law, device: Device) -> tuple[Scenario, str]:
    """The scenario of a configuration, and how to name its calibration."""
    profile, note = (None, "datasheet peaks")
    if config.calibration == "shipped":
        profile, note = device.calibration_for(config.precision, config.batch)
    elif isinstance(config.calibration, Calibration):
        profile, note = config.calibration, "calibrated (given in the study)"
    scenario = Scenario(
        law=law,
        device=device,
        precision=precision(config.precision, config.int4_group_size),
        batch=config.batch,
        input_tokens=config.input_tokens,
        output_tokens=config.output_tokens,
        latency=config.latency,
        attention=config.attention,
        causal=config.causal,
        complete=config.complete,
        head_bytes=config.head_bytes,
        calibration=profile,
    )
    return scenario, note


def under_preset(study: Study, preset: str) -> tuple[Problem, str]:
    """The study's problem with a preset's conventions for latency and memory, and its calibration's name."""
    shipped, _ = yaml_source.read(documents("nas.presets")[preset])
    keys = ("latency", "attention", "causal", "complete", "vocabulary", "tied", "int4_group_size", "calibration")
    config = StudyConfig.model_validate({**study.config.model_dump(), **{key: shipped[key] for key in keys}})
    old = study.problem
    scenario, note = scenario_of(config, old.scenario.law, old.scenario.device)
    return Problem(old.space, scenario, old.objectives, (), (), config.vocabulary, config.tied), note


def _checked_config(raw: Mapping[str, Any], faults: Faults) -> StudyConfig | None:
    try:
        return StudyConfig.model_validate(dict(raw))
    except ValidationError as error:
        faults.add_validation(error, model=StudyConfig)
        return None


def _named(raw: Mapping[str, Any], key: str, model: type[M], faults: Faults) -> M | None:
    """The object that a study's key names, embeds, or points to as a file."""
    given = raw.get(key, StudyConfig.model_fields[key].default)
    try:
        content, inner, prefix = _content(key, given, faults)
    except UsageError as error:
        faults.add((), str(error))
        return None
    if content is None:
        return None
    try:
        return model.model_validate(content)
    except ValidationError as error:
        inner.add_validation(error, prefix, model)
        for text in expert_faults_of(content) if model is SpaceSpecification else ():
            head, _, message = text.partition(": ")
            inner.add((*prefix, *head.split(".")), message)
        faults.lines += [line for line in inner.lines if line not in faults.lines]
        return None


def _content(key: str, given: Any, faults: Faults) -> tuple[Any, Faults, Path]:
    """Raw content of a space, law or device, with the faults object that knows its lines."""
    if isinstance(given, dict):
        return given, faults, (key,)
    if not isinstance(given, str):
        return None, faults, (key,)
    shipped = documents(FOLDERS[key])
    identifier = normalised(given)
    if identifier in shipped:
        path = shipped[identifier]
    elif FilePath(given).suffix in (".yaml", ".yml") or is_file(given):
        path = FilePath(given)
    else:
        faults.add((key,), unknown(f"a {key}", given, shipped) + ", or give a YAML file")
        return None, faults, (key,)
    content, origins = yaml_source.read(path)
    if not isinstance(content, dict):
        raise UsageError(f"{path}:1: expected keys and values, got {type(content).__name__}; see 'plas schema {key}'")
    return content, Faults(origins), ()


def is_file(name: str) -> bool:
    """Whether a name is a file; one that no file can have is not."""
    try:
        return FilePath(name).is_file()
    except OSError:
        return False


def normalised(name: str) -> str:
    """Ids as the catalogue spells them: lower case, hyphens read as underscores."""
    return name.lower().replace("-", "_")


def _device(raw: Mapping[str, Any], faults: Faults) -> Device | None:
    given = raw.get("device", StudyConfig.model_fields["device"].default)
    mode = ""
    if isinstance(given, str) and not is_file(given):
        given, _, mode = given.partition("@")
    device = _named({"device": given}, "device", Device, faults)
    if device is None or not mode:
        return device
    try:
        return device.in_mode(normalised(mode))
    except ValueError as error:
        faults.add(("device",), str(error))
        return None


def load_device(name: str) -> Device:
    """A device by id, id@mode or file."""
    faults = Faults({("device",): "--device"})
    device = _device({"device": name}, faults)
    faults.raise_if_any()
    assert device is not None
    return device


def load_space(name: str) -> SearchSpace:
    """A search space by name or file."""
    faults = Faults()
    specification = _named({"space": name}, "space", SpaceSpecification, faults)
    faults.raise_if_any()
    assert specification is not None
    return SearchSpace(specification)


def load_law(name: str) -> Law:
    """A loss law by name or file."""
    faults = Faults()
    law = _named({"law": name}, "law", Law, faults)
    faults.raise_if_any()
    assert law is not None
    return law


def _objectives(raw: Mapping[str, Any], faults: Faults) -> dict[str, Objective]:
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
    if name in importable("objectives.metrics"):
        found[name] = built_in(name)
        return True
    if not FUNCTION.match(name):
        faults.add(
            path, unknown("a metric", name, importable("objectives.metrics")) + ", or give package.module:function"
        )
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
    if "" not in sys.path and str(FilePath.cwd()) not in sys.path:
        sys.path.append(str(FilePath.cwd()))
    _refuse_from_run_folder(module_name)
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"expected an importable module, got {type(error).__name__}: {error}; check {module_name}"
        ) from None
    function = getattr(module, attribute, None)
    if not callable(function):
        public = [n for n in vars(module) if callable(getattr(module, n)) and not n.startswith("_")]
        raise UsageError(f"expected a function of {module_name}, got {attribute!r}; {nearest(attribute, public)}")
    return Objective(name, str(getattr(function, "UNIT", "")), bool(getattr(function, "LOG_SCALE", False)), function)


def _refuse_from_run_folder(module_name: str) -> None:
    """Code inside a run folder is refused before it runs: opening a stranger's run executes nothing from it."""
    spec = PathFinder.find_spec(module_name.partition(".")[0])
    places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
    for place in filter(None, places):
        if any((parent / mark).exists() for parent in FilePath(place).parents for mark in RUN_MARKS):
            raise UsageError(
                f"expected code outside run folders, got {module_name} in {place}; move the module elsewhere"
            )


def _budgets(given: Any, path: Path, objectives: dict[str, Objective], faults: Faults) -> dict[str, float | None]:
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


def _applications(
    raw: Mapping[str, Any], objectives: dict[str, Objective], faults: Faults
) -> dict[str, tuple[str, float]]:
    given = raw.get("applications", StudyConfig.model_fields["applications"].default)
    found: dict[str, tuple[str, float]] = {}
    for label, limit in given.items() if isinstance(given, dict) else ():
        before = len(faults.lines)
        limits = _budgets(limit, ("applications", label), objectives, faults) if isinstance(limit, dict) else {}
        if any("@" in name for name in limits):
            faults.add(("applications", label), f"expected a metric without a quantile, got {limit!r}; drop the @")
        elif len(limits) == 1 and None not in limits.values():
            found[label] = next((metric, value) for metric, value in limits.items() if value is not None)
        elif isinstance(limit, dict) and len(faults.lines) == before:
            faults.add(
                ("applications", label),
                f"expected one metric and its limit, got {limit!r}; write for example {{decode_ms: 20}}",
            )
    return found


def _baselines(raw: Mapping[str, Any], faults: Faults) -> list[Baseline]:
    given = raw.get("baselines", StudyConfig.model_fields["baselines"].default)
    names = [n.strip() for n in given.split(",") if n.strip()] if isinstance(given, str) else given
    found = []
    for i, item in enumerate(names if isinstance(names, list) else []):
        if not isinstance(item, (str, dict)):
            continue
        try:
            found.append(baseline(item))
        except (UsageError, ValueError) as error:
            faults.add(("baselines", i), str(error))
    return found


def baseline(item: str | Mapping[str, Any]) -> Baseline:
    """A published model by name, or an architecture given by its columns.

    Raises:
        UsageError: no such model.
        ValueError: columns that are no architecture, a line a fault.
    """
    if isinstance(item, str):
        models = documents("search_spaces.models")
        if normalised(item) not in models:
            raise UsageError(unknown("a published model", item, models))
        content = _model(normalised(item))
    else:
        content = dict(item)
    columns = {key: value for key, value in content.items() if key not in ("name", "source")}
    return Baseline(str(content.get("name", "custom")), one(columns))


@lru_cache
def _model(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml_source.read(documents("search_spaces.models")[name])[0]
    return content


def architecture_from(text: str) -> Architectures:
    """An architecture from `depth=16,width=2048,…`."""
    pairs = [part.partition("=") for part in re.split(r"[,\s]+", text.strip()) if part]
    if not pairs or not all(sign for _, sign, _ in pairs):
        raise UsageError(f"architecture: expected name=value pairs, got {text!r}; write depth=16,width=2048,…")
    known = {*Architectures.__dataclass_fields__, "gqa", "expert_ffn_ratio", "ffn_ratio"}
    for name, _, _ in pairs:
        if name not in known:
            raise UsageError(f"architecture: {unknown('a column', name, known)}")
    try:
        return one({name: value for name, _, value in pairs})
    except ValueError as error:
        raise UsageError(str(error)) from None


def _parameters(raw: Mapping[str, Any], faults: Faults) -> BaseModel | None:
    """The strategy's own parameters, checked; the strategy itself is built later."""
    algo = raw.get("algo", StudyConfig.model_fields["algo"].default)
    if not isinstance(algo, str):
        return None
    try:
        model: type[BaseModel] = strategy_module(algo).Parameters
        return model.model_validate(raw.get("params", {}))
    except UsageError as error:
        faults.add(("algo",), str(error))
    except ValidationError as error:
        faults.add_validation(error, ("params",), model)
    return None


def strategy_module(algo: str) -> Any:
    """The module of a strategy.

    Raises:
        UsageError: unknown name, with the nearest.
    """
    if algo not in importable("nas.strategies"):
        raise UsageError(unknown("a strategy", algo, importable("nas.strategies")))
    try:
        return importlib.import_module(f"nas.strategies.{algo}")
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(error.name or "")
        if extra is None:
            raise
        raise UsageError(
            f"expected the package {error.name} for {algo}, got none installed; pip install 'plas-codesign[{extra}]'"
        ) from None


def _with_default(config: StudyConfig, device: Device, budgets: dict[str, float | None]) -> dict[str, float]:
    default = config.default_budget
    limits = dict(budgets)
    if default is not None and default.metric not in limits:
        limits = {default.metric: default.share * device.memory_gb, **limits}
    return {metric: limit for metric, limit in limits.items() if limit is not None}


def _refuse_impossible(problem: Problem) -> None:
    """Options that the closed form lacks are said before anything is evaluated."""
    first = problem.architectures(problem.space.genotypes(_zero()))
    try:
        problem.assess(first)["total_ms"]
    except ValueError as error:
        raise UsageError(str(error)) from None


def _zero() -> IntArray:
    return np.zeros(1, dtype=np.int64)
