"""The work of `explain`: which architecture, in which study, and the printed or JSON answer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from nas.answer import gain_sentences
from nas.answer.carried_study import exported_design, list_of, study_of_file
from nas.answer.design_words import blind_spots, count, describe, head, unpriced
from nas.answer.device_times import TIMES, ranges_of_what
from nas.answer.gain_sentences import described, gain_lines
from nas.answer.law_sentences import design_lines
from nas.answer.past_run import recorded_run, study_of
from nas.answer.pick_tables import LOSS, figure_of
from nas.answer.plot_data import HEADER, cells
from nas.answer.score_tables import design_table, in_numbers, say_scores, scored
from nas.answer.sentences import headline
from nas.answer.sureness import (
    beside_evidence,
    difference_in_numbers,
    difference_in_words,
    parts_lines,
    undecided_lines,
    witness_in_numbers,
)
from nas.answer.witness import Witness, model_witnesses
from nas.commands.requests import ExplainRequest
from nas.errors import InfeasibleError, UsageError
from nas.exact.decomposition.branch_and_bound import Exceeded
from nas.exact.device_gains import DeviceGain, device_gains, on_its_device
from nas.exact.gains import Gains, gains
from nas.problem.breakdown import KINDS, Explanation, OperatorRow, Step, explained
from nas.problem.energy_words import about_energy
from nas.problem.evaluations import Evaluations
from nas.problem.law_caveats import active_experts_lines, blind_axes, blind_lines
from nas.problem.objective import Baseline
from nas.problem.problem import Problem
from nas.problem.quantiles import measured_at, own_in_words
from nas.problem.steps import AT_EQUAL_TEXT, AtContext, HeadStep, along_contexts, has_long_contexts
from nas.problem.uncertainty import Difference, Undecided, from_models, undecided_axes
from nas.problem.wording import best_served, in_words
from nas.record.candidates import read_candidates
from nas.search.assembly import Study, assemble
from nas.search.scenarios import doubtful_times
from nas.study.baselines import architecture_from, model_named
from nas.study.catalogue import is_file
from nas.study.layers import layered, parsed_settings
from nas.study.metrics import check_form, parse_budget, select
from nas.terminal.console import notice, say, say_json
from nas.terminal.doors import command
from nas.terminal.screen_text import TITLE, Styled
from nas.terminal.tables import table
from nas.theory.relaxation import relaxed_gains
from objectives.display_text import in_a_command
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.columns import any_of

SIDES = ("compute", "memory")


def explain(request: ExplainRequest) -> None:
    """Find the architecture, explain it, print it.

    Raises:
        UsageError: not exactly one architecture named, or unknown names.
        InfeasibleError: a run without a feasible architecture to choose.
    """
    study, known = _found(request)
    chosen = best_served(study.problem, study.problem.headed(known.architecture))
    try:
        explanation = explained(study.problem, chosen)
        asked = request.contexts or has_long_contexts(study.problem)
        contexts = along_contexts(study.problem, chosen) if asked else []
        of_tasks = scored(study, chosen, [each for each in study.baselines if each.label != known.label])
    except ValueError as error:
        raise UsageError(str(error)) from None
    limited = _asked(study.problem, request.how)
    found, of_device, why_not = _gains(limited)
    in_theory = {} if found is None else _in_theory(limited, found.pick, of_device)
    others = [each for each in study.baselines if each.label != known.label]
    apart, told = _apart(study.problem.pricing(chosen).law, chosen, others)
    remarks = _remarks(study, known, chosen, apart, told)
    if request.json:
        content = _content(study, known.label, chosen, explanation, remarks, _sure(apart, told), contexts, found)
        pick = None if found is None else found.pick
        content["device_gains"] = gain_sentences.device_described(limited, pick, of_device, in_theory)
        say_json(content | ({} if of_tasks is None else {"scores": in_numbers(of_tasks, 0)}))
        return
    _show(study, chosen, known.label, explanation, remarks)
    _show_contexts(contexts)
    if of_tasks is not None:
        say_scores(design_table(of_tasks, [""]))
    if study.laws:
        say()
        for line in design_lines(study.problem, study.laws, chosen):
            say(line)
    if found is not None:
        _say_gains(limited, found, of_device, in_theory, float(explanation.metrics["loss"]))
    elif why_not:
        say(f"\nWhat more would buy is not computed: {why_not}")


def _apart(
    law: Law, chosen: Architectures, others: Sequence[Baseline]
) -> tuple[dict[str, Difference], dict[str, Witness | None]]:
    """How its loss differs from published models', and under `evidence` beside another law."""
    apart = {label: rows[0] for label, rows in from_models(law, chosen, others).items()}
    return apart, {label: rows[0] for label, rows in model_witnesses(law, chosen, others).items()}


def _sure(apart: Mapping[str, Difference], told: Mapping[str, Witness | None]) -> dict[str, Any]:
    """The same as plain content; nothing where the law does not say how sure it is."""
    beside = {label: witness_in_numbers(each) for label, each in told.items() if each is not None}
    found = {"differences": {label: difference_in_numbers(each) for label, each in apart.items()}, "evidence": beside}
    return {name: each for name, each in found.items() if each}


def _say_gains(
    problem: Problem, found: Gains, of_device: tuple[DeviceGain, ...], in_theory: Mapping[str, float], loss: float
) -> None:
    """What more of the budgets, of the axes and of the device would buy."""
    lines = gain_lines(problem, found, loss)
    for line in [*lines, *gain_sentences.device_gain_lines(problem, found.pick, of_device, in_theory)]:
        say(line)


def _content(
    study: Study,
    label: str,
    chosen: Architectures,
    explanation: Explanation,
    remarks: list[str],
    sure: Mapping[str, Any],
    contexts: list[AtContext],
    found: Gains | None,
) -> dict[str, Any]:
    """Everything but scores of tasks as plain content."""
    remarked = {"remarks": remarks} if remarks else {}
    bought = None if found is None else described(study.problem, found)
    rivals = {"under_laws": design_lines(study.problem, study.laws, chosen)} if study.laws else {}
    longer = {"contexts": [asdict(row) for row in contexts]} if contexts else {}
    whole = {"architecture": label, **remarked, **asdict(explanation), **longer, "gains": bought}
    return {**whole, **rivals, **sure}


def _remarks(
    study: Study,
    known: Baseline,
    chosen: Architectures,
    apart: Mapping[str, Difference],
    told: Mapping[str, Witness | None],
) -> list[str]:
    """What must be said of the model and its times, and how its loss differs from published models'."""
    scenario, sparse = study.problem.pricing(chosen), bool(chosen.n_experts[0] > 1)
    several = [name for name, _ in study.problem.scenario.devices]
    unplaced = several and not any_of(chosen.device)
    placed = (
        f"Priced on {several[0]}, the first of the study's devices; --set devices={several[-1]} takes another."
        if unplaced
        else ""
    )
    return [
        *([placed] if placed else []),
        *head(known, study.problem),
        *blind_spots(known, scenario),
        *unpriced(chosen),
        *active_experts_lines(scenario.law, chosen, "designs"),
        *(f"Warning: {text}" for text in doubtful_times(scenario, experts=sparse)),
        *about_energy(scenario, experts=sparse),
        *(
            f"Against {label} trained alike: {difference_in_words(each)}{beside_evidence(told.get(label))}"
            for label, each in apart.items()
        ),
        *parts_lines(scenario.law, chosen, [each for each in study.baselines if each.label in apart]),
        *undecided_lines(scenario.law, _undecided(study.problem, chosen), "it"),
    ]


def _undecided(problem: Problem, chosen: Architectures) -> list[Undecided]:
    """Axes along which the law cannot tell cheaper designs of the space from this one; none of a design outside the space."""
    key = problem.space.find(chosen)
    return [] if key[0] < 0 else undecided_axes(problem, problem.space.genotypes(key)[0])


def _found(request: ExplainRequest) -> tuple[Study, Baseline]:
    """The one architecture to explain, in its study."""
    named = [name for name in ("run", "model", "architecture") if getattr(request, name) is not None]
    if len(named) != 1:
        raise UsageError(
            f"explain: expected one of a run folder, --model and --architecture, got {' and '.join(named) or 'none'}; give one"
        )
    return _from_run(request, request.run) if request.run is not None else _named(request)


def _in_theory(problem: Problem, pick: Evaluations, gains: tuple[DeviceGain, ...]) -> dict[str, float]:
    """What more of the pick's device buys in the continuous problem, where theory covers the study."""
    there, own = on_its_device(problem, pick)
    design, alone = there.architectures(own.genotypes), replace(there, space=there.space.on_one_device)
    return relaxed_gains(alone, design, [gain.resource for gain in gains])


def _asked(problem: Problem, how: str) -> Problem:
    """The problem within the study's budgets, and the one that chose."""
    if not how.startswith("budget:"):
        return problem
    budget = parse_budget(how.partition(":")[2], problem.metric_names, problem.scenario)
    others = tuple(b for b in problem.budgets if b.metric != budget.metric)
    return replace(problem, budgets=(*others, budget))


def _gains(problem: Problem) -> tuple[Gains | None, tuple[DeviceGain, ...], str]:
    """Gains of relaxing the budgets, and of more of the device; or why they cannot be computed."""
    try:
        found = gains(problem) if problem.budgets else None
        return found, () if found is None else device_gains(problem, found.pick), ""
    except UsageError as error:
        return None, (), str(error)
    except Exceeded:
        return None, (), f"exact answers in the {problem.space.name} space would take more than seconds"


def _named(request: ExplainRequest) -> tuple[Study, Baseline]:
    """A published model, or an architecture written out, in a study that has its vocabulary."""
    raw, origins = layered({"algo": "random", **request.flags}, request.settings, request.config)
    if request.model is not None:
        if request.config is None and (exported := exported_design(Path(request.model))) is not None:
            return _in_file(request, exported[0], exported[1], request.model)
        try:
            known = model_named(request.model)
        except UsageError as error:
            raise UsageError(f"--model: {error}") from None
    else:
        known = Baseline("Architecture", architecture_from(request.architecture or ""))
    return assemble({**raw, **_own_head(request, raw, known.architecture), "params": {}}, origins), known


def _own_head(request: ExplainRequest, raw: Mapping[str, Any], chosen: Architectures) -> dict[str, Any]:
    """An architecture's own vocabulary and tying as study keys, where it has one and the flags give no other."""
    given = {*request.flags, *parsed_settings(request.settings)}
    headless = request.model is not None and raw.get("latency") == "closed_form"
    if "vocabulary" in given or headless or not chosen.vocabulary[0]:
        return {}
    own = {"vocabulary": int(chosen.vocabulary[0]), "tied": bool(chosen.tied[0])}
    return {name: value for name, value in own.items() if name not in given}


def _of_file(request: ExplainRequest, path: Path) -> tuple[Study, Baseline]:
    """A row of a candidate file, in the study that made it."""
    designs, ids = read_candidates(path)
    row = 0 if request.index is None and len(ids) == 1 else request.index
    if row is None or row >= len(ids):
        raise UsageError(
            f"--index: expected a row of {path}, 0 to {len(ids) - 1}, got {'none' if row is None else row}; choose one"
        )
    return _in_file(request, path, designs[row : row + 1], f"{ids[row]} of {path}")


def _in_file(request: ExplainRequest, path: Path, chosen: Architectures, label: str) -> tuple[Study, Baseline]:
    study, doubt = study_of_file(path, request.config, request.settings, request.flags)
    if doubt:
        notice(f"Warning: {doubt}")
    return study, Baseline(label, chosen)


def _from_run(request: ExplainRequest, path: Path) -> tuple[Study, Baseline]:
    """An architecture of a run, in the run's study; a user's functions are left out, nothing is imported."""
    if (path := list_of(path)).suffix in (".csv", ".jsonl") and is_file(str(path)):
        return _of_file(request, path)
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
        rows = select(run.evaluations, request.how, run.scale(), run.workload).tolist() if feasible else []
        if len(rows) == 0:
            raise InfeasibleError(
                f"{path}: nothing feasible to explain; {command('select')} {in_a_command(path)} says why, --index N explains any row"
            )
        row = rows[0]
    elif request.index < len(run.evaluations):
        row = request.index
    else:
        raise UsageError(
            f"--index: expected a row up to {len(run.evaluations) - 1}, got {request.index}; choose one of evaluations.csv"
        )
    chosen = run.space.architectures(run.evaluations.genotypes[row : row + 1])
    return study, Baseline(f"row {row} of {path}", chosen)


def _show_measured(problem: Problem, chosen: Architectures, metrics: Mapping[str, float]) -> None:
    """Where measured times lie, and what the metrics at a quantile are made of."""
    scenario = problem.pricing(chosen)
    if said := ranges_of_what(scenario, chosen, metrics, TIMES):
        say(f"Times, {said}")
    for name in measured_at(problem.asked_besides):
        say(f"{name} {metrics[name]:.4g} is {own_in_words(name, scenario, chosen)}")


def _show(study: Study, chosen: Architectures, label: str, e: Explanation, remarks: list[str]) -> None:
    ffn = "the FFN" if chosen.n_experts[0] == 1 else "an expert"
    say(
        f"{label}: {describe(chosen, study.problem.space.settings)}, head size {chosen.head_dim[0]}, hidden size of {ffn} {chosen.expert_size[0]:,}, {count(e.metrics['params_total'])} parameters, "
        f"{count(e.metrics['params_active'])} active"
    )
    for line in headline(study.problem, study.config, study.calibration_note)[1:]:
        say(line)
    for text in (*remarks, *(f"Extrapolates: {text}" for text in e.outside_law)):
        say(text)
    law = study.problem.scenario.law
    for line in blind_lines(law, blind_axes(study.problem.space, law), "steps along them change costs alone"):
        say(line)
    say(Styled("\nMetrics", TITLE))
    table([with_unit(name) for name in e.metrics], [[f"{value:.6g}" for value in e.metrics.values()]], left=0)
    _show_measured(study.problem, chosen, e.metrics)
    _show_head(e)
    say(Styled("\nLoss, nats per token", TITLE))
    table(
        ("term", "nats", "share"),
        [(name, f"{v:.4f}", f"{100 * v / e.metrics['loss']:.1f} %") for name, v in e.loss_terms.items()],
    )
    for phase, rows in e.operators.items():
        _show_phase(phase, rows, e)
    say(Styled("\nResident memory, GB", TITLE))
    table(
        ("part", "GB", "share"),
        [(name, f"{v:.4f}", f"{100 * v / e.metrics['resident_gb']:.1f} %") for name, v in e.resident_gb.items()],
    )
    say(Styled("\nBudgets", TITLE))
    for budget in e.budgets:
        apart = f"{abs(100 * budget['violation']):.1f} % {'over' if budget['violation'] > 0 else 'left'}"
        rate = budget.get("rate", "")
        least = f"; {rate} {e.metrics[rate]:.4g} of at least {budget['least']:.4g}" if rate else ""
        of = figure_of(study.problem, str(budget["metric"]), float(budget["value"]), float(budget["limit"]))
        say(f"  {of}: {apart}{least}")
    if not e.budgets:
        say("  none")
    _show_steps(e)


def _show_head(e: Explanation) -> None:
    """The share of the LM head in each phase and in the total time; depth, experts and KV heads do not change it."""
    head = {phase: sum(r.ms for r in rows if r.operator == "lm_head") for phase, rows in e.operators.items()}
    if any(head.values()):
        of = head | {"total": sum(head.values())}
        parts = (
            f"{ms:.4g} of {name} {(t := e.metrics[f'{name}_ms']):.4g} ms ({100 * ms / t:.0f} %)"
            for name, ms in of.items()
        )
        say(f"LM head: {', '.join(parts)}")
        smaller = [step for step in e.head_steps if step.step.startswith("vocabulary")]
        if smaller and max(e.operators["decode"], key=lambda row: row.ms).operator == "lm_head":
            change = smaller[-1].change
            say(
                f"It is the largest part of decode: {smaller[-1].step} changes decode by {change['decode_ms']:+.4g} ms and loss "
                f"by {change['loss']:+.2g} nats at equal text (below)"
            )


def _show_phase(phase: str, rows: list[OperatorRow], e: Explanation) -> None:
    total = e.metrics[f"{phase}_ms"]
    if not rows:
        say(Styled(f"\n{phase.capitalize()} {total:.4f} ms in closed form: no operators", TITLE))
        return
    times = {kind: sum(row.ms_by_kind[kind] for row in rows) for kind in KINDS}
    shares = ", ".join(
        f"{100 * times[kind] / total:.0f} % {KINDS[kind]}" for kind in KINDS if times[kind] or kind in SIDES
    )
    say(Styled(f"\n{phase.capitalize()} {total:.4f} ms: {shares}", TITLE))
    beside = [kind for kind in ("launch", "epilogue") if times[kind]]
    body = [
        (
            r.operator,
            r.part,
            f"{r.instances:g}",
            f"{r.gflop:.4g}",
            f"{r.mb:.4g}",
            f"{r.ms:.4f}",
            *(f"{r.ms_by_kind[kind]:.4f}" for kind in beside),
            f"{100 * r.ms / total:.1f} %",
            r.bound,
        )
        for r in sorted(rows, key=lambda r: -r.ms)
    ]
    header = ("operator", "of", "instances", "GFLOP", "MB", "ms", *(f"{kind} ms" for kind in beside))
    table((*header, "share", "bound by"), body, left=2, spare=("instances",))


def with_unit(metric: str) -> str:
    """The head of a metric's column: its name, which of the others has the unit."""
    return LOSS if metric == "loss" else metric


def _show_contexts(rows: list[AtContext]) -> None:
    """Times and memory after each prompt; of caches and states, and of all."""
    if rows:
        say(Styled("\nAlong the context", TITLE))
        table(HEADER, [cells(row) for row in rows], left=0)


def _show_steps(e: Explanation) -> None:
    say(Styled("\nWhat one step along an axis buys", TITLE))
    if not e.steps:
        say("  not in the study's space: no neighbours")
    else:
        _show_changes(e.steps)
    if e.head_steps:
        say(Styled("\nWhat another LM head buys", TITLE))
        _show_changes(e.head_steps)
        say(f"  {AT_EQUAL_TEXT}")


def _show_changes(steps: Sequence[Step | HeadStep]) -> None:
    names = list(steps[0].change)
    table(
        ("step", *map(with_unit, names)),
        [(in_words(s.step), *(_signed(s.change[name]) for name in names)) for s in steps],
    )


def _signed(change: float) -> str:
    """A change with its sign; of a loss that the law does not give nothing."""
    return "-" if math.isnan(change) else f"{change:+.4g}"
