"""A power mode without a profile: between those of measured modes, and of the nearest one beyond them."""

import math

import pytest

from nas.study.catalogue import load_device
from objectives.device import Calibration, Device, Energy, Mode
from objectives.profile_choice import in_unmeasured_mode


def board(**shares: float) -> Device:
    """100, 40 and 10 TFLOP/s in three modes, with a profile in those of which a share is given."""
    profiles = [
        Calibration(
            mode="" if name == "full" else name, bandwidth_efficiency=share, overhead="5 us", held_out={"decode": [1.0]}
        )
        for name, share in shares.items()
    ]
    modes = {"mid": Mode(fp16="40 TFLOP/s"), "low": Mode(fp16="10 TFLOP/s")}
    return Device(name="mine", fp16=100, int8=200, bandwidth=200, memory=8, modes=modes, profiles=profiles)


def test_between_two_modes_shares_are_interpolated_in_the_logarithm_of_the_peak() -> None:
    """Errors of both are wider by a quarter of what the two differ by, either way."""
    (found,) = in_unmeasured_mode(board(full=0.8, low=0.2), "mid")["profiles"]
    assert found.bandwidth_efficiency == pytest.approx(0.2 * 4 ** (math.log(4) / math.log(10)), rel=1e-12)
    assert found.overhead == 0.005
    assert found.between == "@low and the default mode"
    assert found.held_out["decode"] == pytest.approx([4**-0.25] * 2 + [4**0.25] * 2, rel=1e-12)


def test_beyond_the_measured_modes_it_is_the_nearest_one() -> None:
    (found,) = in_unmeasured_mode(board(full=0.8, mid=0.5), "low")["profiles"]
    assert (found.bandwidth_efficiency, found.between, found.mode) == (0.5, "@mid", "low")


def test_what_has_a_profile_or_has_none_at_all_stays_as_it_is() -> None:
    for device, mode in ((board(full=0.8, low=0.2), "low"), (board(), "mid")):
        assert in_unmeasured_mode(device, mode) == {"profiles": [], "energy": []}


def test_energy_is_between_that_of_its_neighbours() -> None:
    """Watts and joules in the logarithm of the peak; what is zero in one stays the nearest mode's."""
    metered = [
        Energy(base_power="4 W", per_flop="8 pJ", held_out=[1.0]),
        Energy(mode="low", base_power="1 W", per_flop="2 pJ"),
    ]
    (found,) = in_unmeasured_mode(board().model_copy(update={"energy": metered}), "mid")["energy"]
    assert found.base_power == pytest.approx(4 ** (math.log(4) / math.log(10)), rel=1e-12)
    assert found.per_flop == pytest.approx(2e-12 * 4 ** (math.log(4) / math.log(10)), rel=1e-12)
    assert found.held_out == pytest.approx([4**-0.25, 4**0.25], rel=1e-12)


def test_a_shipped_mode_is_between_its_neighbours() -> None:
    """Orin Nano at 25 W, had it not been measured: between 15 W and the default, in every format that both have, and near what it is."""
    device = load_device("jetson_orin_nano_super_8gb")
    measured = [p for p in device.profiles if p.mode == "25w"]
    others = {
        "profiles": [p for p in device.profiles if p.mode != "25w"],
        "energy": [e for e in device.energy if e.mode != "25w"],
    }
    found = in_unmeasured_mode(device.model_copy(update=others), "25w")
    assert {p.between for p in found["profiles"]} == {"@15w and the default mode"}
    for own, between in zip(measured, found["profiles"], strict=True):
        assert between.bandwidth_efficiency == pytest.approx(own.bandwidth_efficiency, rel=0.15)
    assert found["energy"][0].base_power == pytest.approx(3.551, rel=0.15)
