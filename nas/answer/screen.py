"""The answer of a run on the screen: frontier, picks, baselines, distance to exact, limits, next steps."""

from itertools import cycle
from pathlib import Path

import numpy as np

from nas.answer.outcome import Outcome
from nas.answer.pick_tables import show_baselines, show_picks
from nas.answer.sentences import baseline_metric, certainty, headline, limits, plot_axes, reading
from nas.frontier.blind_axes import blind_lines
from nas.frontier.diagnosis import Diagnosis, at_least, lines
from nas.problem.evaluations import Evaluations
from nas.problem.problem import METRIC_ORDER
from nas.terminal.console import say
from nas.terminal.scatter import Series, scatter

COSTS = METRIC_ORDER[2:]  # all but the loss


def show(outcome: Outcome, folder: Path) -> None:
    """Print everything a user needs from a finished run."""
    study = outcome.study
    for line in headline(study):
        say(line)
    say()
    if outcome.diagnosis is not None:
        for line in lines(outcome.diagnosis, outcome.diagnosis_covers_space):
            say(line)
    else:
        _show_frontier(outcome)
        for line in blind_lines(study.problem.scenario.law, outcome.blind):
            say(line)
        show_picks(outcome)
        show_baselines(outcome)
    say()
    for line in [*certainty(outcome), *reading(outcome), *limits(outcome)]:
        say(line)
    say()
    plots = ", plots/" if (folder / "plots").is_dir() else ""
    say(f"Files: {folder}/ (frontier.csv, picks.csv, evaluations.csv, evaluations.sqlite, summary.json{plots})")
    for line in next_steps(outcome, folder):
        say(line)


def _show_frontier(outcome: Outcome) -> None:
    problem, frontier = outcome.study.problem, outcome.frontier
    axes = plot_axes(frontier.objectives)
    if axes is None:
        return
    across, up = axes
    log_x = next(o for o in problem.objectives if o.name == across).log_scale
    series = [Series("frontier", "·", frontier.metrics[across], frontier.metrics[up])]
    applications = [p.answer for p in outcome.picks if p.answer is not None and not p.question.baseline]
    series.append(Series("pick", "o", *(_metric(applications, name) for name in (across, up))))
    for known, mark in zip(outcome.study.baselines, cycle("◆◇▲△■□"), strict=False):
        values = [baseline_metric(outcome, known.architecture, name) for name in (across, up)]
        if None not in values:
            series.append(Series(known.label, mark, *(np.array([v], dtype=np.float64) for v in values)))
    for line in scatter(series, across, up, log_x=log_x):
        say(line)
    say()


def _metric(rows: list[Evaluations], name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([row.metrics[name][0] for row in rows], dtype=np.float64)


def next_steps(outcome: Outcome, folder: Path) -> list[str]:
    """What to type next; every limit in it is one that opens a design of this run."""
    if len(outcome.evaluations) and not outcome.evaluations.ok.any():
        return []
    steps = []
    if outcome.diagnosis is None:
        steps.append(
            (f"python -m nas.select {folder} --budget {tighter(outcome)}", "candidates within a tighter budget")
        )
        steps.append((f"python -m nas.explain {folder} --select knee", "where its time, bytes and loss come from"))
    elif opening := relaxed(outcome.diagnosis):
        steps.append((f"python -m nas.run --config {folder}/config.yaml {opening}", "relax until a design fits"))
    evaluated, size = len(outcome.evaluations), outcome.study.problem.space.size
    if outcome.study.config.algo != "exact" and evaluated < size and not outcome.diagnosis_covers_space:
        more = min(2 * max(evaluated, 1), size)
        steps.append((f"python -m nas.run --resume {folder} --evaluations {more}", "search on"))
    width = max((len(step) for step, _ in steps), default=0)
    return [f"{'Next:' if not i else '':5} {step:<{width}}   {why}" for i, (step, why) in enumerate(steps)]


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
    every = [(r.budget.metric, at_least(factor * r.budget.limit)) for r in diagnosis.relaxations]
    return " ".join(f"--budget {metric}={limit}" for metric, limit in every)
