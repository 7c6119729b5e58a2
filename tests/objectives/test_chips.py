"""Chips from genes: figures, costs, labels, conditions; every mistake by its key."""

import re
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from objectives.chips import MOST_COMBINED, chips, coefficients
from objectives.device import Device
from objectives.plugins import documents

PLAIN: dict[str, Any] = {"bandwidth": 100, "int8": 40, "fp16": "int8 / 2", "memory": 8}
TYPES = {"lpddr5": {"rate": 6.4, "per_gb": 3.0}, "lpddr5x": {"rate": 8.5, "per_gb": 4.0}}


def base() -> Device:
    path = documents("objectives.devices")["jetson_agx_orin_64gb"]
    return Device.model_validate(yaml.safe_load(path.read_text()))


def test_one_chip_of_plain_figures() -> None:
    found = chips({**PLAIN, "cache": "4 MB", "fp4": "2 * int8", "class": "npu"})
    ((label, chip),) = found.devices.items()
    assert (label, chip.chip, chip.peak("fp4")) == ("chip", "npu", 80e12)
    assert (chip.bandwidth, chip.int8, chip.fp16, chip.memory, chip.cache) == (100e9, 40e12, 20e12, 8e9, 4e6)
    assert {name: (f.value, f.unit) for name, f in chip.columns.items()}["chip_cache"] == (4.0, "MB")


@given(
    bandwidths=st.lists(st.integers(1, 500), min_size=1, max_size=5, unique=True),
    peaks=st.lists(st.sampled_from([2.5, 10, 40, 160]), min_size=1, max_size=3, unique=True),
    least=st.integers(1, 8),
)
def test_every_combination_that_meets_the_conditions(bandwidths: list[int], peaks: list[float], least: int) -> None:
    given_ = {
        "bandwidth": bandwidths,
        "int8": peaks,
        "fp16": "int8 / 2",
        "memory": [4, 8],
        "memory_type": TYPES,
        "columns": {"cost": {"formula": "0.2 * bandwidth + int8 + per_gb * memory", "unit": "USD"}},
        "where": [f"memory >= {least}"],
    }
    expected = {
        (b, p, m, t): 0.2 * b + p + TYPES[t]["per_gb"] * m
        for b in bandwidths
        for p in peaks
        for m in (4, 8)
        for t in TYPES
        if m >= least
    }
    found = chips(given_)
    told = {}
    for label, chip in found.devices.items():
        told[(round(chip.bandwidth / 1e9), chip.int8 / 1e12, chip.memory / 1e9, label.rsplit("_", 1)[1])] = chip
        assert Device.model_validate(chip.mapping()) == chip
        assert chip.fp16 == pytest.approx(chip.int8 / 2)
    assert told.keys() == expected.keys()
    for key, cost in expected.items():
        assert told[key].columns["cost"].value == pytest.approx(cost)
        assert told[key].columns["cost"].unit == "USD"
        assert told[key].columns["chip_rate"].value == TYPES[key[3]]["rate"]


def test_labels_name_what_differs() -> None:
    genes = {
        **PLAIN,
        "bandwidth": {"from": "100 GB/s", "to": "120 GB/s", "step": "10 GB/s"},
        "int8": [40],
        "memory": [8, 16],
    }
    assert list(chips(genes).devices)[:3] == ["bw100_mem8", "bw100_mem16", "bw110_mem8"]
    assert list(chips({**PLAIN, "int8": [20, 40]}).devices) == ["int8_20", "int8_40"]


def test_a_base_says_what_genes_do_not() -> None:
    orin = base()
    found = chips({"bandwidth": "channels * 25.6", "channels": [8, 16]}, orin).devices
    assert list(found) == ["channels8", "channels16"]
    chip = found["channels8"]
    assert (chip.bandwidth, chip.int8, chip.memory, chip.profiles) == (204.8e9, orin.int8, orin.memory, orin.profiles)
    assert (chip.energy, chip.modes, chip.other_peaks) == ([], {}, {})


def test_formulas_read_one_another_and_shipped_areas() -> None:
    given_ = {**PLAIN, "cache": 8, "columns": {"cost": "2 * area", "area": "npu_4nm(int8) + sram_5nm(cache)"}}
    (chip,) = chips(given_).devices.values()
    known = coefficients()
    area = 40 * known["npu_4nm"].value + 8 * known["sram_5nm"].value
    assert chip.columns["area"].value == pytest.approx(area)
    assert chip.columns["cost"].value == pytest.approx(2 * area)


def test_shipped_figures_follow_from_what_was_read() -> None:
    known = coefficients()
    assert known["npu_4nm"].value == pytest.approx(1 / 3.45, rel=2e-3)
    assert known["npu_4nm"].low == pytest.approx(0.153 / (2 * 512 * 1.76e9 / 1e12), rel=2e-3)
    assert known["npu_16nm"].value == pytest.approx(1 / 1.29, rel=2e-3)
    assert known["sram_5nm"].value == pytest.approx(8e6 / (31.8 * 2**20), rel=2e-3)


def test_ten_thousand_chips_hold_their_genes() -> None:
    genes = {**PLAIN, "bandwidth": {"from": 10, "to": 1000, "step": 10}, "memory": {"from": 1, "to": 100, "step": 1}}
    found = chips(genes)
    assert len(found.devices) == 10_000
    bandwidths = np.array([each.bandwidth for each in found.devices.values()])
    np.testing.assert_allclose(bandwidths / 1e9, found.genes["bandwidth"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"fp16": "int9 / 2"},
            "fp16: expected names of genes (bandwidth, int8, memory, fp16), got 'int9' in 'int9 / 2'; did you mean int8?",
        ),
        ({"fp16": "open(int8)"}, "fp16: expected a formula of numbers, names"),
        ({"bandwidth": "50 GX/s"}, "bandwidth: expected a formula of numbers"),
        ({"bandwidth": ["50 GX/s"]}, "bandwidth: expected a quantity like \"100 GB/s\", got unit 'GX/s'"),
        ({"bandwidth": "fp16", "fp16": "bandwidth"}, "expected formulas that end, got bandwidth, fp16 of one another"),
        ({"bandwidth": {"from": 1, "to": 2}}, "bandwidth: expected from, to and step, got from, to"),
        ({"bandwidth": {"from": 3, "to": 2, "step": 1}}, "bandwidth: expected from <= to"),
        ({"bandwidth": []}, "bandwidth: expected a value or several, got an empty list"),
        ({"fp16": "int8 - 40"}, "fp16: expected positive figures, got 0 of a chip"),
        ({"kind": {"a": {"x": 1}, "b": {"y": 1}}}, "kind: expected words with the same figures each"),
        (
            {"kind": {"a": {"int8": 1}, "b": {"int8": 2}}},
            "kind: expected figures with names of their own, got int8 twice",
        ),
        ({"kind": TYPES, "columns": {"cost": "kind + 1"}}, "columns.cost: expected numbers, got the words of kind"),
        ({"columns": {"width": "int8"}}, "width: expected a name of its own"),
        ({"columns": {"int8": "memory"}}, "columns.int8: expected a name of its own, got that of a gene or figure"),
        ({"columns": {"cost": "1 / (memory - 8)"}}, "columns.cost: expected finite figures"),
        ({"sqrt": 3}, "sqrt: expected a gene's name"),
        (
            {"where": ["memory > 4", "memory > 9"]},
            "where.1: expected a chip that meets it, got none of 1 with 'memory > 9'",
        ),
        (
            {"memory": [4, 8], "where": ["memory > 4", "memory < 8"]},
            "where.1: expected a chip that meets it with those before it",
        ),
        ({"where": ["memori > 4"]}, "where.0: expected names of genes"),
        (
            {"a": {"from": 1, "to": 1000, "step": 1}, "b": {"from": 1, "to": 10_000, "step": 1}},
            f"expected at most {MOST_COMBINED:,}",
        ),
        (
            {"a": {"from": 1, "to": 1000, "step": 1}, "b": {"from": 1, "to": 200, "step": 1}},
            "where: expected at most 100,000 chips",
        ),
    ],
)
def test_a_mistake_is_named_by_its_key(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        chips({**PLAIN, **changed})


def test_without_a_base_every_needed_figure_is_asked_for() -> None:
    with pytest.raises(
        ValueError, match="fp16: expected a value, got nothing; write one, a range or a formula, or name a base"
    ):
        chips({"bandwidth": 3, "int8": 3, "memory": 2})
