"""Every format through every command that a run is handed to: priced as its own scenario prices it, named where it is shown, or refused by name."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas import load_study
from nas.errors import UsageError
from search_spaces.formats import FORMATS

DEVICE = "jetson_agx_thor"
RUN = ("--algo", "random", "--evaluations", 30, "--device", DEVICE, "--preset", "device", "--no-plots", "--quiet")
#: Formats with a smaller cache: what prices them is that of the format itself.
VARIANTS = {name for name in FORMATS if name.endswith(("_kv4", "_kv8"))}

pytestmark = pytest.mark.slow


def has_peak(precision: str) -> bool:
    """Whether the device states what the format computes at; the refusal names the format."""
    try:
        load_study(device=DEVICE, preset="device", precision=precision)
    except UsageError as error:
        return precision.partition("_")[0] not in str(error)
    return True


@pytest.mark.parametrize("precision", FORMATS)
def test_a_format_is_honoured_or_refused_by_name(precision: str, inside: Callable[..., Any]) -> None:
    ran = inside("run", *RUN, "--precision", precision, "--out", "run")
    if not has_peak(precision):
        assert ran.code == 2
        assert precision.partition("_")[0] in ran.err
        return
    assert ran.code == 0, ran
    with Path("run/evaluations.csv").open(encoding="utf-8") as file:
        first = next(csv.DictReader(file))
    explained = json.loads(inside("explain", "run", "--index", 0, "--json").out)["metrics"]
    for name in ("total_ms", "memory_gb", "loss"):
        assert explained[name] == pytest.approx(float(first[name]), rel=1e-9)
    assert inside("export", "run", "--select", "best", "--out", "out").code == 0
    predictions = json.loads(Path("out/export.json").read_text())["predictions"]
    assert predictions["precision"] == precision
    if precision in VARIANTS:
        return
    assert inside("report", "run").code == 0
    assert precision in Path("run/report.html").read_text(encoding="utf-8")
    devices = inside(
        *("devices", "--devices", DEVICE, "--precisions", precision, "--preset", "device"),
        *("--models", "qwen2.5_0.5b", "--no-plots", "--out", "d"),
    )
    assert devices.code == 0, devices
    assert f",{precision}," in Path("d/cases.csv").read_text()
    theory = inside(
        *("theory", "--device", DEVICE, "--precision", precision, "--preset", "device"),
        *("--law", "hw_codesign", "--budget", "total_ms=400"),
    )
    assert theory.code == 0 or precision in theory.err, theory
