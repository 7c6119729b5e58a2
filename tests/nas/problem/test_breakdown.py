"""An explanation adds up to the metrics, since it comes from the same formulas."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.problem.breakdown import STEP_METRICS, explained, operator_columns, resident_bytes, steps_from
from nas.problem.problem import Problem
from nas.study.baselines import architecture_from, baseline
from nas.study.study_laws import cost_beside

Made = Callable[..., Problem]
STUDIES: list[dict[str, Any]] = [
    {},
    {"preset": "device"},
    {"preset": "device", "precision": "int8", "batch": 3},
    {"precision": "int4", "int4_group_size": 64, "complete": True},
    {"calibration": {"compute_efficiency": 0.5, "bandwidth_efficiency": 0.8, "overhead": "5 us"}},
    {"calibration": {"compute_efficiency": 0.5, "request_overhead": "30 ms"}},
]


@pytest.mark.parametrize("study", STUDIES, ids=str)
@pytest.mark.parametrize("key", [0, 80, 161])
def test_parts_sum_to_the_metrics(study: dict[str, Any], key: int, problem_of: Made) -> None:
    problem = problem_of(**study)
    chosen = problem.architectures(problem.space.genotypes(np.array([key])))
    e = explained(problem, chosen)
    for phase in ("prefill", "decode"):
        assert sum(row.ms for row in e.operators[phase]) == pytest.approx(e.metrics[f"{phase}_ms"], rel=1e-12)
        for row in e.operators[phase]:
            assert sum(row.ms_by_kind.values()) == pytest.approx(row.ms, rel=1e-14)
            assert row.ms_by_kind[row.bound] == max(row.ms_by_kind.values())
            assert (row.bound == "constant") == (row.operator == "request")
    assert sum(e.loss_terms.values()) == pytest.approx(e.metrics["loss"], rel=1e-12)
    assert sum(e.resident_gb.values()) == pytest.approx(e.metrics["resident_gb"], rel=1e-12)
    known = problem.evaluate(problem.space.genotypes(np.array([key]))).metrics
    speed = 1e3 * problem.scenario.batch / e.metrics["tpot_ms"]
    assert e.metrics == {
        **{name: column[0] for name, column in known.items()},
        "ttft_ms": e.metrics["prefill_ms"],
        "tokens_per_second": speed,
    }


def test_launches_are_what_the_overhead_adds_and_epilogues_what_their_peak_takes(problem_of: Made) -> None:
    bare_rates = {"compute_efficiency": 0.5, "bandwidth_efficiency": 0.8}
    slow = problem_of(precision="int8", calibration={**bare_rates, "overhead": "50 us"})
    quick = problem_of(precision="int8", calibration=bare_rates)
    genotype = slow.space.genotypes(np.array([161]))
    with_launches, without = (explained(p, p.architectures(genotype)).operators for p in (slow, quick))
    for phase, passes in (("prefill", 1), ("decode", 16)):
        for row, bare in zip(with_launches[phase], without[phase], strict=True):
            assert row.ms_by_kind["launch"] == pytest.approx(0.05 * passes * row.instances, rel=1e-12)
            assert row.ms - bare.ms == pytest.approx(row.ms_by_kind["launch"], rel=1e-9, abs=1e-12)
            assert bare.ms_by_kind["launch"] == 0
            assert bare.ms_by_kind["epilogue"] == row.ms_by_kind["epilogue"]
            assert (row.ms_by_kind["epilogue"] > 0) == (row.operator.endswith("_proj") and "router" not in row.operator)
    down = next(row for row in without["prefill"] if row.operator == "down_proj")
    a = slow.architectures(genotype)
    outputs = 2.0 * 1024 * float(a.depth[0] * a.top_k[0] * a.width[0])  # 2 FLOPs each, of every active expert
    assert down.ms_by_kind["epilogue"] == pytest.approx(1e3 * outputs / (0.5 * slow.scenario.device.fp16), rel=1e-12)
    assert {row.bound for row in with_launches["decode"]} == {"launch"}
    assert {row.bound for row in without["decode"]} <= {"compute", "memory", "epilogue"}


def test_steps_are_the_neighbours_and_their_differences(problem_of: Made) -> None:
    problem = problem_of()
    own = problem.space.genotypes(np.array([80]))
    e = explained(problem, problem.architectures(own))
    near = problem.evaluate(problem.space.neighbours(own))
    before = problem.evaluate(own)
    expected = {tuple(float(near.metrics[m][i] - before.metrics[m][0]) for m in STEP_METRICS) for i in range(len(near))}
    assert {tuple(step.change[m] for m in STEP_METRICS) for step in e.steps} == expected
    assert all(" -> " in step.step for step in e.steps)


def test_steps_show_what_the_study_minimises_and_limits_besides(problem_of: Made) -> None:
    boards = {
        "l4": {"price": "700 USD", "since": "2026-12-01"},
        "raspberry_pi_5": {"price": "80 USD", "since": "2025-12-01"},
    }
    problem = problem_of(
        devices=[*boards],
        device_columns=boards,
        objectives=["loss", "price", "tpot_ms"],
        budgets={"since": "2027-01-01", "params_total": 1e9},
        applications={},
        baselines=[],
    )
    own = problem.space.genotypes(np.array([0]))
    e = explained(problem, problem.architectures(own))
    assert {*e.steps[0].change} == {*STEP_METRICS, "price", "tpot_ms", "params_total", "memory_share"}
    (moved,) = (step for step in e.steps if "device" in step.step)
    assert abs(moved.change["price"]) == 620.0
    assert moved.change["tpot_ms"] != 0.0
    assert {step.change["price"] for step in e.steps if step is not moved} == {0.0}


def test_a_step_to_what_the_law_does_not_price_has_its_times_and_bytes(problem_of: Made) -> None:
    """`conditional` prices dense designs alone."""
    problem = problem_of(law="conditional")
    genotypes = problem.space.genotypes(np.arange(162))
    one = genotypes[np.flatnonzero(problem.architectures(genotypes).n_experts == 1)[:1]]
    (found,) = steps_from(problem, one)
    sparse = [step for step in found if "n_experts" in step.step]
    assert sparse
    for step in sparse:
        assert np.isnan(step.change["loss"])
        assert all(np.isfinite(step.change[name]) for name in STEP_METRICS if name != "loss")


def test_a_published_model_is_explained_without_neighbours_and_marked(problem_of: Made) -> None:
    problem = problem_of()
    e = explained(problem, problem.headed(baseline("qwen2.5_0.5b").architecture))
    assert e.metrics["loss"] == pytest.approx(3.475358, abs=1e-6)
    assert (e.metrics["prefill_ms"], e.metrics["decode_ms"]) == pytest.approx((36.1394, 57.2792), rel=2e-6)
    assert e.steps == []
    assert any("FFN ratio each 5.43 (trained: 0.5 to 4)" in text for text in e.outside_law)


def test_budgets_are_shown_with_their_violation(problem_of: Made) -> None:
    problem = problem_of(budgets={"decode_ms": 5})
    found = problem.evaluate(problem.space.genotypes(np.array([161])))
    shown = {b["metric"]: b["violation"] for b in explained(problem, problem.architectures(found.genotypes)).budgets}
    assert shown == pytest.approx(dict(zip(("memory_gb", "decode_ms"), found.violations[0], strict=True)))


def test_the_closed_form_has_no_operators_and_refuses_what_it_lacks(problem_of: Made) -> None:
    problem = problem_of(latency="closed_form")
    e = explained(problem, problem.architectures(problem.space.genotypes(np.array([0]))))
    assert e.operators == {"prefill": [], "decode": []}
    with pytest.raises(ValueError, match="use --set latency=operator"):
        explained(
            replace(problem, vocabulary=100),
            problem.with_vocabulary(100).architectures(problem.space.genotypes(np.array([0]))),
        )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected name=value pairs"),
        ("depth", "expected name=value pairs"),
        ("depht=4", "did you mean depth?"),
        ("depth=4", "width: expected a positive integer, got nothing"),
        ("depth=x,width=768,n_kv_heads=1,expert_size=768", "depth: expected a positive integer, got x"),
        ("depth=4,width=768,n_kv_heads=5,expert_size=768", "n_kv_heads: expected a divisor of n_heads 12, got 5"),
        (
            "depth=4,width=768,n_kv_heads=1,expert_size=768,n_experts=2,top_k=2",
            "top_k: expected fewer than n_experts 2",
        ),
        ("depth=4,width=768,n_kv_heads=1,expert_size=768,tied=maybe", "tied: expected true or false, got maybe"),
        ("depth=4,width=768,n_kv_heads=1,expert_size=768,vocabulary=-1", "vocabulary: expected a whole number"),
        ("depth=4,width=768,n_kv_heads=1,expert_size=768,vocabulary=1e400", "vocabulary: expected a whole number"),
    ],
)
def test_an_architecture_that_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        architecture_from(text)
    assert said in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES, ids=str)
def test_many_at_once_are_what_each_is_alone(study: dict[str, Any], problem_of: Made) -> None:
    problem = problem_of(**study)
    genotypes = problem.space.genotypes(np.arange(0, 162, 7))
    together = problem.architectures(genotypes)
    columns = operator_columns(problem.scenario, together)
    resident = resident_bytes(together, problem.scenario)
    found = steps_from(problem, genotypes)
    assert len(found) == len(genotypes)
    for i in range(len(genotypes)):
        alone = explained(problem, together[i : i + 1])
        for phase, rows in alone.operators.items():
            ours = [column.row(i) for column in columns[phase]]
            assert [row for row in ours if row.instances or row.ms] == rows
        assert found[i] == alone.steps
        assert sum(column[i] for column in resident.values()) == pytest.approx(alone.metrics["resident_gb"], rel=1e-12)
        weights = alone.resident_gb["linear weights"]
        assert resident["experts"][i] + resident["attention"][i] == pytest.approx(weights, rel=1e-12)


def test_another_lm_head_is_a_step_whose_changes_are_those_of_the_study_with_it(problem_of: Made) -> None:
    """At equal text: of the smaller vocabulary the study has the tokens that 1,024 and 16 of the larger one are."""
    curve = problem_of(vocabulary=32_000).scenario.text_here.curve
    held = curve.bytes_per_token(np.array([151_936, 32_000]))
    lengths = {f"{name}_tokens": math.ceil(n * held[0] / held[1]) for name, n in (("input", 1024), ("output", 16))}
    own, smaller = problem_of(vocabulary=151_936, tied=False), problem_of(vocabulary=32_000, tied=False, **lengths)
    genotypes = own.space.genotypes(np.array([80]))
    steps = {step.step: step.change for step in explained(own, own.architectures(genotypes)).head_steps}
    assert list(steps)[:2] == ["tied in place of untied", "vocabulary 151936 -> 128000"]
    for other, change in (
        (smaller, steps["vocabulary 151936 -> 32000"]),
        (replace(own, tied=True), steps["tied in place of untied"]),
    ):
        costs = [name for name in change if name != "loss"]
        before, after = (problem.evaluate(genotypes, tuple(costs)).metrics for problem in (own, other))
        assert {name: change[name] for name in costs} == {
            name: pytest.approx(after[name][0] - before[name][0], rel=1e-9, abs=1e-12) for name in costs
        }
    loss, cost = own.evaluate(genotypes).metrics["loss"], cost_beside(own.scenario.law)
    dearer = float(cost.priced(loss, 32_000)[0] - cost.priced(loss, 151_936)[0])
    assert steps["vocabulary 151936 -> 32000"]["loss"] == pytest.approx(dearer, rel=1e-9)
    assert dearer > 0
    assert steps["tied in place of untied"]["loss"] == 0
    assert steps["vocabulary 151936 -> 32000"]["decode_ms"] < 0
    assert steps["tied in place of untied"]["resident_gb"] < 0


@pytest.mark.parametrize(("vocabulary", "named"), [(0, []), (16_000, []), (32_000, ["vocabulary 32000 -> 16000"])])
def test_a_tied_head_offers_smaller_vocabularies_alone(vocabulary: int, named: list[str], problem_of: Made) -> None:
    problem = problem_of(vocabulary=vocabulary)
    chosen = problem.architectures(problem.space.genotypes(np.array([80])))
    assert [step.step for step in explained(problem, chosen).head_steps] == named


def test_without_a_count_of_its_vocabulary_no_other_lm_head_is_offered(problem_of: Made) -> None:
    sizes = [{"vocabulary": 16_000, "bytes_per_token": 4.0}, {"vocabulary": 60_000, "bytes_per_token": 5.0}]
    problem = problem_of(vocabulary=151_936, token_curve={"name": "own", "source": {}, "sizes": sizes})
    assert explained(problem, problem.architectures(problem.space.genotypes(np.array([80])))).head_steps == []
