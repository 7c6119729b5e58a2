"""Published models that fit a study's device and limits, and those of them that are the nearest to the limits."""

from collections.abc import Iterator
from functools import cache

import numpy as np

from nas.problem.objective import Baseline
from nas.problem.problem import Problem
from nas.problem.uncertainty import FROM_LOSS
from nas.study.baselines import baseline
from objectives.published_models import Trained, trained_models
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

NEAREST = "nearest"  # among the models to compare with: those of today that are the nearest to the limits
TODAY = 18  # months before the newest model
NEAR = 0.5  # beyond a limit, as a share of it
MEMORY = "resident_gb"


@cache
def published() -> tuple[tuple[Trained, ...], Architectures]:
    """Return the published models whose release is known, the newest first, with their architectures."""
    trained = trained_models()
    return trained, Architectures.concatenate([baseline(model.model).architecture for model in trained])


def label_of(trained: Trained) -> str:
    """Return how a model is called: LFM2.5-350M, Qwen3-0.6B."""
    return baseline(trained.model).label if trained.name == trained.model else trained.name


def prices_whole_models(problem: Problem) -> bool:
    """Return whether times and memory are those of whole models on a device, each with its own vocabulary."""
    return problem.scenario.complete and problem.scenario.latency == "operator"


def missed_by(problem: Problem, *metrics: str, alike: bool = False) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Compute by which share of a limit published models miss a problem's limits; infinite beyond the device's memory.

    Args:
        alike: with the LM head of the problem's vocabulary, as designs have it, in place of their own.

    Returns:
        Of the models of `published`, in that order: the largest share, at most 0 of one that fits, (n,), and the metrics, the memory and what is limited, (n,).

    Raises:
        ValueError: the tokens of a request's text are not known of some vocabulary.
    """
    besides = {
        *(function.name for function in problem.functions),
        *FROM_LOSS,
    }  # what costs calls, or tokens of the study
    limits = [budget for budget in problem.limits if budget.metric.partition("@")[0] not in besides]
    models = published()[1]
    priced = problem.assess(problem.headed(models) if alike else models)
    missed = np.where(priced[MEMORY] <= problem.scenario.device.memory_gb, -np.inf, np.inf)
    for budget in limits:
        missed = np.maximum(missed, budget.violation(priced[budget.metric]))
    return missed, {name: priced[name] for name in (*metrics, MEMORY, *(budget.metric for budget in limits))}


def nearest(problem: Problem) -> tuple[Baseline, ...]:
    """Return the models of today whose time is the nearest to the first limit on time, and whose memory to that on memory.

    Those within all limits come first where they take two thirds of it; none misses a limit by more than half of it. All have the study's own
    vocabulary, as the designs beside them.
    """
    if not prices_whole_models(problem):
        return ()
    try:
        missed, taken = missed_by(problem, alike=not problem.space.own_heads)
    except ValueError:
        return ()
    (trained, models), near = published(), missed <= NEAR
    year, month = map(int, trained[0].date.split("-"))
    since = f"{(12 * year + month - 1 - TODAY) // 12:04}-{(month - 1 - TODAY) % 12 + 1:02}"
    good = near & ~problem.scenario.law.extrapolates(models)
    today = good & np.array([model.date >= since for model in trained])
    among = np.flatnonzero(next((some for some in (today, good, near) if some.any()), near))
    best = []
    for name, limit in _limited(problem) if len(among) else ():
        apart = np.abs(np.log(taken[name][among] / limit))
        second = ~(missed[among] <= 0.0) | (apart > np.log1p(NEAR))
        best.append(trained[among[np.lexsort((apart, second))[0]]])
    return tuple(Baseline(label_of(model), baseline(model.model).architecture) for model in dict.fromkeys(best))


def _limited(problem: Problem) -> Iterator[tuple[str, float]]:
    """The first limit on time, and that on memory, of the device where there is none."""
    limits = {budget.metric: budget.limit for budget in problem.limits}
    times = [(name, limit) for name, limit in limits.items() if name.partition("@")[0].endswith("_ms")]
    yield from [*times[:1], (MEMORY, limits.get(MEMORY, problem.scenario.device.memory_gb))]
