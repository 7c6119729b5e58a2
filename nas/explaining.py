"""The work of `explain`: which architecture, in which study, and the printed or JSON answer."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nas.answer_text import count, describe, headline
from nas.assemble import Study, assemble
from nas.baselines import architecture_from, baseline
from nas.console import say, say_json, table
from nas.decomposition.search import Exceeded
from nas.errors import InfeasibleError, UsageError
from nas.explanation import Explanation, OperatorRow, explained
from nas.gain_text import described, gain_lines
from nas.gains import Gains, gains
from nas.layers import layered
from nas.recorded_run import recorded_run
from nas.recorded_study import study_of
from nas.selection import check_form, parse_budget, select
from search_spaces.architectures import Architectures


@dataclass(frozen=True)
class Request:
    """What `explain` was asked for."""

    run: Path | None
    how: str
    index: int | None
    model: str | None
    architecture: str | None
    config: str | None
    settings: list[str]
    flags: Mapping[str, Any]
    json: bool


def explain(request: Request) -> None:
    """Find the architecture, explain it, print it.

    Raises:
        UsageError: not exactly one architecture named, or unknown names.
        InfeasibleError: a run without a feasible architecture to choose.
    """
    named = [name for name in ("run", "model", "architecture") if getattr(request, name) is not None]
    if len(named) != 1:
        raise UsageError(
            f"explain: expected one of a run folder, --model and --architecture, got {' and '.join(named) or 'none'}; give one"
        )
    study, chosen, label = _from_run(request, request.run) if request.run is not None else _named(request)
    try:
        explanation = explained(study.problem, chosen)
    except ValueError as error:
        raise UsageError(str(error)) from None
    found, why_not = _gains(study, request.how)
    if request.json:
        say_json({"architecture": label, **asdict(explanation), "gains": None if found is None else described(found)})
        return
    _show(study, chosen, label, explanation)
    if found is not None:
        for line in gain_lines(study.problem, found, float(explanation.metrics["loss"])):
            say(line)
    elif why_not:
        say(f"\nWhat more would buy is not said: {why_not}")


def _gains(study: Study, how: str) -> tuple[Gains | None, str]:
    """What the study's budgets, and the one that chose, hold back; or why that cannot be said."""
    problem = study.problem
    if how.startswith("budget:"):
        budget = parse_budget(how.partition(":")[2], problem.metric_names)
        others = tuple(b for b in problem.budgets if b.metric != budget.metric)
        problem = replace(problem, budgets=(*others, budget))
    try:
        return (gains(problem), "") if problem.budgets else (None, "")
    except UsageError as error:
        return None, str(error)
    except Exceeded:
        return None, f"exact answers in the {problem.space.name} space would take more than seconds"


def _named(request: Request) -> tuple[Study, Architectures, str]:
    raw, origins = layered({"algo": "random", **request.flags}, request.settings, request.config)
    study = assemble({**raw, "params": {}}, origins)
    if request.model is None:
        assert request.architecture is not None
        chosen = architecture_from(request.architecture)
        return study, chosen if chosen.vocabulary.any() else study.problem.dressed(chosen), "Architecture"
    known = baseline(request.model)
    return study, study.problem.dressed(known.architecture), known.label


def _from_run(request: Request, path: Path) -> tuple[Study, Architectures, str]:
    """An architecture of a run, in the run's study; a user's functions are left out, nothing is imported."""
    if request.config is not None:
        raise UsageError("explain: expected a run folder or --config, got both; the run holds its own configuration")
    check_form(request.how)
    if request.how.partition(":")[0] in ("frontier", "diverse"):
        raise UsageError(
            f"--select: expected best, knee or budget:metric=limit, got {request.how!r}; one architecture is explained"
        )
    run = recorded_run(path)
    study = study_of(run, request.flags, request.settings)
    if request.index is None:
        feasible = run.evaluations.feasible.any()
        rows = select(run.evaluations, request.how, run.scale()).tolist() if feasible else []
        if len(rows) == 0:
            raise InfeasibleError(
                f"{path}: nothing feasible to explain; python -m nas.select {path} says why, --index N explains any row"
            )
        row = rows[0]
    elif request.index < len(run.evaluations):
        row = request.index
    else:
        raise UsageError(
            f"--index: expected a row up to {len(run.evaluations) - 1}, got {request.index}; choose one of evaluations.csv"
        )
    chosen = run.space.architectures(run.evaluations.genotypes[row : row + 1])
    return study, study.problem.dressed(chosen), f"row {row} of {path}"


def _show(study: Study, chosen: Architectures, label: str, e: Explanation) -> None:
    say(
        f"{label}: {describe(chosen)}, d_h {chosen.head_dim[0]}, m {chosen.expert_size[0]}, {count(e.metrics['params_total'])} parameters, "
        f"{count(e.metrics['params_active'])} active"
    )
    for line in headline(study)[1:]:
        say(line)
    for text in e.outside_law:
        say(f"Extrapolates: {text}")
    say("\nMetrics")
    table(list(e.metrics), [[f"{value:.6g}" for value in e.metrics.values()]], left=0)
    _show_head(e)
    say("\nLoss, nats per token")
    table(
        ("term", "nats", "share"),
        [(name, f"{v:.4f}", f"{100 * v / e.metrics['loss']:.1f} %") for name, v in e.loss_terms.items()],
    )
    for phase, rows in e.operators.items():
        _show_phase(phase, rows, e)
    say("\nResident memory, GB")
    table(
        ("part", "GB", "share"),
        [(name, f"{v:.4f}", f"{100 * v / e.metrics['resident_gb']:.1f} %") for name, v in e.resident_gb.items()],
    )
    say("\nBudgets")
    for budget in e.budgets:
        state = "over" if budget["violation"] > 0 else "binds" if budget["violation"] > -0.02 else "slack"
        say(
            f"  {budget['metric']} {budget['value']:.5g} of {budget['limit']:.5g} ({100 * budget['violation']:+.1f} %): {state}"
        )
    if not e.budgets:
        say("  none")
    _show_steps(e)


def _show_head(e: Explanation) -> None:
    """What the LM head takes of each phase and of the total time; depth, experts and KV heads do not change it."""
    head = {phase: sum(r.ms for r in rows if r.operator == "lm_head") for phase, rows in e.operators.items()}
    if any(head.values()):
        of = head | {"total": sum(head.values())}
        parts = (
            f"{ms:.4g} of {name} {(t := e.metrics[f'{name}_ms']):.4g} ms ({100 * ms / t:.0f} %)"
            for name, ms in of.items()
        )
        say(f"LM head: {', '.join(parts)}")


def _show_phase(phase: str, rows: list[OperatorRow], e: Explanation) -> None:
    total = e.metrics[f"{phase}_ms"]
    if not rows:
        say(f"\n{phase.capitalize()} {total:.4f} ms in closed form: no operators")
        return
    compute = 100 * sum(r.ms for r in rows if r.bound == "compute") / total
    say(f"\n{phase.capitalize()} {total:.4f} ms: {compute:.0f} % of it compute-bound")
    body = [
        (
            r.operator,
            r.part,
            f"{r.instances:g}",
            f"{r.gflop:.4g}",
            f"{r.mb:.4g}",
            f"{r.ms:.4f}",
            f"{100 * r.ms / total:.1f} %",
            r.bound,
        )
        for r in sorted(rows, key=lambda r: -r.ms)
    ]
    table(("operator", "of", "instances", "GFLOP", "MB", "ms", "share", "bound by"), body, left=2)


def _show_steps(e: Explanation) -> None:
    say("\nWhat one step along an axis buys")
    if not e.steps:
        say("  not in the study's space: no neighbours")
        return
    names = list(e.steps[0].change)
    table(("step", *names), [(s.step, *(f"{s.change[name]:+.4g}" for name in names)) for s in e.steps])
