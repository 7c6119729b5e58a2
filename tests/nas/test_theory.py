"""The theory of whole problems: costs against the metrics, bounds against exact optima, the command."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nas.assemble import assemble
from nas.candidates import read_candidates
from nas.closed_forms import regime_map
from nas.closed_forms.costs import COSTS, LATENCIES
from nas.closed_forms.frame import Frame
from nas.closed_forms.prediction import predict
from nas.closed_forms.relaxation import relaxed
from nas.closed_forms.rounding import round_off
from nas.errors import InfeasibleError, UsageError
from nas.objective import Budget
from nas.problem import Problem
from search_spaces.arrays import FloatArray

STUDIES: list[dict[str, Any]] = [
    {"latency": "closed_form"},
    {"latency": "closed_form", "precision": "int8", "batch": 4},
    {"latency": "operator", "vocabulary": 32_000},
    {"latency": "operator", "precision": "int8", "attention": "fused", "batch": 8, "complete": True, "causal": True},
    {"latency": "operator", "calibration": {"compute_efficiency": 0.5, "bandwidth_efficiency": 0.8, "overhead": 0.005}},
]


def problem(**raw: Any) -> Problem:
    return assemble({"algo": "exact", "baselines": [], **raw}, {}).problem


def logs_of(found: Any) -> FloatArray:
    columns = [found.depth, found.width, found.ffn_ratio, found.gqa, found.activation_rate]
    logs: FloatArray = np.log(np.stack(columns, axis=1).astype(np.float64))
    return logs


@pytest.mark.parametrize("raw", STUDIES, ids=lambda raw: "-".join(map(str, list(raw.values())[:3])))
def test_posynomials_are_the_metrics(raw: dict[str, Any]) -> None:
    """Exact for closed forms; of operators, whose passes differ in decode, a hair below and never above."""
    asked = problem(**raw)
    frame, genotypes = Frame(asked), asked.space.sample(60, np.random.default_rng(0))
    shapes = asked.architectures(genotypes)
    truth, logs = asked.assess(shapes), logs_of(shapes)
    for row, (experts, top_k) in enumerate(zip(shapes.n_experts.tolist(), shapes.top_k.tolist(), strict=True)):
        for metric, cost in COSTS.items():
            actual = float(truth[metric][row])
            if metric in LATENCIES and raw["latency"] == "operator":
                found = frame.sides(metric, (experts, top_k)).value(logs[row])
                assert actual * (1 - 2e-3) <= found <= actual * (1 + 1e-9)
            else:
                assert float(cost(frame.setting_of((experts, top_k)))(logs[row])) == pytest.approx(actual, rel=1e-9)


def test_the_loss_is_the_laws(default_problem: Problem) -> None:
    frame = Frame(default_problem)
    shapes = default_problem.architectures(default_problem.space.sample(100, np.random.default_rng(1)))
    assert frame.loss(logs_of(shapes)) + frame.least_loss == pytest.approx(default_problem.scenario.law.loss(shapes))


def test_the_box_holds_every_design(default_problem: Problem) -> None:
    frame = Frame(default_problem)
    shapes = default_problem.architectures(default_problem.space.genotypes(np.arange(default_problem.space.size)))
    values, box = np.exp(logs_of(shapes)), frame.box()
    assert (values >= box.lower * (1 - 1e-12)).all()
    assert (values <= box.upper * (1 + 1e-12)).all()
    assert (shapes.kv_dim >= box.least_kv_dim).all()


@pytest.mark.parametrize("latency", ["closed_form", "operator"])
def test_rounded_designs_and_bounds_against_the_exact_optimum(latency: str) -> None:
    """Over budget pairs: no bound above the exact optimum, none left without a design, regret small."""
    asked = problem(latency=latency)
    every = asked.evaluate(asked.space.genotypes(np.arange(asked.space.size)))
    regrets = []
    for metric, limits in (("decode_ms", (8, 50)), ("total_ms", (20, 150)), ("prefill_ms", (20,))):
        for limit in limits:
            for memory in (0.3, 1.0, 8.0):
                budgets = (Budget(metric, limit), Budget("memory_gb", memory))
                fits = (every.metrics[metric] <= limit) & (every.metrics["memory_gb"] <= memory)
                exact = every.metrics["loss"][fits].min(initial=np.inf)
                rounded = round_off(Frame(replace(asked, budgets=budgets)))
                assert rounded.complete
                assert rounded.bound <= exact + 1e-9
                assert (rounded.design is None) == bool(np.isinf(exact))
                if rounded.design is not None:
                    assert rounded.design.feasible.all()
                    regrets.append(float(rounded.design.metrics["loss"][0]) - exact)
    assert min(regrets) >= -1e-12
    assert np.median(regrets) <= (0.001 if latency == "closed_form" else 0.02)
    assert np.quantile(regrets, 0.9) <= 0.01


def test_operator_relaxation_meets_the_operator_budget() -> None:
    asked = problem(latency="operator", budgets={"total_ms": 60, "memory_gb": 4})
    frame = Frame(asked)
    found = relaxed(frame, frame.box(pair=(8, 1)), (8, 1))
    assert found is not None
    assert frame.sides("total_ms", (8, 1)).value(found.optimum.logs) == pytest.approx(60.0, rel=1e-6)


def test_resident_and_parameter_budgets() -> None:
    asked = problem(budgets={"resident_gb": 2, "params_active": 3e8, "memory_gb": "none"})
    every = asked.evaluate(asked.space.genotypes(np.arange(asked.space.size)))
    rounded = round_off(Frame(asked))
    assert rounded.design is not None
    exact = every.metrics["loss"][every.feasible].min()
    assert rounded.bound <= exact <= rounded.design.metrics["loss"][0] <= exact + 0.01


@pytest.mark.parametrize("metric", ["decode_ms", "total_ms", "memory_gb", "resident_gb"])
@pytest.mark.parametrize("latency", ["closed_form", "operator"])
def test_a_budget_that_one_design_just_meets(latency: str, metric: str) -> None:
    asked = problem(latency=latency, default_budget="none")
    every = asked.evaluate(asked.space.genotypes(np.arange(asked.space.size)), ("loss", metric))
    least = float(every.metrics[metric].min())
    rounded = round_off(Frame(replace(asked, budgets=(Budget(metric, least),))))
    assert rounded.design is not None
    assert rounded.bound <= every.metrics["loss"][every.metrics[metric] <= least].min() + 1e-9


def test_what_the_theory_does_not_cover() -> None:
    asked = problem(budgets={"decode_ms": 20})
    with pytest.raises(UsageError, match="expected a budget, got none"):
        predict(replace(asked, budgets=()))
    with pytest.raises(UsageError, match="budgets on"):
        predict(replace(asked, budgets=(Budget("loss", 3.0),)))
    with pytest.raises(UsageError, match="width: expected 768 to 3072"):
        predict(asked, 100.0)
    with pytest.raises(InfeasibleError):
        predict(replace(asked, budgets=(Budget("decode_ms", 0.001),)))
    negative = {**asked.scenario.law.coefficients, "kappa_rho": -1.0}
    law = asked.scenario.law.model_copy(update={"coefficients": negative})
    with pytest.raises(UsageError, match="no closed form applies"):
        Frame(replace(asked, scenario=replace(asked.scenario, law=law)))


def test_the_command_in_text_and_json(inside: Callable[..., Any], tmp_path: Any) -> None:
    flags = ("--budget", "decode_ms=20", "--budget", "memory_gb=1", "--width", "1024", "--latency", "closed_form")
    said = inside("theory", *flags, "--out", "few.csv")
    assert said.code == 0, said.err
    for expected in (
        "η = M̄_d/M = 0.256",
        "binding: latency and memory",
        "D3",
        "the optimum at this width",
        "exact optimum",
    ):
        assert expected in said.out
    designs, ids = read_candidates(tmp_path / "few.csv")
    assert 3 <= len(designs) <= 5
    assert ids[0] == "theory-1"
    content = json.loads(inside("theory", *flags, "--json").out)
    assert content["program"]["bound"] <= content["program"]["loss"]
    assert content["rounded"]["bound"] <= content["exact"]["design"]["loss"]
    assert [r["binds"] for r in content["regimes"]] == ["latency and memory"]
    dual = next(form for form in content["closed_forms"] if form["form"]["case"] == "D3")
    assert dual["loss"] == pytest.approx(content["program"]["loss"], abs=1e-9)


def test_new_hardware_and_applications(inside: Callable[..., Any]) -> None:
    new = ("--compute", "10 TOPS", "--bandwidth", "50 GB/s", "--memory", "4 GB")
    said = inside("theory", *new, "--application", "embodied AI", "--json")
    assert said.code == 0, said.err
    content = json.loads(said.out)
    assert content["limits"] == {"memory_gb": 4.0, "decode_ms": 20.0}
    assert content["normalised"]["decode_bytes"] == pytest.approx(0.02 / 16 * 50e9)
    assert 3 <= len(content["worth_training"]) <= 5
    assert inside("theory", "--compute", "10 TOPS", "--budget", "decode_ms=9").code == 2
    assert inside("theory", *new, "--device", "l4", "--budget", "decode_ms=9").code == 2
    assert inside("theory", "--application", "nothing").code == 2
    assert inside("theory", "--budget", "decode_ms=0.001").code == 3


def test_designs_worth_training_are_timed_on_the_device_and_it_is_said_how_many_miss(
    inside: Callable[..., Any],
) -> None:
    said = inside("theory", "--budget", "decode_ms=20", "--budget", "memory_gb=1", "--no-exact").out
    table = said.partition("Worth training")[2]
    assert "device_decode_ms" in table
    rows = [line.split() for line in table.splitlines()[2:] if line.startswith(("  predicted", "  another"))]
    assert len(rows) == 4
    assert "4 of 4 time limits are missed there" in table
    assert "an LM head of 151,936 tokens" in table
    assert "efficiencies borrowed from an int4 measurement" in table


@pytest.mark.slow
def test_the_pictures(inside: Callable[..., Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regime_map, "SIDE", 7)
    monkeypatch.setattr(regime_map, "ALONG", 7)
    said = inside("theory", "--budget", "decode_ms=20", "--budget", "memory_gb=2", "--no-exact", "--plots", "drawn")
    assert said.code == 0, said.err
    first = {path.name: path.read_bytes() for path in (tmp_path / "drawn").iterdir()}
    assert set(first) == {
        f"{stem}.{end}" for stem in ("regime_map", "along_decode_ms", "along_memory_gb") for end in ("png", "svg")
    }
    inside("theory", "--budget", "decode_ms=20", "--budget", "memory_gb=2", "--no-exact", "--plots", "again")
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
