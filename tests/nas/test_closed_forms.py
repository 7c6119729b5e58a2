"""Closed forms against the corrections' points and against the program, which knows nothing of them."""

from dataclasses import replace

import numpy as np
import pytest

from nas.closed_forms import cases
from nas.closed_forms.budgets import normalised
from nas.closed_forms.costs import COSTS, Setting, decode_bytes, flops, weight_bytes
from nas.closed_forms.loss_terms import loss_above_limit
from nas.closed_forms.program import Box, Program, solve
from nas.closed_forms.regimes import DUAL, LATENCY, MEMORY, paper_rule, plain_unit, regime, thresholds
from nas.named import load_device, load_law
from objectives.scenario import PRECISIONS, Scenario

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
    return solve(Program(loss_above_limit(setting.scenario.law), limits, box))


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
    loss = loss_above_limit(setting.scenario.law)
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


def regime_agrees(setting: Setting, seed: int) -> str:
    """The diagnosis of a random bounded problem against the active set of the program with both budgets."""
    other, width, memory = randomised(setting, seed)
    g = np.random.default_rng(1000 + seed)
    box = Box(np.array([1, width, 0.1, 1, RATE]), np.array([400, width, 20, 64, 1.0]))
    loss, metric = loss_above_limit(other.scenario.law), ("decode_ms", "prefill_ms")[seed % 2]
    memory_gb = memory / 1e9 * np.exp(g.uniform(0, 2))
    limit = float(np.exp(g.uniform(np.log(0.01), 0)) * memory_gb / plain_unit(metric, other))
    latency, stored = COSTS[metric](other), COSTS["memory_gb"](other)
    both = Program(loss, {LATENCY: latency.times(1 / limit), MEMORY: stored.times(1 / memory_gb)}, box)
    if (both.excess(box.cheapest)[:2] > -0.01).any():
        return "nothing fits"
    active = set(solve(both).active) & {LATENCY, MEMORY}
    if not active:
        return "neither"
    found = regime(loss, box, other, metric, limit, memory_gb)
    near = min(abs(found.ratio / edge - 1) for edge in (found.low, found.high)) < 1e-4
    assert near or set(found.binds.split(" and ")) == active, (seed, found, active)
    return found.binds


def test_regimes_on_random_problems(setting: Setting) -> None:
    found = [regime_agrees(setting, seed) for seed in range(80)]
    assert sum(binds in (LATENCY, MEMORY, DUAL) for binds in found) >= 50
    assert {LATENCY, MEMORY, DUAL} <= set(found)


@pytest.mark.extended
def test_regimes_on_five_hundred_random_problems(setting: Setting) -> None:
    found = [regime_agrees(setting, seed) for seed in range(80, 880)]
    assert sum(binds in (LATENCY, MEMORY, DUAL) for binds in found) >= 500


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
