"""Exact answers against brute force: random spaces, laws, devices, latency models, objectives and budgets."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.exact import infeasibility as exact_diagnosis
from nas.exact import solution as exact_solution
from nas.exact.decomposition import branch_and_bound as search_module
from nas.exact.decomposition import frontier as frontier_module
from nas.exact.gains import DIFFERENT, beyond, gains
from nas.exact.infeasibility import diagnosed
from nas.exact.solution import solve
from nas.exact.sweeps import Sweep, swept
from nas.problem.diagnosis import diagnose
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.objective import Budget, Objective, built_in
from nas.problem.picks import PickRule
from nas.problem.problem import METRIC_ORDER, Problem
from nas.problem.steps import VOCABULARIES
from nas.search.assembly import assemble
from objectives.device import Calibration, Energy
from objectives.loss_law.features import OF_TRAINING, OWNERS, feature
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import QUANTITIES
from objectives.precision import precision
from search_spaces.architectures import Architectures
from search_spaces.space import SearchSpace

FROM_LAW = {"loss", "perplexity"}
LARGEST_TERM = 3.0  # nats, over the space
FP4_DEVICE = "jetson_agx_thor"
DEVICES = ("jetson_agx_orin_64gb", "jetson_orin_nano_super_8gb", "rtx_4090", "h100_sxm", "m4_10c", "snapdragon_8_elite")
ENERGIES = ((0.1, 5.0), (1e-13, 1e-11), (1e-12, 1e-10))  # W, J/FLOP, J/B
EXPONENTS = (-2.0, -1.0, -0.3, 0.17, 1.0)


class Chance:
    """Choices of one seed."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def one(self, *choices: Any) -> Any:
        """One of the choices."""
        return choices[self.generator.integers(len(choices))]

    def few(self, values: Sequence[Any], least: int, most: int) -> list[Any]:
        """Some of the values, in their order."""
        count = min(int(self.generator.integers(least, most + 1)), len(values))
        return [values[i] for i in np.sort(self.generator.choice(len(values), count, replace=False))]

    def share(self, least: float, most: float) -> float:
        """A number between two."""
        return float(self.generator.uniform(least, most))


def scenario_of(chance: Chance) -> dict[str, Any]:
    """Device, precision, workload and latency model of a study."""
    if chance.one(*range(5)) == 0:
        return chance.one({"latency": "closed_form"}, {"preset": "device"})
    device, precision = chance.one(*DEVICES), chance.one("fp16", "int8", "int4", "nvfp4", "q4_k_m", "mxfp4")
    return {
        "device": FP4_DEVICE if precision == "nvfp4" else device,
        "precision": precision,
        "attention": chance.one("unfused", "fused"),
        "causal": chance.one(True, False),
        "complete": chance.one(True, False),
        "batch": chance.one(1, 4),
        "input_tokens": chance.one(1, 2, 64, 1024),
        "output_tokens": chance.one(1, 16, 100),
        "vocabulary": chance.one(0, 32_000),
        "calibration": chance.one("none", calibration_of(chance)),
        "sustained": chance.one(False, 0.6),
    }


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
    efficiency = chance.share(0.1, 1.0)
    memory = {"engine_gb": efficiency, "memory_factor": 1.0 / efficiency}
    return {"compute_efficiency": efficiency, "bandwidth_efficiency": 0.8, "overhead": "5 us"} | memory | kept


def space_of(chance: Chance) -> SearchSpace:
    """A space of up to some ten thousand architectures; sizes and experts are regular, so that ties abound."""
    head, step = chance.one(32, 64, 128), chance.one(8, 32, 96)
    axes = {
        "depth": chance.few(range(1, 61), 1, 6),
        "width": [heads * head for heads in chance.few(range(2, 33), 1, 3)],
        "n_experts": [1, *chance.few(range(2, 129, chance.one(1, 2, 7)), 1, 20)],
        "top_k": [1, *chance.few(range(2, 9), 0, 2)],
        "expert_size": list(range(step, step * chance.one(*range(3, 25)), step)),
        "n_kv_heads": "divisors",
    }
    conditions = chance.one({}, {"max_expert_ffn_ratio": 4}, {"max_activation_rate": 0.5})
    return SearchSpace.from_mapping({"head_dim": head, "axes": axes, "conditions": conditions})


def space_with_heads(chance: Chance) -> SearchSpace:
    """A space of up to some ten thousand architectures with n_heads, and perhaps head_dim, free of width."""
    axes = {
        "depth": chance.few(range(1, 61), 1, 3),
        "width": [64 * heads for heads in chance.few(range(2, 33), 1, 2)],
        "n_heads": chance.few(range(1, 33), 1, 8),
        "n_experts": [1, *chance.few(range(2, 65, chance.one(1, 2, 7)), 0, 5)],
        "top_k": [1, *chance.few(range(2, 9), 0, 1)],
        "expert_size": list(range(96, 96 * chance.one(*range(3, 10)), 96)),
        "n_kv_heads": chance.one("divisors", [1, 2, 3, "n_heads"]),
    }
    axes |= chance.one({}, {"head_dim": [32, 64]}, {"head_dim": [64, 96, 128]})
    return SearchSpace.from_mapping({"axes": axes, "conditions": chance.one({}, {"max_activation_rate": 0.5})})


RULES: tuple[Any, ...] = (
    {"period": [2, 3, 6], "local": [16, 128, 1024], "kv_shared": [0, 2, 5]},
    {"kv_shared": 3},
    {"period": [2, 4], "conv": 3},
    {"period": [3, 5], "linear": ["deltanet", "mamba2"]},
)


def space_with_layers(chance: Chance) -> SearchSpace:
    """A space of up to some ten thousand architectures with layers of several kinds, perhaps with n_heads free of width."""
    axes = {
        "depth": chance.few(range(2, 49), 1, 4),
        "layers": ["full", *chance.few(RULES, 1, 4)],
        "width": [128 * k for k in chance.few(range(1, 17), 1, 2)],
        "n_experts": [1, *chance.few(range(2, 65, chance.one(1, 2, 7)), 0, 4)],
        "top_k": [1, *chance.few(range(2, 9), 0, 1)],
        "expert_size": list(range(96, 96 * chance.one(*range(3, 9)), 96)),
        "n_kv_heads": chance.one("divisors", [1, 2]),
    }
    axes |= chance.one({}, {}, {"n_heads": chance.few(range(1, 17), 1, 3), "n_kv_heads": "divisors"})
    conditions = chance.one({"min_full_layers": 1}, {"min_full_layers": 1, "min_window": 128}, {"full_layer_every": 6})
    return SearchSpace.from_mapping({"axes": axes, "conditions": conditions})


def term_of(chance: Chance, every: Architectures, number: int) -> tuple[dict[str, Any], dict[str, float]]:
    """A term of one to three quantities and its exponents: powers, logarithms, or both of one, turning inside the space."""
    term: dict[str, Any] = {"scale": f"s{number}", "sign": chance.one(-1, 1), "powers": {}, "logs": {}}
    exponents = {}
    for name in chance.few([name for name in OWNERS if name not in OF_TRAINING], 1, 3):
        exponent, kind = chance.one(*EXPONENTS), chance.one("power", "log", "both", "both")
        values = feature(every, name)
        turn = float(np.exp(chance.share(*np.log([values.min(), values.max()]))))
        if values.max() <= values.min() * (1.0 + 1e-9):
            kind = "power"  # the logarithm of one value over itself is rounding alone
        if kind != "log":
            term["powers"][name] = f"a{number}_{name}"
            exponents[f"a{number}_{name}"] = exponent
        if kind != "power":
            term["logs"][name] = turn * float(np.exp(1 / exponent)) if kind == "both" else turn
    return term, exponents


def law_of(chance: Chance, every: Architectures) -> Law:
    """Up to four terms, each of some nats over the space, above a constant that leaves a loss of half a nat or more."""
    of, coefficients = chance.one("loss", "loss", "log_loss"), dict[str, float]()
    form: dict[str, Any] = {"terms": {}, "residuals": "log_loss"}
    for number in range(chance.one(0, 1, 1, 2, 3, 4)):
        form["terms"][f"t{number}"], exponents = term_of(chance, every, number)
        coefficients |= {f"s{number}": 1.0, **exponents}
    form["terms"]["constant"] = {"scale": "c", "any_sign": True}
    unscaled = Law.model_validate({"form": form, "coefficients": {**coefficients, "c": 0.0}}).terms(every)
    total = np.zeros(len(every))
    for number in range(len(form["terms"]) - 1):
        values = unscaled[f"t{number}"]
        coefficients[f"s{number}"] = chance.share(0.01, LARGEST_TERM) / max(float(np.abs(values).max()), 1e-9)
        total += coefficients[f"s{number}"] * values
    least = chance.one(0.5, 2.0)
    if of == "log_loss" and chance.one(*range(4)) == 0:
        coefficients = {name: 3.0 * v if name.startswith("s") else v for name, v in coefficients.items()}
        total, least = 3.0 * total, 2.0
    coefficients["c"] = (least if of == "loss" else float(np.log(least))) - float(total.min())
    return Law.model_validate({"form": {**form, "of": of}, "coefficients": coefficients})


def metered(chance: Chance, problem: Problem) -> Problem:
    """The problem with coefficients of energy, any of which may be 0, and calibrated times of the first seconds."""
    base, per_flop, per_byte = (chance.one(0.0, 1.0, 1.0) * chance.share(*ends) for ends in ENERGIES)
    scenario = replace(
        problem.scenario,
        calibration=Calibration.model_validate(calibration_of(chance)),
        energy=Energy(base_power=base + 0.01, per_flop=per_flop, per_byte=per_byte),
        sustained=None,
    )
    return replace(problem, scenario=scenario, columns=("ttft_ms", "energy_j", "power_w"))


def cached(chance: Chance, problem: Problem) -> Problem:
    """The problem on a device whose cache, of any size, is one to ten times as fast as its memory."""
    scenario = problem.scenario
    assert scenario.calibration is not None
    figures = {"cache": 10 ** chance.share(6, 10), "cache_bandwidth": scenario.device.bandwidth * chance.share(1, 10)}
    calibration = scenario.calibration.model_copy(update={"cache_efficiency": chance.share(0.5, 1.0)})
    device = scenario.device.model_copy(update=figures)
    return replace(problem, scenario=replace(scenario, device=device, calibration=calibration))


def in_formats(chance: Chance, problem: Problem) -> Problem:
    """The problem with two to four formats of the designs' own, and perhaps what few bits cost."""
    device, names = problem.scenario.device, [*chance.few(["fp16", "int8", "int4", "nvfp4"], 2, 4), "int4"]
    able = [name for name in dict.fromkeys(names) if precision(name).linear_peak in ("fp16", *device.other_peaks)]
    mapping = problem.space.mapping()
    mapping["axes"]["precision"] = able if len(able) > 1 else ["fp16", "int4"]
    space = SearchSpace.from_mapping(mapping)
    formats = tuple(replace(problem.scenario, precision=precision(name)) for name in space.formats)
    named = {"precision_law": chance.one(None, "qat", "kumar", "post_training"), "precision": "fp16"}
    law = problem.scenario.law.model_copy(update=named)
    return replace(problem, space=space, scenario=replace(problem.scenario, law=law, formats=formats))


def problem_of(
    chance: Chance, *, heads: bool = False, formats: bool = False, layers: bool = False
) -> tuple[Problem, Evaluations]:
    """A problem of one to four objectives and none to four budgets, and its whole space evaluated."""
    raw = {"default_budget": "none", "applications": {}, "baselines": [], **scenario_of(chance)}
    if heads or layers:
        raw = {"law": chance.one("hw_codesign", "conditional", "conditional_1b"), **raw, "latency": "operator"}
    space = space_with_layers if layers else space_with_heads if heads else space_of
    problem = replace(assemble(raw, {}).problem, space=space(chance))
    genotypes = problem.space.genotypes(np.arange(problem.space.size))
    if problem.scenario.latency == "operator" and chance.one(0, 1, 2) == 0:
        problem = metered(chance, problem)
    if problem.scenario.calibration is not None and chance.one(True, False):
        problem = cached(chance, problem)
    if chance.one(*range(3 if heads else 4)):
        law = law_of(chance, problem.architectures(genotypes))
        problem = replace(problem, scenario=replace(problem.scenario, law=law))
    if layers and chance.one(True, False):
        kinds = chance.few([*QUANTITIES.values()], 1, 6)
        deltas = {kind: chance.share(-0.2, 0.4) / (10.0 if kind == "window" else 1.0) for kind in kinds}
        costs = {"layer_deltas": deltas, "layer_context": chance.one(64, 4096, 32_768)}
        law = problem.scenario.law.model_copy(update=costs)
        problem = replace(problem, scenario=replace(problem.scenario, law=law))
    if formats:
        problem = in_formats(chance, problem)
        genotypes = problem.space.genotypes(np.arange(problem.space.size))
    whole = problem.evaluate(genotypes)
    usable = np.flatnonzero(whole.ok)
    pool = problem.metric_names
    objectives = chance.few(chance.generator.permutation(pool).tolist(), 1, 4)
    rows = {name: chance.one(*usable.tolist()) for name in chance.few(pool, 0, 4) if len(usable)}
    budgets = tuple(Budget(name, float(whole.metrics[name][row])) for name, row in rows.items())
    problem = replace(problem, objectives=tuple(map(built_in, objectives)), budgets=budgets)
    return problem, replace(whole, objectives=tuple(objectives), budgets=budgets)


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


def constant(problem: Problem) -> bool:
    """Whether the law gives every architecture the same loss."""
    terms, deltas = problem.scenario.law.law_form.terms, problem.scenario.law.layer_deltas
    return not deltas and all(
        name == "constant" or problem.scenario.law.coefficients[t.scale] == 0 for name, t in terms.items()
    )


def frontier_agrees(problem: Problem, whole: Evaluations) -> None:
    """Members in their order, and the picks: as brute force finds them, having covered everything."""
    names = {objective.name for objective in problem.objectives}
    rules = (PickRule(None), *(PickRule(budget) for budget in problem.budgets))
    if constant(problem) and names <= FROM_LAW:
        if problem.scenario.formats:
            return  # where one format costs something and another nothing, the loss differs between them alone
        with pytest.raises(UsageError, match="expected one that differs between architectures"):
            solve(problem)
        return
    counted: list[int] = []
    solution = solve(problem, rules, counted.append)
    assert solution.way == "parts"
    assert solution.frontier.keys.tolist() == whole.keys[frontier_rows(whole)].tolist()
    assert sum(counted) == problem.space.size
    for rule, pick in zip(rules, solution.picks, strict=True):
        row = rule.strict(problem.budgets, problem.columns).row(whole)
        assert (None if pick is None else pick.keys.tolist()) == (None if row is None else [whole.keys[row]])


def gains_agree(problem: Problem, whole: Evaluations) -> None:
    """What each budget and each axis holds back, by brute force."""
    if not problem.budgets or (constant(problem) and FROM_LAW.intersection(b.metric for b in problem.budgets)):
        return
    found, row = gains(problem), PickRule(None).row(whole)
    assert (found is None) == (row is None)
    if found is None or row is None:
        return
    assert found.pick.keys.tolist() == [whole.keys[row]]
    loss = float(whole.metrics["loss"][row])
    for gain in found.budgets:
        others = tuple(budget for budget in problem.budgets if budget is not gain.budget)
        free, values = replace(whole, budgets=others).feasible, whole.metrics[gain.budget.metric]
        equal = free & (whole.metrics["loss"] <= loss * (1.0 + DIFFERENT))
        better = free & (whole.metrics["loss"] <= loss * (1.0 - DIFFERENT))
        assert gain.tightest == pytest.approx(values[equal].min(), rel=1e-11)
        assert (gain.relaxed is None) == (not better.any())
        if gain.relaxed is not None:
            assert gain.relaxed.at == pytest.approx(values[better].min(), rel=1e-11)
            assert gain.relaxed.loss == whole.metrics["loss"][free & (values <= gain.relaxed.at)].min()
    expected = {}
    for axis, value, space in beyond(problem.space):
        further = replace(problem, space=space)
        rows = further.evaluate(space.genotypes(np.arange(space.size)))
        best = PickRule(None).row(rows)
        if best is not None and rows.metrics["loss"][best] <= loss * (1.0 - DIFFERENT):
            expected[axis, value] = rows.metrics["loss"][best]
    assert {(gain.change, gain.at): gain.loss for gain in found.axes} == expected


def sweep_agrees(problem: Problem, whole: Evaluations, metric: str) -> None:
    """The pick at every limit from one exact frontier of the loss and the metric."""
    if constant(problem) and metric in FROM_LAW:
        return
    objectives = tuple(Objective(name) for name in dict.fromkeys(["loss", metric]))
    solution = solve(replace(problem, objectives=objectives))
    if not whole.ok.any():
        assert len(solution.frontier.keys) == 0
        return
    values = whole.metrics[metric][whole.ok]
    limits = np.linspace(values.min() * 0.99, values.max() * 1.01, 30)
    for limit, row in swept(Sweep(metric, limits), solution.frontier):
        expected = PickRule(Budget(metric, limit)).row(whole)
        assert (None if row is None else solution.frontier.keys[row]) == (
            None if expected is None else whole.keys[expected]
        )


def diagnosis_agrees(problem: Problem, whole: Evaluations, shares: list[float]) -> None:
    """The same budgets, or one below the least of all, tightened until nothing fits: what each of them would open."""
    ok = whole[whole.ok]
    if not whole.ok.any():
        return
    limits = {b.metric: b.limit * share for b, share in zip(problem.budgets, shares, strict=False)}
    limits["total_ms"] = float(ok.metrics["total_ms"].min()) * shares[-1]
    budgets = tuple(Budget(metric, limit) for metric, limit in limits.items())
    hopeless, rows = replace(problem, budgets=budgets), replace(whole, budgets=budgets)
    if rows.feasible.any() or (constant(problem) and FROM_LAW & set(limits)):
        return
    expected, found = diagnose(rows), diagnosed(hopeless, rows[:0])
    assert found.examined == problem.space.size
    for mine, theirs in zip(found.relaxations, expected.relaxations, strict=True):
        assert mine.limit == theirs.limit
        if mine.limit is not None:
            others = replace(ok, budgets=tuple(b for b in budgets if b is not mine.budget)).feasible
            assert mine.opens == (others & (ok.metrics[mine.budget.metric] <= mine.limit * (1 + 1e-12))).sum()
    assert found.together == pytest.approx(expected.together, rel=1e-6)
    assert (found.vocabulary and found.vocabulary.size) == opening_vocabulary(hopeless, whole)


def opening_vocabulary(problem: Problem, whole: Evaluations) -> int | None:
    """The largest smaller vocabulary at which something fits at equal text, by evaluating everything; None where nothing fits at the smallest."""
    sizes = [size for size in VOCABULARIES if size < problem.vocabulary]
    variants = (problem.at_equal_text().with_vocabulary(size) for size in sizes)
    fits = [bool(variant.evaluate(whole.genotypes).feasible.any()) for variant in variants]
    return sizes[fits.index(True)] if fits and fits[-1] else None


def problems(first: int, last: int) -> list[Any]:
    """Seeds of problems; all but the first four are `slow`."""
    return [*range(first, first + 4), *(pytest.param(i, marks=pytest.mark.slow) for i in range(first + 4, last))]


def every_answer_agrees(seed: int, *, heads: bool = False, layers: bool = False) -> None:
    """Frontier, picks, gains, a sweep and a diagnosis of one problem."""
    chance = Chance(seed)
    problem, whole = problem_of(chance, heads=heads, layers=layers)
    with by_parts(small_steps=False):
        frontier_agrees(problem, whole)
        gains_agree(problem, whole)
        sweep_agrees(problem, whole, chance.one(*METRIC_ORDER))
        diagnosis_agrees(problem, whole, [chance.share(0.3, 1.0) for _ in range(5)])


def every_answer_is_brute_forces(
    chance: Chance, problem: Problem, whole: Evaluations, further: tuple[str, ...]
) -> None:
    """Frontier, picks, gains, a sweep of one of the metrics, these further ones among them, and a diagnosis."""
    with by_parts(small_steps=False):
        frontier_agrees(problem, whole)
        gains_agree(problem, whole)
        if whole.ok.any():
            sweep_agrees(problem, whole, chance.one(*METRIC_ORDER, *further))
            diagnosis_agrees(problem, whole, [chance.share(0.3, 1.0) for _ in range(5)])


@pytest.mark.parametrize("seed", problems(0, 30))
def test_frontiers_and_picks_are_those_of_brute_force(seed: int) -> None:
    with by_parts(small_steps=True):
        frontier_agrees(*problem_of(Chance(seed)))


@pytest.mark.parametrize("seed", problems(1000, 1025))
def test_every_answer_is_that_of_brute_force(seed: int) -> None:
    every_answer_agrees(seed)


@pytest.mark.parametrize("seed", problems(2000, 2040))
def test_every_answer_is_that_of_brute_force_where_n_heads_is_free_of_width(seed: int) -> None:
    every_answer_agrees(seed, heads=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2040, 2060))
def test_frontiers_in_small_steps_are_those_of_brute_force_where_n_heads_is_free(seed: int) -> None:
    with by_parts(small_steps=True):
        frontier_agrees(*problem_of(Chance(seed), heads=True))


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(2060, 2360))
def test_every_answer_of_hundreds_of_problems_with_free_heads_is_that_of_brute_force(seed: int) -> None:
    every_answer_agrees(seed, heads=True)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(30, 1000))
def test_hundreds_of_frontiers_are_those_of_brute_force(seed: int) -> None:
    with by_parts(small_steps=True):
        frontier_agrees(*problem_of(Chance(seed)))


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(1025, 1425))
def test_every_answer_of_hundreds_of_problems_is_that_of_brute_force(seed: int) -> None:
    every_answer_agrees(seed)


def formats_agree(seed: int) -> None:
    """Designs with formats of their own, every third seed with free heads besides."""
    with by_parts(small_steps=seed % 2 == 0):
        frontier_agrees(*problem_of(Chance(seed), heads=seed % 3 == 0, formats=True))


@pytest.mark.parametrize("seed", [7000, 7001, *(pytest.param(i, marks=pytest.mark.slow) for i in range(7002, 7030))])
def test_frontiers_and_picks_are_those_of_brute_force_where_precision_is_an_axis(seed: int) -> None:
    formats_agree(seed)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(7030, 7330))
def test_hundreds_of_frontiers_are_those_of_brute_force_where_precision_is_an_axis(seed: int) -> None:
    formats_agree(seed)


def layers_agree(seed: int) -> None:
    """Layers of several kinds: every answer, every third seed in small steps, every fifth in several formats."""
    if seed % 5 == 0:
        with by_parts(small_steps=seed % 2 == 0):
            frontier_agrees(*problem_of(Chance(seed), layers=True, formats=True))
    elif seed % 3 == 0:
        with by_parts(small_steps=True):
            frontier_agrees(*problem_of(Chance(seed), layers=True))
    else:
        every_answer_agrees(seed, layers=True)


@pytest.mark.parametrize("seed", [8000, 8001, *(pytest.param(i, marks=pytest.mark.slow) for i in range(8002, 8030))])
def test_every_answer_is_that_of_brute_force_where_layers_are_of_several_kinds(seed: int) -> None:
    layers_agree(seed)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(8030, 8330))
def test_every_answer_of_hundreds_of_problems_with_layers_of_several_kinds_is_that_of_brute_force(seed: int) -> None:
    layers_agree(seed)
