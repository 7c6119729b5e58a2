"""A prediction as text and as JSON: designs and derived quantities, in words each with its unit."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from nas.answer.design_words import describe
from nas.answer.device_times import PREFIX, TIMES, misses, verdict
from nas.answer.pick_tables import LOSS, SUFFIXES, figure
from nas.answer.sentences import of_text
from nas.problem.law_caveats import active_experts_lines
from nas.problem.objective import unit_of
from nas.problem.problem import Problem
from nas.problem.wording import in_words
from nas.terminal.console import say
from nas.terminal.screen_text import TITLE, Styled
from nas.terminal.tables import table
from nas.theory.cases import decode_layer, memory_layer
from nas.theory.prediction import CheckedForm, Prediction, by_operators, worth_training
from nas.theory.regimes import MUCH, Regime
from nas.theory.relaxation import Relaxation
from nas.theory.rounding import PAIRS, Rounded
from objectives.loss_law.law import Law

CASES = {  # what binds in each of the paper's cases
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
BELOW = ("optimum", "verdict")  # of a closed form, below its row


def show(prediction: Prediction, on_device: Problem) -> None:
    """Print a prediction; `on_device` is the problem under preset `device`."""
    for line in _budget_lines(prediction):
        say(line)
    at = f"width {prediction.width:,.0f}" if _fixed(prediction) else "width free"
    say(f"\nWhich budget binds, closed-form costs, {at}")
    for regime in prediction.regimes:
        say(f"  {_regime_line(regime)}")
    if not prediction.regimes:
        say("  no pair of a latency and a memory_gb budget to compare")
    _show_forms(prediction)
    say(Styled("\nThe whole problem as a geometric program, inside the space's bounds: one global optimum", TITLE))
    _show_program(prediction, prediction.whole, "closed-form costs")
    if prediction.operator is not None:
        _show_program(prediction, prediction.operator, "operator costs, experts of the space")
    elif prediction.theory.problem.scenario.latency == "operator":
        say("  operator costs, experts of the space: nothing of this width meets the budgets")
    _show_rounded(prediction)
    _show_worth(prediction, on_device)


def _fixed(prediction: Prediction) -> bool:
    return not bool(prediction.whole.optimum.program.free[1])


def _budget_lines(prediction: Prediction) -> Iterator[str]:
    b, s = prediction.budgets, prediction.theory.problem.scenario
    yield (
        f"{s.device.name}, {s.precision.name}, {s.input_tokens:,} tokens in, {s.output_tokens:,} out, batch {s.batch}; "
        + ", ".join(str(budget) for budget in prediction.theory.problem.budgets)
    )
    yield from of_text(prediction.theory.problem)
    parts = [
        (b.prefill_flops, "{:.4g} GFLOP for each token of the prompt (F̄_p = T π/(B S_in))"),
        (b.decode_bytes, "{:.4g} GB read for each token generated (M̄_d = T β/S_out)"),
        (b.memory_bytes, "{:.4g} GB stored (M)"),
    ]
    shown = [text.format(value / 1e9) for value, text in parts if value is not None]
    if b.eta is not None:
        shown.append(f"read is {b.eta:.4g} of what is stored (η = M̄_d/M, no unit)")
    if b.eta_p is not None and b.eta_p_plain is not None:
        shown.append(
            f"{b.eta_p:.4g} FLOP for each byte stored (η_p = F̄_p/M), {b.eta_p_plain:.4g} without a unit (η_p b_w/2)"
        )
    if shown:
        yield f"Budgets on this device: {'; '.join(shown)}"


def _regime_line(r: Regime) -> str:
    low = f"up to a ratio of {r.low:.4g}" if r.latency_alone_binds else "at no ratio"
    high = f"from {r.high:.4g} on" if r.memory_alone_binds else "at none"
    return (
        f"{r.metric} against memory_gb: ratio η {r.ratio:.4g} (no unit); the latency alone binds {low}, the memory alone {high}. "
        f"Binding: {r.binds}. The paper's rule (memory below {MUCH:.2g}, latency above {1 / MUCH:.2g}): {r.paper_binds}"
    )


def _show_forms(prediction: Prediction) -> None:
    say(
        f"\nThe paper's closed forms at width {prediction.width:,.0f}, head size {prediction.theory.setting.head_dim}; "
        "of their quantities the active share of experts ρ alone is bounded"
    )
    if prediction.no_forms:
        say(f"  none: {prediction.no_forms}")
        return
    timed = [m for m in TIMES if m in prediction.theory.limits]
    rows = [_form_row(prediction, form) for form in prediction.forms]
    if rows:
        times = (f"{OPERATOR}{_column(m)}" for m in timed)
        table(("binds (case)", LOSS, *times, *BELOW), rows, below=BELOW)
    for line in _form_notes(prediction, timed):
        say(f"  {line}")
    for form in prediction.forms:
        if form.paper_rate is not None:
            asked, given = prediction.budgets.eta or np.nan, _paper_ratio(prediction, form)
            say(
                f"  D3 as printed in the paper: {_percent(form.paper_rate)} of the experts active, which gives a ratio η {given:.4f} "
                f"instead of {asked:.4f}"
            )
    law = prediction.theory.problem.scenario.law
    if law.coefficients["alpha_rho"] <= law.coefficients["alpha_r"]:
        say(
            "  the law's exponent α_ρ is not above α_r: where the memory binds no sparse design is the optimum, ρ* = 100 %"
        )


def _form_notes(prediction: Prediction, timed: list[str]) -> Iterator[str]:
    """Notes on the rows, and on cases that have none."""
    if any(not form.holds for form in prediction.forms):
        yield "a form that exceeds a budget or leaves a bound is no design: its loss is only what no design at this width goes below"
    if timed and prediction.forms:
        yield "by operators: what the form takes where each operator is priced, with the experts of the space nearest to its active share"
    if timed and "memory_gb" in prediction.theory.limits and len(prediction.forms) < 2 * len(timed) + 1:
        yield "no form has both budgets: at no prices does one optimum use up a latency and the memory, so that one of the two does not bind"


def _paper_ratio(prediction: Prediction, checked: CheckedForm) -> float:
    """The constraint ratio that the printed D3 arrives at."""
    f, setting = checked.form, prediction.theory.setting
    assert checked.paper_rate is not None
    stored = memory_layer(setting, f.width, checked.paper_rate)
    return decode_layer(setting, f.width)(f.ffn_ratio, f.gqa) / stored(f.ffn_ratio, f.gqa)


def _form_row(prediction: Prediction, checked: CheckedForm) -> tuple[str, ...]:
    f = checked.form
    outside = extrapolated(prediction.theory.problem.scenario.law, f.depth, f.width, f.activation_rate, f.gqa)
    reasons = [f"exceeds {metric}" for metric in checked.exceeds] + list(checked.leaves)
    return (
        f"{CASES[f.case]} ({f.case})",
        f"{checked.loss:.4f}{'*' if outside else ''}",
        *(f"{ms:.4g} ({_experts(*checked.experts)})" for ms in checked.operator_ms.values()),
        _optimum(prediction, vars(f)),
        "the optimum at this width" if checked.holds else "; ".join(map(in_words, reasons)),
    )


def _optimum(prediction: Prediction, values: Mapping[str, float]) -> str:
    """A continuous optimum in words, from its values by the formulas' names."""
    rate, width, gqa = values["activation_rate"], values["width"], values["gqa"]
    kv_heads = width / gqa / prediction.theory.setting.head_dim
    return (
        f"{values['depth']:.2f} layers, width {width:,.0f}, {_percent(rate)} of the experts active, FFN ratio {values['ffn_ratio']:.3f}, "
        f"{gqa:.2f} heads per KV head ({kv_heads:.2f} KV heads)"
    )


def _percent(share: float) -> str:
    return f"{100.0 * share:.4g} %"


def _experts(number: int, top_k: int) -> str:
    return "dense" if number == 1 else f"{number} experts top-{top_k}"


def _column(metric: str) -> str:
    """A metric's name with its unit, over a column: `decode (ms)`, `memory (GB)`."""
    unit = unit_of(metric)
    return f"{metric.removesuffix(SUFFIXES.get(unit, ''))} ({unit})"


def extrapolated(law: Law, depth: float, width: float, rate: float, gqa: float) -> list[str]:
    """Which quantities of a continuous design lie outside the law's fitted ranges."""
    values = {"depth": depth, "width": width, "activation_rate": rate, "kv_dim": width / gqa}
    ends = ((name, law.fitted_on.get(name, (-np.inf, np.inf))) for name in values)
    return [name for name, (low, high) in ends if not low * (1 - 1e-6) <= values[name] <= high * (1 + 1e-6)]


def _show_program(prediction: Prediction, relaxation: Relaxation, costs: str) -> None:
    p, o = relaxation.optimum.point, relaxation.optimum
    law = prediction.theory.problem.scenario.law
    outside = extrapolated(law, p["depth"], p["width"], p["activation_rate"], p["gqa"])
    say(
        f"  {costs}: {_optimum(prediction, p)}; "
        f"loss {relaxation.loss:.4f}{'*' if outside else ''} nats, certified: {_scope(prediction, relaxation)} below {relaxation.bound:.6f} nats"
    )
    prices = "; ".join(_price(prediction, name, price) for name, price in relaxation.prices.items())
    say(f"    binds: {prices or 'nothing'}; conditions of an optimum met to {o.residual:.0e} after {o.steps} steps")
    if outside:
        say(f"    * extrapolates the law: {', '.join(map(in_words, outside))}")


def _scope(prediction: Prediction, relaxation: Relaxation) -> str:
    """Which designs a program's bound holds for."""
    width = " of this width" if _fixed(prediction) else ""
    some = relaxation is prediction.operator and len(prediction.theory.pairs) > PAIRS
    return f"no design{width}" + (
        f" with one of the {PAIRS} choices of experts nearest to that active share" if some else ""
    )


def _price(prediction: Prediction, name: str, price: float) -> str:
    limit = prediction.theory.limits.get(name)
    if limit is None:
        return f"{in_words(name)} ({price / 100.0:.3g} nats per 1 %)"
    unit = {"ms": "ms", "gb": "GB"}.get(name.rpartition("_")[2], "parameter")
    return f"{name} (−{price / limit:.3g} nats per {unit})"


def _show_rounded(prediction: Prediction) -> None:
    rounded, exact = prediction.rounded, prediction.exact
    model = prediction.theory.problem.scenario.latency.replace("_", "-")
    say(f"\nThe best design, {model} costs, any width")
    if rounded.design is None:
        say(f"  none of {rounded.designs:,} designs tried is feasible")
        return
    say(f"  {_design(prediction, rounded.design.genotypes)}")
    problem, values = prediction.theory.problem, rounded.design.metrics
    metrics = ", ".join(figure(problem, m, float(values[m][0])) for m in prediction.theory.limits)
    say(f"  loss {values['loss'][0]:.4f} nats, {metrics}; {_proven(rounded)}")
    for line in on_active_experts(prediction):
        say(f"  {line}")
    if exact is not None:
        on = "on the exact frontier" if exact.on_frontier else "not on the exact frontier"
        say(
            f"  exact optimum: loss {exact.pick.metrics['loss'][0]:.4f} nats, {_design(prediction, exact.pick.genotypes)}"
        )
        say(f"  the best design above loses {exact.regret:.5f} nats to it and is {on}; {exact.explanation}")


def on_active_experts(prediction: Prediction) -> list[str]:
    """That the law itself keeps the active experts of the best design few, where it does."""
    problem, design = prediction.theory.problem, prediction.rounded.design
    chosen = None if design is None else problem.architectures(design.genotypes)
    return [] if chosen is None else active_experts_lines(problem.scenario.law, chosen, "designs")


def _proven(rounded: Rounded) -> str:
    """The result of branch and bound, and its effort."""
    assert rounded.design is not None
    effort = f"{rounded.relaxations:,} relaxations, {rounded.designs:,} designs evaluated, {rounded.cut_off:,} parts of the space cut off"
    if rounded.complete:
        return f"no design of the space within the budgets is better: branch and bound closed ({effort})"
    if not np.isfinite(rounded.bound):
        return f"no bound: too many choices of experts for all ({effort})"
    gap = float(rounded.design.metrics["loss"][0]) - rounded.bound
    return f"no design below {rounded.bound:.4f} nats: stopped with a gap of {gap:.4f} nats ({effort})"


def _design(prediction: Prediction, genotypes: Any) -> str:
    shapes = prediction.theory.problem.architectures(genotypes)
    return describe(shapes) + (" *" if prediction.theory.problem.scenario.law.extrapolates(shapes)[0] else "")


def _show_worth(prediction: Prediction, on_device: Problem) -> None:
    found = worth_training(prediction)
    if found is None:
        return
    reasons, chosen = found
    limits, problem = prediction.theory.limits, prediction.theory.problem
    columns = {_column(m): chosen.metrics[m] for m in ("loss", *limits)}
    timed = [m for m in limits if m in TIMES]
    if problem.scenario.latency == "closed_form":
        columns |= {f"{OPERATOR}{_column(m)}": by_operators(problem, chosen, m) for m in timed}
    there = on_device.evaluate(chosen.genotypes, TIMES).metrics
    columns |= {f"{ON_DEVICE}{_column(m)}": there[m] for m in timed}
    say(Styled("\nWorth training to check the prediction", TITLE))
    rows = [
        (reason, *(f"{c[i]:.4g}" for c in columns.values()), _design(prediction, chosen.genotypes[i : i + 1]))
        for i, reason in enumerate(reasons)
    ]
    table(("why", *columns, "architecture"), rows)
    if any(m in TIMES for m in limits):
        each = [{f"{PREFIX}{m}": there[m][i] for m in TIMES} for i in range(len(reasons))]
        say(f"  {verdict(prediction.theory.problem, on_device, [misses(limits, times) for times in each], ON_DEVICE)}")


def as_json(prediction: Prediction) -> dict[str, Any]:
    """A prediction as plain content."""
    rounded, exact = prediction.rounded, prediction.exact
    found = worth_training(prediction)
    return {
        "limits": prediction.theory.limits,
        "normalised": asdict(prediction.budgets)
        | {
            "eta": prediction.budgets.eta,
            "eta_p": prediction.budgets.eta_p,
            "eta_p_plain": prediction.budgets.eta_p_plain,
        },
        "width": prediction.width,
        "regimes": [asdict(r) | {"binds": r.binds, "paper_binds": r.paper_binds} for r in prediction.regimes],
        "closed_forms": [asdict(form) | {"holds": form.holds} for form in prediction.forms],
        "no_closed_forms": prediction.no_forms,
        "program": _program_json(prediction.whole),
        "operator_program": None if prediction.operator is None else _program_json(prediction.operator),
        "rounded": {
            "design": None if rounded.design is None else _row(prediction, rounded.design, 0),
            "bound": rounded.bound,
            "law_on_active_experts": on_active_experts(prediction),
            "relaxations": rounded.relaxations,
            "cut_off": rounded.cut_off,
            "designs": rounded.designs,
            "complete": rounded.complete,
        },
        "exact": None
        if exact is None
        else {"design": _row(prediction, exact.pick, 0), "regret": exact.regret, "on_frontier": exact.on_frontier},
        "worth_training": []
        if found is None
        else [{"reason": reason} | _row(prediction, found[1], i) for i, reason in enumerate(found[0])],
    }


def _program_json(relaxation: Relaxation) -> dict[str, Any]:
    o = relaxation.optimum
    return {
        "point": o.point,
        "loss": relaxation.loss,
        "bound": relaxation.bound,
        "prices": relaxation.prices,
        "residual": o.residual,
        "steps": o.steps,
    }


def _row(prediction: Prediction, chosen: Any, row: int) -> dict[str, Any]:
    shapes = prediction.theory.problem.architectures(chosen.genotypes[row : row + 1])
    columns = {**shapes.columns(), **{name: column[row : row + 1] for name, column in chosen.metrics.items()}}
    return {name: column[0].item() for name, column in columns.items()}
