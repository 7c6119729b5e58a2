"""The work of `select`: rows of a run chosen, shown and written as a candidate file."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from nas.answer import past_run, sureness
from nas.answer.answer_document import LOSS, OF_FIRST, regret_in_words
from nas.answer.carried_study import write_with_study
from nas.answer.design_words import count, describe
from nas.answer.outcome import solved_regret
from nas.answer.outcome_files import regret_in_numbers
from nas.answer.under_laws import caveats, pick_under, regret_columns
from nas.commands.requests import SelectRequest
from nas.document.document import SHARED, Cell, Column, Document, Section, Table
from nas.errors import InfeasibleError, UsageError
from nas.exact.alternative_laws import along
from nas.exact.infeasibility import diagnosed
from nas.exact.sweeps import parse_sweep, swept
from nas.files.tables import refuse_existing
from nas.problem import uncertainty as law_doubt
from nas.problem.diagnosis import diagnose, lines
from nas.problem.law_caveats import active_experts_lines, blind_axes, blind_lines
from nas.problem.objective import Budget, unit_of
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.quantiles import ships
from nas.study.metrics import check_form, parse_budget, select
from nas.terminal.console import notice, say_json
from nas.terminal.tables import show
from objectives.loss_law.law import origin_line, verdict_line
from objectives.quantities import day_in_words
from search_spaces.arrays import AnyArray, FloatArray, IntArray, python_value

Leading = dict[str, list[Cell]]  # columns before those of the run, by their heads
SPARE = ("tied_group", "probability_optimal", sureness.EVIDENCE)  # columns that a narrow screen goes without
OF_STEPS = "Of each step of the frontier that the law tells apart the cheapest alone"


def choose(request: SelectRequest) -> None:
    """Choose, show and write.

    Raises:
        UsageError: an unknown form, metric or folder, or a file that exists.
        InfeasibleError: nothing fits; the diagnosis was printed.
    """
    check_form(request.how)
    if request.expected_regret and not _is_pick(request.how):
        raise UsageError(
            f"expected-regret: expected a single pick, got {request.how!r}; choose --select best or budget:metric=limit"
        )
    if request.out is not None:
        refuse_existing("--out", request.out)
    limits = [*request.budgets, request.how.partition(":")[2], request.sweep or ""]
    run = past_run.with_quantiles(past_run.recorded_run(request.run), limits)
    budgets = _budgets(run, request.budgets)
    run, problem = _in_formats(request, run) if request.formats else (run, past_run.solvable(run))
    if request.sweep is not None:
        _sweep(request, run, problem, budgets)
        return
    pick = _pick_of(request.how, run)
    changed = budgets != run.evaluations.budgets
    if problem is not None and (changed or pick is not None or request.formats):
        run = past_run.solved_within(run, problem, budgets, pick)
    else:
        run = replace(run, evaluations=replace(run.evaluations, budgets=budgets))
    rows = np.zeros(0, dtype=np.int64)
    if run.evaluations.feasible.any():
        groups = run.groups if request.distinguishable else None
        rows = select(run.evaluations, request.how, run.scale(), run.workload, groups)
    if len(rows) == 0:
        raise InfeasibleError(_why(run, problem, (*budgets, *([pick] if pick else []))))
    sure, (differences, short) = _sureness(request, run, rows), _apart(run, rows)
    under, lines = _under_laws(request, run, rows, pick)
    lost, of_regret = _expected_regret(request, run, rows, pick)
    lines = [*([OF_STEPS] if request.distinguishable else []), *lines, *of_regret]
    ties = _ties(run, rows, sure["tied_group"], request.shown) if "tied_group" in sure else []
    columns = {**run.columns(rows), **sure, **differences, **lost, **under}
    _give(request, run, rows, columns, _before(sure) | short | _before(under), lines, ties)


def _in_formats(request: SelectRequest, run: past_run.RecordedRun) -> tuple[past_run.RecordedRun, Problem]:
    """The recorded question in other formats, and its problem."""
    again, study = past_run.requeried(run, request.formats)
    if not request.quiet:
        for text in study.notices:
            notice(f"Warning: {text}")
    return again, study.problem


def _before(columns: Mapping[str, AnyArray]) -> Leading:
    """Columns of numbers as they stand before an architecture's; of no tied group nothing."""
    return {
        name: np.where(column == {"tied_group": -1}.get(name), np.nan, column).tolist()
        for name, column in columns.items()
    }


def _apart(run: past_run.RecordedRun, rows: IntArray) -> tuple[dict[str, AnyArray], Leading]:
    """How the losses of the chosen differ from published models', and under `evidence` beside another law: in columns, the first model's in text."""
    designs = run.architectures(rows)
    differences = law_doubt.from_models(run.law, designs, run.baselines)
    witnesses = sureness.model_witnesses(run.law, designs, run.baselines)
    columns = sureness.difference_columns(differences) | sureness.evidence_columns(witnesses)
    if not differences:
        return columns, {}
    label, first = next(iter(differences.items()))
    short: Leading = {OF_FIRST.format(label): [sureness.difference_in_words(each, brief=True) for each in first]}
    of_evidence: list[Cell] = [sureness.witness_in_words(each, brief=True) for each in witnesses.get(label, ())]
    return columns, short | ({sureness.EVIDENCE: of_evidence} if of_evidence else {})


def _under_laws(
    request: SelectRequest,
    run: past_run.RecordedRun,
    rows: IntArray,
    pick: Budget | None,
    costs: FloatArray | None = None,
) -> tuple[dict[str, FloatArray], list[str]]:
    """Regrets of the chosen under each law of the flags or the run, and notes on them.

    Of a single pick among all designs within its budgets, else among those that cost no more than each (`costs`: than that).
    """
    if request.laws is None and not run.run.resolved.get("laws"):
        return {}, []
    study = past_run.study_of(run, {} if request.laws is None else {"laws": request.laws}, [])
    if not study.laws:
        raise UsageError(f"--laws: expected other laws than the run's, got {request.laws!r}; name one")
    problem = replace(
        study.problem, budgets=tuple(b for b in run.evaluations.budgets if ships(b.metric, run.workload.figures))
    )
    design = run.architectures(rows)
    if _is_pick(request.how):
        values, lines = pick_under(problem, study.laws, PickRule(pick).as_answered(run.evaluations[rows[:1]]), design)
        return regret_columns(study.laws, values), lines
    metric = law_doubt.cost_among(
        tuple(name for name in run.evaluations.objectives if ships(name, run.workload.figures))
    )
    metric = metric if request.sweep is None else request.sweep.partition("=")[0].strip()
    at = run.evaluations.metrics[metric][rows] if costs is None else costs
    values = along(problem, study.laws, metric).regrets(design, at)
    return regret_columns(study.laws, values), [f"Regrets are among designs of no more {metric}.", *caveats(study.laws)]


def _expected_regret(
    request: SelectRequest, run: past_run.RecordedRun, rows: IntArray, pick: Budget | None
) -> tuple[dict[str, AnyArray], list[str]]:
    """The pick's expected regret over the whole space, in columns and in a line; nothing where it is not asked for."""
    if not request.expected_regret:
        return {}, []
    problem = replace(past_run.study_of(run, {}, []).problem, budgets=run.evaluations.budgets)
    regret = solved_regret(problem, PickRule(pick), run.evaluations.genotypes[rows[0]])
    if regret is None:
        return {}, [f"No expected regret is claimed: the pick or the design of the least is {sureness.OUTSIDE}."]
    columns = {name: np.array([value]) for name, value in regret_in_numbers(problem, regret).items()}
    proven = f" (proven over all {problem.space.size:,} architectures)" if regret.least.proven else ""
    return columns, [f"Expected regret over the law's draws, nats: {regret_in_words(problem, regret)}{proven}."]


def _law_lines(run: past_run.RecordedRun, rows: IntArray) -> list[str]:
    """Where the run's law comes from, what it does not see or decide, and whether it keeps K of the chosen low by itself."""
    law, designs = run.law, run.architectures(rows)
    axes = (*blind_lines(law, blind_axes(run.space, law)), *active_experts_lines(law, designs, "chosen designs"))
    return [line for line in (origin_line(law), verdict_line(law), *axes) if line]


def _sureness(request: SelectRequest, run: past_run.RecordedRun, rows: IntArray) -> dict[str, AnyArray]:
    """What the law's uncertainty says of the chosen: probability of optimality, ties."""
    law = run.law
    alone = len(rows) == 1 or request.distinguishable
    group = None if alone else law_doubt.tied(law, run.architectures(rows))
    columns: dict[str, AnyArray] = {} if group is None else {"tied_group": group}
    unsure = law_doubt.uncertainty(law, run.architectures, run.evaluations)
    return columns if unsure is None else {**columns, "probability_optimal": unsure.probability()[rows]}


def _ties(run: past_run.RecordedRun, rows: IntArray, group: IntArray, shown: int) -> list[Section]:
    """How many groups of tied designs there are, and the cheapest of each."""
    outside, sizes = int((group < 0).sum()), np.bincount(group[group >= 0])
    left = f"{outside:,} of them lie outside of the evidence: in no group, and no difference is claimed"
    lines = [left] if outside else []
    if len(sizes) and sizes.max() == 1:
        lines.append("no two of them are tied: the law distinguishes every pair")
    if not len(sizes) or sizes.max() == 1:
        return [Section("", tuple(lines))] if lines else []
    cost = law_doubt.cost_among(run.evaluations.objectives)
    first = law_doubt.cheapest(group, run.evaluations.metrics[cost][rows], run.evaluations.metrics["loss"][rows])
    places = _spread(len(sizes), shown)
    leading: Leading = {"group": [f"{place:,}" for place in places], "designs": [f"{n:,}" for n in sizes[places]]}
    text = f"{len(sizes):,} tied groups of up to {sizes.max():,}: within a group the law cannot rank the losses"
    fewer = f"{len(places)} of {len(sizes):,} groups shown, evenly spaced; --rows shows more"
    table = _table(run, rows[first[places]], leading, [fewer] if len(places) < len(sizes) else [])
    lines.append(f"{text}, so the cheapest will do")
    return [Section(f"Cheapest of each group: lowest {cost}", (*lines, table), folded=True)]


def _budgets(run: past_run.RecordedRun, texts: Sequence[str]) -> tuple[Budget, ...]:
    """The run's budgets with the given ones in place of those on the same metric; `none` removes one."""
    names = tuple(run.evaluations.metrics)
    removed = {text.partition("=")[0].strip() for text in texts if text.partition("=")[2].strip() == "none"}
    extra = tuple(
        parse_budget(text, names, run.workload) for text in texts if text.partition("=")[0].strip() not in removed
    )
    kept = tuple(b for b in run.evaluations.budgets if b.metric not in {e.metric for e in extra} | removed)
    return (*kept, *extra)


def _pick_of(how: str, run: past_run.RecordedRun) -> Budget | None:
    """The budget of `budget:metric=limit`."""
    kind, _, rest = how.partition(":")
    return parse_budget(rest, tuple(run.evaluations.metrics), run.workload) if kind == "budget" else None


def _is_pick(how: str) -> bool:
    """Whether the form gives one design, of the lowest loss within budgets."""
    return how == "best" or how.partition(":")[0] == "budget"


def _why(run: past_run.RecordedRun, problem: Problem | None, budgets: tuple[Budget, ...]) -> str:
    evaluations = replace(run.evaluations, budgets=budgets)
    if problem is None:
        return "\n".join(lines(diagnose(evaluations), run.whole_space))
    diagnosis = diagnosed(replace(problem, budgets=budgets), evaluations)
    return "\n".join(lines(diagnosis, diagnosis.examined == problem.space.size))


def _sweep(
    request: SelectRequest, run: past_run.RecordedRun, problem: Problem | None, budgets: tuple[Budget, ...]
) -> None:
    """The pick at every limit, one row each; limits that nothing meets have empty columns."""
    sweep = parse_sweep(request.sweep or "", tuple(run.evaluations.metrics), run.workload.figures)
    if problem is not None:
        run = past_run.solved_along(run, problem, budgets, sweep.metric)
    run = replace(run, evaluations=replace(run.evaluations, budgets=budgets))
    answers = list(swept(sweep, run.evaluations))
    limits = np.array([limit for limit, row in answers if row is not None])
    rows = np.array([row for _, row in answers if row is not None], dtype=np.int64)
    if len(rows) == 0:
        raise InfeasibleError(_why(run, problem, (*budgets, Budget(sweep.metric, float(sweep.limits[-1])))))
    under, lines = _under_laws(request, run, rows, None, limits)
    differences, short = _apart(run, rows)
    if unmet := len(answers) - len(rows):
        lines = [f"{unmet:,} limits up to {answers[unmet - 1][0]:g} are met by nothing", *lines]
    leading: Leading = {f"{sweep.metric} <=": [f"{limit:g}" for limit in limits.tolist()]}
    columns = {"limit": limits, **run.columns(rows), **differences, **under}
    _give(request, run, rows, columns, {**leading, **short, **_before(under)}, lines)


def _give(
    request: SelectRequest,
    run: past_run.RecordedRun,
    rows: IntArray,
    columns: Mapping[str, AnyArray],
    leading: Leading,
    lines: Sequence[str],
    ties: Sequence[Section] = (),
) -> None:
    """Write the chosen as candidates, show them or print them as JSON, and what their times are extrapolated from."""
    if request.out is not None:
        study = past_run.study_of(run, {}, [])
        limits = tuple(b for b in run.evaluations.budgets if ships(b.metric, run.workload.figures))
        write_with_study(request.out, columns, replace(study, problem=replace(study.problem, budgets=limits)))
    if request.json:
        say_json([{name: python_value(column[i]) for name, column in columns.items()} for i in range(len(rows))])
    else:
        places = _spread(len(rows), request.shown)
        some = {name: [column[i] for i in places.tolist()] for name, column in leading.items()}
        fewer = f"{len(places)} of {len(rows):,} shown, evenly spaced; --rows shows more, --out writes all"
        table = _table(run, rows[places], some, [fewer] if len(places) < len(rows) else [])
        sections = [Section(f"{len(rows):,} chosen{_scope(run)}", (table, *lines, *_law_lines(run, rows))), *ties]
        show(Document("", tuple(sections)), verbose=request.verbose)
    if not request.quiet:
        for text in run.extrapolated(rows):
            notice(f"Warning: {text}")
        if request.out is not None:
            notice(f"{len(rows):,} candidates written to {request.out}")


def _spread(n: int, shown: int) -> IntArray:
    """At most `shown` places of n, evenly spaced with both ends."""
    return np.unique(np.linspace(0, n - 1, min(shown, n)).astype(int))


def _table(run: past_run.RecordedRun, rows: IntArray, leading: Leading, notes: Sequence[str]) -> Table:
    """Rows of a run, with columns before them."""
    metrics, figures, architectures = run.evaluations.metrics, run.workload.figures, run.architectures(rows)
    limited = (b.metric for b in run.evaluations.budgets if not b.of_evidence)
    names = list(dict.fromkeys(["loss", "total_ms", "memory_gb", *run.evaluations.objectives, *limited]))
    if not run.solved and not any("<=" in name for name in leading):
        leading = {**leading, "index": [str(row) for row in rows.tolist()]}
    body: list[tuple[Cell, ...]] = [
        (
            *(column[i] for column in leading.values()),
            *(_cell(float(metrics[name][row]), unit_of(name, figures)) for name in names),
            count(metrics["params_total"][row]),
            describe(architectures[i : i + 1], run.space.settings),
        )
        for i, row in enumerate(rows.tolist())
    ]
    spare = {*SPARE, *(["memory_gb"] if "resident_gb" in names else [])}
    columns = (
        *(Column(n, format=".3g", words=not i, narrow=_narrow(n, spare)) for i, n in enumerate(leading)),
        *(Column(LOSS if n == "loss" else n, format=".5g", narrow=_narrow(n, spare)) for n in names),
        Column("parameters", narrow="left out"),
        SHARED["architecture"],
    )
    return Table(columns, tuple(body), notes=tuple(notes))


def _narrow(name: str, spare: Collection[str]) -> Literal["", "left out"]:
    return "left out" if name in spare else ""


def _cell(value: float, unit: str) -> Cell:
    return day_in_words(value) if unit == "date" else value


def _scope(run: past_run.RecordedRun) -> str:
    """Of how many architectures."""
    if run.solved:
        return f", solved exactly over all {run.space.size:,} architectures"
    exact = run.run.resolved["algo"] == "exact"
    if run.whole_space or exact:
        return f" of all {run.space.size:,} architectures"
    return f" of {len(run.evaluations):,} evaluated (of {run.space.size:,} in the space)"
