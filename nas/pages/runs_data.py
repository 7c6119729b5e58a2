"""The data of a page of several runs: each frontier, the exact one they share, and how a frontier is marked."""

from collections.abc import Sequence
from typing import Any

from nas.answer.plot_data import thinned
from nas.pages.embedding import column
from nas.pages.run_data import WORDS, axes_of, metric_of
from nas.pages.runs import MEANING, NamedRun, comparable
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from search_spaces.columns import SHAPE

MOST = 60_000  # designs of all frontiers together
FEWEST = 50  # designs of one frontier, where it has so many


def runs_data(runs: Sequence[NamedRun]) -> dict[str, Any]:
    """Everything that the scripts of a page of several runs need."""
    names = [
        name for name in runs[0].outcome.evaluations.metrics if all(name in r.outcome.evaluations.metrics for r in runs)
    ]
    most = max(FEWEST, MOST // len(runs))
    axes = [
        name if name in names else fallback for name, fallback in zip(axes_of(runs[0].outcome), _USUAL, strict=True)
    ]
    curves = {len(run.outcome.evaluations.objectives) for run in runs} == {2}
    return {
        "metrics": [metric_of(runs[0].outcome, name) for name in names],
        "axes": axes,
        "words": WORDS,
        "curve": axes if curves and all(set(run.outcome.evaluations.objectives) == set(axes) for run in runs) else None,
        "runs": [{"name": r.name, **_members(r.outcome.study.problem, r.outcome.frontier, names, most)} for r in runs],
        "exact": _exact(runs, names, most),
    }


_USUAL = ("total_ms", "loss")


def _members(problem: Problem, frontier: Evaluations, names: Sequence[str], most: int) -> dict[str, Any]:
    kept = frontier[thinned(len(frontier), most)]
    architectures = problem.architectures(kept.genotypes)
    return {
        "n": len(kept),
        "of": len(frontier),
        "metrics": {name: column(kept.metrics[name]) for name in names},
        "shape": {name: column(getattr(architectures, name)) for name in (*SHAPE, *problem.space.further)},
    }


def _exact(runs: Sequence[NamedRun], names: Sequence[str], most: int) -> dict[str, Any] | None:
    """The exact frontier, where one of the runs knows it and all of them have the same."""
    known = next((run.outcome for run in runs if run.outcome.exact is not None), None)
    if known is None or known.exact is None or not comparable(runs, (*MEANING, "budgets")):
        return None
    problem = known.study.problem
    genotypes = known.exact.frontier.genotypes
    return _members(problem, problem.evaluate(genotypes[thinned(len(genotypes), most)]), names, most)
