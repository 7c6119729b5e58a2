"""Reads what a strategy learned from the files of its run; no strategy is imported."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from nas.answer.past_run import RecordedRun
from nas.errors import UsageError
from nas.problem.problem import Problem
from nas.record.candidates import read_candidates, read_numbers, read_rows
from nas.search.strategy import CorrectedPick, LeftOut, Lessons
from objectives.display_text import read_cell
from search_spaces.arrays import FloatArray, IntArray

MOST, LONGEST = 100, 2_000  # sentences, and characters of one, that a file of the folder may bring along
COLUMNS = ("value", "left_out", "by_prior", "known")


def read_corrections(run: RecordedRun, problem: Problem, summary: Mapping[str, Any]) -> Lessons | None:
    """The sentences, the picks and the values left out; None where the summary has no sentences.

    The designs of corrected.csv and the files of corrections are not read. A table that is missing or was altered is left out.
    """
    learned, figures = summary.get("lessons"), summary.get("learned")
    if not isinstance(learned, list):
        return None
    sentences = tuple(str(line)[:LONGEST] for line in learned[:MOST])
    nothing = problem.space.genotypes(np.zeros(0, dtype=np.int64))
    figures, folder = figures if isinstance(figures, Mapping) else {}, run.run.path
    picks, left_out = _picks(folder / "corrected_picks.csv", problem), _left_out(folder / "learned.csv", problem)
    return Lessons(sentences, figures, nothing, {}, left_out, picks)


def _picks(path: Path, problem: Problem) -> tuple[CorrectedPick, ...]:
    """The answers of the whole space; none where a design is not in it."""
    if not path.is_file():  # nor is a pipe waited for
        return ()
    with suppress(UsageError):
        (now, questions), (before, _) = read_candidates(path), read_candidates(path, "analytic_")
        keys = np.stack([problem.space.find(now), problem.space.find(before)], axis=1)
        if (keys >= 0).all():
            numbers = read_numbers(path)
            rows = zip(questions, keys, strict=True)
            return tuple(_pick(question, problem, of, numbers, row) for row, (question, of) in enumerate(rows))
    return ()


def _pick(
    question: str, problem: Problem, keys: IntArray, numbers: Mapping[str, FloatArray], row: int
) -> CorrectedPick:
    def number(name: str) -> float:
        return float(numbers[name][row]) if name in numbers else float("nan")

    expected = [name for name in numbers if {f"{name}_low", f"{name}_high"} <= set(numbers)]
    better = number("better")
    return CorrectedPick(
        question,
        problem.space.genotypes(keys),
        number("evaluated") == 1,
        {name: (number(name), number(f"{name}_low"), number(f"{name}_high")) for name in expected},
        (number("holds"), number("analytic_holds")),
        None if np.isnan(better) else better,
    )


def _left_out(path: Path, problem: Problem) -> dict[str, LeftOut]:
    """The values that taught each metric of the study, beside what all others say of them."""
    found: dict[str, LeftOut] = {}
    if not path.is_file():
        return found
    with suppress(UsageError):
        rows, numbers = read_rows(path), read_numbers(path)
        names = np.array([read_cell(str(row.get("metric"))) for row in rows], dtype=object)
        logs = np.array([row.get("scale") == "log" for row in rows])
        own = {metric.name for metric in (*problem.objectives, *problem.functions)}
        for name in (name for name in dict.fromkeys(names.tolist()) if name in own):
            of = names == name
            columns = [numbers.get(column, np.full(len(of), np.nan))[of] for column in COLUMNS]
            if (part := _part(columns, log_scale=bool(logs[of].all()))) is not None:
                found[name] = part
    return found


def _part(columns: list[FloatArray], *, log_scale: bool) -> LeftOut | None:
    """One metric's values; None where one is missing or has no logarithm."""
    values, expected, by_prior, known = columns
    line = by_prior if np.isfinite(by_prior).all() else None
    told = np.concatenate([values, expected, values if line is None else line])
    if not (np.isfinite(told).all() and np.isfinite(known).all() and (told > 0).all() | (not log_scale)):
        return None
    return LeftOut(values, expected, line, log_scale, int((known == 1).sum()))
