"""Which profile prices a precision and a batch: efficiencies transfer between formats that compute alike, never between others."""

from fractions import Fraction
from typing import Any

import pytest

from nas.problem.quantiles import phase_range
from objectives.device import Calibration, Device
from objectives.profile_choice import calibration_for
from objectives.transfers import MEASURED_FORMATS, Conditions, error_factor, extrapolations

BOARD = {"name": "mine", "fp16": 100, "int8": 200, "bandwidth": 200, "memory": 8, "other_peaks": {"fp4": "400 TFLOP/s"}}


def board(*precisions: str, **changes: Any) -> Device:
    """A device with a profile per precision, the later the smaller its held-out error."""
    profiles = [
        {"engine": "E", "precision": name, "held_out_error": 0.1 - 0.01 * i, **changes}
        for i, name in enumerate(precisions)
    ]
    return Device.model_validate(BOARD | {"profiles": profiles})


@pytest.mark.parametrize(
    ("wanted", "measured", "source"),
    [
        ("fp16", ("int4", "nvfp4"), "int4"),
        ("fp16", ("int4", "int8"), "int4"),
        ("fp16", ("fp16", "int4", "nvfp4"), "fp16"),
        ("int8", ("fp16", "int4", "nvfp4"), "fp16"),
        ("int8", ("int8", "fp16", "nvfp4"), "int8"),
        ("int4", ("fp16", "q8_0", "nvfp4"), "q8_0"),
        ("nvfp4", ("nvfp4", "int4", "fp16"), "nvfp4"),
        ("fp16", ("nvfp4",), ""),
        ("int8", ("nvfp4",), ""),
        ("fp16", ("int8",), ""),
        ("nvfp4", ("int4", "int8", "fp16"), ""),
        ("fp32", ("fp16", "fp32"), "fp32"),
        ("fp32", ("fp16", "int4"), None),
    ],
)
def test_efficiencies_transfer_between_what_computes_alike(
    wanted: str, measured: tuple[str, ...], source: str | None
) -> None:
    """Between weight-only formats and fp16, and from them to int8; neither from nor to NVFP4, which are as is typical."""
    found, note = calibration_for(board(*measured), Conditions(wanted))
    assert (found.precision if found else None) == source
    assert bool(found and found.typical) == (source == "")
    if source == "":
        assert note.endswith(f"no calibrated profile that {wanted} could use for this device")
    elif source is None:
        assert note == f"datasheet peaks, no calibrated profile that {wanted} could use for this device"
    elif source == wanted:
        assert note == f"calibrated (E, {wanted})"
    else:
        article = "a" if source == "q8_0" else "an"
        start = f"calibrated (E, {wanted}; efficiencies transferred from {article} {source} measurement"
        known = {wanted, source} == MEASURED_FORMATS
        said = ": prefill took 0.73 to 3.2 times" if known else ", of which no data says how far off it is)"
        assert note.startswith(start + said)


def test_a_variation_has_the_profile_of_its_base_and_says_so() -> None:
    cached = calibration_for(board("int4"), Conditions("int4_kv8"))[1]
    assert cached == (
        "calibrated (E, int4_kv8; measured with a KV cache as wide as activations, of which no data says how far off it is)"
    )
    both = calibration_for(board("nvfp4", "int4"), Conditions("nvfp4_down8_kv4"))[1]
    assert "measured with a KV cache as wide as activations and down projections like the others" in both
    found = calibration_for(board("int4"), Conditions("nvfp4_kv8"))[0]
    assert found is not None
    assert found.typical


def test_profiles_of_the_engine_that_is_asked_for_come_first() -> None:
    """Of an engine that the class is known with what is typical of it; of another engine the profile that there is, which is said."""
    two = board("int4", "int4").model_copy(update={"chip": "gpu"})
    two.profiles[0].engine = "llama-bench b1234"
    ours, _ = calibration_for(two, Conditions("int4", engine="llama.cpp"))
    assert ours is two.profiles[0]
    theirs, note = calibration_for(two, Conditions("int4", engine="MLC"))
    assert theirs is not None
    assert (theirs.held_out_error, theirs.borrowed) == (two.profiles[1].held_out_error, "gpu")
    assert "nothing is known of MLC here, times are those of E" in note
    typical, _ = calibration_for(
        two.model_copy(update={"profiles": two.profiles[1:]}), Conditions("int4", engine="ollama")
    )
    assert typical is not None
    assert (typical.typical, typical.engine) == ("gpu", "llama.cpp")


def test_another_batch_is_said() -> None:
    """A profile measured at another batch says what that was seen to miss by."""
    assert calibration_for(board("int4"), Conditions("int4", 1))[1] == "calibrated (E, int4)"
    note = calibration_for(board("int4"), Conditions("int4", 8))[1]
    assert "prefill at batch 8 cannot be known from it: at 8 times the batch prefill took 1.1 to 4.2 times" in note
    assert calibration_for(board("int4", batch=8), Conditions("int4", 8))[1] == "calibrated (E, int4)"


def test_a_phase_far_off_is_said() -> None:
    """More than 25 % off on held-out models stands in every answer that uses the profile."""
    off = board("int4", held_out={"prefill": [2.0, 1.0, 1.9], "decode": [1.0, 1.2, 1.1]})
    assert calibration_for(off, Conditions("int4"))[1] == "calibrated (E, int4; prefill 47 % off on models held out)"


def test_doubt_grows_where_another_engine_or_kind_of_format_was_measured() -> None:
    """Errors of a profile then reach at least as far as those of a device of which nothing was measured; of its own engine and format they stay."""
    narrow = {"held_out": {"prefill": [0.99, 1.01], "decode": [0.5, 1.0, 1.01]}, "held_out_models": 2}
    orin = board("int4", **narrow).model_copy(update={"chip": "soc"})
    own, _ = calibration_for(orin, Conditions("int4"))
    assert own is orin.profiles[0]
    theirs = None
    for asked in (Conditions("int4", engine="SGLang"), Conditions("fp8"), Conditions("int8")):
        theirs, nothing = (calibration_for(each, asked)[0] for each in (orin, orin.model_copy(update={"profiles": []})))
        assert theirs is not None
        assert nothing is not None
        assert theirs.compute_efficiency == own.compute_efficiency
        for phase in ("prefill", "decode"):
            ours, usual = phase_range(theirs, phase), phase_range(nothing, phase)
            assert ours is not None
            assert usual is not None
            assert ours.least <= usual.least
            assert ours.most >= usual.most
    assert min(theirs.held_out["decode"]) < 0.52


def test_a_format_of_one_engine_is_priced_as_of_that_engine() -> None:
    """llama.cpp's q4_0 on a device that was measured with another engine: as is typical with llama.cpp, of another class as measured, with doubt."""
    orin = board("int4").model_copy(update={"chip": "soc"})
    typical, _ = calibration_for(orin, Conditions("q4_0"))
    assert typical is not None
    assert (typical.typical, typical.engine) == ("soc", "llama.cpp")
    own, _ = calibration_for(orin.model_copy(update={"chip": "npu"}), Conditions("q4_0"))
    assert own is not None
    assert (own.engine, own.borrowed) == ("E", "npu")


@pytest.mark.parametrize(
    ("changes", "asked", "named"),
    [
        (
            {"prompts": (64, 512), "contexts": (64, 512)},
            {"layers": True},
            "measured without layers of linear attention",
        ),
        (
            {"engine": "Genie"},
            {"engine": "llama.cpp"},
            "nothing is known of llama.cpp here, times are those of Genie: of another",
        ),
        ({"typical": "cpu"}, {"precision": "q6_k"}, "q6_k was not measured on processors"),
        ({"typical": "gpu"}, {"context": 65536}, "contexts of 65,536 tokens are longer than the measured"),
        ({"typical": "gpu"}, {"layers": True}, "measured without layers of linear attention"),
    ],
)
def test_a_step_that_a_profile_has_not_seen_is_named_and_widens(
    changes: dict[str, Any], asked: dict[str, Any], named: str
) -> None:
    """A kind of layers, an engine, a format on processors, a depth; none where it was seen."""
    profile = Calibration.model_validate({"engine": "E", "precision": "int4"} | changes)
    (step,) = extrapolations(profile, Conditions(**({"precision": "int4"} | asked)))
    assert step.sentence.startswith(named)
    assert error_factor(profile, Conditions(**({"precision": "int4"} | asked)), "decode", Fraction(9, 10)) > 1.1
    seen = profile.model_copy(update={"layers": True})
    assert not extrapolations(seen, Conditions("int4", layers=True))


def test_an_engine_step_of_an_npu_is_its_own() -> None:
    """A prefill outside of the vendor's engine took 35 times as long; elsewhere engines are within three times."""
    asked = Conditions("int4", engine="llama.cpp")
    for chip, least, most in (("npu", 30, 40), ("gpu", 1.5, 3)):
        found = error_factor(
            Calibration(engine="E", precision="int4", borrowed=chip), asked, "prefill", Fraction(9, 10)
        )
        assert least < found < most
