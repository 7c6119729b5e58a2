"""The frontier over many chips and all architectures against every pair."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from core_tests import loaded
from plas_chips.leaves import SHARES
from plas_chips.problem import ChipProblem, uncovered
from plas_chips.solution import ChipFrontier, solve_chips

import nas
from nas.errors import UsageError
from nas.exact import infeasibility as exact_diagnosis
from nas.exact import solution as exact_solution
from nas.exact.decomposition import branch_and_bound as search_module
from nas.exact.decomposition import frontier as frontier_module
from nas.exact.solution import solve
from nas.problem.evaluations import frontier_rows, non_dominated, rounded
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from objectives.device import Calibration
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.space import SearchSpace

ARCHITECTURES = ("loss", "perplexity", "total_ms", "decode_ms", "prefill_ms", "tpot_ms", "memory_gb", "resident_gb")


Chance = loaded("nas/exact/test_random_problems.py").Chance


def calibration_of(chance: Chance) -> dict[str, Any]:
    """Any coefficients, each of those that are optional in half of the cases."""
    shares = (
        "prefill_bandwidth_efficiency",
        "attention_compute",
        "attention_bandwidth",
        "decode_attention_compute",
        "expert_compute",
        "expert_bandwidth",
    )
    optional: dict[str, Any] = {name: chance.share(0.1, 2.0) for name in shares}
    optional |= {"prefill_overhead": "20 us", "routing_overlap": chance.share(0.0, 0.9)}
    kept = {name: value for name, value in optional.items() if chance.one(True, False)}
    return {"compute_efficiency": chance.share(0.1, 1.0), "bandwidth_efficiency": 0.8, "overhead": "5 us"} | kept


def space_of(chance: Chance) -> SearchSpace:
    """A space of some hundreds of architectures."""
    head = chance.one(32, 64)
    axes = {
        "depth": chance.few(range(1, 61), 1, 4),
        "width": [heads * head for heads in chance.few(range(2, 33), 1, 3)],
        "n_experts": [1, *chance.few(range(2, 65), 0, 4)],
        "top_k": [1, *chance.few(range(2, 5), 0, 1)],
        "expert_size": list(range(96, 96 * chance.one(*range(3, 8)), 96)),
        "n_kv_heads": chance.one("divisors", [1, 2]),
    }
    return SearchSpace.from_mapping({"head_dim": head, "axes": axes, "conditions": {"max_expert_ffn_ratio": 4}})


def problem_of(chance: Chance) -> Problem:
    """A small space under a law, a precision, a workload and a latency model of one seed."""
    study = {
        "space": "paper",
        "law": chance.one("hw_codesign", "evidence"),
        "objectives": ["loss", "total_ms"],
        "precision": chance.one("fp16", "int8", "int4"),
        "attention": chance.one("unfused", "fused"),
        "causal": chance.one(True, False),
        "batch": chance.one(1, 4),
        "input_tokens": chance.one(2, 64, 1024),
        "output_tokens": chance.one(1, 16, 100),
        "vocabulary": chance.one(0, 32_000),
        "calibration": chance.one("none", calibration_of(chance)),
        "algo": "exact",
    }
    return replace(assemble(study, {}).problem, space=space_of(chance), budgets=())


def chips_of(chance: Chance, problem: Problem) -> tuple[tuple[Scenario, ...], dict[str, FloatArray]]:
    """Up to 96 chips of random axes, and columns: a linear cost, one that falls and rises, one of few values."""
    bandwidth, peak, memory = (
        chance.few(values, 1, 5) for values in ([50, 60, 100, 200, 410], [2, 5, 11, 40], [1, 2, 4, 8, 64])
    )
    genes = np.array(list(product(bandwidth, peak, memory)), dtype=np.float64)
    scenarios = []
    for gb_per_s, tops, gb in genes.tolist():
        figures = {"bandwidth": gb_per_s * 1e9, "fp16": tops * 0.5e12, "int8": tops * 1e12, "memory": gb * 1e9}
        device = problem.scenario.device.model_copy(update=figures)
        scenarios.append(replace(problem.scenario, device=device))
    linear = genes @ np.array([0.2, 1.0, chance.one(0.0, 4.0)])
    turning = 10.0 + (genes[:, 0] - 100.0) ** 2 / 1e3 + np.abs(genes[:, 2] - 4.0) + 1.0 / genes[:, 1]
    return tuple(scenarios), {"cost": linear, "area": turning, "grade": np.round(genes[:, 0] / 100.0)}


def every_pair(
    problem: Problem,
    scenarios: tuple[Scenario, ...],
    columns: dict[str, FloatArray],
    objectives: tuple[str, ...],
    budgets: tuple[Budget, ...],
) -> tuple[FloatArray, IntArray, IntArray]:
    """Objective values of the feasible frontier of all pairs, with numbers of chips and keys, by evaluating every pair."""
    whole = problem.space.genotypes(np.arange(problem.space.size))
    values, chips, keys = [], [], []
    for number, scenario in enumerate(scenarios):
        found = replace(problem, scenario=scenario).evaluate(whole, ARCHITECTURES)
        metrics = found.metrics | {name: np.full(len(whole), column[number]) for name, column in columns.items()}
        metrics |= {share: found.metrics[of] / scenario.device.memory_gb for share, of in SHARES.items()}
        feasible = found.ok.copy()
        for budget in budgets:
            feasible &= budget.violation(metrics[budget.metric]) <= 0.0
        values.append(np.stack([metrics[name][feasible] for name in objectives], axis=1))
        keys.append(np.flatnonzero(feasible))
        chips.append(np.full(len(keys[-1]), number))
    table, of_chip, of_key = np.concatenate(values), np.concatenate(chips), np.concatenate(keys)
    rows = non_dominated(table)
    return table[rows], of_chip[rows], of_key[rows]


def distinct(values: FloatArray) -> FloatArray:
    """Distinct rows at 12 digits."""
    return np.unique(rounded(values), axis=0)


def drawn(seed: int) -> tuple[Any, ...]:
    """A problem of one seed: architectures, chips, columns, objectives, budgets."""
    chance = Chance(seed)
    problem = problem_of(chance)
    scenarios, columns = chips_of(chance, problem)
    names = ["loss", chance.one("total_ms", "decode_ms", "tpot_ms"), *chance.few([*columns], 0, 2)]
    if len(names) < 4 and chance.one(True, False):
        names.append(chance.one("memory_gb", "resident_gb", "prefill_ms"))
    if chance.one(*range(5)) == 0:
        names[0] = "perplexity"
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)), ARCHITECTURES)
    limits = [Budget("memory_share", chance.one(0.1, 1.0)), Budget("resident_share", chance.one(0.05, 0.9))]
    limits += [Budget(name, float(np.quantile(whole.metrics[name], 0.6))) for name in ("total_ms", "loss", "memory_gb")]
    limits += [
        Budget("cost", float(np.quantile(columns["cost"], 0.8))),
        Budget("area", float(np.quantile(columns["area"], 0.7))),
    ]
    return problem, scenarios, columns, tuple(names), tuple(chance.few(limits, 0, 3))


def agrees(found: ChipFrontier, asked: tuple[Any, ...]) -> None:
    """The frontier of one problem is that of every pair: vectors, and the pairs but for chips that equal ones stand for."""
    problem, scenarios, columns, objectives, _ = asked
    values, chips, keys = every_pair(*asked)
    mine = np.stack([found.metrics[name] for name in objectives], axis=1)
    np.testing.assert_array_equal(distinct(mine), distinct(values))
    pairs = set(zip(chips.tolist(), keys.tolist(), strict=True))
    assert set(zip(found.chips.tolist(), found.keys.tolist(), strict=True)) <= pairs

    def kind(chip: int) -> tuple[float, ...]:
        device = scenarios[chip].device
        return device.bandwidth, device.fp16, *(columns[name][chip] for name in objectives if name in columns)

    mine_kinds = {(kind(chip), key) for chip, key in zip(found.chips.tolist(), found.keys.tolist(), strict=True)}
    assert mine_kinds == {(kind(chip), key) for chip, key in pairs}
    for chip, key, row in zip(found.chips[:20].tolist(), found.keys[:20], mine[:20], strict=True):
        whole = replace(problem, scenario=scenarios[chip]).evaluate(
            problem.space.genotypes(np.array([key])), ARCHITECTURES
        )
        for name, value in zip(objectives, row.tolist(), strict=True):
            assert value == (columns[name][chip] if name in columns else whole.metrics[name][0])


@pytest.mark.parametrize("seed", range(12))
def test_the_frontier_is_that_of_every_pair(seed: int) -> None:
    asked = drawn(seed)
    found = solve_chips(*asked)
    assert "sums of parts in" in found.explanation
    agrees(found, asked)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(100, 300))
def test_hundreds_of_frontiers_are_those_of_every_pair(seed: int) -> None:
    asked = drawn(seed)
    agrees(solve_chips(*asked), asked)


def agrees_in_vectors(found: ChipFrontier, asked: tuple[Any, ...]) -> None:
    """The vectors of the frontier are those of every pair."""
    mine = np.stack([found.metrics[name] for name in asked[3]], axis=1)
    np.testing.assert_array_equal(distinct(mine), distinct(every_pair(*asked)[0]))


def small() -> tuple[Problem, tuple[Scenario, ...], dict[str, FloatArray]]:
    """The paper's space on nine chips of three rates."""
    problem = assemble(
        {
            "space": "paper",
            "objectives": ["loss", "total_ms"],
            "law": "hw_codesign",
            "precision": "int8",
            "algo": "exact",
        },
        {},
    ).problem
    genes = np.array(list(product([50.0, 100.0, 200.0], [4.0, 8.0, 64.0])))
    scenarios = tuple(
        replace(
            problem.scenario,
            device=problem.scenario.device.model_copy(update={"bandwidth": rate * 1e9, "memory": gb * 1e9}),
        )
        for rate, gb in genes.tolist()
    )
    return problem, scenarios, {"cost": genes @ np.array([0.1, 1.0])}


def test_a_cache_tier_is_named() -> None:
    problem, scenarios, columns = small()
    figures = {"cache": 5e7, "cache_bandwidth": 5e12}
    cached = tuple(
        replace(each, calibration=Calibration(cache_efficiency=0.8), device=each.device.model_copy(update=figures))
        for each in scenarios
    )
    asked = ChipProblem(problem, cached, columns, ("loss", "total_ms", "cost"))
    assert uncovered(asked) == "a cache tier depends on the whole architecture"
    with pytest.raises(UsageError, match="where a cache tier depends"):
        solve_chips(problem, cached, columns, ("loss", "total_ms", "cost"))


def test_a_metric_that_sees_the_chip_otherwise_is_named() -> None:
    problem, scenarios, columns = small()
    asked = ChipProblem(problem, scenarios, columns, ("loss", "energy_j", "cost"))
    assert uncovered(asked) == "energy_j depends on the chip otherwise than through its rates and memory"


def test_more_memory_serves_larger_designs_and_costs_more_along_the_frontier() -> None:
    problem, scenarios, columns = small()
    budgets = (Budget("memory_share", 1.0), Budget("resident_share", 0.9))
    found = solve_chips(problem, scenarios, columns, ("loss", "cost"), budgets)
    gb = np.array([scenarios[chip].device.memory_gb for chip in found.chips.tolist()])
    assert np.ptp(gb) > 0
    for chip, key in zip(found.chips.tolist(), found.keys.tolist(), strict=True):
        resident = problem.evaluate(problem.space.genotypes(np.array([key])), ("resident_gb",)).metrics["resident_gb"][
            0
        ]
        assert resident / scenarios[chip].device.memory_gb <= 0.9


def test_chips_over_a_budget_on_a_column_are_left_out() -> None:
    problem, scenarios, columns = small()
    found = solve_chips(problem, scenarios, columns, ("loss", "total_ms"), (Budget("cost", 15.0),))
    assert len(found)
    assert (columns["cost"][found.chips] <= 15.0).all()
    nothing = solve_chips(problem, scenarios, columns, ("loss", "total_ms"), (Budget("cost", 1.0),))
    assert len(nothing) == 0
    assert nothing.explanation == "no chip is within the budgets on columns"


def test_nothing_feasible_is_an_empty_frontier() -> None:
    problem, scenarios, columns = small()
    assert len(solve_chips(problem, scenarios, columns, ("loss", "total_ms", "cost"), (Budget("loss", 0.1),))) == 0


def test_an_objective_must_depend_on_the_architecture() -> None:
    problem, scenarios, columns = small()
    with pytest.raises(UsageError, match="objectives: expected one that depends on the architecture, got cost"):
        solve_chips(problem, scenarios, columns, ("cost",))


def test_every_pair_is_accounted_for() -> None:
    problem, scenarios, columns = small()
    settled = list[int]()
    found = solve_chips(problem, scenarios, columns, ("loss", "total_ms", "cost"), report=settled.append)
    assert settled[-1] == problem.space.size * 3 == found.effort.covered
    assert found.considered == problem.space.size * 9


TINY = {
    "axes": {
        "depth": [2, 4, 8, 16],
        "width": [512, 768, 1024],
        "n_experts": [1, 4, 8, 16],
        "top_k": [1, 2],
        "expert_size": [256, 512, 1024, 2048],
        "n_kv_heads": [1, 2, "n_heads"],
    }
}
CHIPS = {
    "bandwidth": {"from": "40 GB/s", "to": "160 GB/s", "step": "40 GB/s"},
    "int8": [10, 20, 40],
    "fp16": "int8 / 2",
    "memory": [1, 4],
    "columns": {"cost": "0.2 * bandwidth + int8 + 4 * memory", "area": "int8 + (memory - 2) ** 2"},
}
ASKED: list[dict[str, Any]] = [
    {"objectives": ["loss", "total_ms", "cost"]},
    {"objectives": ["loss", "cost", "area"], "budgets": {"total_ms": 100}},
    {"objectives": ["loss", "total_ms"], "budgets": {"cost": 60, "loss": 3.6}},
    {"objectives": ["decode_ms", "loss"], "budgets": {"resident_share": 0.5}, "default_budget": "none"},
    {"objectives": ["loss", "total_ms", "cost"], "latency": "closed_form", "precision": "fp16"},
]


@contextmanager
def by_parts(*, small_steps: bool) -> Iterator[None]:
    """AdditiveBounds of parts however small the space; in small steps every mechanism is at work: strides, blocks, pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_solution, "SMALL", 0)
        patch.setattr(exact_diagnosis, "QUICK", 0)
        if small_steps:
            patch.setattr(frontier_module, "WORTH_STRIDES", 300)
            patch.setattr(frontier_module, "BLOCK", 50)
            patch.setattr(frontier_module, "AT_ONCE", 200)
            patch.setattr(search_module, "AT_ONCE", 200)
        yield


@pytest.mark.parametrize("keys", ASKED)
def test_many_devices_solved_together_are_those_of_every_pair(keys: dict[str, Any]) -> None:
    tiny = {"name": "tiny", "axes": TINY["axes"]}
    problem = nas.load_study(space=tiny, chip=CHIPS, algo="exact", **{"precision": "int8", **keys}).problem
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    rule = PickRule(Budget("decode_ms", float(np.median(whole.metrics["decode_ms"]))))
    with by_parts(small_steps=True):
        found = solve(problem, (PickRule(None), rule))
    best = whole[frontier_rows(whole)]
    np.testing.assert_allclose(np.unique(found.frontier.values, axis=0), np.unique(best.values, axis=0), rtol=1e-9)
    assert ("chips" in found.explanation) == (keys.get("latency") != "closed_form")
    for pick, ruled in zip(found.picks, (PickRule(None), rule), strict=True):
        row = ruled.row(whole)
        assert (pick is None) == (row is None)
        if pick is not None and row is not None:
            assert pick.metrics["loss"][0] == pytest.approx(whole.metrics["loss"][row], rel=1e-12)
            assert pick.metrics["total_ms"][0] == pytest.approx(whole.metrics["total_ms"][row], rel=1e-9)
