"""The API's types as a user's checker sees them: a strict script of a user has no errors, a wrong one has."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nas.api.study_keys import StudyKeys
from nas.study.configuration import StudyConfig

ROOT = Path(__file__).resolve().parents[3]
GOOD = '''
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

import nas
from nas.search.strategy import StrategyContext, Strategy, Traits
from nas.testing import check_strategy
from objectives.assessment import Assessment
from objectives.scenario import Scenario
from pydantic import BaseModel, ConfigDict
from search_spaces.architectures import Architectures


def energy_j(architectures: Architectures, scenario: Scenario) -> npt.NDArray[np.float64]:
    """15 W while it runs."""
    return 15.0 * Assessment(architectures, scenario)["total_ms"] / 1e3


study: nas.Study = nas.load_study(preset="device", device="l4", objectives=["loss", energy_j], budgets={"decode_ms": 20})
table: pd.DataFrame = study.evaluate([{"depth": 24, "width": 896, "n_kv_heads": 2, "expert_size": 4864}])
table = study.evaluate("qwen2.5_0.5b")
exact: nas.Frontier = nas.load_study().solve()
best: pd.Series = exact.pick("total_ms<=100", {"memory_gb": 4})
found = study.search(algo="nsga2", evaluations=100, seed=1, out=Path("run"))
gap: float = found.distance_to(exact).gap
run: nas.Run = nas.read_run("run")
feasible: pd.DataFrame = run.evaluations
one: pd.Series = run.pick({"total_ms": 100})
fitted: nas.FittedLaw = nas.fit_law(exact.frame, "chinchilla", where="depth>1", rename={"L": "loss"}, starts=4)
cheaper: nas.Study = study.replace(law=fitted)
variables: int = study.as_pymoo().n_var
directions: list[str] = study.as_optuna_objective().directions
try:
    exact.save(Path("c.csv"))
except nas.InfeasibleError as error:
    code: int = error.exit_code


class Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid")


TRAITS = Traits(evaluations=100)


def build(context: StrategyContext, parameters: Parameters) -> Strategy:
    raise NotImplementedError


check_strategy("my_search", {"batch": 3})
'''
BAD = """
import nas

study = nas.load_studdy()
frontier: nas.Run = nas.load_study().solve()
nas.load_study().sample("three")
nas.load_study().solve().pick(3)
nas.load_study(budgets=3)
nas.load_study().search(evaluations="many")
nas.load_study().replace(devise="l4")
"""


def checked(script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """mypy on a script in a folder outside the checkout, which finds the package where it is installed."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed: types are not checked")
    (folder / "theirs.py").write_text(script)
    line = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--cache-dir",
        str(folder),
        "theirs.py",
    ]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}  # mypy does not follow an editable install
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


def test_the_typed_keys_are_those_of_a_study() -> None:
    assert set(StudyKeys.__annotations__) == set(StudyConfig.model_fields)


def test_every_package_says_that_it_is_typed() -> None:
    assert all((ROOT / package / "py.typed").is_file() for package in ("nas", "objectives", "search_spaces"))


@pytest.mark.slow
def test_a_strictly_typed_script_of_a_user_has_no_errors(tmp_path: Path) -> None:
    answer = checked(GOOD, tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.slow
def test_a_wrong_script_of_a_user_has_an_error_a_line(tmp_path: Path) -> None:
    answer = checked(BAD, tmp_path)
    lines = {int(line.split(":")[1]) for line in answer.stdout.splitlines() if ": error:" in line}
    assert lines == {4, 5, 6, 7, 8, 9, 10}, answer.stdout
