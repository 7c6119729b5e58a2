"""Sentences, tables and columns of what a strategy learned: the answers that changed and how sure each is, values left out."""

from typing import Any

import numpy as np

from nas.answer.design_words import describe
from nas.answer.sureness import chance
from nas.problem.problem import Problem
from nas.search.strategy import CorrectedPick, Lessons
from search_spaces.arrays import AnyArray

HEADER = (
    "within",
    "architecture",
    "expected, and 90 % of measurements",
    "holds",
    "by the formulas alone",
    "holds",
    "better",
)
EXPLAINED = (
    "holds: the probability that one measurement of every limited metric is within its limit, and that nothing fails. "
    "better: that the loss is truly lower than that of the formulas' pick."
)


def learned_lines(problem: Problem, lessons: Lessons) -> list[str]:
    """Everything that was learned, a sentence each."""
    return [*lessons.said, *_changed(problem, lessons.picks)]


def _changed(problem: Problem, picks: tuple[CorrectedPick, ...]) -> list[str]:
    """How many answers differ from those of the formulas alone, and the first that does."""
    if not picks:
        return []
    changed = [pick for pick in picks if pick.changed]
    verb = "differs" if len(changed) == 1 else "differ"
    text = f"Picks of the whole space (corrected_picks.csv): {len(changed)} of {len(picks)} {verb} from those of the formulas alone"
    if not changed:
        return [f"{text}."]
    now, before = _designs(problem, changed[0])
    better = "" if (p := changed[0].better) is None else f", better with {chance(p)}"
    holds, held = changed[0].holds
    asked = changed[0].question[:1].upper() + changed[0].question[1:]
    return [
        f"{text}. {asked}: {now} ({_expected(changed[0])}; holds with {chance(holds)}{better}) "
        f"instead of {before} (holds with {chance(held)})."
    ]


def _designs(problem: Problem, pick: CorrectedPick) -> tuple[str, str]:
    both = problem.architectures(pick.genotypes)
    return describe(both[:1]), describe(both[1:])


def _expected(pick: CorrectedPick) -> str:
    """`loss 3.151, board:latency_ms 97.8 (95.1 to 100.6)`; what is known exactly has no ends."""
    return ", ".join(
        f"{name} {value:.4g}" + (f" ({low:.4g} to {high:.4g})" if low < high else "")
        for name, (value, low, high) in pick.expected.items()
    )


def pick_rows(problem: Problem, lessons: Lessons) -> list[list[str]]:
    """The answers as rows of a table whose head is `HEADER`."""
    rows = []
    for pick in lessons.picks:
        now, before = _designs(problem, pick)
        better = "" if pick.better is None else chance(pick.better)
        same = "the same" if not pick.changed else before
        holds, held = map(chance, pick.holds)
        rows.append([pick.question, now, _expected(pick), holds, same, held, better])
    return rows


def corrected_picks(problem: Problem, lessons: Lessons) -> dict[str, Any]:
    """The answers as columns: the corrected design, what is expected of it, the formulas' design beside it."""
    picks = lessons.picks
    genotypes = np.concatenate([pick.genotypes for pick in picks])
    designs = problem.architectures(genotypes)
    now, before = designs[np.arange(0, len(designs), 2)], designs[np.arange(1, len(designs), 2)]
    found: dict[str, Any] = {"question": [pick.question for pick in picks]}
    found |= {"changed": [int(pick.changed) for pick in picks], "evaluated": [int(pick.evaluated) for pick in picks]}
    found |= now.columns()
    for name in picks[0].expected:
        for place, ending in enumerate(("", "_low", "_high")):
            found[f"{name}{ending}"] = [pick.expected[name][place] for pick in picks]
    found |= {"holds": [pick.holds[0] for pick in picks], "analytic_holds": [pick.holds[1] for pick in picks]}
    found["better"] = [float("nan") if pick.better is None else pick.better for pick in picks]
    return found | {f"analytic_{name}": column for name, column in before.columns().items()}


def left_out_columns(lessons: Lessons) -> dict[str, AnyArray | list[str]]:
    """A row per value that taught: its metric and scale, whether it was known before, and what all others say of it."""
    parts = lessons.left_out
    return {
        "metric": [name for name, part in parts.items() for _ in part.values],
        "scale": ["log" if part.log_scale else "linear" for part in parts.values() for _ in part.values],
        "known": np.concatenate([np.arange(len(part.values)) < part.known for part in parts.values()]).astype(np.int64),
        "value": np.concatenate([part.values for part in parts.values()]),
        "left_out": np.concatenate([part.expected for part in parts.values()]),
        "by_prior": np.concatenate(
            [np.full(len(p.values), np.nan) if p.by_prior is None else p.by_prior for p in parts.values()]
        ),
    }
