"""The strategy `auto`: a study that names it gets the one that it picks, with the reason, before anything else is made of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nas.files.faults import Faults
from nas.problem.problem import Problem
from nas.search.discovery import chosen_strategy, strategy_module
from nas.search.reading import ReadStudy
from nas.study.configuration import StudyConfig
from nas.study.entry_points import AUTO


@dataclass(frozen=True)
class Asked:
    """What a study asks of its search, besides the problem.

    evaluations: distinct ones (None: no number was given); at_once: designs that are evaluated together; bound: a clause, why the space is not to be
    covered whole ("" where it may be).
    """

    evaluations: int | None
    at_once: int = 1
    bound: str = ""


@dataclass(frozen=True)
class Choice:
    """A strategy with parameters that differ from its own, and the reason: a clause without `since`."""

    algo: str
    because: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def with_choice(asked: ReadStudy, problem: Problem, counted: int | None) -> ReadStudy:
    """A study with the strategy that `auto` picks, and the reason as its key `auto`; any other study without a reason of another's.

    counted: distinct evaluations by which strategies are compared, None of a run by itself.
    """
    config = asked.config
    if config.algo != AUTO:
        said = config.auto if config.auto.startswith(f"{config.algo}, since ") else ""
        return replace(asked, config=config.model_copy(update={"auto": said}))
    found: Choice = strategy_module(AUTO).choose(problem, asked_of(config, counted))
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
