"""Held-out medians on public measurements of published models stay within what the project promises."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.calibration import (
    BENCH,
    CASES,
    RUNTIME,
    Case,
    batch_transfer,
    calibrations,
    moe_batch,
    public_rows,
    shares,
    shipped,
    unseen_device,
)
from nas.study.catalogue import load_device
from objectives.profile_choice import BATCH_8_FROM_1, calibration_for

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows(external_data: Path) -> list[dict[str, str]]:
    """The public table."""
    return public_rows(external_data)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_held_out_by_model(case: Case, rows: list[dict[str, str]]) -> None:
    """Medians of prefill and decode, each model predicted from the others."""
    done = calibrations(rows, case.chosen, request=case.request)
    for phase, most in zip(("prefill", "decode"), case.most, strict=True):
        held_out = shares(done, "held_out", phase)
        assert len(held_out) >= 4
        assert np.median(held_out) <= most


def test_datasheet_is_not_tuned(rows: list[dict[str, str]]) -> None:
    """Uncalibrated, the same boards are tens of percent off: the operators are not fitted to the data."""
    done = calibrations(rows, CASES[1].chosen)
    assert np.median(shares(done, "datasheet", "prefill")) > 0.3
    assert np.median(shares(done, "datasheet", "decode")) > 0.15


def test_unseen_device(rows: list[dict[str, str]]) -> None:
    """Two of its models are enough to calibrate a device for the others."""
    prefill, decode = unseen_device(rows, 2)
    assert np.median(prefill) <= 0.08
    assert np.median(decode) <= 0.05


@pytest.mark.parametrize(("source", "most"), [(BENCH, 0.20), (RUNTIME, 0.30)])
def test_moe_decode_in_batches(rows: list[dict[str, str]], source: str, most: float) -> None:
    """Expected distinct experts predict decode at batch 8; active experts alone or all experts are 2 times off."""
    found = moe_batch(rows, source)
    assert found
    for _, ratios in found:
        assert abs(ratios["expected distinct experts"] - 1) <= most
        assert ratios["active experts alone"] < 0.6
        assert ratios["all experts"] > 1.7


def test_shipped_profiles(rows: list[dict[str, str]]) -> None:
    """The catalogue's profiles are what the public table gives."""
    for name, profiles in shipped(rows).items():
        found = load_device(name).profiles
        assert [(p.engine, p.precision, p.mode, p.source) for p in found] == [
            (p.engine, p.precision, p.mode, p.source) for p in profiles
        ]
        for ours, theirs in zip(found, profiles, strict=True):
            assert ours.compute_efficiency == pytest.approx(theirs.compute_efficiency, rel=1e-3)
            assert ours.bandwidth_efficiency == pytest.approx(theirs.bandwidth_efficiency, rel=1e-3)
            assert ours.overhead == pytest.approx(theirs.overhead, rel=1e-3)
            assert (ours.batch, ours.held_out_models) == (theirs.batch, theirs.held_out_models)
            assert ours.efficiency("fp4") == pytest.approx(theirs.efficiency("fp4"), rel=1e-3)
            assert ours.held_out.keys() == theirs.held_out.keys()
            for phase, ratios in theirs.held_out.items():
                assert ours.held_out[phase] == pytest.approx(ratios, rel=2e-3)


def test_batch_transfer(rows: list[dict[str, str]]) -> None:
    """The range that answers state for batch 8 from batch 1 is what the public rows show."""
    found = batch_transfer(rows)
    assert len(found) == 7
    for phase, (least, most) in BATCH_8_FROM_1.items():
        ratios = np.concatenate([by_phase[phase] for _, by_phase in found])
        assert len(ratios) == 31
        assert (ratios.min(), ratios.max()) == (pytest.approx(least, abs=0.005), pytest.approx(most, abs=0.005))


def test_batch_8_has_profiles_where_it_was_measured(rows: list[dict[str, str]]) -> None:
    """At batch 8 the profile of batch 8 predicts unseen models several times better than that of batch 1."""
    for name, precision, within in (
        ("jetson_agx_thor", "int4", 0.05),
        ("jetson_agx_thor", "nvfp4", 0.10),
        ("jetson_agx_orin_64gb", "int4", 0.20),
    ):
        profile, note = calibration_for(load_device(name), precision, 8)
        assert profile is not None
        assert (profile.batch, profile.precision) == (8, precision)
        assert "cannot be known" not in note
        for ratios in profile.held_out.values():
            assert np.median(np.abs(1 / np.array(ratios) - 1)) <= within
