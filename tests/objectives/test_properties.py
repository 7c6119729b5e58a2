"""What must hold whatever the architecture: batches, inputs, monotonicity, 1 MAC = 2 FLOPs."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from objectives.assessment import Assessment
from objectives.device import Calibration
from objectives.dimensions import Dimensions
from objectives.latency.operator import Pass, phases
from objectives.latency.roofline import CHUNK, phase_times
from objectives.plugins import importable
from search_spaces.architectures import Architectures, one
from search_spaces.columns import DEFAULTS, SHAPE, worded

Draw = Callable[..., Architectures]
OF_ENERGY = ("energy_j", "power_w", "tokens_per_joule")  # of devices with coefficients: test_energy.py
OF_TEXT = ("bits_per_byte", "ms_per_kilobyte", "energy_per_kilobyte")  # of scenarios with a text: test_text.py
METRICS = tuple(metric for metric in importable("objectives.metrics") if metric not in (*OF_ENERGY, *OF_TEXT))
GROWING = tuple(
    metric for metric in METRICS if metric not in ("loss", "perplexity", "tokens_per_second", "extrapolation")
)
LATENCIES = ("prefill_ms", "decode_ms", "tpot_ms", "total_ms")
seeds = st.integers(0, 2**32 - 1)


def metrics(case: Any, architectures: Architectures) -> dict[str, np.ndarray[Any, Any]]:
    """Every metric of a batch."""
    found = Assessment(architectures, case.scenario)
    return {metric: found[metric] for metric in METRICS}


def assert_same_bits(found: dict[str, Any], expected: dict[str, Any], rows: Any = slice(None)) -> None:
    """Values equal to the last bit."""
    for metric, values in found.items():
        np.testing.assert_array_equal(values, expected[metric][rows], err_msg=metric)


def changed(architectures: Architectures, **columns: Any) -> Architectures:
    """The same architectures with other columns."""
    stored = {name: worded(name, getattr(architectures, name)) for name in (*SHAPE, *DEFAULTS)}
    return Architectures.from_columns(stored | columns)


# Batches


@settings(max_examples=25)
@given(data=st.data(), seed=seeds)
def test_a_permuted_batch_gives_the_same_bits(
    data: st.DataObject, seed: int, cases: st.SearchStrategy[Any], random_architectures: Draw
) -> None:
    case, batch = data.draw(cases), random_architectures(203, seed)
    whole = metrics(case, batch)
    for rows in (np.random.default_rng(seed).permutation(203), slice(None, None, -1), slice(1, None, 3)):
        assert_same_bits(metrics(case, batch[rows]), whole, rows)


@settings(max_examples=25)
@given(data=st.data(), seed=seeds, cut=st.integers(0, 64))
def test_a_concatenated_batch_gives_the_same_bits(
    data: st.DataObject, seed: int, cut: int, cases: st.SearchStrategy[Any], random_architectures: Draw
) -> None:
    """One part has no shared experts, vocabulary or further columns; the other has."""
    case = data.draw(cases)
    parts = [random_architectures(64, seed, plain=True), random_architectures(64, seed)[:cut]]
    whole = metrics(case, Architectures.concatenate(parts))
    assert_same_bits(metrics(case, parts[0]), whole, slice(0, 64))
    assert_same_bits(metrics(case, parts[1]), whole, slice(64, None))


@settings(max_examples=10)
@given(data=st.data(), seed=seeds)
def test_a_row_alone_gives_the_same_bits(
    data: st.DataObject, seed: int, cases: st.SearchStrategy[Any], random_architectures: Draw
) -> None:
    case, batch = data.draw(cases), random_architectures(13, seed)
    whole = metrics(case, batch)
    for row in range(len(batch)):
        assert_same_bits(metrics(case, batch[row : row + 1]), whole, slice(row, row + 1))


@pytest.mark.parametrize("precision", [pytest.param("fp16", marks=pytest.mark.slow), "int8"])
def test_a_batch_of_several_chunks_gives_the_same_bits(case: Any, precision: str, random_architectures: Draw) -> None:
    """Chunks that hold no mixture of experts, no shared expert or no vocabulary must not show."""
    n = 2 * CHUNK + 777
    mixed = random_architectures(n, 6)
    first = np.arange(n) < CHUNK + 5
    batch = changed(
        mixed,
        shared_expert_size=np.where(first, 0, mixed.shared_expert_size),
        vocabulary=np.where(first, mixed.vocabulary, 0),
        n_experts=np.where(first, 1, mixed.n_experts),
        top_k=np.where(first, 1, mixed.top_k),
    )
    calibration = Calibration(compute_efficiency=0.5, bandwidth_efficiency=0.8, overhead="5 us")
    chosen = case.but(precision=precision, complete=True, batch=3, calibration=calibration)
    whole = metrics(chosen, batch)
    order = np.random.default_rng(0).permutation(n)
    assert_same_bits(metrics(chosen, batch[order]), whole, order)
    for rows in (slice(CHUNK - 3, CHUNK + 9), slice(0, 5), slice(n - 1, n), slice(100, 100 + CHUNK)):
        assert_same_bits(metrics(chosen, batch[rows]), whole, rows)


@settings(max_examples=10)
@given(data=st.data(), seed=seeds)
def test_the_closed_form_of_a_permuted_batch_gives_the_same_bits(
    data: st.DataObject, seed: int, case: Any, random_architectures: Draw
) -> None:
    batch = random_architectures(101, seed, plain=True)
    chosen = case.but(latency="closed_form", precision=data.draw(st.sampled_from(["fp16", "int8", "int4"])))
    order = np.random.default_rng(seed).permutation(101)
    whole = metrics(chosen, batch)
    assert_same_bits(metrics(chosen, batch[order]), whole, order)
    assert_same_bits(metrics(chosen, batch[7:8]), whole, slice(7, 8))


@settings(max_examples=10)
@given(data=st.data(), seed=seeds)
def test_inputs_stay_unchanged(
    data: st.DataObject, seed: int, cases: st.SearchStrategy[Any], random_architectures: Draw
) -> None:
    case, batch = data.draw(cases), random_architectures(50, seed)
    before = {field.name: getattr(batch, field.name).copy() for field in fields(batch)}
    scenario = case.scenario
    found = Assessment(batch, scenario)
    for metric in METRICS:
        found[metric]
        scenario.law.outside(batch)
    assert scenario == case.scenario
    for name, column in before.items():
        np.testing.assert_array_equal(getattr(batch, name), column)
        assert not getattr(batch, name).flags.writeable


# Monotonicity


def assert_no_smaller(larger: dict[str, Any], smaller: dict[str, Any], names: tuple[str, ...]) -> None:
    """Never smaller, but for rounding."""
    for metric in names:
        assert (larger[metric] >= smaller[metric] * (1 - 1e-12)).all(), metric


LARGER: dict[str, Callable[[Architectures], dict[str, Any]]] = {
    "depth": lambda a: {"depth": a.depth + 1},
    "width": lambda a: {"width": a.width + 1},
    "heads": lambda a: {"n_heads": 2 * a.n_heads},
    "KV heads": lambda a: {"n_kv_heads": a.n_heads},
    "expert size": lambda a: {"expert_size": a.expert_size + 1},
    "experts": lambda a: {"n_experts": a.n_experts + 1},
    "experts per token": lambda a: {"top_k": np.maximum(1, np.minimum(a.top_k + 1, a.n_experts - 1))},
    "shared expert": lambda a: {"shared_expert_size": a.shared_expert_size + 1},
    "norms": lambda a: {"norms_per_layer": a.norms_per_layer + 1},
    "vocabulary": lambda a: {"vocabulary": a.vocabulary + 1},
}


@settings(max_examples=10)
@pytest.mark.parametrize("what", LARGER)
@given(data=st.data(), seed=seeds)
def test_nothing_gets_cheaper_by_growing(
    what: str, data: st.DataObject, seed: int, cases: st.SearchStrategy[Any], random_architectures: Draw
) -> None:
    case, small = data.draw(cases), random_architectures(60, seed)
    large = changed(small, **LARGER[what](small))
    assert_no_smaller(metrics(case, large), metrics(case, small), GROWING)


@pytest.mark.parametrize("what", LARGER)
def test_growing_costs_something(what: str, case: Any, random_architectures: Draw) -> None:
    """The test above would pass on constants."""
    small = random_architectures(60, 12)
    large = changed(small, **LARGER[what](small))
    before, after = metrics(case.but(batch=2), small), metrics(case.but(batch=2), large)
    memory = "params_active" if what == "experts per token" else "resident_gb"
    for metric in ("decode_ms", "total_ms", memory):
        assert (after[metric] > before[metric]).any(), metric


WORKLOADS: dict[str, tuple[str, ...]] = {
    "batch": (*LATENCIES, "resident_gb"),
    "input_tokens": (*LATENCIES, "resident_gb"),
    "output_tokens": ("decode_ms", "total_ms", "tpot_ms", "resident_gb"),
}


@pytest.mark.slow
@settings(max_examples=15)
@pytest.mark.parametrize("quantity", WORKLOADS)
@given(data=st.data(), seed=seeds, more=st.integers(1, 5))
def test_more_work_takes_no_less(
    quantity: str, data: st.DataObject, seed: int, more: int, cases: st.SearchStrategy[Any], random_architectures: Draw
) -> None:
    case, batch = data.draw(cases), random_architectures(60, seed)
    heavier = case.but(**{quantity: case.options[quantity] + more})
    light, heavy = metrics(case, batch), metrics(heavier, batch)
    assert_no_smaller(heavy, light, WORKLOADS[quantity])
    assert_same_bits({name: heavy[name] for name in ("memory_gb", "params_total", "loss")}, light)


@pytest.mark.slow
@settings(max_examples=15)
@pytest.mark.parametrize("figure", ["fp16", "int8", "bandwidth"])
@given(data=st.data(), seed=seeds)
def test_a_better_device_is_no_slower(
    figure: str, data: st.DataObject, seed: int, cases: st.SearchStrategy[Any], random_architectures: Draw
) -> None:
    case, batch = data.draw(cases), random_architectures(60, seed)
    better = case.but(device=case.device.model_copy(update={figure: 1.5 * getattr(case.device, figure)}))
    assert_no_smaller(metrics(case, batch), metrics(better, batch), LATENCIES)


@settings(max_examples=15)
@given(data=st.data(), seed=seeds)
def test_twice_the_device_takes_half_the_time(
    data: st.DataObject, seed: int, cases: st.SearchStrategy[Any], random_architectures: Draw
) -> None:
    case, batch = data.draw(cases).but(calibration=None), random_architectures(60, seed)
    figures = {name: 2 * getattr(case.device, name) for name in ("fp16", "int8", "bandwidth")}
    twice = metrics(case.but(device=case.device.model_copy(update=figures)), batch)
    for metric in LATENCIES:
        np.testing.assert_allclose(2 * twice[metric], metrics(case, batch)[metric], rtol=1e-13)


@settings(max_examples=15)
@given(data=st.data(), seed=seeds)
def test_options_add_or_save_what_they_say(
    data: st.DataObject, seed: int, cases: st.SearchStrategy[Any], random_architectures: Draw
) -> None:
    case, batch = data.draw(cases), random_architectures(60, seed)
    assert_no_smaller(metrics(case.but(complete=True), batch), metrics(case.but(complete=False), batch), LATENCIES)
    full, causal = metrics(case.but(causal=False), batch), metrics(case.but(causal=True), batch)
    assert_no_smaller(full, causal, LATENCIES)
    np.testing.assert_array_equal(full["decode_ms"], causal["decode_ms"])
    unfused, fused = metrics(case.but(attention="unfused"), batch), metrics(case.but(attention="fused"), batch)
    assert_no_smaller(unfused, fused, (*LATENCIES, "resident_gb"))
    grouped = metrics(case.but(precision="int4", group_size=64), batch)
    whole = metrics(case.but(precision="int4", group_size=None), batch)
    assert_no_smaller(grouped, whole, (*LATENCIES, "resident_gb", "memory_gb"))
    real = _without_cache(case.calibration or Calibration())  # a cache saves time
    ideal = metrics(case.but(calibration=Calibration(routing_overlap=real.routing_overlap)), batch)
    assert_no_smaller(metrics(case.but(calibration=real), batch), ideal, LATENCIES)


@settings(max_examples=15)
@given(data=st.data(), seed=seeds, times=st.integers(2, 9))
def test_layers_are_identical(
    data: st.DataObject, seed: int, times: int, cases: st.SearchStrategy[Any], random_architectures: Draw
) -> None:
    """Without a vocabulary latency, weights and KV cache are proportional to depth; of more layers a cache holds a smaller share."""
    case, shallow = data.draw(cases), random_architectures(60, seed).with_vocabulary(0)
    deep = changed(shallow, depth=times * shallow.depth)
    apart = {metric: times * values for metric, values in metrics(case, shallow).items()}
    assert_no_smaller(metrics(case, deep), apart, LATENCIES)
    streamed = case if case.calibration is None else case.but(calibration=_without_cache(case.calibration))
    before, after = metrics(streamed, shallow), metrics(streamed, deep)
    for metric in (*LATENCIES, "memory_gb"):
        np.testing.assert_allclose(after[metric], times * before[metric], rtol=1e-13)


def _without_cache(calibration: Calibration) -> Calibration:
    return calibration.model_copy(update={"cache_efficiency": None})


# 1 multiply-accumulate = 2 FLOPs

TINY = {"depth": 1, "width": 8, "head_dim": 4, "n_heads": 2, "n_kv_heads": 1, "expert_size": 6, "vocabulary": 5}


def multiply_accumulates(rows: int, inner: int, columns: int) -> int:
    """Scalar multiply-accumulates of a matrix product, counted one by one."""
    count = 0
    for _ in range(rows):
        for _ in range(columns):
            for _ in range(inner):
                count += 1
    return count


def test_a_multiply_accumulate_is_two_flops(case: Any) -> None:
    """Every matrix product of a tiny model, counted with loops: T = 3 tokens, 2 heads of 4."""
    scenario = case.but(input_tokens=3).scenario
    times = phase_times(Dimensions(one(TINY)), Pass(phases(scenario)[0], scenario))
    flops = {
        each.operator.name: each.compute * case.device.fp16 for each in (*times.attention, *times.ffn, *times.head)
    }
    macs = {
        "q_proj": multiply_accumulates(3, 8, 8),
        "k_proj, v_proj": 2 * multiply_accumulates(3, 8, 4),
        "qk_matmul": 2 * multiply_accumulates(3, 4, 3),
        "sv_matmul": 2 * multiply_accumulates(3, 3, 4),
        "o_proj": multiply_accumulates(3, 8, 8),
        "gate_proj, up_proj": 2 * multiply_accumulates(3, 8, 6),
        "down_proj": multiply_accumulates(3, 6, 8),
        "lm_head": multiply_accumulates(1, 8, 5),
    }
    assert set(flops) - set(macs) == {"norm", "softmax", "gated_activation", "embedding"}
    for name, count in macs.items():
        assert flops[name][0] == pytest.approx(2 * count, rel=1e-12), name


def test_the_closed_form_counts_two_flops_a_weight(case: Any, random_architectures: Draw) -> None:
    """Prefill = 2 · active weights · tokens / peak for architectures without routing overhead."""
    batch = random_architectures(80, 4, plain=True)
    chosen = case.but(latency="closed_form", batch=3, input_tokens=50)
    x = Dimensions(batch)
    weights = x.depth * (2 * x.width * x.query_dim + 2 * x.width * x.kv_dim + 3 * x.width * x.activated_size)
    found = metrics(chosen, batch)["prefill_ms"]
    np.testing.assert_allclose(found, 2 * weights * 150 / case.device.fp16 * 1e3, rtol=1e-12)
