"""Commands to run next, and why; every limit in them is one that opens a design of this run."""

from pathlib import Path

import numpy as np

from nas.answer.outcome import Outcome
from nas.problem.diagnosis import Diagnosis, at_least
from nas.problem.problem import METRIC_ORDER
from nas.terminal.doors import command
from objectives.display_text import in_a_command

COSTS = METRIC_ORDER[2:]  # all but the loss


def next_steps(outcome: Outcome, folder: Path) -> list[tuple[str, str]]:
    """Commands to run next, and why; every limit in them is one that opens a design of this run."""
    if len(outcome.evaluations) and not outcome.evaluations.ok.any():
        return []
    steps = []
    if outcome.diagnosis is None:
        steps.append(
            (f"{command('select')} {in_a_command(folder)} --budget {tighter(outcome)}", "within a tighter budget")
        )
        steps.append((f"{command('explain')} {in_a_command(folder)} --select knee", "where time and loss come from"))
    elif outcome.diagnosis.together > 0 and (opening := relaxed(outcome.diagnosis)):
        steps.append(
            (
                f"{command('run')} --config {in_a_command(folder / 'config.yaml')} {opening}",
                "relax until a design fits",
            )
        )
    if outcome.diagnosis is not None and (smaller := outcome.diagnosis.vocabulary):
        again = f"{command('run')} --config {in_a_command(folder / 'config.yaml')} --vocabulary {smaller.size}"
        steps.append((again, "a vocabulary at which a design fits"))
    evaluated, size = len(outcome.evaluations), outcome.study.problem.space.size
    proved = outcome.diagnosis_covers_space and outcome.diagnosis is not None and outcome.diagnosis.together > 0
    if outcome.study.config.algo != "exact" and evaluated < size and not proved:
        more = min(2 * max(evaluated, 1), size)
        steps.append((f"{command('run')} --resume {in_a_command(folder)} --evaluations {more}", "search on"))
    return steps


def tighter(outcome: Outcome) -> str:
    """A budget at the middle of the frontier, as short as it can be written and still leave designs out."""
    frontier = outcome.frontier
    metric = next((name for name in frontier.objectives if name in COSTS), "total_ms")
    values = np.sort(frontier.metrics[metric])
    middle = float(values[(len(values) - 1) // 2])
    written = [at_least(middle, digits) for digits in (2, 3, 4, 5)]
    return f"{metric}={next((limit for limit in written if float(limit) < values[-1]), at_least(middle))}"


def relaxed(diagnosis: Diagnosis) -> str:
    """The least relaxation of one budget that opens a design, else of all of them; "" where none is known to."""
    alone = [r for r in diagnosis.relaxations if r.limit is not None and r.limit > r.budget.limit]
    if alone:
        least = min(alone, key=lambda r: (r.limit or 0.0) / r.budget.limit)
        return f"--budget {least.budget.metric}={at_least(least.limit or 0.0)}"
    if not np.isfinite(diagnosis.together):
        return ""
    factor = 1.0 + diagnosis.together
    missed = {b.metric for b in diagnosis.closest.budgets if diagnosis.closest.metrics[b.metric][0] > b.limit}
    every = [(r.budget.metric, at_least(factor * r.budget.limit)) for r in diagnosis.relaxations]
    return " ".join(f"--budget {metric}={limit}" for metric, limit in every if metric in missed)
