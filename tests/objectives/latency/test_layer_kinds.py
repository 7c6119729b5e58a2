"""Costs of layers of several kinds against the scalar reference, and where they must be today's to the last digit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from objectives import memory
from objectives.assessment import Assessment
from objectives.counts import count
from objectives.device import Calibration, Device
from objectives.dimensions import Dimensions
from objectives.latency.operator import phases
from objectives.latency.request_work import request_work
from objectives.loss_law.features import COUNTS, feature
from objectives.parts import PartAssessment
from search_spaces.architectures import Architectures, one
from search_spaces.columns import DEFAULTS, SHAPE, worded
from search_spaces.layer_kinds import KIND_DEFAULTS, OTHER_HEADS

Draw = Callable[..., Architectures]
Convert = Callable[[Architectures], list[Any]]
METRICS = (
    "prefill_ms",
    "decode_ms",
    "tpot_ms",
    "total_ms",
    "memory_gb",
    "resident_gb",
    "params_total",
    "params_active",
)
FUSED = {"attention": "fused", "causal": True, "complete": True}
WORKLOADS = ((1, 1024, 16), (3, 1, 1), (2, 1100, 9), (1, 600, 600))


def changed(architectures: Architectures, **columns: Any) -> Architectures:
    """The same architectures with other columns."""
    stored = {name: worded(name, getattr(architectures, name)) for name in (*SHAPE, *DEFAULTS)}
    return Architectures.from_columns(stored | columns)


WHOLE = Calibration(
    compute_efficiency=0.5,
    compute_efficiency_int8=0.4,
    bandwidth_efficiency=0.8,
    overhead="5 us",
    prefill_bandwidth_efficiency=1.5,
    prefill_overhead="15 us",
    attention_compute=0.4,
    attention_bandwidth=0.7,
    expert_compute=0.6,
    expert_bandwidth=0.9,
    routing_overlap=0.45,
    cache_efficiency=0.7,
)
UNCACHED = WHOLE.model_copy(update={"cache_efficiency": None})
CACHED = Device(
    name="cached", fp16=10, int8=20, bandwidth=50, memory=8, cache="300 MB", cache_bandwidth="400 GB/s"
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_every_metric_of_100_mixed_architectures_is_the_oracles(
    seed: int, case: Any, devices: list[Any], random_architectures: Draw, as_reference: Convert
) -> None:
    """2,000 rows over twenty settings: device, coefficients, precision, workload, options."""
    generator = np.random.default_rng(seed)
    batch, read, written = WORKLOADS[seed % len(WORKLOADS)]
    chosen = case.but(
        device=CACHED if seed % 5 == 0 else devices[seed % len(devices)],
        calibration=WHOLE if seed % 5 < 3 else None,
        precision=("fp16", "int8", "int4", "fp32")[seed // 4 % 4],
        batch=batch,
        input_tokens=read,
        output_tokens=written if seed < 4 else min(written, 9),
        attention=("unfused", "fused")[seed % 2],
        causal=bool(generator.random() < 0.5),
        complete=bool(generator.random() < 0.5),
    )
    assert_agrees(chosen, random_architectures(100, seed, kinds=True), as_reference)


def assert_agrees(case: Any, architectures: Architectures, as_reference: Convert) -> None:
    """Every metric is the oracle's, to 1e-9."""
    found, rows = Assessment(architectures, case.scenario), as_reference(architectures)
    for metric in METRICS:
        oracle = getattr(case.oracle, metric)
        expected = [oracle(row) if metric.startswith("params") else oracle(row, case.setting) for row in rows]
        np.testing.assert_allclose(found[metric], expected, rtol=1e-9, err_msg=metric)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, FUSED | {"precision": "int8"}, FUSED | {"device": CACHED, "calibration": WHOLE}]
)
def test_mixed_architectures_are_the_oracles(
    options: dict[str, Any], case: Any, random_architectures: Draw, as_reference: Convert
) -> None:
    chosen = case.but(batch=2, input_tokens=1021, output_tokens=5).but(**options)
    assert_agrees(chosen, random_architectures(40, 3, kinds=True), as_reference)


@pytest.mark.parametrize("options", [{}, FUSED, {"device": CACHED, "calibration": WHOLE}])
def test_a_window_as_long_as_the_context_is_full_attention_to_the_last_digit(
    options: dict[str, Any], case: Any, random_architectures: Draw
) -> None:
    plain, chosen = random_architectures(200, 8), case.but(input_tokens=1000, output_tokens=24).but(**options)
    local = changed(plain, n_local=np.maximum(1, plain.depth // 2), window=1024)
    before, after = (Assessment(each, chosen.scenario) for each in (plain, local))
    for metric in METRICS:
        np.testing.assert_array_equal(before[metric], after[metric], err_msg=metric)
    shorter = Assessment(changed(local, window=1000), chosen.scenario)
    np.testing.assert_array_equal(shorter["prefill_ms"], before["prefill_ms"])
    assert (shorter["decode_ms"] < before["decode_ms"]).any()
    assert (shorter["resident_gb"] < before["resident_gb"]).all()


def test_rows_without_kinds_have_the_same_bits_beside_rows_with_them(case: Any, random_architectures: Draw) -> None:
    plain, mixed = random_architectures(150, 4), random_architectures(150, 5, kinds=True)
    both = Architectures.concatenate([plain, mixed])
    chosen = case.but(precision="int8", complete=True, batch=2).scenario
    alone, together = Assessment(plain, chosen), Assessment(both, chosen)
    for metric in METRICS:
        np.testing.assert_array_equal(alone[metric], together[metric][:150], err_msg=metric)
    np.testing.assert_array_equal(request_work(plain, chosen), request_work(both, chosen)[:, :150])


def test_the_work_of_a_window_is_the_sum_over_passes(case: Any) -> None:
    _, decode = phases(case.but(input_tokens=100, output_tokens=50).scenario)
    for window in (1, 99, 100, 101, 130, 150, 151):
        expected = sum(min(s, window) for s in range(101, 151))
        assert decode.context(np.array([float(window)])).tolist() == [expected]
    assert decode.context() == sum(range(101, 151))


ADDING_UP = (
    *("prefill_ms", "decode_ms", "total_ms", "memory_gb", "resident_gb", "params_total", "params_active"),
    "train_flops",
)


@pytest.mark.parametrize("options", [{}, FUSED | {"precision": "int8"}, {"calibration": UNCACHED, "batch": 4}])
def test_mixers_and_ffns_add_up(options: dict[str, Any], case: Any, random_architectures: Draw) -> None:
    """u = base + l · (mixers' mean + FFN's) + what stands once: kinds are a matter of the partner of an FFN alone."""
    scenario = case.but(batch=2, input_tokens=700, output_tokens=20).but(**options).scenario
    drawn = random_architectures(300, 9, kinds=True)
    mixed = changed(drawn, n_dense=0, dense_size=0)
    plain = changed(mixed, depth=1, **{name: KIND_DEFAULTS[name] for name in KIND_DEFAULTS if name != "ungated_ffn"})
    whole = Assessment(mixed, scenario)
    for metric in (*ADDING_UP, *COUNTS):
        total = np.zeros(len(mixed))
        for part, rows in (("base", mixed), ("attention", mixed), ("ffn", plain)):
            share = PartAssessment(rows, scenario, part)[metric]
            total += mixed.depth * sum(share.per_layer, np.zeros(len(mixed))) + sum(share.once, np.zeros(len(mixed)))
        expected = feature(mixed, metric) if metric in COUNTS else whole[metric]
        np.testing.assert_allclose(total, expected, rtol=1e-12, err_msg=metric)


GEMMA = {
    "depth": 26, "width": 1152, "head_dim": 256, "n_heads": 4, "n_kv_heads": 1, "expert_size": 6912,
    "norms_per_layer": 4, "n_local": 22, "window": 512, "vocabulary": 262144,
}  # fmt: skip


def test_the_kv_cache_of_gemma_3_1b_at_32000_tokens(case: Any) -> None:
    """4 of 26 layers keep every token, 22 keep 512; costed as full attention it is 5.8 times as much."""
    chosen = case.but(precision="int8", input_tokens=31_000, output_tokens=1000).scenario
    local, full = (
        memory.resident_parts_gb(Dimensions(one(row)), count(one(row)), chosen)
        for row in (GEMMA, {**GEMMA, "n_local": 0, "window": 0})
    )
    of_configuration = 2 * 256 * (4 * 32_000 + 22 * 512) * 2 / 1e9
    assert local["kv cache"][0] == pytest.approx(of_configuration, rel=1e-15)
    assert full["kv cache"][0] / local["kv cache"][0] == pytest.approx(5.975, abs=0.001)


def test_only_what_a_kind_is_made_of_may_be_given(random_architectures: Draw) -> None:
    """Every column of a kind is at its default where no layer is of the kind, so that a model has one row."""
    mixed = random_architectures(500, 6, kinds=True)
    for layers, sizes in {"n_local": ["window"], "n_conv": ["conv_kernel"], "n_dense": ["dense_size"]}.items():
        for size in sizes:
            assert ((getattr(mixed, layers) > 0) == (getattr(mixed, size) > 0)).all()
    assert all(getattr(mixed, name).any() for name in KIND_DEFAULTS if name not in OTHER_HEADS)
