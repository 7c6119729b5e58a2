"""The grid that judges auto: a cell runs, on a truth that its seed fixes."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))  # the scripts import one another as they do when they run
pytest.importorskip("plas_bench", reason="its cases are those of plugins/bench, which is not installed")
pytest.importorskip("plas_prior", reason="prior_guided is of plugins/prior, which is not installed")

from auto_grid import METHODS, run  # noqa: E402


def test_a_cell_is_as_many_values_of_a_truth_that_the_seed_fixes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "random", (20, {}))
    monkeypatch.setattr("auto_grid.BUDGETS", (10, 20))
    first, again, other = (np.array(run("small", "random", seed)["values"]["20"]) for seed in (0, 0, 1))
    assert first.shape == (20, 2)
    assert np.isfinite(first).all()
    assert (first == again).all()
    assert (first != other).any()


def test_parameters_that_follow_from_the_budget_have_a_run_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "nsga2", (500, {}))
    monkeypatch.setattr("auto_grid.BUDGETS", (100, 500))
    values = run("small", "nsga2", 0)["values"]
    assert (len(values["100"]), len(values["500"])) == (100, 500)
    assert values["500"][:100] != values["100"]
