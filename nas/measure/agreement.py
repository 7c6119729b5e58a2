"""Predicted against measured for candidates of a run, and which picks measurement would change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.answer.past_run import RecordedRun
from search_spaces.arrays import FloatArray, IntArray

TIMES = ("prefill_ms", "decode_ms", "total_ms")


@dataclass(frozen=True, eq=False)
class Agreement:
    """Candidates that were measured: names, loss, and milliseconds of `TIMES`, (n, 3) each."""

    names: list[str]
    loss: FloatArray
    predicted: FloatArray
    measured: FloatArray

    def changes(self, questions: Mapping[str, tuple[str, float]]) -> list[str]:
        """Per question (metric ≤ limit) whose pick among these differs, what measurement says instead."""
        lines = []
        for label, (metric, limit) in questions.items():
            column = TIMES.index(metric)
            by_model, by_clock = (self._pick(times[:, column], limit) for times in (self.predicted, self.measured))
            if by_model != by_clock:
                took = "" if by_model is None else f", which takes {self.measured[by_model, column]:.4g} ms measured"
                lines.append(
                    f"{label} ({metric} <= {limit:g}): {self._name(by_clock)} instead of {self._name(by_model)}{took}"
                )
        return lines

    def _pick(self, ms: FloatArray, limit: float) -> int | None:
        within = ms <= limit
        return int(np.argmin(np.where(within, self.loss, np.inf))) if within.any() else None

    def _name(self, row: int | None) -> str:
        return "none" if row is None else self.names[row]


def agreement(
    run: RecordedRun, rows: IntArray, lines: Sequence[dict[str, Any]], output_tokens: int
) -> Agreement | None:
    """The run's predictions of its rows beside the medians of the record; None where nothing was measured."""
    names = [str(name) for name in run.columns(rows)["id"]]
    known, measured = [], []
    for i, name in enumerate(names):
        good = [line["result"] for line in lines if line["id"] == name and line["state"] == "ok"]
        if good:
            prefill, step = (
                float(np.median([ms for r in good for ms in r[key]])) for key in ("prefill_ms", "decode_ms")
            )
            known.append(i)
            measured.append((prefill, step * output_tokens, prefill + step * output_tokens))
    if not known:
        return None
    metrics = {name: column[rows][known] for name, column in run.evaluations.metrics.items()}
    predicted = np.column_stack([metrics[name] for name in TIMES])
    return Agreement([names[i] for i in known], metrics["loss"], predicted, np.array(measured))


def questions(run: RecordedRun) -> dict[str, tuple[str, float]]:
    """The run's applications and budgets that are about time."""
    resolved = run.run.resolved
    asked = {label: next(iter(limit.items())) for label, limit in resolved["applications"].items()}
    asked |= {f"budget {metric}": (metric, limit) for metric, limit in resolved["budgets"].items()}
    return {label: (metric, float(limit)) for label, (metric, limit) in asked.items() if metric in TIMES}
