"""Much of everything: applications, devices, objectives, designs on a page, settings; each ends with its answer, in a page that opens."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.files import yaml_source

pytestmark = pytest.mark.slow
Inside = Callable[..., Any]
MB = 10**6


def rows(path: str) -> list[dict[str, str]]:
    """A table as text."""
    with Path(path).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_two_hundred_applications(inside: Inside) -> None:
    limits = {f"application {i}": {"total_ms": 20.0 + i} for i in range(200)}
    Path("study.yaml").write_text(yaml_source.dump({"applications": limits}))
    answer = inside("run", "--algo", "nsga2", "--evaluations", 300, "--config", "study.yaml", "--quiet", "--out", "run")
    assert answer.code == 0, answer
    assert {*limits} <= {row["question"].partition(":")[0] for row in rows("run/picks.csv")}
    assert inside("report", "run").code == 0
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert all(f"application {i}:" in page for i in range(200))
    assert len(page) < 4 * MB


def test_a_hundred_devices(inside: Inside) -> None:
    board = {"fp16": "6 TFLOP/s", "int8": "12 TOP/s", "memory": "8 GB"}
    names = [f"board_{i}.yaml" for i in range(100)]
    for i, name in enumerate(names):
        Path(name).write_text(yaml_source.dump({**board, "name": f"Board {i}", "bandwidth": f"{20 + i} GB/s"}))
    answer = inside("devices", "--devices", ",".join(names), "--precisions", "fp16", "--out", "d")
    assert answer.code == 0, answer
    assert len(rows("d/picks.csv")) == 100
    page = Path("d/report.html").read_text(encoding="utf-8")
    assert all(f"board_{i}" in page for i in range(100))
    assert len(page) < 4 * MB


def test_ten_objectives_and_five_thousand_designs_on_a_page(inside: Inside) -> None:
    """Ten of the paper's space, whole; three of a larger one give a frontier of tens of thousands."""
    ten = "loss,total_ms,prefill_ms,decode_ms,tpot_ms,memory_gb,resident_gb,params_total,params_active,train_flops"
    answer = inside("run", "--algo", "exact", "--objectives", ten, "--quiet", "--out", "ten")
    assert answer.code == 0, answer
    assert len(rows("ten/frontier.csv")) > 1000
    many = ("--space", "fine", "--objectives", "loss,total_ms,memory_gb")
    assert inside("run", "--algo", "exact", *many, "--quiet", "--out", "many").code == 0
    assert len(rows("many/frontier.csv")) > 5000
    for name in ("ten", "many"):
        assert inside("report", name).code == 0
        assert Path(name, "report.html").stat().st_size < 8 * MB


@pytest.mark.parametrize("algo", ["random"])
def test_nine_hundred_settings(algo: str, inside: Inside) -> None:
    """3.5e16 designs, each number of tokens and format a problem of its own; a search does not wait for all of them."""
    axes = {
        "depth": {"from": 1, "to": 10_000},
        "width": {"from": 64, "to": 6400, "step": 64},
        "n_experts": {"from": 1, "to": 1000},
        "top_k": {"from": 1, "to": 8},
        "expert_size": {"from": 64, "to": 64_000, "step": 64},
        "n_kv_heads": "divisors",
        "precision": ["fp16", "int8", "int4"],
        "tokens": [10**9 + i * 10**7 for i in range(300)],
    }
    Path("study.yaml").write_text(yaml_source.dump({"space": {"name": "wide", "axes": axes}, "law": "sparsity_iso"}))
    asked = (
        "--config",
        "study.yaml",
        "--preset",
        "paper",
        "--device",
        "jetson_agx_thor",
        "--evaluations",
        20,
        "--verbose",
    )
    answer = inside("run", "--algo", algo, *asked, "--out", "run")
    assert answer.code in (0, 3), answer
    assert "34,552,170,000,000,000 architectures" in answer.out
    assert len(rows("run/evaluations.csv")) == 20
    assert "takes more than seconds" in answer.out
