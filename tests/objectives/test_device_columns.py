"""Figures of a device: what may be written, what is refused, and that each is a metric of one value."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from objectives.assessment import Assessment
from objectives.device import Device
from objectives.device_columns import Figure, recorded
from objectives.parts import composition
from objectives.quantities import day_in_words, quantity_in
from search_spaces.architectures import Architectures

BOARD = {"name": "board", "fp16": 6, "int8": 12, "bandwidth": 50, "memory": 8}


@pytest.mark.parametrize(
    ("written", "value", "unit"),
    [
        (249, 249.0, ""),
        ("249 USD", 249.0, "USD"),
        ("1,599", 1599.0, ""),
        ({"value": "15 W"}, 15.0, "W"),
        ({"value": 15, "unit": "W", "source": "sheet", "date": "2026-01-02"}, 15.0, "W"),
        ("2026-12-01", 20261201.0, "date"),
        (-20, -20.0, ""),
    ],
)
def test_a_figure_as_people_write_it(written: Any, value: float, unit: str) -> None:
    found = Figure.model_validate(written)
    assert (found.value, found.unit) == (value, unit)
    assert Figure.model_validate(found.model_dump(exclude_defaults=True)) == found


@pytest.mark.parametrize(
    ("name", "figure", "message"),
    [
        (
            "power_w",
            15,
            "power_w: expected a name of its own, got that of a metric that is computed; call it board_power_w",
        ),
        ("width", 15, "width: expected a name of its own, got that of a column of architectures; call it board_width"),
        ("Die area", 15, "got 'Die area'; call it die_area"),
        ("price", "cheap", "expected a figure like"),
        ("price", True, "expected a figure like"),
        ("price", {"value": "3 EUR", "unit": "USD"}, "expected the figure in USD, got '3 EUR'"),
        ("available", "2026-13-01", "expected a date like 2026-12-01"),
        ("price", float("nan"), "expected a figure like"),
    ],
)
def test_what_is_no_figure_is_refused(name: str, figure: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(message)):
        Device.model_validate({**BOARD, "columns": {name: figure}})


def test_a_device_with_figures_is_read_back_as_it_is_written() -> None:
    device = Device.model_validate({**BOARD, "columns": {"price": "249 USD", "available": "2026-12-01"}})
    assert Device.model_validate(device.mapping()) == device
    assert recorded({"device": device.mapping()}) == device.columns


def test_figures_of_several_devices_are_those_of_the_first_that_has_each() -> None:
    a, b = ({**BOARD, "columns": each} for each in ({"price": 1}, {"price": 2, "area": 3}))
    found = recorded({"device": a, "devices": {"a": a, "b": b}})
    assert {name: figure.value for name, figure in found.items()} == {"price": 1.0, "area": 3.0}


def test_a_figure_is_a_metric_of_one_value(case: Any, random_architectures: Callable[..., Architectures]) -> None:
    device = case.device.model_copy(update={"columns": {"price": Figure(value=249.0, unit="USD")}})
    scenario = replace(case.scenario, device=device)
    assert Assessment(random_architectures(5, 1), scenario)["price"].tolist() == [249.0] * 5
    known = composition("price", scenario)
    assert known is not None
    assert (dict(known.quantities), float(known.value())) == ({}, 249.0)
    with pytest.raises(ValueError, match="area: expected a figure of every device, got one without"):
        Assessment(random_architectures(5, 1), scenario)["area"]


@pytest.mark.parametrize(
    ("unit", "written", "value"),
    [("USD", "249 USD", 249.0), ("USD", "1.5k", 1500.0), ("USD", 3, 3.0), ("date", "2026-12-01", 20261201.0)],
)
def test_a_limit_in_the_unit_of_a_figure(unit: str, written: Any, value: float) -> None:
    assert quantity_in(unit, written) == value
    with pytest.raises(ValueError, match="expected a"):
        quantity_in(unit, "3 EUR")


def test_a_day_is_shown_as_a_day() -> None:
    assert [day_in_words(x) for x in (20261201.0, 7.0)] == ["2026-12-01", "7"]
    assert np.isfinite(quantity_in("date", 20261201))
