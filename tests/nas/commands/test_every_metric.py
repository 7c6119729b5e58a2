"""Every metric that ships through every command that a run is handed to: it is there with the value of its formula, or refused by name."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.problem.objective import costs
from objectives.plugins import importable

STUDY = ("--device", "jetson_orin_nano_super_8gb", "--precision", "int4", "--preset", "device")

pytestmark = pytest.mark.slow


def refused(answer: Any, name: str) -> bool:
    """Whether a command ended with a sentence about the metric."""
    return answer.code == 2 and name in answer.err


@pytest.mark.parametrize("name", importable("objectives.metrics"))
def test_a_metric_is_honoured_or_refused_by_name(name: str, inside: Callable[..., Any]) -> None:
    objectives = "loss,total_ms" if name in ("loss", "total_ms") else f"loss,{name}"
    ran = inside(
        "run",
        "--algo",
        "random",
        "--evaluations",
        30,
        *STUDY,
        "--objectives",
        objectives,
        "--no-plots",
        "--quiet",
        "--out",
        "run",
    )
    if ran.code:
        assert refused(ran, name), ran
        return
    with Path("run/evaluations.csv").open(encoding="utf-8") as file:
        first = next(csv.DictReader(file))
    explained = json.loads(inside("explain", "run", "--index", 0, "--json").out)["metrics"]
    assert explained[name] == pytest.approx(float(first[name]), rel=1e-9)
    assert inside("export", "run", "--select", "best", "--out", "out").code == 0
    with Path("out/candidates.csv").open(encoding="utf-8") as file:
        assert name in next(csv.reader(file))
    assert inside("report", "run").code == 0
    assert name in Path("run/report.html").read_text(encoding="utf-8")
    how = ("--devices", STUDY[1], "--precisions", "int4", "--preset", "device", "--set", f"objectives={objectives}")
    devices = inside("devices", *how, "--no-plots", "--out", "d")
    assert refused(devices, name) or name in Path("d/picks.csv").read_text().partition("\n")[0], devices
    easy = 1e-12 if name in costs() else 1e12
    theory = inside("theory", *STUDY, "--law", "hw_codesign", "--budget", f"{name}={easy}", "--json")
    assert refused(theory, name) or (theory.code == 0 and name in theory.out), theory
