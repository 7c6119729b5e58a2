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
from search_spaces.arrays import BoolArray, FloatArray

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


def fitting(
    problem: Problem, *metrics: str, alike: bool = False, beyond: float = 0.0
) -> tuple[BoolArray, dict[str, FloatArray]]:
    """Compute which published models are within a problem's limits and its device's memory.

    Args:
        alike: with the LM head of the problem's vocabulary, as designs have it, in place of their own.
        beyond: by which share limits may be missed.

    Returns:
        Of the models of `published`, in that order: whether each fits, (n,), and the metrics, the memory and what is limited, (n,).

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
    fits = priced[MEMORY] <= problem.scenario.device.memory_gb
    for budget in limits:
        fits &= budget.violation(priced[budget.metric]) <= beyond
    return fits, {name: priced[name] for name in (*metrics, MEMORY, *(budget.metric for budget in limits))}


def nearest(problem: Problem) -> tuple[Baseline, ...]:
    """Return the models of today whose time is the nearest to the first limit on time, and whose memory to that on memory.

    Those within all limits come first where they take two thirds of it; none misses a limit by more than half of it. All have the study's own
    vocabulary, as the designs beside them.
    """
    if not prices_whole_models(problem):
        return ()
    alike = not problem.space.own_heads
    try:
        (fits, taken), (near, _) = fitting(problem, alike=alike), fitting(problem, alike=alike, beyond=NEAR)
    except ValueError:
        return ()
    trained, models = published()
    year, month = map(int, trained[0].date.split("-"))
    since = f"{(12 * year + month - 1 - TODAY) // 12:04}-{(month - 1 - TODAY) % 12 + 1:02}"
    good = near & ~problem.scenario.law.extrapolates(models)
    today = good & np.array([model.date >= since for model in trained])
    among = np.flatnonzero(next((some for some in (today, good, near) if some.any()), near))
    best = []
    for name, limit in _limited(problem) if len(among) else ():
        apart = np.abs(np.log(taken[name][among] / limit))
        second = ~fits[among] | (apart > np.log1p(NEAR))
        best.append(trained[among[np.lexsort((apart, second))[0]]])
    return tuple(Baseline(label_of(model), baseline(model.model).architecture) for model in dict.fromkeys(best))


def _limited(problem: Problem) -> Iterator[tuple[str, float]]:
    """The first limit on time, and that on memory, of the device where there is none."""
    limits = {budget.metric: budget.limit for budget in problem.limits}
    times = [(name, limit) for name, limit in limits.items() if name.partition("@")[0].endswith("_ms")]
    yield from [*times[:1], (MEMORY, limits.get(MEMORY, problem.scenario.device.memory_gb))]
