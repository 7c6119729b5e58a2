"""A prediction as a document: designs and derived quantities, in words each with its unit, and the same as plain content."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nas.answer.answer_document import LOSS
from nas.answer.design_words import SUFFIXES, describe, figure
from nas.answer.device_times import PREFIX, TIMES, misses, verdict
from nas.answer.sentences import of_text
from nas.document.document import Cell, Column, Document, Part, Section, Table, table_of
from nas.problem.evaluations import Evaluations
from nas.problem.law_caveats import active_experts_lines
from nas.problem.objective import unit_of
from nas.problem.problem import Problem
from nas.problem.wording import in_words
from objectives.loss_law.law import Law
from plas_paper.cases import decode_layer, memory_layer
from plas_paper.prediction import PAIRS, CheckedForm, Prediction, by_operators, worth_training
from plas_paper.regimes import MUCH
from plas_paper.relaxation import Relaxation

CASES = {  # the binding budgets in each of the paper's cases
    "D1": "decode",
    "P1": "prefill",
    "T1": "total",
    "D2 = P2": "memory",
    "D3": "decode and memory",
    "P3": "prefill and memory",
    "T3": "total and memory",
}
OPERATOR = "by operators: "  # of a time's name in a table
ON_DEVICE = "on the device: "
REGIMES = (
    *(Column(name, words=True) for name in ("budget", "binding", "paper's rule")),
    *(Column(name) for name in ("ratio η", "latency up to", "memory from")),
)
Worth = tuple[list[str], Evaluations]


def theory_document(prediction: Prediction, on_device: Problem, under_laws: Sequence[str] | None = None) -> Document:
    """The budgets, which of them is binding, the optimum with its bound, the best design, and designs to train.

    on_device: the problem under preset `device`. under_laws: the best design's regret under other laws.
    """
    theory, worth = prediction.theory, worth_training(prediction)
    s = theory.problem.scenario
    request = f"{s.input_tokens:,} tokens in, {s.output_tokens:,} out, batch {s.batch}"
    title = f"{s.device.name}, {s.precision.name}, {request}; {', '.join(map(str, theory.problem.budgets))}"
    width = f"width {prediction.width:,.0f}" if _fixed(prediction) else "width free"
    sections = [
        Section(title, (*of_text(theory.problem), *_normalised(prediction))),
        Section(f"Which budget is binding, closed-form costs, {width}", (_regimes(prediction),)),
        Section(
            f"The paper's closed forms at width {prediction.width:,.0f}, head size {theory.setting.head_dim}; "
            "of their quantities the active share of experts ρ alone is bounded",
            tuple(_forms(prediction)),
        ),
        Section(
            "The whole problem as a geometric program, inside the space's bounds: one global optimum",
            tuple(_programs(prediction)),
        ),
        Section(f"The best design, {s.latency.replace('_', '-')} costs, any width", tuple(_best(prediction))),
        _to_train(prediction, on_device, *worth),
        *([Section("", tuple(under_laws))] if under_laws else []),
    ]
    laws = {} if under_laws is None else {"under_laws": under_laws}
    return Document(title, tuple(sections), {**_content(prediction, worth), **laws})


def _fixed(prediction: Prediction) -> bool:
    return not bool(prediction.whole.optimum.program.free[1])


def _normalised(prediction: Prediction) -> Iterator[str]:
    b = prediction.budgets
    parts = [
        (b.prefill_flops, "{:.4g} GFLOP for each token of the prompt (F̄_p = T π/(B S_in))"),
        (b.decode_bytes, "{:.4g} GB read for each token generated (M̄_d = T β/S_out)"),
        (b.memory_bytes, "{:.4g} GB stored (M)"),
    ]
    words = [text.format(value / 1e9) for value, text in parts if value is not None]
    if b.eta is not None:
        words.append(f"read is {b.eta:.4g} of what is stored (η = M̄_d/M, no unit)")
    if b.eta_p is not None and b.eta_p_plain is not None:
        words.append(
            f"{b.eta_p:.4g} FLOP for each byte stored (η_p = F̄_p/M), {b.eta_p_plain:.4g} without a unit (η_p b_w/2)"
        )
    if words:
        yield f"Budgets on this device: {'; '.join(words)}"


def _regimes(prediction: Prediction) -> Part:
    if not prediction.regimes:
        return "no pair of a latency and a memory_gb budget to compare"
    rows: list[tuple[Cell, ...]] = []
    for r in prediction.regimes:
        low, high = r.low if r.latency_alone_binds else "never", r.high if r.memory_alone_binds else "never"
        rows.append((r.metric, r.binds, r.paper_binds, r.ratio, low, high))
    note = f"Up to that ratio η (no unit) the latency alone is binding, from that on the memory alone. The paper's rule: memory below {MUCH:.2g}, latency above {1 / MUCH:.2g}."
    return Table(REGIMES, tuple(rows), notes=(note,))


def _forms(prediction: Prediction) -> Iterator[Part]:
    """The closed forms, notes on them, and on cases that have none."""
    if prediction.no_forms:
        yield f"none: {prediction.no_forms}"
        return
    limits, law = prediction.theory.limits, prediction.theory.problem.scenario.law
    timed = [m for m in TIMES if m in limits]
    if prediction.forms:
        columns = (
            Column("binding (case)", words=True),
            Column(LOSS),
            *(Column(f"{OPERATOR}{_column(m)}") for m in timed),
            Column("optimum", words=True, narrow="below"),
            Column("verdict", words=True, narrow="below"),
        )
        yield Table(columns, tuple(_form_row(prediction, form) for form in prediction.forms))
    if any(not form.holds for form in prediction.forms):
        yield "a form that exceeds a budget or leaves a bound is no design: its loss is only what no design at this width goes below"
    if timed and prediction.forms:
        yield "by operators: what the form takes where each operator is priced, with the experts of the space nearest to its active share"
    if timed and "memory_gb" in limits and len(prediction.forms) < 2 * len(timed) + 1:
        yield "no form has both budgets: at no prices does one optimum use up a latency and the memory, so one of the two is not binding"
    for form in prediction.forms:
        if form.paper_rate is not None:
            yield (
                f"D3 as printed in the paper: {_percent(form.paper_rate)} of the experts active, which gives a ratio η "
                f"{_paper_ratio(prediction, form):.4f} instead of {prediction.budgets.eta or np.nan:.4f}"
            )
    if law.coefficients["alpha_rho"] <= law.coefficients["alpha_r"]:
        yield "the law's exponent α_ρ is not above α_r: where memory is binding no sparse design is the optimum, ρ* = 100 %"


def _paper_ratio(prediction: Prediction, checked: CheckedForm) -> float:
    """The constraint ratio that the printed D3 arrives at."""
    f, setting = checked.form, prediction.theory.setting
    assert checked.paper_rate is not None
    stored = memory_layer(setting, f.width, checked.paper_rate)
    return decode_layer(setting, f.width)(f.ffn_ratio, f.gqa) / stored(f.ffn_ratio, f.gqa)


def _form_row(prediction: Prediction, checked: CheckedForm) -> tuple[str, ...]:
    f, (number, top_k) = checked.form, checked.experts
    experts = "dense" if number == 1 else f"{number} experts top-{top_k}"
    reasons = [f"exceeds {metric}" for metric in checked.exceeds] + list(checked.leaves)
    return (
        f"{CASES[f.case]} ({f.case})",
        f"{checked.loss:.4f}{'*' if extrapolated(prediction.theory.problem.scenario.law, vars(f)) else ''}",
        *(f"{ms:.4g} ({experts})" for ms in checked.operator_ms.values()),
        _optimum(prediction, vars(f)),
        "the optimum at this width" if checked.holds else "; ".join(map(in_words, reasons)),
    )


def _optimum(prediction: Prediction, values: Mapping[str, float]) -> str:
    """A continuous optimum in words, from its values by the formulas' names."""
    width, gqa = values["width"], values["gqa"]
    return (
        f"{values['depth']:.2f} layers, width {width:,.0f}, {_percent(values['activation_rate'])} of the experts active, "
        f"FFN ratio {values['ffn_ratio']:.3f}, {gqa:.2f} heads per KV head ({width / gqa / prediction.theory.setting.head_dim:.2f} KV heads)"
    )


def _percent(share: float) -> str:
    return f"{100.0 * share:.4g} %"


def _column(metric: str) -> str:
    """A metric's name with its unit, over a column: `decode (ms)`, `memory (GB)`."""
    unit = unit_of(metric)
    return f"{metric.removesuffix(SUFFIXES.get(unit, ''))} ({unit})"


def extrapolated(law: Law, point: Mapping[str, float]) -> list[str]:
    """Which quantities of a continuous design lie outside the law's fitted ranges."""
    values = {name: point[name] for name in ("depth", "width", "activation_rate")}
    values["kv_dim"] = point["width"] / point["gqa"]
    ends = ((name, law.fitted_on.get(name, (-np.inf, np.inf))) for name in values)
    return [name for name, (low, high) in ends if not low * (1 - 1e-6) <= values[name] <= high * (1 + 1e-6)]


def _programs(prediction: Prediction) -> Iterator[str]:
    yield from _program(prediction, prediction.whole, "closed-form costs")
    if prediction.operator is not None:
        yield from _program(prediction, prediction.operator, "operator costs, experts of the space")
    elif prediction.theory.problem.scenario.latency == "operator":
        yield "operator costs, experts of the space: nothing of this width meets the budgets"


def _program(prediction: Prediction, relaxation: Relaxation, costs: str) -> Iterator[str]:
    o, theory = relaxation.optimum, prediction.theory
    outside = extrapolated(theory.problem.scenario.law, o.point)
    of_width = " of this width" if _fixed(prediction) else ""
    some = relaxation is prediction.operator and len(theory.pairs) > PAIRS
    of_pairs = f" with one of the {PAIRS} choices of experts nearest to that active share" if some else ""
    yield (
        f"{costs}: {_optimum(prediction, o.point)}; loss {relaxation.loss:.4f}{'*' if outside else ''} nats, "
        f"certified: no design{of_width}{of_pairs} below {relaxation.bound:.6f} nats"
    )
    prices = "; ".join(_price(prediction, name, price) for name, price in relaxation.prices.items())
    yield f"binding: {prices or 'nothing'}; conditions of an optimum met to {o.residual:.0e} after {o.steps} steps"
    if outside:
        yield f"* extrapolates the law: {', '.join(map(in_words, outside))}"


def _price(prediction: Prediction, name: str, price: float) -> str:
    limit = prediction.theory.limits.get(name)
    if limit is None:
        return f"{in_words(name)} ({price / 100.0:.3g} nats per 1 %)"
    unit = {"ms": "ms", "gb": "GB"}.get(name.rpartition("_")[2], "parameter")
    return f"{name} (−{price / limit:.3g} nats per {unit})"


def _best(prediction: Prediction) -> Iterator[str]:
    values = prediction.best.metrics
    metrics = ", ".join(figure(prediction.theory.problem, m, float(values[m][0])) for m in prediction.theory.limits)
    yield _design(prediction, prediction.best.genotypes)
    yield f"loss {values['loss'][0]:.4f} nats, {metrics}; no design of the space within the budgets is better: {prediction.covered}"
    yield from _active_experts(prediction)


def _active_experts(prediction: Prediction) -> list[str]:
    """That the law itself keeps the active experts of the best design few, where it does."""
    problem = prediction.theory.problem
    return active_experts_lines(problem.scenario.law, problem.architectures(prediction.best.genotypes), "designs")


def _design(prediction: Prediction, genotypes: Any) -> str:
    shapes = prediction.theory.problem.architectures(genotypes)
    return describe(shapes) + (" *" if prediction.theory.problem.scenario.law.extrapolates(shapes)[0] else "")


def _to_train(prediction: Prediction, on_device: Problem, reasons: list[str], chosen: Evaluations) -> Section:
    limits, problem = prediction.theory.limits, prediction.theory.problem
    timed = [m for m in limits if m in TIMES]
    columns: dict[str, Any] = {_column(m): chosen.metrics[m] for m in ("loss", *limits)}
    if problem.scenario.latency == "closed_form":
        columns |= {f"{OPERATOR}{_column(m)}": by_operators(problem, chosen, m) for m in timed}
    there = on_device.evaluate(chosen.genotypes, TIMES).metrics
    columns |= {f"{ON_DEVICE}{_column(m)}": there[m] for m in timed}
    rows: list[tuple[Cell, ...]] = [
        (reason, *(float(column[i]) for column in columns.values()), _design(prediction, chosen.genotypes[i : i + 1]))
        for i, reason in enumerate(reasons)
    ]
    times = [{f"{PREFIX}{m}": float(there[m][i]) for m in TIMES} for i in range(len(reasons))]
    notes = [verdict(problem, on_device, [misses(limits, row) for row in times], ON_DEVICE)] if timed else []
    table = table_of(("why", *columns, "architecture"), rows, notes=notes)
    return Section("Worth training to check the prediction", (table,))


def _content(prediction: Prediction, worth: Worth) -> dict[str, Any]:
    """A prediction as plain content."""
    budgets = prediction.budgets
    return {
        "limits": prediction.theory.limits,
        "normalised": asdict(budgets) | {name: getattr(budgets, name) for name in ("eta", "eta_p", "eta_p_plain")},
        "width": prediction.width,
        "regimes": [asdict(r) | {"binds": r.binds, "paper_binds": r.paper_binds} for r in prediction.regimes],
        "closed_forms": [asdict(form) | {"holds": form.holds} for form in prediction.forms],
        "no_closed_forms": prediction.no_forms,
        "program": _program_content(prediction.whole),
        "operator_program": None if prediction.operator is None else _program_content(prediction.operator),
        "best": {
            "design": _row(prediction, prediction.best, 0),
            "law_on_active_experts": _active_experts(prediction),
            "how": prediction.covered,
        },
        "worth_training": [{"reason": reason} | _row(prediction, worth[1], i) for i, reason in enumerate(worth[0])],
    }


def _program_content(relaxation: Relaxation) -> dict[str, Any]:
    own = {name: getattr(relaxation, name) for name in ("loss", "bound", "prices")}
    return own | {name: getattr(relaxation.optimum, name) for name in ("point", "residual", "steps")}


def _row(prediction: Prediction, chosen: Evaluations, row: int) -> dict[str, Any]:
    shapes = prediction.theory.problem.architectures(chosen.genotypes[row : row + 1])
    columns = {**shapes.columns(), **{name: column[row : row + 1] for name, column in chosen.metrics.items()}}
    return {name: column[0].item() for name, column in columns.items()}
