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


def fitting(problem: Problem, *metrics: str, alike: bool = False) -> tuple[BoolArray, dict[str, FloatArray]]:
    """Compute which published models are within a problem's limits and its device's memory.

    Args:
        alike: with the LM head of the problem's vocabulary, as designs have it, in place of their own.

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
        fits &= budget.violation(priced[budget.metric]) <= 0.0
    return fits, {name: priced[name] for name in (*metrics, MEMORY, *(budget.metric for budget in limits))}


def nearest(problem: Problem) -> tuple[Baseline, ...]:
    """Return the models of today that fit and take the largest part of a limit: of the first one on time, and on memory.

    All have the study's own vocabulary, as the designs beside them.
    """
    if not prices_whole_models(problem):
        return ()
    try:
        fits, taken = fitting(problem, alike=not problem.space.own_heads)
    except ValueError:
        return ()
    trained, models = published()
    good = fits & ~problem.scenario.law.extrapolates(models)
    year, month = map(int, trained[0].date.split("-"))
    since = f"{(12 * year + month - 1 - TODAY) // 12:04}-{(month - 1 - TODAY) % 12 + 1:02}"
    today = good & np.array([model.date >= since for model in trained])
    among = np.flatnonzero(next((some for some in (today, good, fits) if some.any()), fits))
    if not len(among):
        return ()
    best = dict.fromkeys(trained[among[taken[name][among].argmax()]] for name in _limited(problem))
    return tuple(Baseline(label_of(model), baseline(model.model).architecture) for model in best)


def _limited(problem: Problem) -> Iterator[str]:
    """The first limited time, and the memory."""
    times = [budget.metric for budget in problem.limits if budget.metric.partition("@")[0].endswith("_ms")]
    yield from [*times[:1], MEMORY]
