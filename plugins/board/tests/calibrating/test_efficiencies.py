"""The fit finds what made the data, resists a wild row, and keeps to its priors and bounds."""

from dataclasses import replace

import numpy as np
import pytest

from objectives.device import Calibration, Device
from objectives.dimensions import Dimensions
from objectives.latency.roofline import latency_ms
from objectives.loss_law.law import Law
from plas_board.calibrating.efficiencies import PARAMETERS, fit, freedom
from plas_board.calibrating.group import calibrate, groups
from plas_board.calibrating.measurements import Measurement
from plas_board.calibrating.terms import predict, scenario_of, terms
from plugins.board.tests.calibrating.conftest import MODELS, TRUE, shown


def test_measured_phases_are_complete_fused_and_causal(board: Device, law: Law) -> None:
    row = shown(board, law, precision="int4")[0]
    scenario = scenario_of(row, board, law)
    assert (scenario.attention, scenario.causal, scenario.complete) == ("fused", True, True)
    assert (scenario.batch, scenario.input_tokens, scenario.output_tokens) == (1, 1024, 16)
    assert (scenario.precision.name, scenario.precision.head_bytes) == ("w4a16", 2.0)
    assert not scenario_of(replace(row, attended=4096), board, law).causal


@pytest.mark.parametrize("precision", ["fp16", "int8", "int4"])
@pytest.mark.parametrize("model", ["Qwen3-0.6B", "Qwen3-30B-A3B", "Gemma-2-2B"])
def test_terms_are_the_operator_model(board: Device, law: Law, precision: str, model: str) -> None:
    """The arrays predict what the operator model says of the same scenario, in both phases."""
    truth = Calibration(
        compute_efficiency=0.6,
        compute_efficiency_int8=0.4,
        bandwidth_efficiency=0.7,
        overhead="9 us",
        request_overhead="30 ms",
    )
    prefill, step = shown(board, law, (model,), precision, truth)
    expected = latency_ms(Dimensions(prefill.architecture), scenario_of(prefill, board, law, truth))
    assert prefill.ms == pytest.approx(expected[0][0], rel=1e-9)
    assert step.ms * 16 == pytest.approx(expected[1][0], rel=1e-9)


def test_recovers_the_truth(board: Device, law: Law) -> None:
    """Exact data of three models give the efficiencies that made them back."""
    rows = shown(board, law)
    table = terms(rows, board, law)
    found = fit(table, freedom(table, board, 3))
    assert found.compute_efficiency == pytest.approx(TRUE.compute_efficiency, rel=0.02)
    assert found.bandwidth_efficiency == pytest.approx(TRUE.bandwidth_efficiency, rel=0.02)
    assert found.overhead == pytest.approx(TRUE.overhead, rel=0.1)


def test_one_wild_row(board: Device, law: Law) -> None:
    """A row three times too slow barely moves the fit, and is the one that is named."""
    rows = shown(board, law, (*MODELS, "Qwen3-8B", "Llama-3.2-3B"))
    rows[0] = replace(rows[0], ms=3 * rows[0].ms)
    done = calibrate(rows, board, law, "test")
    assert done.profile.compute_efficiency == pytest.approx(TRUE.compute_efficiency, rel=0.05)
    assert [m.line for m, _ in done.misfits()] == [rows[0].line]
    assert done.misfits()[0][1] == pytest.approx(-2 / 3, abs=0.05)


def test_one_model(board: Device, law: Law) -> None:
    """One model is enough for efficiencies; the overhead stays at its prior, and no error is held out."""
    done = calibrate(shown(board, law, MODELS[:1]), board, law, "test")
    assert done.profile.overhead == pytest.approx(PARAMETERS["overhead_us"].prior * 1e-3)
    assert done.profile.held_out == {}
    assert done.profile.held_out_error is None
    assert "no held-out" in done.remarks()[0]


def test_decode_alone(board: Device, law: Law) -> None:
    """Without a prefill the compute efficiency stays at its prior."""
    done = calibrate(shown(board, law)[1::2], board, law, "test")
    assert done.profile.compute_efficiency == pytest.approx(PARAMETERS["compute"].prior, rel=0.01)
    assert done.profile.held_out.keys() == {"decode"}


@pytest.mark.parametrize(("confidence", "most"), [("verified", 1.0), ("estimate", 2.0), ("measured", 2.0)])
def test_more_than_the_peak(board: Device, law: Law, confidence: str, most: float) -> None:
    """An efficiency above 1 is refused unless the peak is an estimate or was measured, and a bound that binds is said."""
    rows = [replace(row, ms=row.ms / 30) for row in shown(board, law)]
    device = board.model_copy(update={"confidence": confidence})
    done = calibrate(rows, device, law, "test")
    assert done.profile.compute_efficiency <= most
    assert any("bound" in remark for remark in done.remarks())


def test_request_constant(board: Device, law: Law) -> None:
    """A server's constant is found where it is asked for, and is 0 where it is not."""
    truth = TRUE.model_copy(update={"request_overhead": 40.0})
    rows = shown(board, law, (*MODELS, "Qwen3-8B"), truth=truth)
    assert calibrate(rows, board, law, "test", request=True).profile.request_overhead == pytest.approx(40, rel=0.1)
    assert calibrate(rows, board, law, "test").profile.request_overhead == 0


def test_groups(board: Device, law: Law) -> None:
    """Engines, formats and batches are calibrated apart."""
    rows = shown(board, law, MODELS[:1])
    other = [replace(row, batch=8) for row in rows] + [replace(row, engine="vLLM") for row in rows]
    assert [len(members) for members in groups(rows + other).values()] == [2, 2, 2]


def test_held_out_ratios(board: Device, law: Law) -> None:
    """Exact data leave ratios near 1 for models that the fit had not seen, one for each row."""
    done = calibrate(shown(board, law), board, law, "test")
    for phase in ("prefill", "decode"):
        assert len(done.profile.held_out[phase]) == 3
        np.testing.assert_allclose(done.profile.held_out[phase], 1.0, atol=0.03)


def at_lengths(board: Device, law: Law, truth: Calibration) -> list[Measurement]:
    """Models with as many KV heads as heads and with fewer, at short and long contexts, as a board with `truth` shows them."""
    rows = shown(board, law, ("Qwen3-0.6B", "Qwen2.5-0.5B", "OLMoE-1B-7B", "Gemma-2-2B"), "fp16")
    rows = [replace(row, prompt=prompt) for row in rows for prompt in (16, 256, 4096)]
    return [replace(row, ms=float(ms)) for row, ms in zip(rows, predict(terms(rows, board, law), truth), strict=True)]


@pytest.mark.slow
def test_attention_of_decoding_on_a_processor(board: Device, law: Law) -> None:
    """Where arithmetic comes near the bytes, decode steps tell a factor of their own, and no longer follow that of the prefill."""
    slow = board.model_copy(update={"fp16": 0.4e12, "bandwidth": 2e10})
    truth = TRUE.model_copy(update={"attention_compute": 0.5, "decode_attention_compute": 0.05})
    done = calibrate(at_lengths(slow, law, truth), slow, law, "test")
    assert done.profile.decode_attention_compute == pytest.approx(0.05, rel=0.1)
    assert done.profile.attention_compute == pytest.approx(0.5, rel=0.2)
    assert np.median(np.abs(np.array(done.profile.held_out["decode"]) - 1.0)) < 0.02


def test_attention_of_decoding_where_bytes_bind_alone(board: Device, law: Law) -> None:
    """On a board with much arithmetic to its bandwidth nothing tells such a factor: there is none."""
    fast = board.model_copy(update={"fp16": 4e14, "bandwidth": 2e11})
    done = calibrate(at_lengths(fast, law, TRUE), fast, law, "test")
    assert done.profile.decode_attention_compute is None
