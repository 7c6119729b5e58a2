"""Closed forms against the corrections' points and against the program, which knows nothing of them."""

from dataclasses import replace

import numpy as np
import pytest

from nas.errors import UsageError
from nas.study.catalogue import load_device, load_law, load_space
from objectives.loss_law.form import Form, Term, named_form
from objectives.loss_law.law import Law
from objectives.plugins import importable
from objectives.precision import PRECISIONS
from objectives.scenario import Scenario
from plas_paper import cases
from plas_paper.costs import COSTS, Setting, decode_bytes, flops, weight_bytes
from plas_paper.program import Box, Program, solve
from plas_paper.regimes import DUAL, LATENCY, MEMORY, NEITHER, normalised, paper_rule, plain_unit, regime, thresholds
from plas_paper.theory_problem import loss_of, no_closed_form
from search_spaces.space import SearchSpace

RATE = 1 / 16


@pytest.fixture(scope="module")
def setting() -> Setting:
    """The paper's setting on AGX Orin."""
    return Setting(Scenario(load_law("hw_codesign"), load_device("jetson_agx_orin_64gb"), latency="closed_form"))


def randomised(setting: Setting, seed: int) -> tuple[Setting, float, float]:
    """Random coefficients, workload and precision; a width and a memory budget."""
    g = np.random.default_rng(seed)
    law = setting.scenario.law
    changed = {name: value * np.exp(g.normal(0, 0.4)) for name, value in law.coefficients.items()}
    scenario = replace(
        setting.scenario,
        law=law.model_copy(update={"coefficients": changed}),
        precision=PRECISIONS[("fp16", "int8", "int4")[seed % 3]],
        batch=int(g.integers(1, 5)),
        input_tokens=int(g.integers(1, 8000)),
    )
    return replace(setting, scenario=scenario), float(g.uniform(512, 4096)), float(np.exp(g.uniform(19, 24)))


def numeric(
    setting: Setting,
    width: float,
    memory: float | None = None,
    decode: float | None = None,
    prefill: float | None = None,
):
    """The program at one width with nothing but ρ bounded."""
    limits = {}
    for name, cost, budget in (
        ("memory", weight_bytes, memory),
        ("decode", decode_bytes, decode),
        ("prefill", flops, prefill),
    ):
        if budget is not None:
            limits[name] = cost(setting).times(1 / budget)
    box = Box(np.array([1e-6, width, 1e-9, 1e-9, RATE]), np.array([1e9, width, 1e9, 1e9, 1.0]))
    return solve(Program(loss_of(setting.scenario.law), limits, box))


def close(form: cases.ClosedForm, optimum) -> None:
    found = optimum.point
    pairs = [(form.depth, found["depth"]), (form.ffn_ratio, found["ffn_ratio"]), (form.gqa, found["gqa"])]
    for ours, theirs in [*pairs, (form.activation_rate, found["activation_rate"])]:
        assert ours == pytest.approx(theirs, rel=1e-4)
    logs = np.log([form.depth, form.width, form.ffn_ratio, form.gqa, form.activation_rate])
    assert float(optimum.program.objective(logs)) == pytest.approx(optimum.value, abs=1e-8)


def test_sparsity_at_two_widths(setting: Setting) -> None:
    c = setting.scenario.law.coefficients
    rates = [cases.memory_rate(c, width) for width in (2048, 1024)]
    assert rates == pytest.approx([0.1730, 0.3955], abs=5e-5)
    assert rates[1] / rates[0] == pytest.approx(2 ** (1.30 / 1.09))


def test_no_memory_sparsity_without_a_steeper_rate(setting: Setting) -> None:
    c = {**setting.scenario.law.coefficients, "alpha_rho": 0.10}
    assert cases.memory_rate(c, 1024) is None
    law = setting.scenario.law.model_copy(update={"coefficients": c})
    other = replace(setting, scenario=replace(setting.scenario, law=law))
    found = cases.memory_only(other, 1024, 4e9, RATE)
    assert found.activation_rate == 1.0
    close(found, numeric(other, 1024, memory=4e9))


@pytest.mark.parametrize(("eta", "paper"), [(0.2, 0.2176), (0.4, 0.4338), (0.6, 0.6486)])
def test_the_corrected_dual_form_meets_its_ratio_and_the_papers_misses_it(
    setting: Setting, eta: float, paper: float
) -> None:
    delta = cases.cache_correction(setting, 1024, 4)
    used = cases.decode_layer(setting, 1024)(1, 4)
    corrected, storage = cases.decode_dual_rate(eta, 1, 4, delta)
    assert used / cases.memory_layer(setting, 1024, corrected)(1, 4) == pytest.approx(eta, rel=1e-12)
    assert corrected == pytest.approx(3 * eta / (2.5 * (1 - eta) + 3 + delta), rel=1e-12)
    assert storage == pytest.approx(2.5 + 3 / corrected)
    printed, _ = cases.decode_dual_rate(eta, 1, 4, delta, paper_form=True)
    assert used / cases.memory_layer(setting, 1024, printed)(1, 4) == pytest.approx(paper, abs=5e-5)


def test_the_prefill_dual_form_meets_its_ratio(setting: Setting) -> None:
    rate = cases.prefill_dual_rate(0.3, 1.5, 6, 2.0)
    assert cases.prefill_layer(setting, 1024)(1.5, 6) / cases.memory_layer(setting, 1024, rate)(
        1.5, 6
    ) == pytest.approx(0.3)


@pytest.mark.parametrize("seed", range(4))
def test_single_budgets_against_the_program(setting: Setting, seed: int) -> None:
    other, width, memory = randomised(setting, seed)
    c = other.scenario.law.coefficients
    close(cases.memory_only(other, width, memory, RATE), numeric(other, width, memory=memory))
    decode = cases.single("D1", c, width, RATE, cases.decode_layer(other, width), memory)
    close(decode, numeric(other, width, decode=memory))
    prefill = cases.single("P1", c, width, RATE, cases.prefill_layer(other, width), memory)
    close(prefill, numeric(other, width, prefill=memory))


def between(setting: Setting, width: float, memory: float, name: str) -> float | None:
    """A latency budget at which both bind, if there is one."""
    layer = getattr(cases, f"{name}_layer")(setting, width)
    small = cases.memory_only(setting, width, memory, RATE)
    most = small.depth * layer(small.ffn_ratio, small.gqa)
    found = numeric(setting, width, memory=memory, **{name: 0.6 * most})
    return 0.6 * most if {"memory", name} <= set(found.active) else None


def dual_close(setting: Setting, seed: int) -> int:
    other, width, memory = randomised(setting, seed)
    checked = 0
    for name in ("decode", "prefill"):
        budget = between(other, width, memory, name)
        if budget is None:
            continue
        layer = getattr(cases, f"{name}_layer")(other, width)
        form = cases.dual(other, width, layer, budget, memory, RATE)
        assert form is not None
        close(form, numeric(other, width, memory=memory, **{name: budget}))
        if name == "decode" and RATE < form.activation_rate < 1:
            delta = cases.cache_correction(other, width, form.gqa)
            assert cases.decode_dual_rate(budget / memory, form.ffn_ratio, form.gqa, delta)[0] == pytest.approx(
                form.activation_rate, rel=1e-8
            )
        checked += 1
    return checked


def test_both_budgets_against_the_program(setting: Setting) -> None:
    assert sum(dual_close(setting, seed) for seed in range(6)) >= 4


@pytest.mark.slow
def test_closed_forms_on_fifty_problems(setting: Setting) -> None:
    for seed in range(4, 50):
        test_single_budgets_against_the_program(setting, seed)
    assert sum(dual_close(setting, seed) for seed in range(6, 50)) > 40


@pytest.mark.extended
def test_closed_forms_on_five_hundred_problems(setting: Setting) -> None:
    for seed in range(50, 550):
        test_single_budgets_against_the_program(setting, seed)
    assert sum(dual_close(setting, seed) for seed in range(50, 550)) > 400


CORRECTED = {
    2048.0: {0.02: LATENCY, 0.05: LATENCY, 0.125: LATENCY, 0.2: DUAL, 0.3: DUAL, 0.5: MEMORY, 0.8: MEMORY, 3.0: MEMORY},
    1024.0: {0.02: LATENCY, 0.05: LATENCY, 0.1: DUAL, 0.2: DUAL, 0.3: DUAL, 0.5: MEMORY, 0.8: MEMORY, 3.0: MEMORY},
}
EXACT = {2048.0: (0.1392, 0.3799), 1024.0: (0.0864, 0.4530)}


@pytest.mark.parametrize("width", [2048.0, 1024.0])
def test_regimes_at_the_corrections_points(setting: Setting, width: float) -> None:
    loss = loss_of(setting.scenario.law)
    box = Box(np.array([1e-2, width, 0.05, 1, RATE]), np.array([1e4, width, 20, 64, 1.0]))
    unit = plain_unit("decode_ms", setting)
    assert thresholds(loss, box, setting, "decode_ms", 4.0) == pytest.approx(EXACT[width], abs=6e-5)
    for eta, binds in CORRECTED[width].items():
        found = regime(loss, box, setting, "decode_ms", eta * 4.0 / unit, 4.0)
        assert found.ratio == pytest.approx(eta)
        assert found.binds == binds
        limits = {
            "latency": decode_bytes(setting).times(1 / (eta * 4e9)),
            "memory": weight_bytes(setting).times(1 / 4e9),
        }
        active = solve(Program(loss, limits, box)).active
        assert [name for name in ("latency", "memory") if name in active] == binds.split(" and ")
    assert paper_rule(0.05) == MEMORY
    assert paper_rule(4.0) == LATENCY


def regime_agrees(setting: Setting, seed: int, loosest: float = 2.0) -> str:
    """The diagnosis of a random bounded problem against the active set of the program with both budgets."""
    other, width, memory = randomised(setting, seed)
    g = np.random.default_rng(1000 + seed)
    box = Box(np.array([1, width, 0.1, 1, RATE]), np.array([400, width, 20, 64, 1.0]))
    loss, metric = loss_of(other.scenario.law), ("decode_ms", "prefill_ms")[seed % 2]
    memory_gb = memory / 1e9 * np.exp(g.uniform(0, loosest))
    limit = float(np.exp(g.uniform(np.log(0.01), 0)) * memory_gb / plain_unit(metric, other))
    latency, stored = COSTS[metric](other), COSTS["memory_gb"](other)
    both = Program(loss, {LATENCY: latency.times(1 / limit), MEMORY: stored.times(1 / memory_gb)}, box)
    if (both.excess(box.cheapest)[:2] > -0.01).any():
        return "nothing fits"
    active = set(solve(both).active) & {LATENCY, MEMORY} or {NEITHER}
    found = regime(loss, box, other, metric, limit, memory_gb)
    near = min(abs(found.ratio / edge - 1) for edge in (found.low, found.high)) < 1e-4
    assert near or set(found.binds.split(" and ")) == active, (seed, found, active)
    return found.binds


@pytest.mark.slow
def test_regimes_on_random_problems(setting: Setting) -> None:
    found = [regime_agrees(setting, seed) for seed in range(80)]
    assert sum(binds in (LATENCY, MEMORY, DUAL) for binds in found) >= 50
    assert {LATENCY, MEMORY, DUAL} <= set(found)


@pytest.mark.slow
def test_no_budget_binds_where_both_are_loose(setting: Setting) -> None:
    """Budgets up to far above what the best design of the bounds takes."""
    found = [regime_agrees(setting, seed, 9.0) for seed in range(200)]
    assert min(found.count(state) for state in (LATENCY, MEMORY, DUAL, NEITHER)) >= 10


@pytest.mark.extended
def test_regimes_on_five_hundred_random_problems(setting: Setting) -> None:
    found = [regime_agrees(setting, seed) for seed in range(80, 880)]
    assert sum(binds in (LATENCY, MEMORY, DUAL) for binds in found) >= 500


def with_law(setting: Setting, law: Law) -> Setting:
    return replace(setting, scenario=replace(setting.scenario, law=law))


def log_kv(law: Law) -> Law:
    """The same law with its KV term in the logarithm."""
    kept = {name: float(value) for name, value in law.coefficients.items() if name != "alpha_m"}
    return Law(form="hw_codesign_log_kv", coefficients={**kept, "kappa_m": 0.012})


@pytest.mark.parametrize("exponent", [0.02, 0.1, 0.24, 0.42])
def test_laws_with_a_small_depth_exponent(setting: Setting, exponent: float) -> None:
    """Depth goes with the price to the power −1/α_l, far beyond what float64 holds on the way to the root."""
    law = setting.scenario.law.model_copy(
        update={"coefficients": {**setting.scenario.law.coefficients, "alpha_l": exponent}}
    )
    other = with_law(setting, law)
    close(cases.memory_only(other, 1024, 4e9, RATE), numeric(other, 1024, memory=4e9))
    decode = cases.single("D1", law.coefficients, 1024, RATE, cases.decode_layer(other, 1024), 3e8)
    close(decode, numeric(other, 1024, decode=3e8))
    budget = between(other, 1024, 4e9, "decode")
    assert budget is not None
    both = cases.dual(other, 1024, cases.decode_layer(other, 1024), budget, 4e9, RATE)
    assert both is not None
    close(both, numeric(other, 1024, memory=4e9, decode=budget))


def test_no_dual_form_where_one_budget_does_not_bind(setting: Setting) -> None:
    layer = cases.decode_layer(setting, 1024)
    assert cases.dual(setting, 1024, layer, 1e7, 4e9, RATE) is None
    assert cases.dual(setting, 1024, layer, 1e11, 4e9, RATE) is None


def test_closed_forms_of_the_logarithmic_kv_term(setting: Setting) -> None:
    for seed in range(12):
        other, width, memory = randomised(setting, seed)
        other = with_law(other, log_kv(other.scenario.law))
        c = other.scenario.law.coefficients
        close(cases.memory_only(other, width, memory, RATE), numeric(other, width, memory=memory))
        decode = cases.single("D1", c, width, RATE, cases.decode_layer(other, width), memory)
        close(decode, numeric(other, width, decode=memory))
        budget = between(other, width, memory, "decode")
        if budget is not None:
            both = cases.dual(other, width, cases.decode_layer(other, width), budget, memory, RATE)
            assert both is not None
            close(both, numeric(other, width, memory=memory, decode=budget))


def law_of(form: str, **changed: float) -> Law:
    values = dict.fromkeys(named_form(form).coefficients, 0.3)
    return Law(form=form, coefficients={**values, **changed}, tokens=1e10)


@pytest.mark.parametrize("form", importable("objectives.law_forms"))
def test_every_form_of_law_is_taken_exactly_or_refused_in_a_sentence(form: str) -> None:
    law = law_of(form)
    space = SearchSpace.from_mapping(load_space("paper").mapping())
    shapes = space.architectures(space.sample(50, np.random.default_rng(2)))
    columns = [shapes.depth, shapes.width, shapes.ffn_ratio, shapes.gqa, shapes.activation_rate]
    logs = np.log(np.stack(columns, axis=1).astype(np.float64))
    taken = ("hw_codesign", "hw_codesign_log_kv", "hw_codesign_dense", "hw_codesign_no_kv")
    if form in (*taken, "depth_width", "depth_width_product"):
        assert loss_of(law)(logs) == pytest.approx(law.loss(shapes), rel=1e-12)
        assert (no_closed_form(law) == "") == (form in taken[:2])
        return
    with pytest.raises(UsageError, match="expected a law of powers") as refused:
        loss_of(law)
    assert "\n" not in str(refused.value)
    assert form in str(refused.value)


def test_what_is_not_convex_is_refused() -> None:
    with pytest.raises(UsageError, match="kappa_d makes its term width negative"):
        loss_of(law_of("hw_codesign", kappa_d=-1.0))
    own = Form(terms={"turns": Term(scale="a", powers={"depth": "b"}, logs={"depth": 2.0})})
    with pytest.raises(UsageError, match="its term turns multiplies a logarithm"):
        loss_of(Law(form=own, coefficients={"a": 1.0, "b": -2.0}))
    growing = loss_of(law_of("hw_codesign_log_kv", kappa_m=-0.3))  # linear, so convex with either sign
    points = np.random.default_rng(0).normal(size=(2, 200, 5))
    assert (growing(points.mean(axis=0)) <= growing(points).mean(axis=0) + 1e-12).all()
    assert "positive coefficients" in no_closed_form(law_of("hw_codesign_log_kv", kappa_m=-0.3))


def test_terms_that_are_joined_are_refused_in_a_sentence() -> None:
    """Each alone is a power that the theory takes; together they do not add up."""
    terms = {"layers": Term(scale="a", powers={"depth": "-b"}), "data": Term(scale="c", powers={"tokens": "-d"})}
    own = Form(terms={**terms, "level": Term(scale="e")}, joined=("layers", "data"), join="k")
    law = Law(form=own, coefficients={"a": 1.0, "b": 0.3, "c": 50.0, "d": 0.3, "e": 1.0, "k": 2.0}, tokens=1e10)
    with pytest.raises(
        UsageError,
        match="its terms layers and data are joined, so that they do not add up; give --law hw_codesign, or use",
    ):
        loss_of(law)
    by_hand = named_form("hw_codesign")
    joined = by_hand.model_copy(update={"joined": tuple(by_hand.terms)[:2], "join": "k"})
    values = dict.fromkeys(joined.coefficients, 0.3)
    assert no_closed_form(Law(form=joined, coefficients=values)).startswith("they are solved for laws of the form")


def test_a_law_with_tokens_and_width_alone() -> None:
    form = Form(
        terms={
            "size": Term(scale="a", powers={"width": "-b", "tokens": "-c"}),
            "data": Term(scale="k", logs={"tokens": 1e9}, sign=-1),
            "wide": Term(scale="w", logs={"width": 512.0, "tokens": 1e9}, sign=-1),
        }
    )
    law = Law(form=form, coefficients={"a": 9.0, "b": 0.3, "c": 0.1, "k": 0.2, "w": 0.01}, tokens=2e10)
    space = SearchSpace.from_mapping(load_space("paper").mapping())
    shapes = space.architectures(space.sample(20, np.random.default_rng(2)))
    logs = np.zeros((20, 5))
    logs[:, 1] = np.log(shapes.width)
    assert loss_of(law)(logs) == pytest.approx(law.loss(shapes), rel=1e-12)


def test_normalised_budgets_of_the_worked_example(setting: Setting) -> None:
    device = setting.scenario.device.model_copy(update={"fp16": 10e12, "bandwidth": 50e9})
    other = replace(setting, scenario=replace(setting.scenario, device=device, output_tokens=10))
    found = normalised({"decode_ms": 100.0, "memory_gb": 4.0, "prefill_ms": 50.0}, other)
    assert found.decode_bytes == pytest.approx(0.5e9)
    assert found.eta == pytest.approx(0.125)
    assert found.eta_p == pytest.approx(0.05 * 10e12 / 1024 / 4e9)
    assert found.eta_p_plain == pytest.approx(found.eta_p)
    one = replace(other, scenario=replace(other.scenario, output_tokens=1))
    assert normalised({"decode_ms": 100.0, "memory_gb": 4.0}, one).eta == pytest.approx(1.25)
    assert normalised({"decode_ms": 100.0}, one).eta is None
