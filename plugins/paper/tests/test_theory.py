"""The theory of whole problems: costs against the metrics, bounds against exact optima, the command."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.errors import InfeasibleError, UsageError
from nas.files.yaml_source import dump
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from nas.record.candidates import read_candidates
from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from objectives.loss_law.form import named_form
from objectives.loss_law.law import Law
from plas_paper.costs import COSTS, LATENCIES
from plas_paper.prediction import predict
from plas_paper.relaxation import relaxed
from plas_paper.theory_problem import TheoryProblem
from search_spaces.arrays import FloatArray

STUDIES: list[dict[str, Any]] = [
    {"latency": "closed_form"},
    {"latency": "closed_form", "precision": "int8", "batch": 4},
    {"latency": "operator", "vocabulary": 32_000},
    {"latency": "operator", "precision": "int8", "attention": "fused", "batch": 8, "complete": True, "causal": True},
    {"latency": "operator", "calibration": {"compute_efficiency": 0.5, "bandwidth_efficiency": 0.8, "overhead": 0.005}},
    {"latency": "operator", "calibration": {"overhead": 0.005, "engine_gb": 0.3, "memory_factor": 2.5}},
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
    theory, genotypes = TheoryProblem(asked), asked.space.sample(60, np.random.default_rng(0))
    shapes = asked.architectures(genotypes)
    truth, logs = asked.assess(shapes), logs_of(shapes)
    for row, (experts, top_k) in enumerate(zip(shapes.n_experts.tolist(), shapes.top_k.tolist(), strict=True)):
        for metric, cost in COSTS.items():
            actual = float(truth[metric][row])
            if metric in LATENCIES and raw["latency"] == "operator":
                found = theory.sides(metric, (experts, top_k)).value(logs[row])
                assert actual * (1 - 2e-3) <= found <= actual * (1 + 1e-9)
            else:
                assert float(cost(theory.setting_of((experts, top_k)))(logs[row])) == pytest.approx(actual, rel=1e-9)


def test_the_loss_is_the_laws(default_problem: Problem) -> None:
    theory = TheoryProblem(default_problem)
    shapes = default_problem.architectures(default_problem.space.sample(100, np.random.default_rng(1)))
    assert theory.loss(logs_of(shapes)) == pytest.approx(default_problem.scenario.law.loss(shapes))


def test_the_box_holds_every_design(default_problem: Problem) -> None:
    theory = TheoryProblem(default_problem)
    shapes = default_problem.architectures(default_problem.space.genotypes(np.arange(default_problem.space.size)))
    values, box = np.exp(logs_of(shapes)), theory.box()
    assert (values >= box.lower * (1 - 1e-12)).all()
    assert (values <= box.upper * (1 + 1e-12)).all()
    assert (shapes.kv_dim >= box.least_kv_dim).all()


@pytest.mark.parametrize("latency", ["closed_form", pytest.param("operator", marks=pytest.mark.slow)])
def test_the_best_design_and_bounds_against_the_whole_space(latency: str) -> None:
    """Over budget pairs: no bound above the optimum, which is the best design."""
    asked = problem(latency=latency)
    every = asked.evaluate(asked.space.genotypes(np.arange(asked.space.size)))
    for metric, limit, memory in (("decode_ms", 8, 0.3), ("decode_ms", 50, 1.0), ("prefill_ms", 20, 8.0)):
        fits = (every.metrics[metric] <= limit) & (every.metrics["memory_gb"] <= memory)
        least = every.metrics["loss"][fits].min()
        found = predict(replace(asked, budgets=(Budget(metric, limit), Budget("memory_gb", memory))))
        assert found.best.feasible.all()
        assert found.best.metrics["loss"][0] == pytest.approx(least, abs=1e-12)
        assert found.whole.bound <= least
        assert found.operator is None or found.operator.bound <= least


def test_operator_relaxation_meets_the_operator_budget() -> None:
    asked = problem(latency="operator", budgets={"total_ms": 60, "memory_gb": 4})
    theory = TheoryProblem(asked)
    found = relaxed(theory, theory.box(pair=(8, 1)), (8, 1))
    assert found is not None
    assert theory.sides("total_ms", (8, 1)).value(found.optimum.logs) == pytest.approx(60.0, rel=1e-6)


def test_resident_and_parameter_budgets() -> None:
    asked = problem(budgets={"resident_gb": 2, "params_active": 3e8, "memory_gb": "none"})
    every = asked.evaluate(asked.space.genotypes(np.arange(asked.space.size)))
    found = predict(asked)
    assert found.whole.bound <= every.metrics["loss"][every.feasible].min() == found.best.metrics["loss"][0]


@pytest.mark.parametrize("metric", ["decode_ms", "total_ms", "memory_gb", "resident_gb"])
@pytest.mark.parametrize("latency", ["closed_form", "operator"])
def test_a_budget_that_one_design_just_meets(latency: str, metric: str) -> None:
    asked = problem(latency=latency, default_budget="none")
    every = asked.evaluate(asked.space.genotypes(np.arange(asked.space.size)), ("loss", metric))
    least = float(every.metrics[metric].min())
    found = predict(replace(asked, budgets=(Budget(metric, least),)))
    assert found.whole.bound <= every.metrics["loss"][every.metrics[metric] <= least].min() + 1e-9


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
    with pytest.raises(UsageError, match="not convex"):
        predict(replace(asked, scenario=replace(asked.scenario, law=law)))


@pytest.mark.slow
def test_a_closed_form_stands_only_where_it_is_the_optimum_within_every_bound() -> None:
    asked, g, stood = problem(latency="closed_form"), np.random.default_rng(3), 0
    for _ in range(60):
        width = float(g.choice([768, 1000, 1536, 2048, 3072]))
        budgets = (
            Budget(str(g.choice(["decode_ms", "prefill_ms", "total_ms"])), float(np.exp(g.uniform(1.5, 5)))),
            Budget("memory_gb", float(np.exp(g.uniform(-1, 4)))),
        )
        try:
            found = predict(replace(asked, budgets=budgets), width)
        except InfeasibleError:
            continue
        for form in found.forms:
            stood += form.holds
            if form.holds:
                assert form.loss == pytest.approx(found.whole.loss, abs=1e-7)
                assert form.form.gqa * 64 <= width * (1 + 1e-9)
            assert form.holds or form.leaves or form.exceeds
    assert stood > 10


def test_a_form_with_less_than_one_kv_head_is_not_called_the_optimum(inside: Callable[..., Any]) -> None:
    said = inside("theory", "--budget", "decode_ms=10", "--width", "768")
    row = next(line for line in said.out.splitlines() if line.lstrip().startswith("decode (D1)"))
    assert row.endswith("KV heads below 1")
    assert "the optimum at this width" not in said.out
    assert "is no design" in said.out


def test_neither_budget_binds_where_both_are_loose(inside: Callable[..., Any]) -> None:
    flags = ("--budget", "decode_ms=1000", "--budget", "memory_gb=64", "--width", "768")
    content = json.loads(inside("theory", *flags, "--json").out)
    assert [r["binds"] for r in content["regimes"]] == ["neither"]
    assert not {"decode_ms", "memory_gb"} & set(content["program"]["prices"])
    row = next(line for line in inside("theory", *flags).out.splitlines() if line.startswith("  decode_ms "))
    assert row.split()[1] == "neither"
    assert row.split()[-2:] == ["never", "never"]


@pytest.mark.parametrize("exponent", [0.1, 0.24])
def test_a_law_with_a_small_depth_exponent(exponent: float) -> None:
    asked = problem(budgets={"decode_ms": 20, "memory_gb": 1})
    coefficients = {**asked.scenario.law.coefficients, "alpha_l": exponent}
    law = asked.scenario.law.model_copy(update={"coefficients": coefficients})
    found = predict(replace(asked, scenario=replace(asked.scenario, law=law)))
    assert {form.form.case for form in found.forms} >= {"D1", "D2 = P2"}
    assert found.whole.bound <= found.best.metrics["loss"][0]


@pytest.mark.parametrize("form", ["hw_codesign_log_kv", "hw_codesign_no_kv", "hw_codesign_dense", "depth_width"])
def test_other_forms_of_law_keep_the_certificate(form: str) -> None:
    """Bounds and program with a law that is linear in ln d_m, or does not see some variables."""
    asked = problem(latency="operator", budgets={"decode_ms": 30, "memory_gb": 2})
    known = {**asked.scenario.law.coefficients, "beta": 0.3, "kappa_m": 0.012}
    coefficients = {name: known[name] for name in named_form(form).coefficients}
    law = Law(form=form, coefficients=coefficients)
    other = replace(asked, scenario=replace(asked.scenario, law=law))
    found = predict(other)
    assert found.operator is not None
    assert found.whole.bound <= found.operator.bound + 1e-9
    assert found.operator.bound <= found.best.metrics["loss"][0] + 1e-9
    assert bool(found.forms) == (form == "hw_codesign_log_kv")


def test_the_command_in_text_and_json(inside: Callable[..., Any], tmp_path: Any) -> None:
    flags = ("--budget", "decode_ms=20", "--budget", "memory_gb=1", "--width", "1024", "--set", "latency=closed_form")
    said = inside("theory", *flags, "--out", "few.csv")
    assert said.code == 0, said.err
    for expected in (
        "0.256 of what is stored (η = M̄_d/M, no unit)",
        "latency and memory",
        "decode and memory (D3)",
        "the optimum at this width",
        "no design of the space within the budgets is better",
    ):
        assert expected in said.out
    designs, ids = read_candidates(tmp_path / "few.csv")
    assert 3 <= len(designs) <= 5
    assert ids[0] == "theory-1"
    content = json.loads(inside("theory", *flags, "--json").out)
    assert content["program"]["bound"] <= content["program"]["loss"]
    assert content["best"]["design"]["loss"] == content["worth_training"][0]["loss"]
    assert [r["binds"] for r in content["regimes"]] == ["latency and memory"]
    dual = next(form for form in content["closed_forms"] if form["form"]["case"] == "D3")
    assert dual["loss"] == pytest.approx(content["program"]["loss"], abs=1e-9)


def test_designs_and_quantities_are_in_words_with_units(inside: Callable[..., Any]) -> None:
    flags = ("--budget", "decode_ms=20", "--budget", "prefill_ms=60", "--budget", "memory_gb=1")
    for more in ((), ("--set", "latency=closed_form"), ("--budget", "params_total=1e9")):
        said = inside("theory", *flags, *more)
        assert said.code == 0, said.err
        assert not re.search(
            r"\b(l|d|r|E|K|ρ\*?|gqa|n_kv|d_m) [\d(]|ffn_ratio|activation_rate|e-fold|device_", said.out
        )
        assert not re.search(r"loss \d\.\d+\*?(?! nats|\d)", said.out)
        for quantity in (
            "layers, width ",
            "% of the experts active, FFN ratio ",
            " heads per KV head (",
            " nats per ms",
        ):
            assert quantity in said.out
        header = next(line for line in said.out.partition("Worth training")[2].splitlines() if "why" in line)
        assert {"loss (nats)", "decode (ms)", "prefill (ms)", "memory (GB)"} <= set(re.split(r"  +", header.strip()))


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
    said = inside("theory", "--budget", "decode_ms=20", "--budget", "memory_gb=1").out
    table = said.partition("Worth training")[2]
    assert "on the device: decode (ms)" in table
    assert "on the device: the same time under preset device" in table
    rows = [line.split() for line in table.splitlines()[2:] if line.startswith(("  the best", "  another"))]
    assert len(rows) == 4
    assert "4 of 4 time limits are missed there" in table
    assert "an LM head of 151,936 tokens" in table
    assert "efficiencies transferred from an int4 measurement" in table


def test_a_law_whose_losses_are_infinite_in_a_part_of_the_space_is_refused(inside: Any, tmp_path: Path) -> None:
    law = load_law("hw_codesign").mapping()
    law["coefficients"] |= {"beta_1": -91.0}  # wide designs alone
    (tmp_path / "law.yaml").write_text(dump(law))
    answer = inside("theory", "--law", str(tmp_path / "law.yaml"), "--budget", "decode_ms=50")
    assert answer.code == 2
    assert "theory: expected a law with finite losses all over the space, got loss: " in answer.err
