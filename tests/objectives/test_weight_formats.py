"""Weight formats: bytes of a model by hand, of any as the exporter counts its tensors, names, what a profile takes as measured."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nas.export.gguf_formats import FORMATS as WRITTEN
from nas.export.model import Model
from nas.search.assembly import assemble
from nas.study.catalogue import load_device
from objectives.counts import count
from objectives.device import Calibration, Device
from objectives.dimensions import Dimensions
from objectives.loss_law.law import Law
from objectives.measured_formats import FORMATS as MEASURED
from objectives.memory import embedding_bytes, weights_by_part
from objectives.precision import PRECISIONS, precision
from objectives.profile_choice import calibration_for
from objectives.scenario import Scenario
from objectives.transfers import Conditions
from objectives.weight_formats.table import TYPES, WEIGHT_FORMATS
from plas_board.calibrating.group import calibrate
from plas_board.calibrating.measurements import Measurement
from plas_stacks.gguf import entries
from plugins.board.tests.calibrating.conftest import board as _board
from plugins.board.tests.calibrating.conftest import shown
from search_spaces.architectures import Architectures, one
from search_spaces.formats import FORMATS, base_of
from tests.nas.export.conftest import exported as _exported

exported, board = _exported, _board
ORIN = "jetson_agx_orin_64gb"
#: Llama 3.2 1B, 16 layers of width 2,048, by hand from the types' blocks. A layer: q, k, o, gate and up are 42,991,616 weights, v 1,048,576, down
#: 16,777,216; the tied table 262,668,288; 67,584 norms in 4 bytes each (2 under w4a16). Q4_K 144 bytes per 256, Q5_K 176, Q6_K 210, Q8_0 34 per 32.
LLAMA = {
    "q4_k_m": 16 * (24_182_784 + 724_992 + 11_599_872) + 215_470_080 + 270_336,
    "q5_k_m": 16 * (29_556_736 + 790_528 + 12_648_448) + 215_470_080 + 270_336,
    "q6_k": 16 * 49_889_280 + 215_470_080 + 270_336,
    "q8_0": 16 * 64_618_496 + 279_085_056 + 270_336,
    "q4_0": 16 * 34_209_792 + 215_470_080 + 270_336,
    "mxfp4": 16 * 64_618_496 + 279_085_056 + 270_336,
    "w4a16": 16 * 31_596_544 + 525_336_576 + 135_168,
}


def stored(architecture: Architectures, precision: str, law: Law, device: Device) -> float:
    """Bytes of all parameters."""
    scenario, x, groups = Scenario(law, device, PRECISIONS[precision]), Dimensions(architecture), count(architecture)
    tables = embedding_bytes(x, groups, scenario)
    small = (groups.router + groups.small) * scenario.precision.small_bytes
    return float((sum(weights_by_part(x, groups, scenario.precision)) + small + tables)[0])


def test_every_format_has_a_row_and_a_source() -> None:
    assert {base_of(name) for name in FORMATS} == set(WEIGHT_FORMATS)
    assert set(WEIGHT_FORMATS) - {"int4"} <= set(MEASURED), "each may be measured; int4 is measured as w4a16"
    assert all(written.source for written in WEIGHT_FORMATS.values())
    assert {name for name in WRITTEN if name != "f16"} <= set(FORMATS)


@pytest.mark.parametrize("precision", LLAMA)
def test_bytes_of_a_model_by_hand(precision: str, model: Callable[[str], Architectures], law: Law, device: Any) -> None:
    assert stored(model("llama_3.2_1b"), precision, law, device(ORIN)) == LLAMA[precision]


#: Largest error of the bytes in all, and with exactly 8 experts, whose attention llama.cpp keeps in more bits.
AVERAGES = {"q4_k_m": (0.015, 0.04), "q5_k_m": (0.01, 0.01), "q6_k": (0.0, 0.01), "q4_0": (0.0, 0.01)}


@pytest.mark.slow
@pytest.mark.parametrize("precision", [name for name in WRITTEN if name != "f16"])
def test_bytes_are_those_of_the_tensors_that_are_written(
    precision: str, exported: Callable[..., Model], law: Law, device: Any
) -> None:
    """To the byte where no type is of half of the layers, in rows of any width; else the error of taking half is stated."""
    generator = np.random.default_rng(5)
    most, of_eight = AVERAGES.get(precision, (0.0, 0.0))
    for _ in range(12):
        experts = int(generator.choice([1, 4, 8, 16]))
        columns = {
            "depth": int(generator.integers(4, 40)),
            "width": int(generator.choice([512, 576, 896, 1024, 1152])),
            "expert_size": int(generator.choice([256, 768, 1024])),
            "n_experts": experts,
            "n_kv_heads": 1,
            "top_k": min(experts, 2),
            "vocabulary": 32_000,
            "tied": bool(generator.integers(2)),
        }
        written = sum(entry.bytes for entry in entries(exported(columns, gguf=precision)))
        error = stored(one(columns), precision, law, device(ORIN)) / written - 1.0
        assert abs(error) <= (of_eight if experts == 8 else most), columns


def test_rows_that_blocks_do_not_fill_have_larger_types() -> None:
    """Q4_K is of 256 weights, its fallback of 32, and a row of neither has 16 bits."""
    assert [TYPES["Q4_K"].fitting(row).name for row in (512, 96, 40)] == ["Q4_K", "Q5_0", "F16"]
    assert WEIGHT_FORMATS["q4_k_m"].bytes_of("weights", np.array([512.0, 96.0, 40.0])) == pytest.approx(
        [0.5625, 0.6875, 2.0]
    )
    assert WEIGHT_FORMATS["w4a16"].bytes_of("weights", np.array([512.0, 40.0])) == 66.5 / 128


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp16", "int8", "q4_k_m", "q5_k_m", "q6_k", "q4_0", "q8_0", "mxfp4", "w4a16"])
def test_a_study_takes_a_profile_as_it_was_fitted(precision: str, board: Device, law: Law) -> None:
    """In the format of its rows, a study predicts to the digit what calibrate says of them in sample."""
    truth = Calibration(compute_efficiency=0.5, bandwidth_efficiency=0.6, overhead="7 us")
    rows = shown(board, law, ("Qwen3-0.6B", "Qwen3-1.7B", "Qwen3-30B-A3B"), precision, truth)
    fitted = calibrate(rows, board, law, "rows")
    owned = board.model_copy(update={"profiles": [fitted.profile]})
    profile, note = calibration_for(owned, Conditions(precision, 1, 1024, 1040, experts=True))
    assert profile == fitted.profile
    assert note == f"calibrated (unnamed engine, {precision})"
    raw = {"device": owned.mapping(), "precision": precision, "calibration": "shipped", "baselines": []}
    study = assemble({**raw, "attention": "fused", "causal": True, "complete": True, "law": law.mapping()}, {})
    for row, predicted in zip(rows, fitted.in_sample.tolist(), strict=True):
        assert _predicted(study.problem.assess(row.architecture), row) == pytest.approx(predicted, rel=1e-12)


def _predicted(assessment: Any, row: Measurement) -> float:
    """Milliseconds of a phase as the study has them."""
    return float(assessment["prefill_ms" if row.phase == "prefill" else "tpot_ms"][0])


def test_stacks_of_some_npus_store_heads_like_other_weights() -> None:
    """Sizes of rkllm and ax-llm files say so; a stored format, another maker's NPU and a CPU keep their own."""
    for board, name, bytes_of_head in (
        ("rk3588_npu", "int8", 1.0),
        ("rk3588_npu", "int4", 0.5),
        ("rk3588_npu", "fp16", 2.0),
        ("rk3588_cpu", "int8", 2.0),
        ("hailo_10h", "int8", 2.0),
    ):
        assert precision(name).on(load_device(board)).head_bytes == bytes_of_head
    stored = precision("q8_0")
    assert stored.on(load_device("rk3588_npu")).head_bytes == stored.head_bytes
