"""Strategies by name: shipped ones, those of installed packages, and a user's own modules."""

import importlib
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from pathlib import Path as FilePath
from types import ModuleType
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ValidationError

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, alternatives, nearest, unknown
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.record.candidates import read_candidates
from nas.search.strategy import ReportSection, Traits
from nas.study import entry_points
from nas.study.configuration import StudyConfig, TrainingConfig
from nas.study.entry_points import PlugIn
from nas.study.user_code import code_named, in_run_folder, is_own, loaded_code
from nas.terminal.doors import EXPENSIVE
from objectives import outside
from objectives.loss_law.precision_cost import FULL
from objectives.plugins import documents, importable
from search_spaces.architectures import Architectures, architectures_of
from search_spaces.arrays import IntArray
from search_spaces.formats import base_of
from search_spaces.space import SearchSpace

EXTRAS = {"torch": "gp", "threadpoolctl": "gp", "numba": "numba"}
#: Strategies of the packages around the core, by the folder of `plugins/` that has each.
PACKAGES = {"prior_guided": "prior"}
KIND = "strategies"
SHIPPED = entry_points.SHIPPED[KIND]
LOOKS_LIKE_ONE = re.compile(r"^TRAITS\b[^=\n]*=(?s:.*)^def build\(", re.MULTILINE)
LONGEST = 1_000_000  # bytes of a file that is looked into


def named() -> list[str]:
    """Strategies that have a name of their own: shipped ones, installed ones, and those of packages that could be installed."""
    return list(dict.fromkeys([*entry_points.named(KIND), *PACKAGES]))


def in_working_folder() -> dict[str, Path]:
    """Files of the working folder that look like strategies, by module; they are read and not imported."""
    with suppress(OSError):  # the folder is gone, or may not be read
        here = Path.cwd()
        files = [] if in_run_folder(here) else sorted(here.glob("*.py"))
        return {path.stem: path for path in files if is_own(path.stem) and _looks_like_one(path)}
    return {}


def _looks_like_one(path: Path) -> bool:
    with suppress(OSError, UnicodeDecodeError):
        if path.is_file() and path.stat().st_size <= LONGEST:
            return LOOKS_LIKE_ONE.search(outside.text(path, LONGEST)) is not None
    return False


def strategy_module(algo: str) -> Any:
    """The module of a strategy, or that of `auto`, which builds none; a user's own is imported, so it must have been named by the user himself.

    Raises:
        UsageError: unknown name, with the nearest; an extra or a package that is not installed; a module that is no strategy.
    """
    return _module(algo, code_named(KIND, algo), typed=True)


def _module(algo: str, code: PlugIn | None, *, typed: bool) -> Any:
    """The module of a strategy whose code is ours (None), an installed package's, or the user's own."""
    if code is not None:
        with loaded_code(code, typed=typed) as module:
            return _checked(module, algo)
    if algo == entry_points.AUTO:
        return importlib.import_module(f"{SHIPPED}._{algo}")
    if algo in PACKAGES and algo not in importable(SHIPPED):
        raise UsageError(f"expected an installed strategy, got {algo}; pip install ./plugins/{PACKAGES[algo]}")
    if algo not in importable(SHIPPED):
        raise UsageError(unknown("a strategy", algo, [*named(), *in_working_folder()], "package.module of your own"))
    try:
        return importlib.import_module(f"{SHIPPED}.{algo}")
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(error.name or "")
        if extra is None:
            raise
        raise UsageError(
            f"expected the package {error.name} for {algo}, got none installed; pip install 'plas-codesign[{extra}]'"
        ) from None


def completed(section: ReportSection, algo: str, folder: Path, problem: Problem) -> ReportSection:
    """The recorded sentences of a strategy with what its package's reader of folders, called as it is, reads of its files; else they are all."""
    complete, reader = None, entry_points.found("answers", algo)
    if reader is not None:
        with loaded_code(reader) as module:
            complete = getattr(module, "completed", None)
    found: ReportSection = section if complete is None else complete(section, folder, problem)
    return found


def _checked(module: ModuleType, algo: str) -> ModuleType:
    """A module that states what a strategy must.

    Raises:
        UsageError: it does not, with what is missing.
    """
    parameters = getattr(module, "Parameters", None)
    stated = {
        "TRAITS (nas.search.strategy.Traits)": isinstance(getattr(module, "TRAITS", None), Traits),
        "Parameters (a pydantic model)": isinstance(parameters, type) and issubclass(parameters, BaseModel),
        "build(context, parameters)": callable(getattr(module, "build", None)),
    }
    if missing := [what for what, there in stated.items() if not there]:
        if ours := [name for name in named() if name.startswith(f"{algo}_")]:
            raise UsageError(
                f"expected a strategy, got {algo}, of which there are several; choose {alternatives(ours)}"
            )
        raise UsageError(
            f"expected a strategy, got the module {module.__name__} without {' and '.join(missing)}; "
            f"{nearest(algo, named())}, or see 'plas init my_search.py'"
        )
    return module


def able_to(trait: str) -> list[str]:
    """Strategies with a trait; those whose extra is missing are left out."""
    found = []
    for name in importable(SHIPPED):
        with suppress(UsageError):
            if getattr(strategy_module(name).TRAITS, trait):
                found.append(name)
    return found


@dataclass(frozen=True, eq=False)
class ChosenStrategy:
    """The module of the strategy that a study names, and its parameters, checked."""

    module: ModuleType
    parameters: BaseModel

    @property
    def traits(self) -> Traits:
        """The traits of the strategy."""
        found: Traits = self.module.TRAITS
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """A module is pickled by its name, as its parameters' class is."""
        return _chosen_again, (self.module.__name__, self.parameters)

    def fitted(self, evaluations: int | None, space: SearchSpace) -> BaseModel:
        """Parameters for a search of so many distinct evaluations: those given, and of the others what the strategy says follows."""
        follows = getattr(self.parameters, "following", None)
        if follows is None or evaluations is None:
            return self.parameters
        given = self.parameters.model_fields_set
        return self.parameters.model_copy(
            update={k: v for k, v in follows(evaluations, space.size).items() if k not in given}
        )


def _chosen_again(module: str, parameters: BaseModel) -> ChosenStrategy:
    return ChosenStrategy(importlib.import_module(module), parameters)


def chosen_strategy(algo: str, params: Mapping[str, Any], faults: Faults) -> ChosenStrategy | None:
    """The strategy that a study names, with its parameters; it is built later.

    A user's own module is imported only where a flag names it: a study's file could be anybody's.
    """
    try:
        code, typed = code_named(KIND, algo), faults.typed(("algo",))
        if code is not None and not code.distribution and not typed:
            raise UsageError(untyped(algo, "--algo" if faults.coded is None else None))
        module = _module(algo, code, typed=typed)
        return ChosenStrategy(module, module.Parameters.model_validate(params))
    except UsageError as error:
        faults.add(("algo",), str(error))
    except ValidationError as error:
        faults.add_validation(error, ("params",), module.Parameters)
    return None


def untyped(algo: str, flag: str | None) -> str:
    """Why a user's own module is not imported, and what to type (no flag: in Python)."""
    where, what = ("in the call", f"algo={algo!r}") if flag is None else ("on the command line", f"{flag} {algo}")
    return f"expected a strategy of one's own to be named {where}, got {algo} in a file alone, which executes nothing; add {what}"


def start_of(given: Architectures | None, algo: str, traits: Traits, problem: Problem) -> IntArray:
    """Genotypes of the designs that a strategy is given to start from, distinct, in their order.

    Raises:
        UsageError: a strategy that cannot, or designs outside the space.
    """
    if given is None:
        return np.zeros((0, len(problem.space.gene_sizes)), dtype=np.int64)
    if not traits.seedable:
        raise UsageError(
            f"seed_from: expected a strategy that starts from given designs ({', '.join(able_to('seedable'))}), got {algo}; choose one"
        )
    keys = problem.space.find(given)
    if (keys < 0).any():
        outside = int((keys < 0).argmax())
        raise UsageError(
            f"seed_from: expected designs of the {problem.space.name} space, got row {outside + 1} outside it "
            f"({int((keys < 0).sum())} of {len(keys)} are); remove them"
        )
    return problem.space.genotypes(keys[np.sort(np.unique(keys, return_index=True)[1])])


def given_designs(source: str | list[dict[str, Any]] | None) -> Architectures | None:
    """The designs of a candidate file, or written out in the study; None of neither.

    Raises:
        UsageError: rows that are no architectures.
    """
    if not source:
        return None
    if isinstance(source, str):
        return read_candidates(FilePath(source))[0]
    try:
        return architectures_of(source)
    except ValueError as error:
        raise UsageError(f"seed_from: {error}") from None


ConstraintHandling = Literal["native", "penalty", "reject"]


def handling_of(config: StudyConfig, traits: Traits, problem: Problem, notices: list[str]) -> ConstraintHandling:
    """Native where the strategy can, else penalty, with a notice; an explicit native that cannot be is refused."""
    able = traits.constraints or not problem.budgets
    if not traits.takes_evaluations:
        return "native"
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
        "--set constraints=reject is the alternative"
    )
    return "penalty"


def without_effect(
    config: StudyConfig, traits: Traits, problem: Problem, handling: ConstraintHandling, typed: Collection[str] = ()
) -> list[str]:
    """One notice of the keys that change nothing in this study, each with the reason; none where every key counts.

    Raises:
        UsageError: such keys among those `typed` for this study.
    """
    formats = {scenario.precision.name for scenario in (problem.scenario, *problem.scenario.formats)}
    names, formulas = {*problem.metric_names}, problem.analytic and "no metric is your own"
    text = problem.scenario.text
    whole = not (traits.takes_evaluations or config.auto) and f"{config.algo} covers the whole space"
    reasons = {
        "int4_group_size": "int4" not in map(base_of, formats) and "no design is in int4",
        "formats": not formats & {*config.formats} and "precision names none of them",
        **dict.fromkeys(("tied", "head_bytes"), not problem.has_head and "there is no LM head"),
        "device_columns": not names & {*problem.scenario.figures} and "no metric is one of them",
        "constraints": whole
        or (not problem.budgets and "there is no budget")
        or (not traits.learns and f"{config.algo} does not learn from evaluations"),
        **dict.fromkeys(("evaluations", "stop_when_stable"), whole),
        "penalty_weight": handling != "penalty" and "constraints are no penalty",
        "workers": formulas,
        "executor": formulas,
        "evaluation_timeout": config.workers is None and config.executor is None and "there are no workers",
        "resources": config.executor is None and "there is no executor",
        **{name: name not in names and f"{name} is no objective and no budget" for name in EXPENSIVE},
        "known_as": not config.known and "no results are known",
        "precision_law": formats <= {*FULL} and "no format has few bits",
        "token_curve": not (problem.of_text or (text and text.of_requests)) and "nothing is counted in text",
        "training": config.training == TrainingConfig(served_tokens=config.training.served_tokens)
        and "lifetime_flops" not in names
        and "tokens served are of lifetime_flops, which is not asked for",
    }
    usual = StudyConfig.model_validate(yaml_source.read(documents("nas.study.presets")[config.preset])[0])
    idle = {
        key: why for key, why in reasons.items() if why and getattr(config, key) not in (getattr(usual, key), "native")
    }
    if unused := [key for key in idle if key in typed]:
        why = (f"expected a key that has an effect, got one without: {idle[key]}; drop it" for key in unused)
        raise UsageError("\n".join(map("{}: {}".format, unused, why)))
    said = ", ".join(f"{key} ({reason})" for key, reason in idle.items())
    return [f"without effect in this study: {said}"] if idle else []


def penalised_problem(problem: Problem, handling: ConstraintHandling) -> Problem:
    """The problem that a strategy is built on: without budgets unless it handles them itself."""
    return problem if handling == "native" else replace(problem, budgets=())


def penalised(evaluations: Evaluations, handling: ConstraintHandling, weight: float) -> Evaluations:
    """Evaluations as the strategy receives them.

    native: unchanged. penalty: every objective f becomes f + weight · V · max(|f|, 1), where
    V = Σ max(violation, 0). reject: an infeasible row is a failed one.
    """
    if handling == "native" or not evaluations.budgets:
        return evaluations
    violations = evaluations.violations
    if handling == "reject":
        over = np.flatnonzero((violations > 0).any(axis=1))
        told = list(evaluations.reasons or ("",) * len(evaluations))
        for row in over.tolist():
            told[row] = told[row] or "infeasible"
        return replace(evaluations, reasons=tuple(told), budgets=())
    excess = weight * np.maximum(violations, 0).sum(axis=1)
    metrics = dict(evaluations.metrics)
    for name in evaluations.objectives:
        metrics[name] = metrics[name] + excess * np.maximum(np.abs(metrics[name]), 1.0)
    return replace(evaluations, metrics=metrics, budgets=())
