"""Designs with formats of their own, and what few bits cost, through the commands as a user types them."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.frontier.blind_axes import blind_axes
from nas.search.assembly import assemble
from objectives.plugins import importable

SPACE = """name: tiny
axes:
  depth: [4, 8, 12]
  width: [512, 1024]
  n_experts: [1, 8]
  top_k: [1, 2]
  expert_ffn_ratio: [0.5, 1, 2, 4]
  n_kv_heads: [1, 4, n_heads]
"""
LINE = ("--space", "space.yaml", "--quiet", "--seed", 3)
FORMATS = ("--precisions", "fp16,int8,int4")


@pytest.fixture(autouse=True)
def _space(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)


def rows(path: str) -> list[dict[str, str]]:
    """A CSV's rows."""
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_formats_are_searched_chosen_explained_and_repeated(inside: Callable[..., Any]) -> None:
    kumar = ("--precision-law", "kumar")
    ran = inside("run", "--algo", "nsga2", *LINE, *FORMATS, *kumar, "--evaluations", 60, "--out", "run")
    assert ran.code == 0
    assert {row["precision"] for row in rows("run/evaluations.csv")} == {"fp16", "int8", "int4"}
    first = Path("run/evaluations.csv").read_bytes()
    assert inside("run", "--config", "run", "--quiet", "--out", "again").code == 0
    assert Path("again/evaluations.csv").read_bytes() == first
    assert inside("run", "--resume", "run", "--evaluations", 90, "--quiet").code == 0
    assert len(rows("run/evaluations.csv")) == 90
    chosen = inside("select", "run", "--select", "best", "--out", "best.csv")
    assert chosen.code == 0
    best = rows("best.csv")[0]
    explained = json.loads(inside("explain", "run", "--select", "best", "--json").out)
    assert explained["metrics"]["total_ms"] == float(best["total_ms"])
    assert explained["metrics"]["loss"] == float(best["loss"])
    told = inside("watch", "run", "--once")
    assert told.code == 0


def test_bigger_at_int4_or_smaller_at_int8_is_one_exact_frontier(inside: Callable[..., Any]) -> None:
    free = inside("run", "--algo", "exact", *LINE[:2], *FORMATS, "--out", "free")
    assert "the loss does not see precision: int8 and int4 look free; name a --precision-law" in free.err
    assert {row["precision"] for row in rows("free/picks.csv")} == {"int4"}
    assert "precision" in json.loads(Path("free/summary.json").read_text())["law_does_not_see"]
    both = ("--precision-law", "multiplier,kumar")
    ran = inside("run", "--algo", "exact", *LINE[:2], *FORMATS, *both, "--budget", "total_ms=12", "--out", "costly")
    assert ran.code == 0
    assert "precision law multiplier has no constants for int8: taken as free" in ran.err
    assert "prices every design (at few bits dense ones, multiplier) alone" in ran.err
    assert "in int8 is right under 1 of the 2 laws that price it; under hw_codesign+kumar" in " ".join(ran.out.split())
    frontier = rows("costly/frontier.csv")
    assert {row["precision"] for row in frontier} > {"int8"}
    assert all(row["n_experts"] == "1" for row in frontier if row["precision"] != "fp16")
    assert json.loads(Path("costly/summary.json").read_text())["law_does_not_see"] == []


def test_a_study_of_one_format_pays_what_it_costs(inside: Callable[..., Any]) -> None:
    for law in ("none", "qat"):
        settings = ("--set", "int4_group_size=32", "--precision", "int4", "--precision-law", law)
        assert inside("run", "--algo", "exact", *LINE, *settings, "--out", law).code == 0
    by_shape = {tuple(row.values())[:12]: float(row["loss"]) for row in rows("none/evaluations.csv")}
    paid = [(row, float(row["loss"])) for row in rows("qat/evaluations.csv") if row["state"] == "ok"]
    for row, loss in paid:
        assert row["n_experts"] == "1"
        assert loss > by_shape[tuple(row.values())[:12]]


def test_what_cannot_be_asked_is_refused_by_name(inside: Callable[..., Any]) -> None:
    for asked, said in (
        (("run", "--algo", "exact", "--precisions", "int9"), "--precisions: expected fp16, int8, int4, nvfp4 or fp32"),
        (("run", "--algo", "exact", "--precision-law", "foo"), "--precision-law: expected qat, multiplier or kumar"),
        (("run", "--algo", "exact", "--precisions", "fp16,nvfp4"), "expected a device with an fp4 peak"),
        (
            ("theory", "--set", "precisions=[fp16,int4]", "--budget", "decode_ms=20"),
            "expected a space of one precision",
        ),
        (("run", "--algo", "nsga2", "--precision-law", "qat,kumar"), "expected --algo exact"),
    ):
        found = inside(*asked)
        assert found.code == 2
        assert said in found.err
    Path("own.yaml").write_text(SPACE + "  precision: [fp16, int4]\n")
    devices = inside("devices", "--devices", "rtx_4090", "--space", "own.yaml")
    assert devices.code == 2
    assert "leave the axis out and name --precisions" in devices.err


def test_designs_that_a_law_says_nothing_of_make_no_axis_blind() -> None:
    study = assemble({"precisions": "int8,int4", "precision_law": "kumar"}, {})
    assert blind_axes(study.problem.space, study.problem.scenario.law) == ()


@pytest.mark.slow
@pytest.mark.parametrize("algo", [name for name in importable("nas.strategies") if name not in ("exact", "optuna_gp")])
def test_every_strategy_searches_formats_to_the_same_bytes_again(algo: str, inside: Callable[..., Any]) -> None:
    for out in ("first", "second"):
        ran = inside("run", "--algo", algo, *LINE, *FORMATS, "--evaluations", 60, "--out", out)
        if ran.code == 2 and "install" in ran.err:
            pytest.skip(f"{algo}: {ran.err}")
        assert ran.code == 0, ran.err
    assert Path("first/evaluations.csv").read_bytes() == Path("second/evaluations.csv").read_bytes()
    assert len({row["precision"] for row in rows("first/evaluations.csv")}) > 1
