"""The work of `select`: rows of a run chosen, shown and written as a candidate file."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nas.answer_text import count, describe
from nas.candidates import write_candidates
from nas.console import notice, say, say_json, table
from nas.diagnosis import diagnose, lines
from nas.errors import InfeasibleError
from nas.recorded_run import RecordedRun, recorded_run
from nas.selection import check_form, parse_budget, select
from search_spaces.arrays import IntArray


def choose(
    path: Path, how: str, budgets: list[str], out: Path | None, shown: int, *, quiet: bool, as_json: bool
) -> None:
    """Choose, show and write.

    Raises:
        UsageError: an unknown form, metric or folder.
        InfeasibleError: nothing fits; the diagnosis was printed.
    """
    check_form(how)
    run = recorded_run(path)
    names = tuple(run.evaluations.metrics)
    removed = {text.partition("=")[0].strip() for text in budgets if text.partition("=")[2].strip() == "none"}
    extra = tuple(parse_budget(text, names) for text in budgets if text.partition("=")[0].strip() not in removed)
    kept = tuple(b for b in run.evaluations.budgets if b.metric not in {e.metric for e in extra} | removed)
    run = replace(run, evaluations=replace(run.evaluations, budgets=(*kept, *extra)))
    rows = select(run.evaluations, how, run.scale()) if run.evaluations.feasible.any() else np.zeros(0, dtype=np.int64)
    if len(rows) == 0:
        raise InfeasibleError(_why(run, how))
    if out is not None:
        write_candidates(out, run.columns(rows))
    if as_json:
        columns = run.columns(rows)
        say_json([{name: _plain(column[i]) for name, column in columns.items()} for i in range(len(rows))])
    else:
        _show(run, rows, shown)
    if out is not None and not quiet:
        notice(f"{len(rows):,} candidates written to {out}")


def _why(run: RecordedRun, how: str) -> str:
    if how.startswith("budget:"):
        budget = parse_budget(how.partition(":")[2], tuple(run.evaluations.metrics))
        run = replace(run, evaluations=replace(run.evaluations, budgets=(*run.evaluations.budgets, budget)))
    return "\n".join(lines(diagnose(run.evaluations), run.whole_space))


def _show(run: RecordedRun, rows: IntArray, shown: int) -> None:
    outside = "" if run.whole_space else f" of {len(run.evaluations):,} evaluated (of {run.space.size:,} in the space)"
    say(f"{len(rows):,} chosen{outside}")
    some = rows[np.unique(np.linspace(0, len(rows) - 1, min(shown, len(rows))).astype(int))]
    metrics = run.evaluations.metrics
    extra = [
        n
        for n in (*run.evaluations.objectives, *(b.metric for b in run.evaluations.budgets))
        if n not in ("loss", "total_ms", "memory_gb")
    ]
    names = list(dict.fromkeys(["loss", "total_ms", "memory_gb", *extra]))
    architectures = run.architectures(some)
    body = [
        [
            str(row),
            *(f"{metrics[name][row]:.5g}" for name in names),
            count(metrics["params_total"][row]),
            describe(architectures[i : i + 1]),
        ]
        for i, row in enumerate(some.tolist())
    ]
    table(("index", *names, "parameters", "architecture"), body)
    if len(some) < len(rows):
        say(f"  {len(some)} of {len(rows):,} shown, evenly spaced; --rows shows more, --out writes all")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
