"""Held-out medians on public measurements of published models stay within what the project promises."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.calibration import (
    BENCH,
    CASES,
    RUNTIME,
    Case,
    calibrations,
    moe_batch,
    public_rows,
    shares,
    unseen_device,
)

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
