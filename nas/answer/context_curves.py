"""Time, cache and memory of a study's picks and of the models beside them along the context."""

from dataclasses import dataclass

from nas.answer.outcome import Outcome
from nas.problem.problem import Problem
from nas.problem.steps import AtContext, along_contexts, has_long_contexts
from search_spaces.architectures import Architectures

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
    picked: dict[int, tuple[list[str], Architectures]] = {}
    for pick in outcome.picks:
        if pick.answer is not None and not pick.question.baseline:
            chosen = problem.architectures(pick.answer.genotypes)
            picked.setdefault(int(pick.answer.keys[0]), ([], chosen))[0].append(pick.question.label)
    found = [Curve(", ".join(labels), False, along_contexts(problem, chosen)) for labels, chosen in picked.values()]
    return found + [
        Curve(known.label, True, rows)
        for known in outcome.study.baselines
        if (rows := _covered(problem, problem.headed(known.architecture)))
    ]


def _covered(problem: Problem, model: Architectures) -> list[AtContext]:
    try:
        return along_contexts(problem, model)
    except ValueError:
        return []


def cells(row: AtContext) -> tuple[str, ...]:
    """One prompt's figures as the columns of `HEADER`."""
    values = (row.prefill_ms, row.tpot_ms, row.cache_gb, row.resident_gb)
    return (f"{row.tokens:,}", *(f"{value:.4g}" for value in values), "yes" if row.fits else "no")
