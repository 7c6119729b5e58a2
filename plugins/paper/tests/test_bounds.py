"""Bounds of the theory against enumeration: never above the optimum, over random studies; what is said of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nas.errors import InfeasibleError
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from objectives.assessment import Assessment
from objectives.loss_law.law import Law
from plas_paper import prediction, theory_document
from plas_paper.prediction import least_costs, predict, with_operators
from plas_paper.relaxation import relaxed
from plas_paper.theory_problem import TheoryProblem

METRICS = (
    "decode_ms",
    "prefill_ms",
    "total_ms",
    "tpot_ms",
    "memory_gb",
    "resident_gb",
    "params_total",
    "params_active",
)
DEVICES = ("jetson_agx_orin_64gb", "jetson_orin_nano_super_8gb", "rtx_4090", "m4_max_40c")


def some(g: np.random.Generator, values: list[Any], least: int = 1) -> list[Any]:
    chosen = g.choice(len(values), int(g.integers(least, len(values) + 1)), replace=False)
    return [values[i] for i in sorted(chosen)]


def random_space(g: np.random.Generator) -> dict[str, Any]:
    """A space of up to some ten thousand architectures."""
    axes: dict[str, Any] = {
        "depth": some(g, [2, 3, 4, 6, 8, 12, 17, 24, 31, 48]),
        "width": some(g, [512, 640, 768, 1024, 1536, 2048, 3072]),
        "n_kv_heads": [*some(g, [1, 2, 4, 8]), "n_heads"] if g.random() < 0.6 else ["n_heads"],
    }
    if g.random() < 0.8:
        axes |= {"n_experts": sorted({1, *some(g, [2, 4, 8, 16, 64])}), "top_k": [1, 2]}
    if g.random() < 0.5:
        axes["expert_ffn_ratio"] = some(g, [0.25, 0.5, 0.75, 1, 2, 3.5, 6])
    else:
        axes["expert_size"] = some(g, [96, 256, 640, 1024, 2048, 5000])
    return {"name": "random", "axes": axes, "head_dim": 64}


def random_law(g: np.random.Generator, law: Law) -> Law:
    """The paper's law with other coefficients, or with its KV term in the logarithm, of either sign."""
    values = {name: float(value * np.exp(g.normal(0, 0.5))) for name, value in law.coefficients.items()}
    values["alpha_l"] = float(np.exp(g.uniform(np.log(0.1), np.log(2.0))))
    if g.random() < 0.5:
        return Law(form="hw_codesign", coefficients=values)
    kept = {name: value for name, value in values.items() if name != "alpha_m"}
    return Law(form="hw_codesign_log_kv", coefficients={**kept, "kappa_m": float(g.normal(0, 0.02))})


def random_problem(seed: int) -> Problem:
    """Another space, law, device, precision and workload for each seed; no budgets yet."""
    g = np.random.default_rng(seed)
    raw: dict[str, Any] = {
        "algo": "exact",
        "baselines": [],
        "default_budget": "none",
        "space": random_space(g),
        "device": str(g.choice(DEVICES)),
        "precision": str(g.choice(["fp16", "int8", "int4"])),
        "latency": str(g.choice(["closed_form", "operator"])),
        "batch": int(g.choice([1, 1, 4])),
        "input_tokens": int(g.choice([16, 1024, 5000])),
        "output_tokens": int(g.choice([1, 16, 300])),
    }
    if raw["latency"] == "operator" and g.random() < 0.5:
        raw |= {"attention": "fused", "complete": True, "causal": True, "vocabulary": 32_000}
    if raw["latency"] == "operator" and g.random() < 0.4:
        raw["calibration"] = {"compute_efficiency": 0.4, "bandwidth_efficiency": 0.7, "overhead": 0.004}
    made = assemble(raw, {}).problem
    return replace(made, scenario=replace(made.scenario, law=random_law(g, made.scenario.law)))


def random_budgets(g: np.random.Generator, every: Assessment) -> tuple[Budget, ...]:
    """One to three budgets, each what some design takes, exactly or nearly; many hard, some impossible together."""
    names = g.choice(METRICS, int(g.integers(1, 4)), replace=False).tolist()
    exactly = g.random() < 0.5
    limits = [float(np.quantile(every[n], g.beta(1, 3), method="nearest")) for n in names]
    return tuple(
        Budget(n, v if exactly else v * float(g.uniform(0.9, 1.1))) for n, v in zip(names, limits, strict=True)
    )


def check(seed: int) -> bool:
    """Whether some design met the budgets; every bound and the least costs against the whole space."""
    made, g = random_problem(seed), np.random.default_rng(10_000 + seed)
    genotypes = made.space.genotypes(np.arange(made.space.size))
    every, costs = made.evaluate(genotypes), made.priced(genotypes)  # a design whose loss gives no perplexity has costs
    budgets = random_budgets(g, costs)
    theory = TheoryProblem(replace(made, budgets=budgets))
    fits = np.logical_and.reduce([every.ok, *(every.metrics[b.metric] <= b.limit for b in budgets)])
    exact = float(every.metrics["loss"][fits].min(initial=np.inf))
    whole, lowest = relaxed(theory, theory.box()), with_operators(theory, None)
    assert least_costs(theory) == {b.metric: pytest.approx(costs[b.metric].min(), rel=1e-12) for b in budgets}
    if not np.isfinite(exact):
        return False
    assert whole is not None
    assert lowest is not None
    assert whole.bound <= exact
    assert lowest.bound <= exact
    return True


@pytest.mark.slow
def test_bounds_on_random_studies() -> None:
    assert sum(check(seed) for seed in range(40)) >= 25
    assert not check(783)  # no design has a finite perplexity
    assert check(886)  # some have none


@pytest.mark.extended
def test_bounds_on_a_thousand_random_studies() -> None:
    assert sum(check(seed) for seed in range(40, 1040)) >= 700


def paper(**raw: Any) -> Problem:
    return assemble({"algo": "exact", "baselines": [], "default_budget": "none", **raw}, {}).problem


def test_infeasible_budgets_name_the_least_of_each_cost(inside: Callable[..., Any]) -> None:
    said = inside("theory", "--budget", "decode_ms=0.1", "--budget", "memory_gb=0.5")
    assert said.code == 3
    assert "decode_ms <= 0.1 (least 1.474 ms)" in said.err
    assert "memory_gb <= 0.5 (least 0.0173 GB)" in said.err
    narrow = inside("theory", "--budget", "decode_ms=3", "--width", "3072")
    assert narrow.code == 3
    assert "nothing of width 3072" in narrow.err
    assert "decode_ms <= 3 (least 20.97 ms)" in narrow.err


def test_budgets_that_only_different_designs_meet() -> None:
    """At a long context the wider design with fewer KV heads decodes faster; the narrower is smaller."""
    axes = {"depth": [4], "width": [768, 1024], "n_kv_heads": [8, "n_heads"], "expert_ffn_ratio": [0.5, 1]}
    made = paper(space={"name": "two", "axes": axes}, latency="closed_form", input_tokens=200_000)
    every = made.evaluate(made.space.genotypes(np.arange(made.space.size)))
    budgets = tuple(Budget(m, float(every.metrics[m].min())) for m in ("decode_ms", "memory_gb"))
    with pytest.raises(InfeasibleError, match="each met by some but not all by one"):
        predict(replace(made, budgets=budgets))


def test_a_fixed_width_holds_for_both_programs(inside: Callable[..., Any]) -> None:
    said = inside("theory", "--budget", "memory_gb=2", "--width", "1024")
    lines = [line for line in said.out.splitlines() if "certified" in line]
    assert len(lines) == 2
    assert all(", width 1,024, " in line for line in lines)
    assert all("certified: no design of this width below" in line for line in lines)


def test_a_bound_says_which_experts_it_holds_for(monkeypatch: pytest.MonkeyPatch, inside: Callable[..., Any]) -> None:
    monkeypatch.setattr(prediction, "PAIRS", 2)
    monkeypatch.setattr(theory_document, "PAIRS", 2)
    said = inside("theory", "--budget", "decode_ms=20").out
    closed, operators = (line for line in said.splitlines() if "certified" in line)
    assert "certified: no design below" in closed
    assert "certified: no design with one of the 2 choices of experts nearest to that active share below" in operators


def test_designs_under_closed_form_costs_show_their_time_under_the_operator_model(inside: Callable[..., Any]) -> None:
    flags = ("--budget", "prefill_ms=20", "--set", "latency=closed_form")
    said = inside("theory", *flags)
    table = said.out.partition("Worth training")[2]
    assert "by operators: prefill (ms)" in table
    assert "by operators: prefill (ms)" in said.out.partition("closed forms")[2].partition("The whole problem")[0]
    assert "by operators: prefill (ms)" not in inside("theory", *flags[:2]).out.partition("Worth training")[2]
