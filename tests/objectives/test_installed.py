"""A checkout that is not installed has no metadata: every command copes, none ends in a traceback after its work."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from objectives.plugins import version_of

ROOT = Path(__file__).resolve().parents[2]
#: Runs a command with the metadata of our own distribution hidden.
HIDDEN = """
import importlib.metadata as m, runpy, sys
real = m.distribution
def distribution(name):
    if name == "plas-codesign":
        raise m.PackageNotFoundError(name)
    return real(name)
m.distribution = distribution
m.version = lambda name: distribution(name).version
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=False)
"""


def uninstalled(folder: Path, *arguments: str) -> str:
    """Standard output of `python -m …` from the checkout, without the distribution."""
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_versions() -> None:
    """A version, or that there is none."""
    assert version_of("numpy")[0].isdigit()
    assert version_of("no-such-distribution") == "not installed"


def test_the_program(tmp_path: Path) -> None:
    """`--version` says so."""
    assert uninstalled(tmp_path, "nas", "--version") == "plas-codesign not installed\n"


@pytest.mark.slow
def test_export(tmp_path: Path) -> None:
    """An export is written, and its record says that nothing was installed."""
    (tmp_path / "one.csv").write_text("id,depth,width,n_kv_heads,expert_size\na,4,768,1,384\n")
    uninstalled(tmp_path, "nas.export", "one.csv", "--out", "out")
    assert json.loads((tmp_path / "out/export.json").read_text())["plas"] == "not installed"


@pytest.mark.slow
def test_fit(tmp_path: Path) -> None:
    """A law is fitted and written with its provenance."""
    rows = ["depth,width,n_heads,n_kv_heads,expert_size,loss"]
    for i, (depth, width) in enumerate((d, w) for d in (4, 8, 16, 32) for w in (768, 1024, 2048)):
        loss = 2.5 + 9.96 / depth**1.63 + 500 / width**0.97 + 0.001 * (i % 3)
        rows.append(f"{depth},{width},{width // 64},{width // 64},{2 * width},{loss:.5f}")
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n")
    uninstalled(
        tmp_path,
        "plas_fit",
        "table.csv",
        "--form",
        "depth_width",
        "--bootstraps",
        "20",
        "--starts",
        "2",
        "--out",
        "law.yaml",
    )
    assert "plas-codesign: not installed" in (tmp_path / "law.yaml").read_text()
