"""Pairs of a target and a draft model from a study, a space of drafts and what is known of acceptance."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.problem.problem import Problem
from nas.search.assembly import Study, refuse_impossible
from nas.study.baselines import model_named
from nas.study.scenarios import refuse_cache
from nas.study.serving_keys import ServingConfig
from nas.study.value_parsers import open_share
from objectives.serving import typical_serving
from plas_fleet.pairs.acceptance import AcceptanceOfDrafts
from plas_fleet.pairs.metrics import OF_PAIRS, supported
from plas_fleet.pairs.solution import PairProblem
from search_spaces.columns import MOST_DRAFTED

SAME = "same"  # the study's space is that of drafts


def pair_problem(study: Study, drafts: Study, acceptance: str | None, drafted: str) -> PairProblem:
    """The problem of pairs; both studies are one but for their spaces.

    Raises:
        UsageError: what pairs cannot be priced with, or no acceptance.
    """
    for each, of in ((study, "space"), (drafts, "draft-space")):
        _refuse(each, of)
    figures: dict[str, Any] = {**study.config.serving.figures()}
    known = replace(typical_serving(), **figures)
    free = replace(drafts.problem, objectives=(), budgets=(), queries=(), columns=())
    points = parsed_acceptance(acceptance, free)
    found = PairProblem(study.problem, free, known, AcceptanceOfDrafts(points), parsed_numbers(drafted))
    refuse_impossible(replace(study.problem, scenario=found.at(found.drafted[0])), ())
    return found


def _refuse(study: Study, of: str) -> None:
    """Refuse what the metrics of a pair do not follow from.

    Raises:
        UsageError: the first of it.
    """
    problem, config = study.problem, study.config
    if problem.functions or not any(o.name == "loss" for o in problem.objectives):
        got = ", ".join(o.name for o in problem.objectives)
        raise UsageError(
            f"objectives: expected loss and other metrics that ship, for pairs, got {got}; name loss,total_ms"
        )
    if wrong := [name for name in problem.asked if not supported(name)]:
        raise UsageError(f"{wrong[0]}: expected a metric of pairs, {', '.join(OF_PAIRS)}, got another; drop it")
    plain = ServingConfig(**{name: getattr(config.serving, name) for name in config.serving.figures()})
    if config.serving != plain:
        raise UsageError(
            "serving: expected its figures alone beside pairs, which say themselves what drafts, got more; drop speculation, draft, "
            "acceptance, experts_in and phases"
        )
    if axes := [name for name in problem.space.settings if name != "tokens"]:
        raise UsageError(f"{of}: expected one {axes[0]} for target and draft, got an axis of it; give one")
    refuse_cache(problem.scenario)


def parsed_numbers(text: str) -> tuple[int, ...]:
    """Numbers of drafted tokens, `1,2,4`, ascending.

    Raises:
        UsageError: none, or one beyond what published rows hold.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and 1 <= int(part) <= MOST_DRAFTED for part in parts):
        raise UsageError(f"drafted: expected numbers from 1 to {MOST_DRAFTED}, got {text!r}; write 1,2,4")
    return tuple(sorted({int(part) for part in parts}))


def parsed_acceptance(text: str | None, drafts: Problem) -> tuple[tuple[float, float], ...]:
    """`0.7`, or measured drafts by their perplexity under the study's law or by their name: `25=0.8,qwen3_0.6b=0.6`.

    Raises:
        UsageError: nothing, or what is no acceptance that falls with perplexity.
    """
    if text is None:
        raise UsageError(
            "acceptance: expected the probability that a draft's first token is accepted, got none; no published formula gives that of "
            "two models: measure two drafts and add --acceptance MODEL=0.7,MODEL=0.5, or by perplexity 25=0.7,60=0.5"
        )
    if "=" not in text:
        return ((1.0, _share(text)),)
    points = sorted(_points(text, drafts))
    shares = [share for _, share in points]
    if len({x for x, _ in points}) < len(points) or len(points) < 2 or sorted(shares, reverse=True) != shares:
        said = ", ".join(f"{x:.4g}={share:g}" for x, share in points)
        raise UsageError(
            f"acceptance: expected two drafts or more of different perplexity, of which the better is accepted no less, got {said}; "
            "correct it, or give one number"
        )
    return tuple(points)


def _points(text: str, drafts: Problem) -> Iterator[tuple[float, float]]:
    for part in text.split(","):
        name, _, share = (each.strip() for each in part.partition("="))
        yield _perplexity(name, drafts), _share(share)


def _perplexity(name: str, drafts: Problem) -> float:
    """A number, or that of a published model under the study's law.

    Raises:
        UsageError: neither.
    """
    try:
        found = float(name)
    except ValueError:
        found = _of_model(name, drafts)
    if not (np.isfinite(found) and found > 1.0):
        raise UsageError(f"acceptance: expected a perplexity above 1 or a model, got {name!r}; write 25=0.7,60=0.5")
    return found


def _of_model(name: str, drafts: Problem) -> float:
    try:
        known = model_named(name).architecture
    except (UsageError, ValueError) as error:
        raise UsageError(f"acceptance: {error}") from None
    return float(drafts.assess(drafts.headed(known))["perplexity"][0])


def _share(text: str) -> float:
    try:
        return open_share(text)
    except ValueError as error:
        raise UsageError(f"acceptance: {error}") from None
