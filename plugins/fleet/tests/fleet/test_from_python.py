"""Fleets from Python: the same as the command's tables, from flags' words, a study of several devices or a table."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plas_fleet
import pytest

import nas

DEVICES = ["raspberry_pi_5", "l4", "rtx_4090"]


def test_a_fleet_is_what_the_command_writes(inside: Callable[..., Any]) -> None:
    found = plas_fleet.fleets(nas.load_study(), "1..2", devices=DEVICES, weights=[3, 2, 1], minimise="regret")
    words = ("--devices", ",".join(DEVICES), "--weights", "3,2,1", "--models", "1..2", "--minimise", "regret")
    assert inside("fleet", *words, "--no-plots", "--quiet", "--out", "a").code == 0
    with Path("a/fleet.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert found.frame.model.tolist() == [row["model"] for row in rows]
    assert found.frame.loss.tolist() == [float(row["loss"]) for row in rows]
    found.save("mine.csv")
    assert Path("mine.csv").read_bytes() == Path("a/candidates.csv").read_bytes()
    assert "buys" in str(found)
    assert "\n" not in repr(found)
    assert "<th>value (nats)</th>" in found._repr_html_()
    assert found.unserved == {}


def test_cases_are_a_study_of_several_devices_or_a_table_and_keys_stand_over_them(tmp_path: Path) -> None:
    table = tmp_path / "cases.csv"
    table.write_text("case,device,budget,units\na,l4,total_ms=50,2\nb,rtx_4090,total_ms=20,1\n")
    of_table = plas_fleet.fleets(nas.load_study(space="paper"), 2, cases=table)
    assert of_table.frame.weight.tolist() == [2.0, 1.0]
    assert of_table.values.models.tolist() == [2]
    shipped = plas_fleet.fleets(nas.load_study(budgets={"memory_gb": 0.5}), 1, cases="devices_paper")
    assert (shipped.frame.used_memory_gb <= 1.0).all()
    assert len(shipped.frame) == 12
    assert shipped.models.train_flops.iloc[0] == shipped.values.train_flops.iloc[0]


def test_what_cannot_be_done_is_said_as_on_the_command_line(tmp_path: Path) -> None:
    study = nas.load_study()
    with pytest.raises(nas.UsageError, match="--models: expected 3 or 1"):
        plas_fleet.fleets(study, "0", devices=DEVICES)
    with pytest.raises(nas.UsageError, match="--weights: expected one for each of 3 cases, got 1"):
        plas_fleet.fleets(study, devices=DEVICES, weights=[1])
    nothing = plas_fleet.fleets(nas.load_study(budgets={"total_ms": 0.001}), 1, devices=DEVICES)
    assert len(nothing.unserved) == 3
    with pytest.raises(nas.UsageError, match="fleet: expected one that serves all cases, got none"):
        nothing.save(tmp_path / "none.csv")
