"""The numbers that pictures and pages draw of a run, made once for both."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from nas.answer.outcome import Outcome, once
from nas.answer.sentences import baseline_metric
from nas.problem.evaluations import Evaluations, frontier_rows, too_many
from nas.problem.objective import EXTRAPOLATION, INSIDE
from nas.problem.problem import Problem
from nas.problem.steps import AtContext, along_contexts, has_long_contexts
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

THINNED = 20_000
FLOOR = 1e-4  # per cent of hypervolume below which a gap is drawn as this
EVOLVING = (
    ("depth", "Depth (layers)"),
    ("width", "Width"),
    ("n_experts", "Experts E"),
    ("ffn_ratio", "FFN ratio r"),
    ("n_kv_heads", "KV heads"),
)

SCALES = {"tokens": 1e9}  # in the unit of its label


def thinned(n: int, most: int | None = None) -> Any:
    """At most `most` (`THINNED`) evenly spaced rows, both ends among them, so that huge runs stay drawable."""
    most = THINNED if most is None else most
    return slice(None) if n <= most else np.unique(np.linspace(0, n - 1, most).astype(int))


def frontier_name(outcome: Outcome) -> str:
    """How the run's own frontier is called: exact only where the run covered the whole space."""
    return "exact frontier" if outcome.whole else f"{outcome.study.config.algo} frontier"


def beyond_evidence(outcome: Outcome) -> Evaluations:
    """Evaluated designs within the limits that would be on the frontier were they not outside of the law's evidence; none but where the study marks them."""
    found = outcome.evaluations
    if outcome.study.config.outside != "mark" or EXTRAPOLATION not in found.metrics:
        return found[:0]
    free = replace(found, budgets=outcome.study.problem.limits)
    rows = frontier_rows(free)
    return free[rows[free.metrics[EXTRAPOLATION][rows] > INSIDE]]


class KnownPoint(NamedTuple):
    """A baseline where it stands: its label, two metrics, and whether the law extrapolates there."""

    label: str
    x: float
    y: float
    extrapolates: bool


def baseline_points(outcome: Outcome, across: str, up: str) -> list[KnownPoint]:
    """The baselines whose metrics the study's models cover."""
    law, points = outcome.study.problem.scenario.law, []
    for model in outcome.study.baselines:
        x, y = (baseline_metric(outcome, model.architecture, name) for name in (across, up))
        if x is not None and y is not None:
            points.append(KnownPoint(model.label, x, y, bool(law.extrapolates(model.architecture)[0])))
    return points


def answered_designs(outcome: Outcome) -> list[tuple[Evaluations, list[str]]]:
    """Each picked architecture, one row, and what it answers: your budgets and the applications, no baseline's questions."""
    found: dict[int, tuple[Evaluations, list[str]]] = {}
    for pick in outcome.picks:
        if pick.answer is not None and not pick.question.baseline:
            found.setdefault(int(pick.answer.keys[0]), (pick.answer, []))[1].append(pick.question.label)
    return list(found.values())


def evolving(outcome: Outcome) -> tuple[tuple[str, str], ...]:
    """Parameters that are drawn along a frontier, with their labels; full layers, query heads and tokens where searched."""
    space = outcome.study.problem.space
    further = {
        ("n_full", "Full layers"): space.mixed,
        ("query_dim", "Query size"): space.free_heads,
        ("tokens", "Tokens (B)"): "tokens" in space.settings,
    }
    return (*EVOLVING, *(each for each, searched in further.items() if searched))


def evolution(outcome: Outcome, rows: IntArray | slice, across: str) -> tuple[FloatArray, dict[str, FloatArray]]:
    """A cost of frontier rows in rising order, and the parameters that evolve along it, each (n,)."""
    frontier = outcome.frontier[rows]
    order = np.argsort(frontier.metrics[across], kind="stable")
    architectures = outcome.study.problem.architectures(frontier.genotypes)[order]
    values = {name: getattr(architectures, name) / SCALES.get(name, 1.0) for name, _ in evolving(outcome)}
    return frontier.metrics[across][order], values


def running_median(values: FloatArray) -> FloatArray:
    """Median over a centred window of 15 values or a fiftieth of them, shorter at the ends, (n,)."""
    n = len(values)
    half = min(max(15, n // 50), n) // 2
    ends = (*range(half), *range(max(half, n - half), n))
    smooth = np.array([np.median(values[max(0, i - half) : i + half + 1]) for i in ends])
    if n > 2 * half:
        whole = np.median(np.lib.stride_tricks.sliding_window_view(values, 2 * half + 1), axis=1)
        smooth = np.concatenate([smooth[:half], whole, smooth[half:]])
    return smooth


@dataclass(frozen=True, eq=False)
class Convergence:
    """Distinct evaluations, and what had been reached by then, each (n,): a gap to exact in per cent, or a hypervolume."""

    counts: FloatArray
    values: FloatArray
    to_exact: bool

    @property
    def label(self) -> str:
        """The name of the values, with their unit."""
        return "Hypervolume gap to exact (%)" if self.to_exact else "Hypervolume (own bounds)"


@once
def convergence(outcome: Outcome) -> Convergence | None:
    """How the search approached the exact frontier, or grew; None of a run that solved its space, and where nothing fits."""
    if outcome.study.config.algo == "exact" or len(outcome.frontier) == 0 or outcome.scale is None:
        return None
    exact = None if outcome.exact is None else outcome.exact.frontier.values
    rough = too_many(outcome.frontier.values) or (exact is not None and too_many(exact))
    counts, volumes = volume_over_time(outcome, approximate=rough)
    if exact is None:
        return Convergence(counts, volumes, False)
    gap = 100 * (1 - volumes / outcome.scale.hypervolume(exact, approximate=rough))
    return Convergence(counts, np.maximum(gap, FLOOR), True)


def volume_over_time(outcome: Outcome, *, approximate: bool = False) -> tuple[FloatArray, FloatArray]:
    """Distinct evaluations at geometric checkpoints, and the hypervolume of everything found by then."""
    n = len(outcome.evaluations)
    counts = np.unique(np.geomspace(min(10, n), n, 24).astype(int))
    assert outcome.scale is not None
    volumes = []
    for count in counts:
        first = outcome.evaluations[slice(0, int(count))]
        volumes.append(outcome.scale.hypervolume(first.values[frontier_rows(first)], approximate=approximate))
    return counts.astype(np.float64), np.array(volumes)


HEADER = ("prompt", "prefill_ms", "tpot_ms", "cache_gb", "resident_gb", "fits")
UNSEEN = "The loss law knows no context: what a design recalls of so many tokens, with windows or without, is not in its loss."


@dataclass(frozen=True)
class Curve:
    """One design or model after each prompt of `CONTEXTS`; `label` says whose."""

    label: str
    baseline: bool
    rows: list[AtContext]


def curves(outcome: Outcome) -> list[Curve]:
    """The study's picks, a design once, then the models beside them; none where contexts are not what it is about.

    A model that the latency model does not cover is left out, as it is of the comparison.
    """
    problem = outcome.study.problem
    if outcome.diagnosis is not None or not has_long_contexts(problem):
        return []
    picked = ((", ".join(labels), problem.architectures(row.genotypes)) for row, labels in answered_designs(outcome))
    models = ((model.label, problem.headed(model.architecture)) for model in outcome.study.baselines)
    own = [Curve(label, False, along_contexts(problem, chosen)) for label, chosen in picked]
    return own + [Curve(label, True, rows) for label, model in models if (rows := _covered(problem, model))]


def _covered(problem: Problem, model: Architectures) -> list[AtContext]:
    try:
        return along_contexts(problem, model)
    except ValueError:
        return []


def cells(row: AtContext) -> tuple[str, ...]:
    """One prompt's figures as the columns of `HEADER`."""
    values = (row.prefill_ms, row.tpot_ms, row.cache_gb, row.resident_gb)
    return (f"{row.tokens:,}", *(f"{value:.4g}" for value in values), "yes" if row.fits else "no")
