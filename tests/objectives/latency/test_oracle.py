"""Both latency models against the scalar reference, to a relative 1e-9."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from objectives import counts
from objectives.device import Calibration, Device
from objectives.dimensions import Dimensions
from objectives.latency import closed_form
from objectives.latency.operator import quantise
from objectives.latency.roofline import latency_ms, sum_of_larger
from objectives.memory import kv_cache_of
from objectives.precision import PRECISIONS
from search_spaces.architectures import Architectures, one

RELATIVE = 1e-9
PASSES = 1000  # decode passes that the oracle walks per example
Draw = Callable[..., Architectures]
Convert = Callable[[Architectures], list[Any]]


def assert_agrees(case: Any, architectures: Architectures, rows: list[Any], order: np.ndarray[Any, Any]) -> None:
    """The batch's latencies, computed at once, are the oracle's in the chosen rows."""
    prefill, decode = latency_ms(Dimensions(architectures), case.scenario)
    setting, oracle = case.setting, case.oracle
    expected = np.array([[oracle.prefill_ms(rows[i], setting), oracle.decode_ms(rows[i], setting)] for i in order])
    np.testing.assert_allclose(prefill[order], expected[:, 0], rtol=RELATIVE)
    np.testing.assert_allclose(decode[order], expected[:, 1], rtol=RELATIVE)


@settings(max_examples=40)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), plain=st.booleans())
def test_operator_model_in_any_setting(
    data: st.DataObject,
    seed: int,
    plain: bool,
    cases: st.SearchStrategy[Any],
    random_architectures: Draw,
    as_reference: Convert,
) -> None:
    case = data.draw(cases)
    architectures = random_architectures(300, seed, plain=plain)
    checked = min(300, PASSES // case.options["output_tokens"])
    order = np.random.default_rng(seed).permutation(300)[:checked]
    assert_agrees(case, architectures, as_reference(architectures), order)


WINDOWS = {"depth": 6, "width": 256, "head_dim": 32, "n_heads": 8, "n_kv_heads": 4, "expert_size": 512, "n_local": 5}
WINDOWS |= {"window": 8, "norms_per_layer": 4, "vocabulary": 300, "full_head_dim": 64, "full_kv_heads": 2}
LATENT = {"depth": 5, "width": 256, "head_dim": 48, "n_heads": 8, "n_kv_heads": 8, "expert_size": 512, "qk_norm": "no"}
LATENT |= {"latent_size": 64, "latent_rope": 16, "value_dim": 24, "n_experts": 4, "top_k": 2, "vocabulary": 300}
OTHER_HEADS = [
    WINDOWS,
    WINDOWS | {"keys_are_values": True, "n_kv_shared": 2, "n_kv_shared_local": 2},
    LATENT,
    LATENT | {"latent_queries": 40, "n_dense": 1, "dense_size": 300},
    LATENT | {"latent_queries": 40, "index_heads": 3, "index_dim": 20, "ungated_ffn": True},
    {name: WINDOWS[name] for name in ("depth", "width", "head_dim", "n_heads", "n_kv_heads", "expert_size")},
]


@pytest.mark.parametrize(
    "options", [{}, {"complete": True, "attention": "fused", "causal": True}, {"precision": "int8"}]
)
def test_heads_of_full_attention_alone_and_latent_attention(
    options: dict[str, Any], case: Any, as_reference: Convert
) -> None:
    """Designs of all kinds in one batch: times, parameters and what a cache keeps are the oracle's."""
    architectures = Architectures.concatenate([one(row) for row in OTHER_HEADS])
    chosen, rows = case.but(input_tokens=20, output_tokens=3, batch=2, **options), as_reference(architectures)
    assert_agrees(chosen, architectures, rows, np.arange(len(rows)))
    assert counts.total(architectures).tolist() == [case.oracle.params_total(row) for row in rows]
    kept = kv_cache_of(Dimensions(architectures), chosen.scenario)
    expected = [sum(case.oracle.kept_bytes(row, chosen.setting, layer) for layer in row.layers) for row in rows]
    np.testing.assert_allclose(kept, expected, rtol=RELATIVE)


CALIBRATION = Calibration(compute_efficiency=0.5, bandwidth_efficiency=0.8, overhead="5 us")
WHOLE_CALIBRATION = Calibration(
    compute_efficiency=0.5,
    bandwidth_efficiency=0.8,
    overhead="5 us",
    prefill_bandwidth_efficiency=1.5,
    prefill_overhead="15 us",
    attention_compute=0.4,
    attention_bandwidth=0.7,
    decode_attention_compute=0.02,
    decode_compute=0.1,
    batched_compute=0.5,
    scan_compute=0.05,
    expert_compute=0.6,
    expert_bandwidth=0.9,
    routing_overlap=0.45,
)
CACHED = WHOLE_CALIBRATION.model_copy(update={"cache_efficiency": 0.7})
SMALL_CACHE, LARGE_CACHE = (
    Device(
        name="cached",
        fp16=10,
        int8=20,
        bandwidth=50,
        memory=8,
        cache=size,
        cache_bandwidth="400 GB/s",
        other_peaks={"fp4": 40},
    )
    for size in ("300 MB", "100 GB")
)
FP4_CALIBRATION = Calibration(compute_efficiency=0.2, compute_efficiency_fp4=0.6, overhead="3 us")
INT8_CALIBRATION = Calibration(compute_efficiency=0.7, compute_efficiency_int8=0.3, overhead="1 ms")
OPTIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "fused": {"attention": "fused"},
    "causal": {"causal": True},
    "complete": {"complete": True},
    "fused causal": {"attention": "fused", "causal": True},
    "fused causal complete": {"attention": "fused", "causal": True, "complete": True},
    "head bytes": {"head_bytes": 0.5},
    "group size": {"group_size": 128},
    "batch": {"batch": 8},
    "one token": {"batch": 1, "input_tokens": 1, "output_tokens": 1},
    "two tokens": {"batch": 2, "input_tokens": 1, "output_tokens": 2},
    "long prompt": {"batch": 3, "input_tokens": 32_768},
    "calibration": {"calibration": CALIBRATION},
    "calibration with every coefficient": {"calibration": WHOLE_CALIBRATION, "batch": 4},
    "the same, fused": {"calibration": WHOLE_CALIBRATION, "batch": 8, "attention": "fused", "complete": True},
    "a cache that holds a part": {"calibration": CACHED, "device": SMALL_CACHE, "complete": True},
    "a cache that holds it all": {"calibration": CACHED, "device": LARGE_CACHE, "batch": 2, "output_tokens": 3},
    "calibration of int8": {"calibration": INT8_CALIBRATION, "complete": True, "attention": "fused"},
}


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8", "int4"])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "with options"])
def test_operator_model_under_each_option(
    case: Any, precision: str, option: str, plain: bool, random_architectures: Draw, as_reference: Convert
) -> None:
    architectures = random_architectures(60, 17, plain=plain)
    chosen = case.but(precision=precision, output_tokens=3).but(**OPTIONS[option])
    assert_agrees(chosen, architectures, as_reference(architectures), np.arange(60))


@pytest.mark.parametrize("precision", ["fp16_kv8", "int8_kv4", "int4_kv8"])
@pytest.mark.parametrize(
    "option", ["group size", "fused", "calibration with every coefficient", "a cache that holds a part"]
)
def test_a_kv_cache_of_few_bits(
    case: Any, precision: str, option: str, random_architectures: Draw, as_reference: Convert
) -> None:
    architectures = random_architectures(60, 29)
    chosen = case.but(precision=precision, output_tokens=3).but(**OPTIONS[option])
    assert_agrees(chosen, architectures, as_reference(architectures), np.arange(60))


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["nvfp4", "nvfp4_down8", "nvfp4_down8_kv8"])
@pytest.mark.parametrize("option", [*OPTIONS, "calibration of fp4"])
def test_nvfp4_where_the_device_has_an_fp4_peak(
    case: Any, precision: str, option: str, devices: list[Any], random_architectures: Draw, as_reference: Convert
) -> None:
    """4.5 bits of weights and of inputs at the FP4 peak, those of down projections perhaps of 8 at the INT8 peak."""
    options = OPTIONS | {"calibration of fp4": {"calibration": FP4_CALIBRATION}}
    thor = next(each for each in devices if each.name == "NVIDIA Jetson AGX Thor")
    architectures = random_architectures(60, 23)
    chosen = case.but(device=thor, precision=precision, output_tokens=3).but(**options[option])
    assert_agrees(chosen, architectures, as_reference(architectures), np.arange(60))


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8", "int4"])
def test_operator_model_on_every_device(
    case: Any, precision: str, devices: list[Any], random_architectures: Draw, as_reference: Convert
) -> None:
    architectures = random_architectures(200, 5)
    rows = as_reference(architectures)
    for i, each in enumerate(devices):
        chosen = case.but(device=each, precision=precision, output_tokens=2, batch=1 + i % 8)
        assert_agrees(chosen, architectures, rows, np.arange(i % 20, 200, 20))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("shared_expert_size", 0), ("vocabulary", 0), ("n_experts", 1), ("norms_per_layer", 1),
        ("shared_expert_size", 77), ("vocabulary", 1000), ("norms_per_layer", 4),
    ],
)  # fmt: skip
@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_operators_that_a_whole_batch_has_or_lacks(
    case: Any, precision: str, column: str, value: int, random_architectures: Draw, as_reference: Convert
) -> None:
    """An operator is left out only where no row of the batch has it."""
    columns = random_architectures(60, 23).columns()
    changed = {name: values for name, values in columns.items() if name not in ("activation_rate", "ffn_ratio")}
    changed[column] = np.full(60, value)
    if column == "n_experts":
        changed["top_k"] = np.ones(60)
    architectures = Architectures.from_columns(changed)
    chosen = case.but(precision=precision, complete=True, output_tokens=2, calibration=CALIBRATION, batch=2)
    assert_agrees(chosen, architectures, as_reference(architectures), np.arange(60))


def turning(oracle: Any, setting: Any, row: Any, first: int, last: int) -> bool:
    """Whether some operator is memory-bound in the first decode pass and compute-bound in the last."""
    bound = [
        [flops / setting.fp16_peak > traffic / setting.bandwidth for name, flops, traffic, _ in operators]
        for operators in (oracle.operators(row, setting, "decode", s_kv) for s_kv in (first, last))
    ]
    return any(not early and late for early, late in zip(*bound, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["unfused", "fused"])
@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_4096_tokens_are_the_explicit_sum(
    case: Any, attention: str, precision: str, random_architectures: Draw, as_reference: Convert
) -> None:
    """Peaks are chosen so that attention turns from the memory roof to the compute roof on the way."""
    weak = case.device.model_copy(update={"fp16": 3 * case.device.bandwidth, "int8": 6 * case.device.bandwidth})
    architectures = random_architectures(2, 41)
    chosen = case.but(device=weak, attention=attention, precision=precision, output_tokens=4096, input_tokens=3)
    oracle, setting, rows = case.oracle, chosen.setting, as_reference(architectures)
    assert any(turning(oracle, setting, row, 4, 4099) for row in rows)
    _, decode = latency_ms(Dimensions(architectures), chosen.scenario)
    for found, row in zip(decode, rows, strict=True):
        seconds = 4096 * sum(
            oracle.operator_s(row, setting, each, "decode")
            for each in oracle.vocabulary_operators(row, setting, "decode")
        )
        for t in range(1, 4097):
            layer = oracle.operators(row, setting, "decode", 3 + t)
            seconds += row.depth * sum(oracle.operator_s(row, setting, each, "decode") for each in layer)
        assert found == pytest.approx(seconds * 1e3, rel=RELATIVE)


def test_tokens_add_up_pass_by_pass(case: Any, random_architectures: Draw) -> None:
    """S_out tokens after a prompt are one token after each of S_out growing prompts."""
    architectures = random_architectures(300, 8)
    _, together = latency_ms(Dimensions(architectures), case.but(output_tokens=40, input_tokens=100, batch=3).scenario)
    alone = [case.but(output_tokens=1, input_tokens=100 + t, batch=3).scenario for t in range(40)]
    np.testing.assert_allclose(
        together, sum(latency_ms(Dimensions(architectures), each)[1] for each in alone), rtol=1e-12
    )


coefficients = st.floats(1e-30, 1e6) | st.sampled_from([0.0, 1.0])


@given(
    a=st.tuples(coefficients, coefficients),
    b=st.tuples(coefficients, coefficients),
    first=st.integers(1, 5000),
    count=st.integers(1, 200),
)
def test_sum_of_the_larger_of_two_lines(a: tuple[float, float], b: tuple[float, float], first: int, count: int) -> None:
    expected = sum(max(a[0] + a[1] * s, b[0] + b[1] * s) for s in range(first, first + count))
    columns = [(np.array([line[0]]), np.array([line[1]])) for line in (a, b)]
    found = sum_of_larger(columns[0], columns[1], first, first + count - 1)
    assert float(np.asarray(found)[0]) == pytest.approx(expected, rel=1e-12)


@given(crossing=st.integers(0, 60), steep=st.floats(0.01, 100), base=st.floats(0, 1000))
def test_sum_of_the_larger_turns_at_the_crossing(crossing: int, steep: float, base: float) -> None:
    """A flat and a steep line that meet inside, at the ends of, or outside the range 10 … 50."""
    flat, rising = base + steep * crossing, (base, steep)
    expected = sum(max(flat, base + steep * s) for s in range(10, 51))
    for pair in (((flat, 0.0), rising), (rising, (flat, 0.0))):
        arrays = [(np.array([line[0]]), np.array([line[1]])) for line in pair]
        assert float(np.asarray(sum_of_larger(arrays[0], arrays[1], 10, 50))[0]) == pytest.approx(expected, rel=1e-12)


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_closed_form_in_any_setting(
    data: st.DataObject,
    seed: int,
    case: Any,
    devices: list[Any],
    random_architectures: Draw,
    as_reference: Convert,
) -> None:
    chosen = case.but(
        device=data.draw(st.sampled_from(devices)),
        precision=data.draw(st.sampled_from(["fp16", "int8", "int4"])),
        latency="closed_form",
        batch=data.draw(st.integers(1, 8)),
        input_tokens=data.draw(st.integers(1, 100_000)),
        output_tokens=data.draw(st.integers(1, 5000)),
    )
    architectures = random_architectures(300, seed, plain=True)
    prefill, decode = closed_form.latency_ms(architectures, chosen.scenario)
    rows, setting = as_reference(architectures), chosen.setting
    np.testing.assert_allclose(prefill, [case.oracle.prefill_ms(row, setting) for row in rows], rtol=RELATIVE)
    np.testing.assert_allclose(decode, [case.oracle.decode_ms(row, setting) for row in rows], rtol=RELATIVE)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"attention": "fused"}, "attention"),
        ({"causal": True}, "causal"),
        ({"complete": True}, "complete"),
        ({"precision": "int4", "group_size": 128}, "int4_group_size"),
        ({"calibration": CALIBRATION}, "calibration"),
    ],
)
def test_closed_form_refuses_the_options_of_the_operator_model(
    case: Any, options: dict[str, Any], named: str, random_architectures: Draw, as_reference: Convert
) -> None:
    chosen = case.but(latency="closed_form", **options)
    architectures = random_architectures(3, 1, plain=True)
    with pytest.raises(ValueError, match=f"^latency: expected operator for {named}, got closed_form; "):
        closed_form.latency_ms(architectures, chosen.scenario)
    with pytest.raises(ValueError, match="the closed form has no"):
        case.oracle.prefill_ms(as_reference(architectures)[0], chosen.setting)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"vocabulary": 1000}, "vocabulary"),
        ({"shared_expert_size": 64}, "shared_expert_size"),
        ({"width": 320}, "query_dim other than width"),
    ],
)
def test_closed_form_refuses_architectures_that_it_does_not_cover(
    case: Any, change: dict[str, int], named: str
) -> None:
    columns = {"depth": 2, "width": 256, "n_heads": 4, "n_kv_heads": 2, "expert_size": 64}
    chosen = case.but(latency="closed_form").scenario
    covered, other = one(columns), one(columns | change)
    closed_form.latency_ms(covered, chosen)
    with pytest.raises(ValueError, match=f"expected operator for {named}, got closed_form"):
        closed_form.latency_ms(Architectures.concatenate([covered, other]), chosen)


def test_the_closed_form_has_one_peak_for_all_linear_operators(case: Any, random_architectures: Draw) -> None:
    chosen = case.but(latency="closed_form", precision="nvfp4_down8", device=SMALL_CACHE)
    with pytest.raises(ValueError, match=r"expected operator for .*precision nvfp4_down8"):
        closed_form.latency_ms(random_architectures(3, 1, plain=True), chosen.scenario)


def test_every_option_that_the_closed_form_lacks_is_named_at_once(case: Any, random_architectures: Draw) -> None:
    chosen = case.but(latency="closed_form", causal=True, attention="fused", complete=True)
    with pytest.raises(ValueError, match="expected operator for attention, causal, complete, "):
        closed_form.latency_ms(random_architectures(20, 2), chosen.scenario)


def test_dynamic_quantisation_takes_two_flops_and_three_bytes_an_activation() -> None:
    """It is bound by memory on every device, so that only its own row shows its FLOPs."""
    (found,) = quantise("quantise", np.array([5.0, 7.0]), PRECISIONS["int8"])
    assert np.asarray(found.flops).tolist() == [10.0, 14.0]
    assert np.asarray(found.bytes).tolist() == [15.0, 21.0]
    assert list(quantise("quantise", 5.0, PRECISIONS["fp16"])) == []
