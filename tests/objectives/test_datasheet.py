"""Figures and keys as datasheets print them, and whether a device's figures can be those of its class."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nas import load_study
from nas.errors import UsageError
from nas.files.faults import Faults
from objectives.datasheet import UNITS, amount, reading
from objectives.device import Device
from objectives.plausible import WIDER, called_alike, impossible, ranges, shipped, unusual

#: Key, what a vendor's page or datasheet prints, the figure in base units.
READ = [
    ("int8", "67 TOPS (Sparse)", 33.5e12), ("int8", "275 Sparse TOPS", 137.5e12), ("int8", "40 INT8 TOPS", 40e12),
    ("int8", "100 TOPS with sparsity", 50e12), ("int8", "67 TOPs (Sparse) | 33 TOPs (Dense)", 33e12),
    ("int8", "33 TOPS (without sparsity)", 33e12), ("int8", "up to 13 TOPS", 13e12), ("int8", "26 TOPs", 26e12),
    ("int8", "6 TOPS@INT8", 6e12), ("int8", "Up to 2.3 TOPS", 2.3e12), ("int8", "8 TOPS/s", 8e12), ("int8", "48 Peak TOPS", 48e12),
    ("int8", "1.15 TMAC/s", 2.3e12), ("int8", "512 GOPS", 512e9), ("int8", "2,300 GOPs", 2.3e12), ("int8", "~6 TOPS (NPU)", 6e12),
    ("int8", "4 TeraOPS", 4e12), ("int8", "6 TOPS INT8 / 12 TOPS INT4", 6e12), ("int8", "45+ TOPS", 45e12), ("int8", "24 (sparse)", 12e12),
    ("int8", "13 trillion operations per second", 13e12), ("fp16", "165.2 / 330.4 TFLOPS (with sparsity)", 165.2e12), ("memory", "8 Gigabytes", 8e9),
    ("bandwidth", "dual 16-bit LPDDR4-3200", 12.8e9), ("bandwidth", "LPDDR4 (x32) 3200", 12.8e9), ("bandwidth", "6400MT/s * 64bit", 51.2e9), ("int8", "4 tera-ops per second", 4e12),
    ("fp16", "472 GFLOPs", 472e9), ("fp16", "1.33 TFLOPS (FP16)", 1.33e12), ("fp16", "33.5 tflops", 33.5e12),
    ("fp16", "59.4 TFLOPS FP16/BF16", 59.4e12), ("fp16", "989 teraFLOPS", 989e12), ("fp16", "17 TFLOP/sec", 17e12),
    ("int4", "40 TOPS (INT4)", 40e12), ("fp4", "2,070 TFLOPS FP4 (sparse)", 1035e12),
    ("bandwidth", "102 GB/sec", 102e9), ("bandwidth", "68.3 GBps", 68.3e9), ("bandwidth", "3.35TB/s", 3.35e12),
    ("bandwidth", "204.8GB/s", 204.8e9), ("bandwidth", "1 008 GB/s", 1008e9), ("bandwidth", "68 GB per second", 68e9),
    ("bandwidth", "119.4 Gbit/s", 14.925e9), ("bandwidth", "LPDDR5X-8533 64-bit", 68.264e9),
    ("bandwidth", "LPDDR5 6400 MT/s, 128-bit", 102.4e9), ("bandwidth", "DDR4-3200 dual channel", 51.2e9),
    ("bandwidth", "64-bit LPDDR4, 3200 MT/s", 25.6e9), ("bandwidth", "LPDDR4X 4266MHz 64-bit", 34.128e9),
    ("bandwidth", "4 x 16-bit LPDDR5X-8533", 68.264e9), ("bandwidth", "quad-channel 16-bit LPDDR5-6400", 51.2e9),
    ("bandwidth", "8.533 GT/s x 64 bits", 68.264e9), ("bandwidth", "GDDR6 14 Gbps 256-bit", 448e9),
    ("bandwidth", "5120-bit HBM2e, 3.2 Gbps", 2048e9), ("bandwidth", "LPDDR5X 8533Mbps 128 bit", 136.528e9),
    ("bandwidth", "x32 LPDDR4-4267", 17.068e9), ("bandwidth", "12-channel DDR5-4800", 460.8e9),
    ("bandwidth", "59.7 GB/s (128-bit LPDDR4x)", 59.7e9), ("bandwidth", "128-bit LPDDR5 | 102 GB/s", 102e9),
    ("memory", "8 gb", 8e9), ("memory", "8GB 128-bit LPDDR5", 8e9), ("memory", "64 GB 256-bit LPDDR5 204.8 GB/s", 64e9),
    ("memory", "12 GiB", 12 * 2.0**30), ("memory", "16GB unified memory", 16e9), ("memory", "8 GByte", 8e9),
    ("memory", "up to 32 GB LPDDR5", 32e9), ("memory", "2 x 8 GB", 16e9), ("memory", "4 G", 4e9), ("memory", "80GB HBM3", 80e9),
    ("memory", "512 Mbytes", 512e6), ("memory", 8e9, 8e9), ("int8", "40e12", 40e12), ("cache", "12 MB L3", 12e6), ("cache", "512 KB", 512e3),
]  # fmt: skip
#: Key, what is printed, the line or lines to write.
CORRECTED = [
    ("int8", "40 TOPS (INT4)", ["int4: 40 TOP/s"]), ("int8", "20 TFLOPS", ["int8: 20 TOP/s"]),
    ("fp16", "3 TOPS", ["fp16: 3 TFLOP/s"]), ("fp16", "1.3 TFLOPS FP32", ["fp32: 1.3 TFLOP/s"]),
    ("int8", "21 TOPS (9 TOPS CPU)", ["int8: 9 TOP/s"]), ("fp16", "42 TB/s", ["fp16: 42 TFLOP/s"]),
    ("int8", "26 TOPS per core", ["int8: 26 TOP/s"]), ("bandwidth", "51.2 Gbps", ["bandwidth: 6.4 GB/s", "bandwidth: 51.2 GB/s"]),
    ("bandwidth", "51.2 Gb/s", ["bandwidth: 6.4 GB/s", "bandwidth: 51.2 GB/s"]), ("bandwidth", "204,8 GB/s", ["bandwidth: 204.8 GB/s"]),
    ("bandwidth", "51.2 GB", ["bandwidth: 51.2 GB/s"]), ("bandwidth", "25.6 GB/s per channel", ["bandwidth: 25.6 GB/s"]),
    ("bandwidth", "2 x 51.2 GB/s", ["bandwidth: 51.2 GB/s"]), ("bandwidth", "LPDDR5X-8533", ["bandwidth: LPDDR5X-8533 64-bit"]),
    ("bandwidth", "64-bit LPDDR4X @ 2133 MHz", ["bandwidth: LPDDR4X-4266 64-bit", "bandwidth: LPDDR4X-2133 64-bit"]),
    ("bandwidth", "LPDDR4-4266 dual-channel 32-bit", ["bandwidth: LPDDR4-4266 32-bit", "bandwidth: LPDDR4-4266 2x32-bit"]),
    ("bandwidth", "64-bit LPDDR5", ["bandwidth: LPDDR5-6400 64-bit"]), ("fp16", "330.3/660.6 TFLOPS", ["fp16: 330.3 TFLOP/s"]),
    ("bandwidth", "3200 MT/s", ["bandwidth: 3200 MT/s 64-bit"]), ("bandwidth", "60-68 GB/s", ["bandwidth: 68 GB/s"]), ("bandwidth", "68.3 mB/s", ["bandwidth: 68.3 MB/s"]),
    ("memory", "4GB/8GB", ["memory: 4 GB", "memory: 8 GB"]), ("memory", "16Gb", ["memory: 2 GB", "memory: 16 GB"]),
    ("memory", "64 GB/s", ["memory: 64 GB"]), ("memory", "7,5 GB", ["memory: 7.5 GB"]), ("memory", "4 or 8 GB", ["memory: 4 GB", "memory: 8 GB"]),
]  # fmt: skip
BOARD: dict[str, Any] = {"name": "mine", "fp16": 6, "int8": 12, "bandwidth": 51.2, "memory": 8, "chip": "npu"}


def refused(content: dict[str, Any]) -> list[str]:
    """What a user reads of a device that is refused, a line a fault."""
    with pytest.raises(ValidationError) as caught:
        Device.model_validate(content)
    faults = Faults()
    faults.add_validation(caught.value, model=Device)
    return [text for _, text in faults.lines]


def figures(**changes: Any) -> Device:
    """A board with other figures."""
    return Device.model_validate(BOARD | changes)


@pytest.mark.parametrize(("key", "printed", "value"), READ)
def test_what_can_mean_one_thing_only_is_read(key: str, printed: Any, value: float) -> None:
    assert reading(key, printed).value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(("key", "printed", "lines"), CORRECTED)
def test_what_can_mean_several_things_is_answered_with_the_lines_to_write(
    key: str, printed: str, lines: list[str]
) -> None:
    with pytest.raises(ValueError, match=r"^expected a quantity like \".*\", got ") as caught:
        reading(key, printed)
    text = str(caught.value)
    assert all(line in text for line in lines), text
    for line in lines:  # and these lines are read
        name, _, written = line.partition(": ")
        assert reading(name, written).value > 0


@pytest.mark.parametrize(("printed", "key"), [("6 TOPS/W", "int8"), ("fast", "fp16"), ("eight", "memory"), ("204.8 GHz", "bandwidth")])  # fmt: skip
def test_what_says_no_figure_is_refused(printed: str, key: str) -> None:
    with pytest.raises(ValueError, match=r"^expected a quantity like \".*\", got .*; "):
        reading(key, printed)


@given(value=st.floats(1e3, 9e15), key=st.sampled_from(sorted(UNITS)))
def test_an_amount_reads_back(value: float, key: str) -> None:
    assert reading(key, amount(value, UNITS[key])).value == pytest.approx(value, rel=6e-4)


@given(rate=st.integers(800, 10_000), width=st.sampled_from([16, 32, 64, 128, 256]), kind=st.sampled_from(["LPDDR5X", "DDR5", "LPDDR4X"]))  # fmt: skip
def test_a_memorys_rate_is_rate_times_width_in_any_order(rate: int, width: int, kind: str) -> None:
    for text in (f"{kind}-{rate} {width}-bit", f"{width}-bit {kind}, {rate} MT/s", f"{kind} {rate}MT/s x{width}" if width < 128 else f"{rate} MT/s {width} bits"):  # fmt: skip
        assert reading("bandwidth", text).value == pytest.approx(rate * width / 8 * 1e6)


@given(st.text("0123456789.,xGMTBbOPSFLs/ -()LDR5intesparse", max_size=24), st.sampled_from(sorted(UNITS)))
def test_any_text_is_a_positive_figure_or_refused_in_one_sentence(text: str, key: str) -> None:
    try:
        value = reading(key, text).value
    except ValueError as error:
        assert str(error).startswith("expected ")  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert math.isfinite(value)
        assert value > 0


# Keys


def test_keys_in_other_spellings_are_read_and_what_was_computed_is_said() -> None:
    device = Device.model_validate(
        {
            "Product name": "mine",
            "INT8 (TOPS)": 12,
            "BF16 TFLOPS": 6,
            "Memory bandwidth": "LPDDR5-6400 64-bit",
            "RAM": "8 gb",
            "L3 cache": "4 MB",
            "int4": "24 TOPS",
        }
    )
    assert (device.int8, device.fp16, device.bandwidth, device.memory) == (12e12, 6e12, 51.2e9, 8e9)
    assert (device.cache, device.other_peaks, device.name) == (4e6, {"int4": 24e12}, "mine")
    assert device.warnings() == [
        "device mine: its file gives bandwidth 51.2 GB/s (6,400 MT/s × 64 bits / 8, of 'LPDDR5-6400 64-bit')",
        "device mine: its INT4 peak is not used; 4-bit weights compute in 16 or 8 bits",
    ]
    again = Device.model_validate(device.mapping())
    assert again == device


def test_a_key_may_name_its_unit_and_that_it_is_of_sparse_matrices() -> None:
    device = Device.model_validate(
        {"name": "mine", "int8_sparse_tops": 24, "memory_mb": 8192, "bandwidth_gb_s": 51.2, "fp16_gflops": 6000}
    )
    assert (device.int8, device.memory, device.bandwidth, device.fp16) == (12e12, 8.192e9, 51.2e9, 6e12)


def test_a_memorys_row_gives_its_bandwidth_as_well() -> None:
    device = Device.model_validate({"name": "mine", "int8": 12, "memory": "8GB 128-bit LPDDR5 102 GB/s"})
    assert (device.memory, device.bandwidth) == (8e9, 102e9)


def test_power_modes_read_as_the_device_does() -> None:
    device = figures(modes={"eco": {"INT8": "12 TOPS (sparse)", "fp16": 3}})
    assert device.in_mode("eco").int8 == 6e12
    assert "int8 of @eco 6 TOP/s (half of the sparse figure" in device.warnings()[0]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("TOPS", 20, "TOPS: unknown key; write int8: 20 TOP/s if that is of INT8, int4: 20 TOP/s if that is of INT4"),
        ("TFLOPS", "5 TFLOPS", "TFLOPS: unknown key; write fp16: 5 TFLOPS if that is of FP16, fp32: 5 TFLOPS if that"),
        ("workload", {}, "workload: unknown key; a workload is of a study"),
        ("RAM", "4 GB", "RAM: unknown key; memory is given already; remove one"),
        ("memory type", "LPDDR5", "memory type: unknown key; write its data rate and width: bandwidth: LPDDR5-6400 "),
        ("TDP", "15 W", "TDP: unknown key; to keep it, write columns: {tdp: 15 W}"),
        ("bandwith", 1, "bandwith: unknown key; did you mean bandwidth?"),
    ],
)
def test_keys_that_may_mean_several_things_are_answered(key: str, value: Any, said: str) -> None:
    (line,) = refused(BOARD | {key: value})
    assert line.startswith(said)


# Chips without one of the peaks


def test_a_peak_that_is_not_stated_is_not_zero_and_refused_by_name() -> None:
    npu = Device.model_validate({"name": "mine", "int8": 4, "bandwidth": 4, "memory": 1})
    assert npu.fp16 is None
    assert math.isnan(npu.flop_per_byte)
    assert npu.rate("fp16") == npu.peak("int8") == 4e12
    with pytest.raises(ValueError, match=r"expected a device with an fp16 peak, got mine, which states int8"):
        npu.peak("fp16")
    half = Device.model_validate({"name": "mine", "fp16": 4, "bandwidth": 4, "memory": 1})
    with pytest.raises(ValueError, match=r"an int8 peak, got mine, which states fp16"):
        half.rate("int8")
    assert Device.model_validate(npu.mapping()) == npu


def test_a_peak_that_no_format_computes_at_is_not_used_in_silence() -> None:
    """A datasheet's first line of an NPU; weights of 4 bits compute in more, on integer units too."""
    npu = Device.model_validate({"name": "mine", "int8": 20, "int4": 40, "bandwidth": 40, "memory": 8})
    assert npu.warnings()[-1] == ("device mine: its INT4 peak is not used; 4-bit weights compute in 16 or 8 bits")
    whole = load_study(device=npu.mapping(), preset="device", precision="int4").problem.scenario
    assert whole.device.rate(whole.precision.linear_peak) == 20e12
    with pytest.raises(UsageError, match="fp16: expected a device with an fp16 peak"):
        load_study(device=npu.mapping(), preset="device", precision="fp16")


def test_a_device_without_any_peak_is_refused_with_every_other_fault() -> None:
    lines = refused({"name": "mine", "memory": "8 GB"})
    assert [line.partition(":")[0] for line in lines] == ["int8", "bandwidth"]
    assert lines[0].endswith("write int8: 12 TOP/s")


# Plausible figures


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"fp16": "6 GFLOP/s", "int8": "12 GOP/s"}, ["fp16: 6 TFLOP/s", "int8: 12 TOP/s"]),
        ({"fp16": "6 GFLOP/s"}, ["fp16: 6 TFLOP/s"]),
        ({"bandwidth": "51.2 TB/s"}, ["bandwidth: 51.2 GB/s"]),
        ({"bandwidth": "51.2 MB/s"}, ["bandwidth: 51.2 GB/s"]),
        ({"memory": "8 TB"}, ["memory: 8 GB"]),
        ({"memory": "8 MB"}, ["memory: 8 GB"]),
        ({"bandwidth": 8, "memory": 51.2}, ["bandwidth: 51.2 GB/s", "memory: 8 GB"]),
        ({"fp16": 12, "int8": 6}, ["int8: 12 TOP/s"]),
        ({"name": "Orin Nano Super", "chip": "soc", "fp16": 33.5, "int8": 67, "bandwidth": 102}, ["fp16: 16.75 TFLOP/s", "int8: 33.5 TOP/s"]),
    ],
)  # fmt: skip
def test_figures_that_cannot_be_are_refused_with_the_lines_to_write(changes: dict[str, Any], lines: list[str]) -> None:
    device = figures(**changes)
    faults = [*impossible(device)]
    assert len(faults) == len(lines)
    for (key, text), line in zip(faults, lines, strict=True):
        assert f"write {line}" in text
        assert line.startswith(key[0])
    for changed in ({"dense_confirmed": True}, {"confidence": "measured"}):
        assert not [*impossible(device.model_copy(update=changed))]
    assert unusual(device)  # embedded in a study it is a warning


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"chip": "soc", "fp16": 5.6, "int8": 45}, "int8 is 8.04 times fp16"),
        ({"chip": "soc", "fp16": 33.5, "int8": 67, "bandwidth": 102.4}, "write fp16: 16.75 TFLOP/s and int8: 33.5 TOP/s"),
        ({"fp16": 0.2, "int8": 0.4}, "fp16 expected 300 GFLOP/s to 300 TFLOP/s (neural processing units: the catalogue's"),
        ({"chip": "cpu", "fp16": 200, "int8": 400, "bandwidth": 560, "memory": 512}, "fp16 expected"),
    ],
)  # fmt: skip
def test_figures_that_are_rare_are_a_warning_and_no_refusal(changes: dict[str, Any], said: str) -> None:
    device = figures(**changes)
    assert not [*impossible(device)]
    (line,) = unusual(device)
    assert said in line


#: Chips that are not in the catalogue: class, FP16 and INT8 peaks (T), GB/s, GB, as their makers state them.
OTHERS = {
    "RTX 4060": ("gpu", 60.5, 242.0, 272, 8), "RTX 3060": ("gpu", 51.0, 204.0, 360, 12), "RX 7600": ("gpu", 43.0, 43.0, 288, 8),
    "T4": ("server_gpu", 65, 130, 320, 16), "B200": ("server_gpu", 2250, 4500, 8000, 180), "A10": ("server_gpu", 125, 250, 600, 24),
    "MI250X": ("server_gpu", 383, 383, 3277, 128), "Gaudi 3": ("server_gpu", 1835, 1835, 3700, 128),
    "Xavier NX": ("soc", 6.0, 12.0, 59.7, 8), "Jetson Nano": ("soc", 0.472, 0.472, 25.6, 4), "M4 Pro": ("soc", 9.2, 9.2, 273, 64),
    "Radeon 780M": ("soc", 16.6, 16.6, 89.6, 32), "Adreno 750": ("soc", 5.6, 5.6, 76.8, 12), "M3 Ultra": ("soc", 57, 57, 819, 512),
    "Coral": ("npu", None, 4.0, 4, 1), "i.MX 8M Plus": ("npu", None, 2.3, 16, 6), "Hailo-8": ("npu", None, 26.0, 17, 8),
    "TDA4VM": ("npu", None, 8.0, 14.9, 4), "RK3576": ("npu", 3.0, 6.0, 25.6, 8), "XDNA 2": ("npu", 25.0, 50.0, 120, 32),
    "Dimensity 9300": ("npu", 16.5, 33.0, 76.8, 16), "NPU 4": ("npu", 24.0, 48.0, 136, 32), "Cloud AI 100": ("npu", 200.0, 400.0, 137, 32),
    "EPYC": ("cpu", 5.0, 10.0, 460, 768), "Raspberry Pi 4": ("cpu", 0.05, 0.1, 12.8, 8), "N100": ("cpu", 0.4, 0.8, 38.4, 16),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_chips_that_are_sold_are_not_refused(name: str) -> None:
    chip, fp16, int8, bandwidth, memory = OTHERS[name]
    for stated in (chip, "any"):
        device = figures(name=name, chip=stated, fp16=fp16, int8=int8, bandwidth=bandwidth, memory=memory)
        assert not [*impossible(device)]


@given(
    name=st.sampled_from(sorted(shipped())),
    key=st.sampled_from(["fp16", "int8", "bandwidth", "memory"]),
    up=st.booleans(),
)
def test_a_thousandfold_slip_in_a_shipped_device_never_passes_in_silence(name: str, key: str, up: bool) -> None:
    chip, theirs = shipped()[name]
    value = theirs[key] * (1e3 if up else 1e-3)
    content = {"name": "mine", "chip": chip} | {k: f"{v!r} {UNITS[k]}" for k, v in {**theirs, key: value}.items()}
    device = Device.model_validate(content)
    faults = {where[0]: text for where, text in impossible(device)}
    assert faults or unusual(device)
    if key in faults and key not in ("fp16", "int8"):
        assert amount(theirs[key], UNITS[key]) in faults[key]


@pytest.mark.parametrize("chip", ["gpu", "server_gpu", "soc", "npu", "cpu", "any"])
def test_ranges_are_those_of_the_catalogue(chip: Any) -> None:
    own = ranges(chip)
    members = [theirs for kind, theirs in shipped().values() if chip in ("any", kind)]
    assert own["bandwidth",] == (min(d["bandwidth"] for d in members), max(d["bandwidth"] for d in members))
    assert own["memory", "bandwidth"][0] <= own["memory", "bandwidth"][1]
    assert WIDER > 1


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("pixel 9", ["tensor_g4_cpu"]),
        ("iphone 16 pro", ["a18_pro"]),
        ("pixel 8", []),
        ("4090", ["rtx_4090"]),
        ("orin nano", ["jetson_orin_nano_8gb_original", "jetson_orin_nano_super_8gb"]),
        ("RTX4060 laptop", []),
        ("s24 ultra", ["snapdragon_8_gen3"]),
        ("orangepi6", []),
        ("agx orin 32gb", []),
        ("galaxy s25", ["snapdragon_8_elite"]),
        ("galaxy s23", []),
        ("MacBook Air M4", ["m4_10c", "m4_max_40c"]),
        ("apple", []),
    ],
)
def test_a_phones_name_finds_its_chip(typed: str, names: list[str]) -> None:
    assert called_alike(typed) == names


def test_a_phone_keeps_a_part_of_its_memory_for_its_system() -> None:
    assert figures(cooling="phone", memory=12).program_gb == pytest.approx(8.4)
    assert figures(memory=12).program_gb == 12
