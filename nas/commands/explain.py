"""The work of `explain`: which architecture, in which study, and the printed or JSON answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from nas.answer import sureness
from nas.answer.answer_document import LOSS
from nas.answer.carried_study import exported_design, list_of, study_of_file
from nas.answer.design_words import blind_spots, count, describe, figure_of, head, unpriced
from nas.answer.device_times import TIMES, ranges_of_what
from nas.answer.gain_sentences import device_gains_told, gains_told
from nas.answer.past_run import recorded_run, study_of
from nas.answer.plot_data import HEADER, cells
from nas.answer.sentences import headline, law_in_head
from nas.answer.under_laws import design_lines
from nas.commands.requests import ExplainRequest
from nas.document.document import Cell, Column, Document, Part, Section, Table, figures
from nas.errors import InfeasibleError, UsageError
from nas.exact.decomposition.branch_and_bound import Exceeded
from nas.exact.device_gains import DeviceGain, device_gains, on_its_device
from nas.exact.gains import gains
from nas.problem.breakdown import KINDS, Explanation, OperatorRow, Step, explained
from nas.problem.evaluations import Evaluations
from nas.problem.law_caveats import active_experts_lines, blind_axes, blind_lines
from nas.problem.objective import Baseline, about_energy
from nas.problem.problem import Problem
from nas.problem.quantiles import measured_at, own_in_words
from nas.problem.steps import AT_EQUAL_TEXT, AtContext, HeadStep, along_contexts, has_long_contexts
from nas.problem.uncertainty import Difference, from_models
from nas.problem.wording import best_served, in_words
from nas.record.candidates import read_candidates
from nas.search.assembly import Study, assemble
from nas.study.baselines import architecture_from, config_path, model_named
from nas.study.catalogue import is_file
from nas.study.config_file import DTYPES, content_of, deciding, left_out, stored_format, text_part
from nas.study.layers import layered, parsed_settings
from nas.study.metrics import check_form, parse_budget, select
from nas.study.scenarios import doubtful_times
from nas.study.towers import BYTES
from nas.terminal.console import notice
from nas.terminal.doors import command
from nas.terminal.tables import show
from objectives.counts import count as counted
from objectives.dimensions import Dimensions
from objectives.display_text import in_a_command
from objectives.engines import beside_attention
from objectives.loss_law.law import origin_line
from objectives.memory import GB, host_bytes
from objectives.plugins import bundled
from objectives.published_models import models_named
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.columns import any_of

SIDES = ("compute", "memory")
SLOWEST = 5  # operators of a phase, the others together
SPARE = ("prefill_ms", "decode_ms", "memory_gb")  # columns that a narrow screen goes without


def explain(request: ExplainRequest) -> None:
    """Find the architecture and explain it.

    Raises:
        UsageError: not exactly one architecture named, or unknown names.
        InfeasibleError: a run without a feasible architecture to choose.
    """
    study, named = _study_and_design(request)
    chosen = best_served(study.problem, study.problem.headed(named.architecture))
    show(_document(request, study, named, chosen), as_json=request.json, verbose=request.verbose)


def _document(request: ExplainRequest, study: Study, named: Baseline, chosen: Architectures) -> Document:
    """What the design is, what its metrics are made of, and what a step, more of a budget or of the device buys."""
    problem, others = study.problem, [model for model in study.baselines if model.label != named.label]
    try:
        e = explained(problem, chosen)
        longer = along_contexts(problem, chosen) if request.contexts or has_long_contexts(problem) else []
    except ValueError as error:
        raise UsageError(str(error)) from None
    law = problem.pricing(chosen).law
    differences = {label: rows[0] for label, rows in from_models(law, chosen, others).items()}
    witnesses = {label: rows[0] for label, rows in sureness.model_witnesses(law, chosen, others).items()}
    remarks = _file_lines(request, study.config.precision) + _remarks(study, named, chosen, differences, witnesses)
    more, bought = _more(_within(problem, request.how), float(e.metrics["loss"]))
    rivals = design_lines(problem, study.laws, chosen) if study.laws else []
    sections = [
        *_sections(study, chosen, named.label, e, remarks, verbose=request.verbose),
        *([Section("Along the context", (_along_the_context(longer),))] if longer else []),
        *([Section("", tuple(rivals))] if rivals else []),
        *more,
    ]
    parts = {
        "remarks": remarks,
        "contexts": [asdict(row) for row in longer],
        "under_laws": rivals,
        "differences": {label: sureness.difference_in_numbers(own) for label, own in differences.items()},
        "evidence": {label: sureness.witness_in_numbers(own) for label, own in witnesses.items() if own is not None},
    }
    data = {"architecture": named.label, **asdict(e), **{name: part for name, part in parts.items() if part}, **bought}
    return Document(named.label, tuple(sections), data)


def _more(problem: Problem, loss: float) -> tuple[list[Section], dict[str, Any]]:
    """What more of the budgets, of the axes and of the device would buy, or why that is not computed; as plain content too."""
    nothing: dict[str, Any] = {"gains": None, "device_gains": []}
    try:
        gained = gains(problem) if problem.budgets else None
        of_device = () if gained is None else device_gains(problem, gained.pick)
    except (UsageError, Exceeded) as error:
        slow = f"exact answers in the {problem.space.name} space would take more than seconds"
        why = slow if isinstance(error, Exceeded) else str(error)
        return [Section("", (f"What more would buy is not computed: {why}",))], nothing
    if gained is None:
        return [], nothing
    section, of_gains = gains_told(problem, gained, loss)
    in_theory = _in_theory(problem, gained.pick, of_device)
    further, of_devices = device_gains_told(problem, gained.pick, of_device, in_theory)
    return [section, *further], {"gains": of_gains, "device_gains": of_devices}


def _remarks(
    study: Study,
    named: Baseline,
    chosen: Architectures,
    differences: Mapping[str, Difference],
    witnesses: Mapping[str, sureness.Witness | None],
) -> list[str]:
    """What must be said of the model and its times, and how its loss differs from published models'."""
    scenario, sparse = study.problem.pricing(chosen), bool(chosen.n_experts[0] > 1)
    several, placed = [name for name, _ in study.problem.scenario.devices], list[str]()
    if several and not any_of(chosen.device):
        first, last = several[0], several[-1]
        placed = [f"Priced on {first}, the first of the study's devices; --set devices={last} takes another."]
    return [
        *placed,
        *head(named, study.problem),
        *blind_spots(named, scenario),
        *unpriced(chosen),
        *_on_host(scenario, chosen),
        *active_experts_lines(scenario.law, chosen, "designs"),
        *(f"Warning: {text}" for text in doubtful_times(scenario, experts=sparse, layers=beside_attention(chosen))),
        *about_energy(scenario, experts=sparse),
        *(
            f"Against {label} trained alike: {sureness.difference_in_words(own)}{sureness.beside_evidence(witnesses.get(label))}"
            for label, own in differences.items()
        ),
        *sureness.parts_lines(scenario.law, chosen, [model for model in study.baselines if model.label in differences]),
    ]


def _on_host(scenario: Scenario, chosen: Architectures) -> list[str]:
    """What of the design is held beside the device's memory."""
    held = float(host_bytes(Dimensions(chosen), counted(chosen), scenario)[0]) / GB
    return [f"{held:.3g} GB of its embeddings lie in the host's memory, where llama.cpp keeps them"] if held else []


def _study_and_design(request: ExplainRequest) -> tuple[Study, Baseline]:
    """The one architecture to explain, in its study."""
    named = [name for name in ("run", "model", "architecture") if getattr(request, name) is not None]
    if len(named) != 1:
        raise UsageError(
            f"explain: expected one of a run folder, --model and --architecture, got {' and '.join(named) or 'none'}; give one"
        )
    return _from_run(request, request.run) if request.run is not None else _named(request)


def _in_theory(problem: Problem, pick: Evaluations, gains: tuple[DeviceGain, ...]) -> dict[str, float]:
    """What more of the pick's device buys in the continuous problem, where theory is installed and covers the study."""
    theory = bundled("gains").get("theory")
    if theory is None:
        return {}
    there, own = on_its_device(problem, pick)
    design, alone = there.architectures(own.genotypes), replace(there, space=there.space.on_one_device)
    return theory.load()(alone, design, [gain.resource for gain in gains])  # type: ignore[no-any-return]


def _within(problem: Problem, how: str) -> Problem:
    """The problem within the study's budgets, and the one that chose."""
    if not how.startswith("budget:"):
        return problem
    budget = parse_budget(how.partition(":")[2], problem.metric_names, problem.scenario)
    others = tuple(b for b in problem.budgets if b.metric != budget.metric)
    return replace(problem, budgets=(*others, budget))


def _named(request: ExplainRequest) -> tuple[Study, Baseline]:
    """A published model, or an architecture written out, in a study that has its vocabulary."""
    raw, origins = layered({"algo": "random", **request.flags}, request.settings, request.config)
    if request.model is not None:
        if request.config is None and (exported := exported_design(Path(request.model))) is not None:
            return _in_file(request, exported[0], exported[1], request.model)
        try:
            named = model_named(request.model)
        except UsageError as error:
            raise UsageError(f"--model: {error}") from None
    else:
        named = Baseline("Architecture", architecture_from(request.architecture or ""))
    stored = _own_format(request)
    own = _own_head(request, raw, named.architecture) | stored
    try:
        return assemble({**raw, **own, "params": {}}, origins), named
    except UsageError as error:
        hint = "; --precision prices it in another format than its config.json says" if stored else ""
        raise UsageError(f"{error}{hint}") from None


def _config_of(request: ExplainRequest) -> Mapping[str, Any] | None:
    """The config.json that --model names."""
    path = None if request.model is None else config_path(request.model)
    return None if path is None else content_of(path)


def _own_format(request: ExplainRequest) -> dict[str, Any]:
    """The format that a config.json says its weights have as a study key, where the user gives no other."""
    content, given = _config_of(request), {*request.flags, *parsed_settings(request.settings)}
    if content is None or request.config is not None or "precision" in given:
        return {}
    name = stored_format(content)[1]
    return {"precision": name} if name else {}


def _file_lines(request: ExplainRequest, precision: str) -> list[str]:
    """What a config.json says of its weights' format against the study's, and what of it the numbers leave out."""
    if (content := _config_of(request)) is None:
        return []
    (words, name), others = stored_format(content), left_out(content)
    lines = []
    if words and name == precision:
        lines.append(f"Its config.json stores weights as {words}: priced in {precision}; --precision takes another.")
    elif words:
        lines.append(f"Warning: its config.json stores weights as {words}; priced in {precision}.")
    stored = next((part[key] for part in (content, text_part(content)) for key in DTYPES if part.get(key)), "16 bits")
    sized = "({} parameters, {:.3g} GB in {})".format
    sizes = [
        f"{name} {'(size not known)' if n is None else sized(count(n), n * BYTES.get(str(stored), 2) / 1e9, stored)}"
        for name, n in others.items()
    ]
    return [*lines, *deciding(content), *([f"Left out: its {' and its '.join(sizes)}."] if sizes else [])]


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
    if request.how != ExplainRequest.how:
        raise UsageError(f"--select: expected a run folder with it, got {path}; choose a row with --index")
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
    found = config_path(str(path))
    if is_file(str(found)) or (not path.exists() and models_named(str(path))):
        raise UsageError(f"explain: expected a run folder, got a model; write --model {in_a_command(path)}")
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


def _sections(
    study: Study, chosen: Architectures, label: str, e: Explanation, remarks: Sequence[str], *, verbose: bool
) -> Iterator[Section]:
    problem, law = study.problem, study.problem.scenario.law
    ffn = "the FFN" if chosen.n_experts[0] == 1 else "an expert"
    own = f"head size {chosen.head_dim[0]}, hidden size of {ffn} {chosen.expert_size[0]:,}"
    sizes = f"{count(e.metrics['params_total'])} parameters, {count(e.metrics['params_active'])} active"
    about = headline(problem, study.config, study.calibration_note)[1:]
    lines = [
        *(line if verbose or line != law_in_head(law) else origin_line(law) for line in about),
        *remarks,
        *(f"Extrapolates: {text}" for text in e.outside_law),
        *blind_lines(law, blind_axes(problem.space, law), "steps along them change costs alone"),
    ]
    yield Section(f"{label}: {describe(chosen, problem.space.settings)}, {own}, {sizes}", tuple(lines))
    yield Section("Metrics", tuple(_metrics(problem, chosen, e)))
    yield _made_of("Loss, nats per token", ("term", "nats"), e.loss_terms, e.metrics["loss"])
    for phase, rows in e.operators.items():
        yield _phase(phase, rows, e.metrics[f"{phase}_ms"], verbose=verbose)
    yield replace(_made_of("Resident memory, GB", ("part", "GB"), e.resident_gb, e.metrics["resident_gb"]), folded=True)
    yield Section("Budgets", tuple(_budget(problem, budget, e.metrics) for budget in e.budgets) or ("none",))
    steps = _changes(e.steps) if e.steps else "not in the study's space: no neighbours"
    yield Section("What one step along an axis buys", (steps,))
    if e.head_steps:
        yield Section("What another LM head buys", (_changes(e.head_steps), AT_EQUAL_TEXT), folded=True)


def _metrics(problem: Problem, chosen: Architectures, e: Explanation) -> Iterator[Part]:
    """The metrics, where measured times lie, what a metric at a quantile is made of, and the share of the LM head."""
    scenario = problem.pricing(chosen)
    columns = (Column(LOSS if name == "loss" else name, format=".6g") for name in e.metrics)
    yield Table(tuple(columns), (tuple(e.metrics.values()),))
    if ranges := ranges_of_what(scenario, chosen, e.metrics, TIMES):
        yield f"Times, {ranges}"
    for name in measured_at(problem.asked_besides):
        yield f"{name} {e.metrics[name]:.4g} is {own_in_words(name, scenario, chosen)}"
    head = {phase: sum(r.ms for r in rows if r.operator == "lm_head") for phase, rows in e.operators.items()}
    if any(head.values()):
        totals = {name: (ms, e.metrics[f"{name}_ms"]) for name, ms in (head | {"total": sum(head.values())}).items()}
        shares = (f"{ms:.4g} of {name} {t:.4g} ms ({100 * ms / t:.0f} %)" for name, (ms, t) in totals.items())
        yield f"LM head: {', '.join(shares)}"
        smaller = [step for step in e.head_steps if step.step.startswith("vocabulary")]
        if smaller and max(e.operators["decode"], key=lambda row: row.ms).operator == "lm_head":
            change = smaller[-1].change
            yield (
                f"It is the largest part of decode: {smaller[-1].step} changes decode by {change['decode_ms']:+.4g} ms and loss "
                f"by {change['loss']:+.2g} nats at equal text"
            )


def _made_of(title: str, header: tuple[str, str], parts: Mapping[str, float], whole: float) -> Section:
    """Parts of a metric with their shares."""
    columns = (Column(header[0], words=True), Column(header[1], format=".4f"), Column("share %", format=".1f"))
    return Section(title, (Table(columns, tuple((name, v, 100 * v / whole) for name, v in parts.items())),))


def _phase(phase: str, rows: Sequence[OperatorRow], total: float, *, verbose: bool) -> Section:
    """A phase's operators, the slowest first; verbose: every one, and what launches and epilogues take of it."""
    if not rows:
        return Section(f"{phase.capitalize()} {total:.4f} ms in closed form: no operators", ())
    times = {kind: sum(row.ms_by_kind[kind] for row in rows) for kind in KINDS}
    shares = (f"{100 * times[kind] / total:.0f} % {KINDS[kind]}" for kind in KINDS if times[kind] or kind in SIDES)
    beside = [kind for kind in ("launch", "epilogue") if times[kind] and verbose]
    slowest = sorted(rows, key=lambda row: -row.ms)
    shown, others = (slowest, []) if verbose or len(rows) <= SLOWEST + 1 else (slowest[:SLOWEST], slowest[SLOWEST:])
    table: list[tuple[Cell, ...]] = [
        (r.operator, r.part, r.instances, *_figures([r], beside, total), r.bound) for r in shown
    ]
    if others:
        table.append((f"{len(others)} others", "", None, *_figures(others, beside, total), ""))
    columns = (
        *(Column(name, words=True) for name in ("operator", "of")),
        Column("instances", format="g", narrow="left out"),
        *figures({"GFLOP": ".4g", "MB": ".4g", "ms": ".4f"}),
        *figures({f"{kind} ms": ".4f" for kind in beside} | {"share %": ".1f"}),
        Column("bound by", words=True),
    )
    return Section(f"{phase.capitalize()} {total:.4f} ms: {', '.join(shares)}", (Table(columns, tuple(table)),))


def _figures(rows: Sequence[OperatorRow], beside: Sequence[str], total: float) -> tuple[float, ...]:
    """GFLOP, MB, ms, of that what else takes time, and the share of the whole, of operators together."""
    ms, kinds = sum(row.ms for row in rows), (sum(row.ms_by_kind[kind] for row in rows) for kind in beside)
    return sum(row.gflop for row in rows), sum(row.mb for row in rows), ms, *kinds, 100 * ms / total


def _budget(problem: Problem, budget: Mapping[str, Any], metrics: Mapping[str, float]) -> str:
    """`memory 2.819 of 64 GB: 95.6 % left`; of a rate its least too."""
    margin = f"{abs(100 * budget['violation']):.1f} % {'over' if budget['violation'] > 0 else 'left'}"
    rate = budget.get("rate", "")
    least = f"; {rate} {metrics[rate]:.4g} of at least {budget['least']:.4g}" if rate else ""
    amount = figure_of(problem, str(budget["metric"]), float(budget["value"]), float(budget["limit"]))
    return f"{amount}: {margin}{least}"


def _along_the_context(rows: Sequence[AtContext]) -> Table:
    columns = (Column(HEADER[0], format=","), *map(Column, HEADER[1:]))
    return Table(columns, tuple((row.tokens, *cells(row)[1:]) for row in rows))


def _changes(steps: Sequence[Step | HeadStep]) -> Table:
    names = list(steps[0].change)
    columns = (
        Column(LOSS if n == "loss" else n, format="+.4g", narrow="left out" if n in SPARE else "") for n in names
    )
    body: list[tuple[Cell, ...]] = [(in_words(step.step), *step.change.values()) for step in steps]
    return Table((Column("step", words=True), *columns), tuple(body))
