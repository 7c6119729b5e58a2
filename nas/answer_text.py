"""The answer of a run on the screen: frontier, picks, baselines, distance to exact, limits, next steps."""

import math
from itertools import cycle
from pathlib import Path

import numpy as np

from nas.assemble import Study
from nas.console import say, table
from nas.diagnosis import lines
from nas.evaluations import Evaluations
from nas.outcome import Outcome
from nas.picks import Pick
from nas.scatter import Series, scatter
from objectives.law import Law
from search_spaces.architectures import Architectures

WORKLOAD_WORDS = {"operator": "operator roofline", "closed_form": "closed-form latency"}


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
        _show_picks(outcome)
        _show_baselines(outcome)
    say()
    for line in [*certainty(outcome), *reading(outcome), *limits(outcome)]:
        say(line)
    say()
    say(f"Files: {folder}/ (frontier.csv, picks.csv, evaluations.csv, evaluations.sqlite, summary.json, plots/)")
    for line in next_steps(outcome, folder):
        say(line)


def headline(study: Study) -> list[str]:
    """What was searched, on what, under which budgets."""
    problem, c = study.problem, study.config
    device = problem.scenario.device
    mode = f"@{device.mode}" if device.mode else ""
    budgets = ", ".join(str(b) for b in problem.budgets) or "no budgets"
    objectives = ", ".join(o.name for o in problem.objectives)
    head = f", vocabulary {c.vocabulary:,}" if c.vocabulary else ""
    return [
        f"{c.algo}, seed {c.seed}: {problem.space.name} space, {problem.space.size:,} architectures",
        f"{device.name}{mode}, {c.precision}, {WORKLOAD_WORDS[c.latency]}, {c.input_tokens:,} in / {c.output_tokens:,} out, batch {c.batch}{head}; "
        f"{study.calibration_note}",
        f"Minimise {objectives}; {budgets}",
    ]


def plot_axes(names: tuple[str, ...]) -> tuple[str, str] | None:
    """Which two objectives a plot shows: a cost across, the loss (or the first) up."""
    if len(names) < 2:
        return None
    up = next((n for n in names if n in ("loss", "perplexity")), names[0])
    across = next(n for n in names if n != up)
    return across, up


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


def baseline_metric(outcome: Outcome, architecture: Architectures, name: str) -> float | None:
    """A metric of a baseline in the study's scenario; None where the model or a user's function does not cover it."""
    problem = outcome.study.problem
    if name in {f.name for f in problem.functions}:
        return None
    try:
        return float(problem.assess(problem.dressed(architecture))[name][0])
    except ValueError:
        return None


def describe(architectures: Architectures) -> str:
    """One architecture in a line."""
    a = {name: column[0] for name, column in architectures.columns().items()}
    experts = "dense" if a["n_experts"] == 1 else f"E {a['n_experts']} K {a['top_k']}"
    return f"l {a['depth']}, d {a['width']}, {experts}, r_single {a['expert_ffn_ratio']:.4g}, n_kv {a['n_kv_heads']} (gqa {a['gqa']:.4g})"


def _show_picks(outcome: Outcome) -> None:
    """Lowest loss within each application's budget, and the time a real device would show."""
    pairs = [(p, ms) for p, ms in zip(outcome.picks, outcome.device_ms, strict=True) if not p.question.baseline]
    if not pairs:
        return
    say(f"Lowest predicted loss within each application's budget (device time: preset device, {outcome.device_note})")
    table(
        ("application", "budget", "loss", "takes", "device time", "parameters", "active", "memory", "architecture"),
        [_pick_row(outcome, pick, ms) for pick, ms in pairs],
        left=2,
    )
    for line in regret_lines(outcome):
        say(line)
    say()


def regret_lines(outcome: Outcome) -> list[str]:
    """What another evaluated design could gain over each pick, if the law carries draws."""
    known = [
        f"{p.question.label} {low:.4f} to {high:.4f}"
        for p, (low, high) in ((p, r) for p, r in zip(outcome.picks, outcome.regrets, strict=True) if r is not None)
        if not p.question.baseline
    ]
    return [f"Regret of the picks over 90 % of the law's draws, nats: {'; '.join(known)}."] if known else []


def _pick_row(outcome: Outcome, pick: Pick, device_ms: float | None) -> list[str]:
    question, answer = pick.question, pick.answer
    assert question.budget is not None
    if answer is None:
        return [question.label, str(question.budget), "none fits", "", "", "", "", "", ""]
    metric, m = question.budget.metric, {name: column[0] for name, column in answer.metrics.items()}
    architectures = outcome.study.problem.architectures(answer.genotypes)
    mark = "*" if outcome.study.problem.scenario.law.extrapolates(architectures)[0] else ""
    shown = "" if device_ms is None else f"{device_ms:.4g} ms"
    return [
        question.label,
        str(question.budget),
        f"{m['loss']:.4f}{mark}",
        f"{m[metric]:.2f}",
        shown,
        count(m["params_total"]),
        count(m["params_active"]),
        f"{m['memory_gb']:.3g} GB",
        describe(architectures),
    ]


def count(n: float) -> str:
    """`1.76 G`, `252 M`."""
    if not math.isfinite(n):
        return "unknown"
    return f"{n / 1e9:.3g} G" if n >= 1e9 else f"{n / 1e6:.3g} M"


def _show_baselines(outcome: Outcome) -> None:
    """The pick that is as fast as each published model, with and without the LM head on both."""
    law = outcome.study.problem.scenario.law
    for known in outcome.study.baselines:
        pairs = [
            (p, ms)
            for p, ms in zip(outcome.picks, outcome.device_ms, strict=True)
            if p.question.baseline == known.label
        ]
        if not pairs:
            continue
        loss = float(law.loss(known.architecture)[0])
        mark = "*" if law.extrapolates(known.architecture)[0] else ""
        say(f"At most as slow as {known.label} (predicted loss {loss:.4f}{mark}, perplexity {math.exp(loss):.2f})")
        rows = [_baseline_row(outcome, pick, ms, loss) for pick, ms in pairs]
        table(
            ("compared", "its total_ms", "pick's", "device time", "loss", "perplexity", "change", "architecture"), rows
        )
        say()


def _baseline_row(outcome: Outcome, pick: Pick, device_ms: float | None, loss: float) -> list[str]:
    assert pick.question.budget is not None
    label, limit = pick.question.label.partition(", ")[2], f"{pick.question.budget.limit:.2f}"
    if pick.answer is None:
        return [label, limit, "none fits", "", "", "", "", ""]
    m = {name: float(column[0]) for name, column in pick.answer.metrics.items()}
    change = f"{100 * (math.exp(m['loss'] - loss) - 1):+.1f} %"
    shape = describe(outcome.study.problem.architectures(pick.answer.genotypes))
    shown = "" if device_ms is None else f"{device_ms:.4g} ms"
    return [
        label,
        limit,
        f"{m['total_ms']:.2f}",
        shown,
        f"{m['loss']:.4f}",
        f"{math.exp(m['loss']):.2f}",
        change,
        shape,
    ]


def certainty(outcome: Outcome) -> list[str]:
    """How sure the search is that it found the frontier."""
    evaluated = f"{len(outcome.evaluations):,} distinct architectures evaluated ({outcome.asked:,} asked), stopped: {outcome.stop_reason}."
    failed = int((~outcome.evaluations.ok).sum())
    said = [evaluated] + ([f"{failed:,} evaluations failed; their reasons are in evaluations.csv."] if failed else [])
    if outcome.study.config.algo == "exact":
        return [
            *said,
            f"Exact: the frontier of all {outcome.covered:,} architectures holds {len(outcome.frontier):,}; {outcome.how}.",
        ]
    if outcome.exact is not None and outcome.distance is None:
        return [
            *said,
            f"None of all {outcome.study.problem.space.size:,} architectures of the space is feasible: no search can find one.",
        ]
    if outcome.distance is None:
        why = (
            "a user's function cannot be enumerated"
            if not outcome.study.problem.analytic
            else "it takes more than seconds (--algo exact solves it)"
        )
        return [*said, f"Frontier: {len(outcome.frontier):,} architectures; distance to the exact one unknown, {why}."]
    d = outcome.distance
    return [
        *said,
        f"Against the exact frontier of all {outcome.study.problem.space.size:,}: {d.found} of {d.exact} found, hypervolume gap "
        f"{100 * d.gap:.2g} % (log scale), IGD+ {d.igd_plus:.2g}, additive epsilon {d.epsilon:.2g}.",
    ]


def reading(outcome: Outcome) -> list[str]:
    """One sentence about what the frontier is made of."""
    frontier = outcome.frontier
    if len(frontier) < 2:
        return []
    a = outcome.study.problem.architectures(frontier.genotypes)
    sparse = 100 * float((a.n_experts > 1).mean())
    spread = f"depth {a.depth.min()} to {a.depth.max()} (median {np.median(a.depth):.0f}), width {a.width.min()} to {a.width.max()} (median {np.median(a.width):.0f})"
    top1 = 100 * float((a.top_k == 1).mean())
    return [
        f"Reading: {sparse:.0f} % of the frontier is sparse, {top1:.0f} % routes to one expert; {spread}; median FFN ratio {np.median(a.ffn_ratio):.3g}."
    ]


def limits(outcome: Outcome) -> list[str]:
    """What the loss law can be trusted for."""
    law = outcome.study.problem.scenario.law
    if len(outcome.frontier) == 0:
        return []
    outside = int(law.extrapolates(outcome.study.problem.architectures(outcome.frontier.genotypes)).sum())
    tokens = f" on {law.tokens / 1e9:g} B tokens" if law.tokens else ""
    uncertainty = unknown_uncertainty(law) if law.residual_sd is None else f"residual sd {law.residual_sd:.3g} nats"
    ranges = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in law.fitted_on.items())
    beyond = f"{outside} of the frontier lie outside (*)" if outside else "the frontier lies inside"
    return [
        f"Limits: losses are predictions of law {law.name}{tokens}, {uncertainty}, fitted on {ranges}; {beyond}; * extrapolates.",
        *sureness(outcome),
    ]


def unknown_uncertainty(law: Law) -> str:
    """That nothing is known, and what a published R² would imply."""
    sd = law.implied_residual_sd
    return "uncertainty unknown" + (
        f" (its R² implies a residual sd near {sd:g}: --set residual_sd={sd:g})" if sd else ""
    )


def sureness(outcome: Outcome) -> list[str]:
    """How sure the law's draws are of the frontier's members."""
    if outcome.optimal is None:
        return []
    p, draws = outcome.optimal, len(outcome.study.problem.scenario.law.drawn)
    return [
        f"Over the law's {draws} draws a member of this frontier is Pareto-optimal among the {len(outcome.evaluations):,} evaluated with probability {np.median(p):.2f} (median); "
        f"{int((p >= 0.5).sum())} of {len(p)} with at least 0.5 (frontier.csv). Draws hold the coefficients' uncertainty, not the form's."
    ]


def next_steps(outcome: Outcome, folder: Path) -> list[str]:
    """What to type next."""
    if len(outcome.frontier) == 0:
        return [
            f"Next: relax a budget, for example python -m nas.run --config {folder}/config.yaml --budget METRIC=LIMIT"
        ]
    steps = [
        f"Next: python -m nas.select {folder} --budget total_ms=50      candidates within another budget",
        f"      python -m nas.explain {folder} --select knee           where its time, bytes and loss come from",
    ]
    if outcome.study.config.algo != "exact":
        steps.append(
            f"      python -m nas.run --resume {folder} --evaluations {2 * max(len(outcome.evaluations), 1)}   search on"
        )
    return steps
