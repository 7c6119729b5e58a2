"""What is said of times that no profile corrects: of a device, of an NPU, of a power mode, and of a format measured otherwise."""

import pytest

from nas.study.catalogue import load_device
from objectives.device import Calibration
from objectives.profile_choice import calibration_for, doubts
from objectives.transfers import Conditions, extrapolations


def test_a_device_without_profiles_is_doubted_with_measured_figures() -> None:
    """A CPU board gets the figures of other devices; the NPU its own."""
    (board,), (npu,) = (doubts(load_device(name), None) for name in ("raspberry_pi_5", "rk3588_npu"))
    assert "prefill took 2.1 times what is predicted (1.1 to 5.6)" in board
    assert "RK3588 prefill took 4.6 times what is predicted (4.3 to 5.4)" in npu


def test_what_is_measured_is_not_doubted() -> None:
    """A profile, one of the mode that the study leaves out, and rates of plas measure --hardware."""
    assert not doubts(load_device("raspberry_pi_5"), Calibration())
    assert not doubts(load_device("jetson_agx_orin_64gb"), None)
    assert not doubts(load_device("raspberry_pi_5").model_copy(update={"confidence": "measured"}), None)


def test_what_is_typical_of_a_class_is_doubted_and_says_of_which() -> None:
    """With the engine that the class was seen with, or that is asked for; a file without a chip is asked for it."""
    board = load_device("rtx_4090")
    named, other = (calibration_for(board, Conditions("fp16", engine=engine))[0] for engine in ("ollama", "vLLM"))
    (said,) = doubts(board, named)
    assert "this device was not measured: times are typical of discrete GPUs with llama.cpp;" in said
    assert other is not None
    assert other.engine == ""
    assert [t.sentence for t in extrapolations(other, Conditions("fp16", engine="vLLM"))] == [
        "nothing is known of vLLM here, times are as of the engines that are known"
    ]
    anything = board.model_copy(update={"chip": "any"})
    assert (
        "typical of devices of every class with any engine, since its file states no chip; state its chip"
        in doubts(anything, calibration_for(anything, Conditions("fp16"))[0])[0]
    )


@pytest.mark.parametrize(("name", "said"), [("q4_k_m", True), ("", False)])
def test_a_format_counted_otherwise_is_named(name: str, said: bool) -> None:
    """A profile of q4_k_m under int4 says what its head has and what takes it as measured; one of int4 says nothing."""
    found = extrapolations(Calibration(precision="int4", format=name), Conditions("int4"))
    assert [t.widening for t in found] == [{}] * said
    assert all("6.56 in the LM head" in t.sentence and "--precision q4_k_m takes it" in t.sentence for t in found)
    assert not extrapolations(Calibration(precision="int4", format=name), Conditions(name or "w4a16"))


def test_a_profile_of_a_format_that_no_study_has_is_a_transfer() -> None:
    """Also where its precision is the study's."""
    (found,) = extrapolations(Calibration(precision="int4", format="q3_k_s"), Conditions("int4"))
    assert found.sentence.startswith("efficiencies transferred from a q3_k_s measurement")


def test_the_profile_of_the_format_itself_is_taken() -> None:
    """Of two 4-bit formats that calibrate under int4, and of int4 without one."""
    profiles = [Calibration(precision="int4", format=name) for name in ("q4_0", "q4_k_m", "")]
    board = load_device("rtx_4090").model_copy(update={"profiles": profiles})
    for asked, taken in (("q4_k_m", "q4_k_m"), ("q4_0", "q4_0"), ("w4a16", ""), ("int4", "")):
        profile, note = calibration_for(board, Conditions(asked))
        assert profile is not None
        assert profile.format == taken
        assert note == f"calibrated (unnamed engine, {asked})"


def test_a_phase_that_was_not_measured_is_named() -> None:
    decode = Calibration(precision="fp16", contexts=(128, 256))
    assert [t.sentence for t in extrapolations(decode, Conditions("fp16", context=200))] == [
        "prefill was not measured, decode alone: it is as is typical of the class of chip, and as far off as its devices are"
    ]
    assert not extrapolations(Calibration(precision="fp16", contexts=(9, 9), prompts=(9, 9)), Conditions("fp16"))
