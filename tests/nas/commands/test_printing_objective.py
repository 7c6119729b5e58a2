"""A user's metric that prints: what a command answers stays alone on its standard output."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.files.yaml_source import dump

PRINTING = """\
import sys

print("loading")

def fn(a):
    print("a line of mine")
    sys.stdout.write("and another")
    return a.depth / a.width
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["--workers", "1"]])
def test_what_a_metric_prints_is_not_in_the_json(
    workers: list[str], tiny: dict[str, Any], tmp_path: Path, user_module: Callable[[str], str]
) -> None:
    study = {"space": tiny, "objectives": ["loss", f"{user_module(PRINTING)}:fn"], "baselines": []}
    (tmp_path / "study.yaml").write_text(dump(study))
    asked = [
        "--config",
        "study.yaml",
        "--algo",
        "random",
        "--evaluations",
        "12",
        "--no-plots",
        "--json",
        "--out",
        "run",
    ]
    answer = subprocess.run(
        [sys.executable, "-m", "nas.run", *asked, *workers], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert json.loads(answer.stdout)["evaluations"]["distinct"] == 12
    for printed in ("loading", "a line of mine", "and another"):
        assert printed in answer.stderr
