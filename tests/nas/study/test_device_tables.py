"""Tables of devices' figures: laid over the devices, as budgets and objectives, and every mistake by name."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nas
from nas.errors import UsageError
from nas.exact.solution import solve
from nas.record.identity import difference

ORIN = "jetson_agx_orin_64gb"
TABLE = f"device,price [USD],available\n{ORIN},1999,2023-03-01\nrtx_4090,1599,2022-10-12\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "boards.csv"
    path.write_text(TABLE)
    return path


def assembled(**keys: Any) -> Any:
    return nas.load_study(algo="random", **keys).assembled


def test_a_table_lies_over_the_device(table: Path) -> None:
    study = assembled(
        preset="paper",
        device_columns=str(table),
        columns=["price"],
        budgets={"available": "2026-12-01", "price": "2kUSD"},
    )
    columns = study.problem.scenario.device.columns
    assert (columns["price"].value, columns["price"].unit, columns["price"].source) == (1999.0, "USD", "boards.csv")
    assert [str(b) for b in study.problem.budgets[1:]] == ["available <= 2026-12-01", "price <= 2000"]
    again = nas.load_study(**{**study.resolved(), "algo": "random"}).assembled
    assert again.problem.scenario.device == study.problem.scenario.device
    assert "device_columns" not in study.resolved()


def test_a_mapping_does_as_a_table(table: Path) -> None:
    given = {ORIN: {"price": {"value": 1999, "unit": "USD", "source": "boards.csv"}, "available": "2023-03-01"}}
    of_mapping = assembled(device_columns=given).problem.scenario.device.columns
    assert of_mapping["price"] == assembled(device_columns=str(table)).problem.scenario.device.columns["price"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("device,price\nrtx_4090,3\n", f"expected a row of every device, got none of {ORIN}"),
        (f"device,price\n{ORIN},\n", f"boards.csv:2:2: price of {ORIN}: expected a figure, got an empty cell"),
        (f"device,price\n{ORIN},cheap\n", f"boards.csv:2:2: price of {ORIN}: expected a number or a date, got 'cheap'"),
        (
            f"device,price\n{ORIN},12M\n",
            f"boards.csv:2:2: price of {ORIN}: expected a number or a date, got '12M'; df[",
        ),
        (f'device,price\n{ORIN},"1,599"\n', 'got \'1,599\'; df["price"] = df["price"].str.replace'),
        (f"device,Price\n{ORIN},3\n", "expected a name of lower-case letters"),
        (f"device,price\n{ORIN},3\n{ORIN},4\n", f"boards.csv:3:1: device: expected each device once, got {ORIN} twice"),
        (f"board,price\n{ORIN},3\n", "expected a column device and others, each once, got board, price"),
        (f"device,loss\n{ORIN},3\n", "loss: expected a name of its own, got that of a metric that is computed"),
        (
            f"device,seed\n{ORIN},3\n",
            "seed: expected a name of its own, got that of a key of studies; call it board_seed",
        ),
        (f"device,index\n{ORIN},3\n", "index: expected a name of its own, got that of a column of results"),
    ],
)
def test_a_mistake_in_a_table_is_named(table: Path, text: str, message: str) -> None:
    table.write_text(text)
    with pytest.raises(UsageError) as caught:
        assembled(device_columns=str(table))
    assert message in str(caught.value)


def test_names_that_nobody_knows_are_said(table: Path) -> None:
    table.write_text(TABLE + "nonsense,3,2022-10-12\n")
    study = assembled(device_columns=str(table))
    assert "device_columns: nonsense: no device of the study or the catalogue; left out" in study.notices


def test_units_differ_between_devices() -> None:
    given = {ORIN: {"price": "1 USD"}, "rtx_4090": {"price": "1 EUR"}}
    with pytest.raises(UsageError, match=f"price: expected one unit, got USD of {ORIN} and EUR of rtx_4090"):
        assembled(devices=[ORIN, "rtx_4090"], device_columns=given)


def test_no_architecture_changes_a_figure(table: Path) -> None:
    with pytest.raises(UsageError, match="objectives: expected one that architectures change, got price alone"):
        assembled(device_columns=str(table), objectives=["price"])


def test_a_figure_that_decides_is_part_of_a_runs_identity(table: Path) -> None:
    def resolved(price: str, **keys: Any) -> Any:
        return assembled(device_columns={ORIN: {"price": price}}, **keys).resolved()

    assert difference(resolved("3 USD"), resolved("4 USD")) is None
    found = difference(resolved("3 USD", columns=["price"]), resolved("4 USD", columns=["price"]))
    assert found == "device.columns.price: 3.0 in the run, 4.0 now"


def test_exact_frontiers_of_prices_are_brute_forces(table: Path) -> None:
    keys = {"devices": [ORIN, "rtx_4090"], "device_columns": str(table), "objectives": ["loss", "price", "total_ms"]}
    problem = replace(assembled(**keys, budgets={"total_ms": 50}).problem, queries=())
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    found = solve(problem).frontier
    usable = whole.values[whole.feasible]
    beaten = [bool(((usable <= point).all(axis=1) & (usable < point).any(axis=1)).any()) for point in found.values]
    assert not any(beaten)
    assert set(found.metrics["price"].tolist()) <= {1599.0, 1999.0}
    best = usable[:, 0].min()
    assert found.values[:, 0].min() == best
