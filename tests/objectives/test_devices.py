"""The device catalogue, its warning, power modes and profiles, and quantities as people write them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from nas.files.faults import Faults
from objectives.device import Calibration, Device
from objectives.plausible import impossible, unusual
from objectives.plugins import documents
from objectives.profile_choice import calibration_for
from objectives.quantities import gigabytes, milliseconds, scaled, short
from objectives.transfers import Conditions
from objectives.typical.efficiencies import shipped

CATALOGUE = sorted(documents("objectives.devices"))
#: Devices that the public catalogue does not have.
OWN = {
    *("a18", "a18_pro", "a19", "a19_pro", "core_ultra_9_288v", "hailo_10h", "mi300x", "rk3588_cpu", "rk3588_npu"),
    *("rtx_5070", "rx_7900_xt", "ryzen_ai_max_395", "tensor_g4_cpu", "tensor_g5_cpu"),
}
DENSE = ("jetson_agx_thor", "hailo_10h")  # above the smell of sparsity, and dense
WITH_MODES = ("jetson_agx_orin_64gb", "jetson_orin_nano_super_8gb", "jetson_orin_nx_16gb")
PLAIN: dict[str, Any] = {
    "name": "mine",
    "fp16": "10 TFLOP/s",
    "int8": "20 TOP/s",
    "bandwidth": "100 GB/s",
    "memory": "8 GB",
}
Load = Callable[[str], Device]


def refusal(content: dict[str, Any]) -> list[str]:
    """What a user reads when a device is refused, a line a fault."""
    with pytest.raises(ValidationError) as caught:
        Device.model_validate(content)
    faults = Faults()
    faults.add_validation(caught.value, model=Device)
    return [text for _, text in faults.lines]


# The catalogue


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_shipped_device_states_its_source_and_needs_no_warning(name: str, device: Load) -> None:
    found = device(name)
    assert len(found.source) > 20
    nearly = found.model_copy(update={"memory": found.memory * (1.0 + 1e-9)})  # as one of a user's own would be judged
    assert not [*found.warnings(), *unusual(nearly), *impossible(found)]
    assert found.confidence in ("verified", "derived", "recalled", "estimate", "measured")
    assert found.fp16 <= found.int8
    assert bool(found.modes) == (name in WITH_MODES)
    assert bool(found.mode_source) == bool(found.modes)
    assert found.dense_confirmed == (name in DENSE)


def test_orin_is_the_model_pages(device: Load) -> None:
    orin = device("jetson_agx_orin_64gb")
    assert (orin.fp16, orin.int8, orin.bandwidth, orin.memory) == (42.5e12, 85e12, 204.8e9, 64e9)
    assert orin.flop_per_byte == pytest.approx(207.52, abs=5e-3)
    assert orin.memory_gb == 64


def test_the_public_catalogue_has_the_same_figures(external_data: Path, device: Load) -> None:
    public = yaml.safe_load((external_data / "hardware.yaml").read_text(encoding="utf-8"))["devices"]
    assert sorted({*public, *OWN}) == CATALOGUE
    assert not OWN & set(public)
    for name, row in public.items():
        found = device(name)
        assert found.fp16 == pytest.approx(row["fp16_tflops"] * 1e12, rel=1e-12), name
        assert found.int8 == pytest.approx(row["int8_tops"] * 1e12, rel=1e-12), name
        assert found.bandwidth == pytest.approx(row["mem_bw_gbs"] * 1e9, rel=1e-12), name
        assert found.memory_gb == pytest.approx(row["mem_gb"], rel=1e-12), name
        assert found.cache == pytest.approx(row["cache_mb"] * 1e6, rel=1e-12), name
        assert found.confidence == row["conf"], name
        for theirs, ours in (
            ("fp8", "fp8"),
            ("fp4", "fp4"),
            ("fp32", "fp32"),
            ("fp16_fp16acc", "fp16_fp16_accumulate"),
        ):
            key = "fp16_tflops_fp16acc" if theirs == "fp16_fp16acc" else f"{theirs}_tflops"
            if key in row:
                assert found.other_peaks[ours] == pytest.approx(row[key] * 1e12, rel=1e-12), (name, ours)


@pytest.mark.parametrize(
    ("name", "figure", "value"),
    [
        ("ryzen_ai_max_395", "fp16", 40 * 512 * 2.9e9), ("ryzen_ai_max_395", "int8", 40 * 512 * 2.9e9), ("ryzen_ai_max_395", "bandwidth", 256 / 8 * 8e9),
        ("core_ultra_9_288v", "int8", 8 * 4096 * 2.05e9), ("core_ultra_9_288v", "fp16", 8 * 2048 * 2.05e9), ("core_ultra_9_288v", "bandwidth", 128 / 8 * 8.533e9),
        ("rk3588_cpu", "fp16", 4 * 32 * 2.4e9), ("rk3588_cpu", "int8", 4 * 64 * 2.4e9), ("rk3588_npu", "int8", 3 * 1024 * 2 * 1e9),
        ("rk3588_cpu", "bandwidth", 64 / 8 * 4.224e9), ("rk3588_npu", "bandwidth", 64 / 8 * 4.224e9), ("hailo_10h", "bandwidth", 32 / 8 * 4.267e9),
        ("mi300x", "fp16", 304 * 2048 * 2.1e9), ("mi300x", "int8", 304 * 4096 * 2.1e9), ("a18", "fp16", 5 * 128 * 2 * 1.45e9),
        ("a18_pro", "fp16", 6 * 128 * 2 * 1.45e9), ("a18_pro", "bandwidth", 1.17 * 51.2e9), ("a19_pro", "fp16", 6 * 1024 * 1.62e9),
        ("a19", "bandwidth", 64 / 8 * 8.533e9), ("a19_pro", "bandwidth", 64 / 8 * 9.6e9), ("tensor_g4_cpu", "fp16", 64 * 3.1e9 + 3 * 32 * 2.6e9),
        ("tensor_g5_cpu", "fp16", 64 * 3.78e9 + 5 * 32 * 3.05e9), ("tensor_g4_cpu", "bandwidth", 64 / 8 * 8.4e9), ("tensor_g5_cpu", "bandwidth", 64 / 8 * 8.533e9),
    ],
)  # fmt: skip
def test_figures_are_those_of_units_clocks_and_widths(name: str, figure: str, value: float, device: Load) -> None:
    """What a device's source says it was computed from gives its figure, to the digits that are written; dense, never sparse."""
    within = 0.03 if name == "rk3588_npu" and figure == "int8" else 2.5e-3
    assert getattr(device(name), figure) == pytest.approx(value, rel=within)


def test_what_a_vendor_does_not_publish_is_an_estimate(device: Load) -> None:
    """Phones and Hailo's memory; an efficiency above 1 is then possible, and the source says what is assumed."""
    for name in ("a18", "a18_pro", "a19", "a19_pro", "hailo_10h", "tensor_g4_cpu", "tensor_g5_cpu"):
        found = device(name)
        assert found.confidence == "estimate", name
        assert "stimate" in found.source, name
        assert "publishes" in found.source, name


def test_the_public_power_modes_are_the_catalogues(external_data: Path, device: Load) -> None:
    public = yaml.safe_load((external_data / "hardware.yaml").read_text(encoding="utf-8"))["devices"]
    row, nx = public["jetson_orin_nx_16gb"], device("jetson_orin_nx_16gb").in_mode("super")
    assert nx.fp16 == pytest.approx(row["fp16_tflops_super"] * 1e12, rel=1e-12)
    assert nx.int8 == pytest.approx(row["int8_tops_super"] * 1e12, rel=1e-12)
    row, nano = public["jetson_orin_nano_super_8gb"], device("jetson_orin_nano_super_8gb")
    for mode in ("7W", "15W", "25W"):
        share = row["power_modes_mhz"][mode] / row["power_modes_mhz"]["MAXN"]
        slow = nano.in_mode(mode.lower())
        assert slow.fp16 == pytest.approx(nano.fp16 * share, rel=1e-3)
        assert slow.int8 == pytest.approx(nano.int8 * share, rel=1e-3)
        assert slow.bandwidth == nano.bandwidth


# The warning


@pytest.mark.parametrize(("fp16", "warned"), [(50, False), (50.1, True), (300, True), (0.1, False)])
def test_a_figure_that_looks_sparse_is_warned_about_unless_vouched_for(fp16: float, warned: bool) -> None:
    found = Device.model_validate(PLAIN | {"fp16": fp16, "int8": 600})
    assert bool(found.warnings()) == warned
    assert Device.model_validate(PLAIN | {"fp16": fp16, "dense_confirmed": True}).warnings() == []
    if warned:
        (text,) = found.warnings()
        assert text.startswith(f"device mine: {fp16 * 10:.0f} dense FP16 FLOP per byte exceeds 500")
        assert "dense_confirmed: true" in text


# Power modes


def test_a_power_mode_changes_what_it_states_and_keeps_the_rest(device: Load) -> None:
    orin = device("jetson_agx_orin_64gb")
    half = orin.in_mode("50w")
    assert (half.fp16, half.int8, half.bandwidth, half.memory) == (27.25e12, 54.5e12, 204.8e9, 64e9)
    least = orin.in_mode("15w")
    assert (least.fp16, least.int8, least.bandwidth) == (3.5e12, 7e12, 136.5e9)
    assert (least.mode, least.name, least.modes) == ("15w", orin.name, {})
    assert orin.mode == ""
    assert orin.fp16 == 42.5e12
    assert half.other_peaks == {}  # of another clock, and not stated


def test_an_unknown_power_mode_lists_the_choices(device: Load) -> None:
    with pytest.raises(ValueError, match=r"expected a power mode of .*Orin 64 GB \(50w, 30w, 15w\), got '60w'; choose"):
        device("jetson_agx_orin_64gb").in_mode("60w")
    with pytest.raises(ValueError, match=r"expected a power mode of NVIDIA L4 \(none\), got 'maxn'; .*drop @maxn"):
        device("l4").in_mode("maxn")


# Calibrated profiles


def profile(**changes: Any) -> dict[str, Any]:
    """A calibrated profile as YAML content."""
    return {"engine": "e", "precision": "fp16", "compute_efficiency": 0.5, "held_out_error": 0.1} | changes


def chosen(precision: str, *profiles: dict[str, Any], mode: str = "") -> tuple[Calibration | None, str]:
    """What a device with these profiles is calibrated with."""
    return calibration_for(
        Device.model_validate(PLAIN | {"profiles": list(profiles), "mode": mode}), Conditions(precision)
    )


def test_the_profile_of_smallest_held_out_error_is_taken() -> None:
    best, note = chosen(
        "fp16", profile(engine="a", held_out_error=0.3), profile(engine="b"), profile(engine="c", held_out_error=None)
    )
    assert best is not None
    assert best.engine == "b"
    assert "b" in note
    assert "transferred" not in note


def test_a_profile_of_another_precision_is_transferred_and_says_so() -> None:
    best, note = chosen("int8", profile(engine="a", held_out_error=0.3), profile(engine="b", precision="int4"))
    assert best is not None
    assert best.engine == "a"
    assert "transferred from an fp16" in note
    best, note = chosen("int8", profile(engine="a", held_out_error=0.01), profile(engine="b", precision="int8"))
    assert best is not None
    assert best.engine == "b"
    assert "transferred" not in note


def test_a_profile_of_another_power_mode_is_never_taken() -> None:
    for found, _ in (chosen("fp16", profile(mode="15w")), chosen("fp16", profile(), mode="15w")):
        assert found is not None
        assert found.typical == "any"
    best, _ = chosen("fp16", profile(engine="a", held_out_error=0.01), profile(engine="b", mode="15w"), mode="15w")
    assert best is not None
    assert best.engine == "b"


def test_a_device_without_a_profile_is_typical_of_its_class_and_says_so() -> None:
    found, note = chosen("fp16")
    assert found is not None
    assert found.held_out_models == shipped().devices
    assert note == (
        "typical of devices of every class, since its file states no chip, no calibrated profile for this device"
    )
    for precision, words in (("fp32", {}), ("fp16", {"typical": False})):
        said = calibration_for(Device.model_validate(PLAIN), Conditions(precision), **words)
        assert said == (None, "datasheet peaks, no calibrated profile for this device")


def test_rates_that_were_measured_are_taken_as_they_are_and_not_called_a_datasheets() -> None:
    board = Device.model_validate(PLAIN | {"confidence": "measured", "chip": "soc"})
    note = "rates as its file says they were measured, no calibrated profile for this device"
    assert calibration_for(board, Conditions("fp16")) == (None, note)


@pytest.mark.parametrize(
    ("written", "seconds"), [("5 us", 5e-6), ("5 µs", 5e-6), (0.005, 5e-6), (0, 0), ("1 ms", 1e-3)]
)
def test_overhead_is_read_as_a_time(written: Any, seconds: float) -> None:
    assert Calibration(overhead=written).overhead_s("decode") == pytest.approx(seconds, rel=1e-15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"compute_efficiency": 0}, "compute_efficiency: expected more than 0, got 0"),
        ({"bandwidth_efficiency": 3}, "bandwidth_efficiency: expected at most 2, got 3"),
        ({"overhead": "5 V"}, "overhead: expected a time like"),
        ({"overhead": -1}, "overhead: expected a positive quantity"),
        ({"speed": 1}, "speed: unknown key"),
    ],
)
def test_a_refused_profile_says_what_was_expected(change: dict[str, Any], message: str) -> None:
    (line,) = refusal(PLAIN | {"profiles": [profile() | change]})
    assert line.startswith(f"profiles.0.{message}")


# A device as YAML


def test_every_device_reads_back_from_its_own_mapping(devices: list[Device]) -> None:
    for found in devices:
        again = Device.model_validate(yaml.safe_load(yaml.safe_dump(found.mapping())))
        for figure in ("fp16", "int8", "bandwidth", "memory", "cache", "flop_per_byte", "memory_gb"):
            assert getattr(again, figure) == getattr(found, figure), (found.name, figure)
        assert again == found
        assert again.warnings() == found.warnings()
        assert again.mapping() == found.mapping()


@given(
    figures=st.lists(st.floats(1e-9, 1e9), min_size=4, max_size=4),
    cache=st.none() | st.floats(1e-6, 1e6),
    overhead=st.floats(1e-9, 1e3),
    error=st.none() | st.floats(0, 10),
)
def test_any_device_reads_back_bit_by_bit(
    figures: list[float], cache: float | None, overhead: float, error: float | None
) -> None:
    content = dict(zip(("fp16", "int8", "bandwidth", "memory"), figures, strict=True))
    given_profile = profile(overhead=overhead, held_out_error=error, mode="slow", compute_efficiency_int8=0.3)
    found = Device.model_validate(
        {"name": "mine", "cache": cache, "mode": "slow", "profiles": [given_profile]} | content
    )
    again = Device.model_validate(found.mapping())
    assert again == found
    assert again.profiles[0].overhead_s("prefill") == found.profiles[0].overhead_s("prefill")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"bandwidth": "204.8 Gb/s"},
            "bandwidth: expected a quantity like \"204.8 GB/s\", got '204.8 Gb/s'; bits or bytes? Write bandwidth: 25.6 GB/s if it counts bits, bandwidth: 204.8 GB/s if bytes",
        ),
        (
            {"memory": "64 Gb"},
            "memory: expected a quantity like \"64 GB\", got '64 Gb'; Gb are bits: write memory: 8 GB if it is, memory: 64 GB if bytes are meant",
        ),
        ({"memory": "64 GB/s"}, "memory: expected a quantity like \"64 GB\", got '64 GB/s'; write memory: 64 GB"),
        (
            {"bandwidth": "204.8 GB"},
            "bandwidth: expected a quantity like \"204.8 GB/s\", got '204.8 GB'; write bandwidth: 204.8 GB/s",
        ),
        (
            {"int8": "85 TFLOP/s"},
            "int8: expected a quantity like \"85 TOP/s\", got '85 TFLOP/s'; write int8: 85 TOP/s if it is of INT8",
        ),
        (
            {"fp16": "42.5 TOP/s"},
            "fp16: expected a quantity like \"42.5 TFLOP/s\", got '42.5 TOP/s'; write fp16: 42.5 TFLOP/s if it is of FP16",
        ),
        ({"fp16": "fast"}, "fp16: expected a quantity like \"42.5 TFLOP/s\", got 'fast'"),
        ({"fp16": 0}, "fp16: expected a positive quantity like"),
        ({"fp16": -1}, "fp16: expected a positive quantity like"),
        ({"fp16": float("nan")}, "fp16: expected a positive quantity like"),
        ({"fp16": float("inf")}, "fp16: expected a positive quantity like"),
        ({"fp16": True}, "fp16: expected a quantity like"),
        ({"fp16": [1]}, "fp16: expected a quantity like"),
        ({"confidence": "sure"}, "confidence: expected verified, derived, recalled, estimate or measured, got 'sure'"),
        ({"bandwith": "1 GB/s"}, "bandwith: unknown key; did you mean bandwidth?"),
        ({"modes": {"slow": {"memory": "1 GB"}}}, "modes.slow.memory: unknown key"),
        ({"modes": {"slow": {"fp16": "1 GB"}}}, "modes.slow.fp16: expected a quantity like"),
        ({"modes": None}, "modes: expected a mapping, got None"),
        ({"modes": 5}, "modes: expected a mapping, got 5"),
    ],
)
def test_a_refused_device_says_what_was_expected(change: dict[str, Any], message: str) -> None:
    (line,) = refusal(PLAIN | change)
    assert line.startswith(message)
    assert "unknown key" in line or ("expected " in line and ", got " in line)


def test_faults_of_a_device_come_at_once() -> None:
    lines = refusal({"name": "mine", "fp16": 1, "int8": "x", "bandwidth": "1 Gb/s"})
    assert {line.split(":")[0] for line in lines} == {"int8", "bandwidth", "memory"}


# Quantities


@pytest.mark.parametrize(
    ("written", "unit", "scale", "value"),
    [
        ("42.5 TFLOP/s", "FLOP/s", 1e12, 42.5e12), ("42.5TFLOP/s", "FLOP/s", 1e12, 42.5e12),
        ("42.5 TFLOPS", "FLOP/s", 1e12, 42.5e12), ("42.5", "FLOP/s", 1e12, 42.5e12), (42.5, "FLOP/s", 1e12, 42.5e12),
        ("154 GFLOP/s", "FLOP/s", 1e12, 154e9), ("1e3 GFLOP/s", "FLOP/s", 1e12, 1e12), ("1 PFLOP/s", "FLOP/s", 1e12, 1e15),
        ("85 TOP/s", "OP/s", 1e12, 85e12), ("85 TOPS", "OP/s", 1e12, 85e12),
        ("204.8 GB/s", "B/s", 1e9, 204.8e9), ("204.8 GBps", "B/s", 1e9, 204.8e9), ("3.35 TB/s", "B/s", 1e9, 3.35e12),
        ("1 MiB/s", "B/s", 1e9, 2.0**20), ("64 GB", "B", 1e9, 64e9), ("64 GiB", "B", 1e9, 64 * 2.0**30),
        ("4 MB", "B", 1e9, 4e6), ("192 KiB", "B", 1e9, 192 * 1024.0), ("500 B", "B", 1e9, 500), ("  8  GB ", "B", 1e9, 8e9),
        ("1_000 GB", "B", 1e9, 1e12), ("1,000 GB", "B", 1e9, 1e12), (".5 GB", "B", 1e9, 5e8), ("+2 GB", "B", 1e9, 2e9),
    ],
)  # fmt: skip
def test_quantities_as_people_write_them(written: Any, unit: str, scale: float, value: float) -> None:
    assert scaled(written, unit, scale, "example") == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    "written",
    ["204.8 Gb/s", "204.8 Gbps", "204.8 gb/s", "204.8 Gib/s", "204.8 Gbit/s", "204.8 GHz", "204.8 b/s", "204.8 mB/s"],
)
def test_bits_and_other_units_are_no_bandwidth(written: str) -> None:
    with pytest.raises(ValueError, match=r"^expected a quantity like \"204.8 GB/s\", got unit '[^']+'; use that unit$"):
        scaled(written, "B/s", 1e9, "204.8 GB/s")


def test_a_decimal_comma_is_not_a_thousands_separator() -> None:
    """Text of 204,8 GB/s silently read as 2048 GB/s would make a device ten times as fast."""
    with pytest.raises(ValueError, match="expected a quantity"):
        scaled("204,8 GB/s", "B/s", 1e9, "204.8 GB/s")


@given(
    number=st.floats(allow_nan=False).map(repr) | st.integers().map(str) | st.text("-+0123456789.,_e ", max_size=8),
    unit=st.sampled_from(["", " B", "kB", " GB", " TB", "GiB", " Gb", "/s", "x"]),
)
@example(number="1e300", unit=" TB")
@example(number="1e-320", unit=" B")
@example(number="1e-400", unit=" GB")
def test_any_text_is_a_positive_finite_quantity_or_refused(number: str, unit: str) -> None:
    try:
        value = scaled(number + unit, "B", 1e9, "64 GB")
    except ValueError as error:
        assert str(error).startswith("expected ")  # noqa: PT017
        assert ", got " in str(error)  # noqa: PT017
    else:
        assert np.isfinite(value)
        assert value > 0


@pytest.mark.parametrize("value", [10**400, -(10**400)], ids=["large", "small"])
def test_an_integer_beyond_floats_is_refused_like_any_other_fault(value: int) -> None:
    (line,) = refusal(PLAIN | {"memory": value})
    assert line.startswith("memory: expected a ")


@pytest.mark.parametrize(
    ("written", "ms"),
    [("20 ms", 20), ("20ms", 20), ("0.1 s", 100), (20, 20), ("20", 20), ("5 us", 0.005), ("5 µs", 0.005), ("7 ns", 7e-6), ("2 min", 120_000)],
)  # fmt: skip
def test_times(written: Any, ms: float) -> None:
    assert milliseconds(written) == pytest.approx(ms, rel=1e-15)


@pytest.mark.parametrize(
    "written", ["20 h", "20 MS", "20 S", "20 Ms", "soon", "-1 ms", "0 s", 0, True, None, float("nan")]
)
def test_what_is_no_time_is_refused(written: Any) -> None:
    with pytest.raises(ValueError, match=r"^expected .*, got .*; "):
        milliseconds(written)


@pytest.mark.parametrize(("written", "gb"), [("8 GB", 8), ("512 MB", 0.512), (8, 8), ("8", 8), ("1 GiB", 1.073741824)])
def test_sizes_in_gigabytes_of_a_billion(written: Any, gb: float) -> None:
    assert gigabytes(written) == pytest.approx(gb, rel=1e-15)


def test_shipped_profiles_say_how_wrong_they_are(devices: list[Device]) -> None:
    """Every shipped profile names its source and the error on models left out; none exceeds a peak that is verified."""
    profiled = [each for each in devices if each.profiles and not each.mode]
    assert len(profiled) >= 8
    for each in profiled:
        for profile in each.profiles:
            assert profile.source
            assert profile.held_out_error is not None
            assert profile.held_out.keys() == {"prefill", "decode"}
            assert each.confidence == "estimate" or profile.compute_efficiency <= 1
            assert profile.mode in ("", *each.modes)


def test_the_nearest_batch_is_chosen() -> None:
    """A profile of the study's batch comes before one with a smaller error, and another batch is named."""
    single, eight = (
        {"engine": "E", "precision": "int4", "held_out_error": 0.1},
        {"engine": "E", "precision": "int4", "batch": 8},
    )
    board = Device.model_validate(PLAIN | {"profiles": [single, eight]})
    assert calibration_for(board, Conditions("int4", 8))[1] == "calibrated (E, int4)"
    assert calibration_for(board, Conditions("int4", 1))[1] == "calibrated (E, int4)"
    assert calibration_for(board, Conditions("int4", 2))[1].startswith(
        "calibrated (E, int4; measured at batch 1, and prefill"
    )


def test_a_long_value_is_shown_in_sixty_characters() -> None:
    assert short("x" * 58) == repr("x" * 58)
    assert short("x" * 59) == "'" + "x" * 56 + "…"
    assert len(short("x" * 59)) == 58


def test_a_quantity_that_overflows_in_base_units_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a positive quantity"):
        scaled(1e300, "FLOP/s", 1e12, "42.5 TFLOP/s")
