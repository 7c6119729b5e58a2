"""Speed after minutes of load: shares of classes against an oracle, times at a share, what is refused and what is said."""

import math
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from nas.study.catalogue import load_device, load_law
from objectives.assessment import Assessment
from objectives.device import Calibration, Cooling, Device, Sustained
from objectives.dimensions import Dimensions
from objectives.latency.roofline import latency_ms
from objectives.precision import precision
from objectives.scenario import Scenario
from objectives.typical.sustained import about_load, shipped, slower_than, sustained_of, typical_of, unknown
from search_spaces.architectures import Architectures, one

BOARD = {"name": "mine", "fp16": 4, "int8": 8, "bandwidth": 100, "memory": 16}
CACHED = BOARD | {"cache": "50 MB", "cache_bandwidth": "800 GB/s"}
CALIBRATIONS = {
    "datasheet": None,
    "plain": Calibration(compute_efficiency=0.5, bandwidth_efficiency=0.7, overhead=0.005),
    "every coefficient": Calibration.model_validate(
        {
            "compute_efficiency": 0.5,
            "compute_efficiency_int8": 0.3,
            "bandwidth_efficiency": 0.7,
            "prefill_bandwidth_efficiency": 1.1,
            "cache_efficiency": 0.6,
            "overhead": "5 us",
            "prefill_overhead": "9 us",
            "request_overhead": "20 ms",
            "attention_compute": 0.4,
            "decode_attention_compute": 0.1,
            "attention_bandwidth": 0.6,
            "expert_compute": 0.8,
            "expert_bandwidth": 0.9,
            "routing_overlap": 0.45,
        }
    ),
}


def board(**changes: Any) -> Device:
    return Device.model_validate(CACHED | changes)


def designs(experts: int) -> Architectures:
    return one({"depth": 4, "width": 512, "n_experts": experts, "top_k": 1, "expert_size": 512, "n_kv_heads": 2})


def test_shares_of_classes_are_those_of_their_rows() -> None:
    """Means of devices' mean logarithms, with the spread of devices within classes, in other words than the package's."""
    logs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in shipped().rows:
        logs[row.cooling, row.device].append(np.log(row.sustained / row.burst))
    per = {c: [np.mean(v) for (cooling, _), v in logs.items() if cooling == c] for c in ("phone", "active")}
    freedom = sum(len(v) - 1 for v in per.values())
    s = np.sqrt(sum(np.var(v) * len(v) for v in per.values()) / freedom)
    for cooling, values in (("phone", per["phone"]), ("active", per["active"])):
        known = typical_of(cooling)  # type: ignore[arg-type]
        wide = stats.t.ppf(0.9, freedom) * s * np.sqrt(1 + 1 / len(values))
        assert known is not None
        assert known.interval is not None
        assert known.share == pytest.approx(np.exp(np.mean(values)))
        ends = np.exp([np.mean(values) - wide, np.mean(values) + wide]).clip(max=1.0)
        assert known.interval == pytest.approx(tuple(ends))
        assert (known.typical, known.devices, known.freedom) == (cooling, len(values), freedom)


def test_every_row_has_a_source_and_none_is_of_a_fanless_device() -> None:
    """So that class has no share; a source that is not told is refused."""
    content = shipped().model_dump()
    assert typical_of("passive") is None
    assert {row.source for row in shipped().rows} == content["sources"].keys()
    with pytest.raises(ValidationError, match="expected sources of the rows, got none of tiny_bench"):
        type(shipped()).model_validate(content | {"sources": {"apple_silicon": "", "omlx_2689": "", "club_80": ""}})


def test_a_device_left_out_mostly_lies_in_the_interval_of_the_others() -> None:
    """Five of the six, of an interval that claims four fifths: what docs/devices.md says."""
    found: dict[str, bool] = {}
    for row in shipped().rows:
        own = np.mean([r.log_share for r in shipped().rows if r.device == row.device])
        others = typical_of(row.cooling, row.device)
        assert others is not None
        assert others.interval is not None
        found[row.device] = others.interval[0] <= math.exp(own) <= others.interval[1]
    assert (sum(found.values()), len(found)) == (5, 6)
    assert not found["MacBook Pro M5 Max"]


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("kind", ["fp16", "int8", "q4_k_m"])
@pytest.mark.parametrize("experts", [1, 8])
def test_every_time_is_divided_by_the_share(calibration: str, kind: str, experts: int) -> None:
    """Of every calibration, with a cache tier, a server's constant and experts; loss and memory stay."""
    burst = Scenario(
        load_law("hw_codesign"), board(), precision=precision(kind), batch=2, calibration=CALIBRATIONS[calibration]
    )
    hot = replace(burst, sustained=Sustained(share=0.6))
    for cold_ms, hot_ms in zip(
        latency_ms(Dimensions(designs(experts)), burst), latency_ms(Dimensions(designs(experts)), hot), strict=True
    ):
        np.testing.assert_allclose(hot_ms, cold_ms / 0.6, rtol=1e-12)
    cold, warm = (Assessment(designs(experts), s) for s in (burst, hot))
    assert warm["loss"] == cold["loss"]
    assert warm["resident_gb"] == cold["resident_gb"]
    np.testing.assert_allclose(warm["total_ms"], cold["total_ms"] / 0.6, rtol=1e-12)


def test_a_share_of_one_changes_no_bit() -> None:
    burst = Scenario(load_law("hw_codesign"), board(), calibration=CALIBRATIONS["every coefficient"])
    same = replace(burst, sustained=Sustained(share=1.0))
    for cold_ms, hot_ms in zip(
        latency_ms(Dimensions(designs(8)), burst), latency_ms(Dimensions(designs(8)), same), strict=True
    ):
        assert (cold_ms == hot_ms).all()


def test_energy_of_sustained_load_is_refused() -> None:
    device = load_device("jetson_orin_nano_super_8gb")
    cold = Scenario(load_law("hw_codesign"), device, calibration=Calibration(), energy=device.energy[0])
    assert cold.coefficients() is device.energy[0]
    with pytest.raises(
        ValueError, match="expected times of the first seconds, as power was metered, got sustained load"
    ):
        replace(cold, sustained=Sustained(share=0.6)).coefficients()


def test_the_closed_form_refuses_it_by_name() -> None:
    hot = Scenario(
        load_law("hw_codesign"), board(cooling="phone"), latency="closed_form", sustained=Sustained(share=0.6)
    )
    with pytest.raises(ValueError, match="expected operator for sustained, got closed_form"):
        Assessment(designs(1), hot)["total_ms"]
    assert Assessment(designs(1), replace(hot, sustained=None))["total_ms"] > 0


def test_a_file_says_what_was_measured() -> None:
    """In place of the class's share; a bare number, or with its interval; it reads back as it was written."""
    own = board(cooling="phone", sustained={"share": 0.8, "interval": [0.7, 0.9], "minutes": 20, "source": "ours"})
    assert sustained_of(own) == own.sustained
    assert Device.model_validate(own.mapping()) == own
    assert board(sustained=0.8).sustained == Sustained(share=0.8)
    assert sustained_of(board(cooling="phone")) == typical_of("phone")
    assert sustained_of(board()) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"share": 0.7, "interval": [0.8, 0.9]}, "expected an interval around 0.7"),
        ({"share": 1.2}, "less than or equal to 1"),
        (0, "greater than 0"),
    ],
)
def test_what_is_no_share_is_refused(wrong: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        board(sustained=wrong)


@pytest.mark.parametrize(
    ("cooling", "said"), [(None, "whose file states none"), ("passive", "none are of fanless devices")]
)
def test_what_is_unknown_is_refused_by_name(cooling: Cooling | None, said: str) -> None:
    device = board(cooling=cooling)
    assert sustained_of(device) is None
    assert said in unknown(device)
    assert unknown(device).startswith("expected ")
    assert "got mine" in unknown(device)


def test_what_is_said_of_load() -> None:
    """One line where speed does not last and nobody asked; none with fans; what it rests on where it is priced."""
    (phone,) = about_load(board(cooling="phone"), None)
    assert phone == (
        "burst speed: after minutes of load typically 63 % of it (80 % of phones: 41 to 95 %); --set sustained=true prices that; "
        "an app gets about 11.2 of its 16 GB"
    )
    (fanless,) = about_load(board(cooling="passive"), None)
    assert "by how much no public row says" in fanless
    assert about_load(board(cooling="active"), None) == about_load(board(), None) == []
    (own,) = about_load(board(cooling="active", sustained={"share": 0.8, "interval": [0.7, 0.9]}), None)
    assert own == "burst speed: after minutes of load 80 % of it (80 %: 70 to 90 %); --set sustained=true prices that"
    (priced,) = about_load(board(), typical_of("active"))
    assert (
        "83 % of the speed of the first seconds (80 % of devices with fans: 54 to 100 %), by public rows of 3" in priced
    )
    assert "hold with about theirs" in priced
    (told,) = about_load(board(), Sustained(share=0.7, source="our bench"))
    assert told.endswith(
        "after minutes 70 % of the speed of the first seconds, as its file or the study says: our bench, of which no interval is told"
    )


@pytest.mark.parametrize("freedom", [None, 4])
def test_how_much_slower_a_further_device_is(freedom: int | None) -> None:
    """At 90 % and 10 % the ends of the interval, at one half the share itself, between and beyond as t and the normal say."""
    known = Sustained(share=0.6, interval=(0.4, 0.8), freedom=freedom)
    assert slower_than(known, 0.9) == pytest.approx(0.6 / 0.4)
    assert slower_than(known, 0.1) == pytest.approx(0.6 / 0.8)
    assert slower_than(known, 0.5) == pytest.approx(1.0)
    law = stats.norm if freedom is None else stats.t(freedom)
    assert slower_than(known, 0.99) == pytest.approx(1.5 ** (law.ppf(0.99) / law.ppf(0.9)))
    assert slower_than(Sustained(share=0.6), 0.9) == 1.0


def test_phones_of_the_catalogue_are_phones() -> None:
    """And what must have a fan has one; boards and chips that come in several cases say nothing."""
    assert load_device("a19_pro").cooling == load_device("snapdragon_8_gen3").cooling == "phone"
    assert load_device("rtx_4090").cooling == load_device("m3_max_40c").cooling == "active"
    assert load_device("raspberry_pi_5").cooling is load_device("jetson_agx_orin_64gb").cooling is None
