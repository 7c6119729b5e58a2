"""The API's types as a user's checker sees them: a strict script of a user has no errors, a wrong one has."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nas.api.study_keys import StudyKeys
from nas.study.configuration import StudyConfig
from tests.nas.api.write_study_keys import FILE, written
from tests.sources import PACKAGES

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


#: Of every key of a study, values that a checker is to take and one that it is to refuse, as they stand in a script.
KEYS: dict[str, tuple[list[str], str]] = {
    "name": (["'mine'"], "3"),
    "preset": (["'device'"], "'papers'"),
    "space": (["'fine'", "Path('space.yaml')", "{'axes': {'depth': [4, 8]}}"], "3"),
    "law": (["'evidence'", "{'form': 'hw_codesign'}"], "3"),
    "laws": (["['routed', {'form': 'routed'}]", "'routed,joint_moe'"], "[3]"),
    "outside": (["'mark'", "'allow'", "'exclude'"], "'hide'"),
    "tokens": (["10e9", "'10B'", "['1B', 3e9]", "None"], "[None]"),
    "unique_tokens": (["10e9", "'10B'", "None"], "['10B']"),
    "training": (["{'device': 'h100_sxm'}"], "'h100_sxm'"),
    "residual_sd": (["0.01", "None"], "[0.01]"),
    "only": (["'n_experts=1'", "['depth=8..24']", "{'width': [1024, 2048], 'n_experts': 1}"], "3"),
    "device": (["'l4'", "{'name': 'mine', 'memory': '8 GB'}", "Path('board.yaml')"], "3"),
    "devices": (["['l4', 't4']", "{'mine': Path('board.yaml')}", "'l4,t4'"], "3"),
    "chip": (["{'memory': ['8 GB']}", "None"], "'l4'"),
    "device_columns": (["'prices.csv'", "{'l4': {'price': '249 USD'}}"], "249"),
    "formats": (["{'mine': {'weights': 'Q4_0', 'source': 'ours'}}"], "'mine'"),
    "precision": (["'int8'"], "8"),
    "precisions": (["['int8', 'int4']", "'int8,int4'"], "[8, 4]"),
    "precision_law": (["'qat'", "['qat', 'kumar']"], "4"),
    "deltas": (["{'conv': 0.03}", "'deltas.yaml'"], "0.03"),
    "latency": (["'operator'"], "'fast'"),
    "attention": (["'fused'"], "'fuse'"),
    "causal": (["True"], "'yes'"),
    "complete": (["True"], "'yes'"),
    "vocabulary": (["32000", "'32k'", "['8k', 16000]"], "None"),
    "tied": (["True", "[True, False]"], "'yes'"),
    "token_curve": (["'slimpajama'", "{'bytes': {8000: 4.0}}"], "4.0"),
    "head_bytes": (["1", "0.5", "{'int4': 0.5}"], "[1]"),
    "int4_group_size": (["32", "None"], "'32'"),
    "calibration": (["'shipped'", "{'compute_efficiency': 0.7}"], "0.7"),
    "engine": (["'llama.cpp'", "None"], "3"),
    "prefill_chunk": (["512", "'engine'", "None"], "'all'"),
    "serving": (["{'speculation': 'mtp:1'}"], "'mtp:1'"),
    "sustained": (["True", "0.7", "{'share': 0.7}"], "[0.7]"),
    "batch": (["2"], "'2'"),
    "input_tokens": (["2048"], "'2k'"),
    "output_tokens": (["64"], "6.4"),
    "input_text": (["'10kB'", "500", "None"], "[500]"),
    "output_text": (["'500 B'", "None"], "[500]"),
    "objectives": (["['loss', energy_j]", "'loss,total_ms'"], "3"),
    "budgets": (["{'decode_ms': 20, 'resident_gb': '8 GB'}", "'decode_ms=20'", "['decode_ms<=20']"], "3"),
    "columns": (["['ttft_ms']", "[energy_j]"], "3"),
    "train": (["{'data': 'stdlib'}", "None"], "'stdlib'"),
    "measure": (["{'backend': 'torch'}", "None"], "'torch'"),
    "default_budget": (["'none'", "{'metric': 'resident_gb'}", "None"], "3"),
    "applications": (["{'car': {'total_ms': 100}}", "None"], "{'car': 100}"),
    "baselines": (["['qwen2.5_0.5b', {'depth': 24}]", "[]"], "[3]"),
    "algo": (["'nsga2'"], "energy_j"),
    "auto": (["''"], "True"),
    "params": (["{'population': 50}"], "50"),
    "evaluations": (["5000", "None"], "'many'"),
    "time_limit": (["60", "'60'", "None"], "[60]"),
    "stop_when_stable": (["1000", "None"], "'1000'"),
    "constraints": (["'penalty'", "None"], "'hard'"),
    "penalty_weight": (["10", "2.5"], "'10'"),
    "seed_from": (["'candidates.csv'", "[{'depth': 24}]", "None"], "3"),
    "known": (["'results.csv'", "[Path('a.csv'), 'b.csv']"], "3"),
    "known_as": (["{'board:latency_ms': 'measured'}"], "['board:latency_ms=measured']"),
    "workers": (["4", "None"], "'4'"),
    "asynchronous": (["True"], "'yes'"),
    "executor": (["'dask:tcp://host:8786'", "None"], "8786"),
    "resources": (["{'GPU': 1}"], "'GPU'"),
    "evaluation_timeout": (["600", "None"], "[600]"),
    "seed": (["1"], "'1'"),
}
HEAD = """from pathlib import Path
from typing import Any
import nas
def energy_j(architectures: Any) -> Any: ...
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


def test_editors_read_what_the_entries_say() -> None:
    """A file that is written from them: `python -m tests.nas.api.write_study_keys`."""
    assert FILE.read_text(encoding="utf-8") == written()


def test_every_package_says_that_it_is_typed() -> None:
    assert all((ROOT / package / "py.typed").is_file() for package in (*PACKAGES, "plugins/fit/plas_fit"))


@pytest.mark.slow
def test_a_strictly_typed_script_of_a_user_has_no_errors(tmp_path: Path) -> None:
    answer = checked(GOOD, tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.slow
def test_a_wrong_script_of_a_user_has_an_error_a_line(tmp_path: Path) -> None:
    answer = checked(BAD, tmp_path)
    lines = {int(line.split(":")[1]) for line in answer.stdout.splitlines() if ": error:" in line}
    assert lines == {4, 5, 6, 7, 8, 9, 10}, answer.stdout


def refused(script: str, folder: Path) -> set[str]:
    """Lines of a script that the checker refuses."""
    numbers = {int(line.split(":")[1]) for line in checked(script, folder).stdout.splitlines() if ": error:" in line}
    return {script.splitlines()[number - 1] for number in numbers}


def lines_of_keys() -> tuple[list[str], list[str]]:
    """Lines of a script that are right, and one for each key that is wrong."""
    right = [f"nas.load_study({key}={value})" for key, (values, _) in KEYS.items() for value in values]
    return right, [f"nas.load_study({key}={value})" for key, (_, value) in KEYS.items()]


def test_every_key_has_values_that_are_tried() -> None:
    assert KEYS.keys() == StudyConfig.model_fields.keys()


@pytest.mark.slow
def test_a_checker_takes_right_values_of_every_key_and_refuses_wrong_ones(tmp_path: Path) -> None:
    right, wrong = lines_of_keys()
    assert refused(HEAD + "\n".join([*right, *wrong]), tmp_path) == set(wrong)


@pytest.mark.slow
def test_an_editor_marks_the_same_lines(tmp_path: Path) -> None:
    """With pyright, which editors use."""
    program = shutil.which("pyright")
    if program is None:
        pytest.skip("pyright is not on the PATH; npm install pyright brings it, .ci/run does")
    right, wrong = lines_of_keys()
    script = HEAD + "\n".join([*right, *wrong])
    (tmp_path / "theirs.py").write_text(script)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}))
    line = [program, "--pythonpath", sys.executable, "--outputjson", "theirs.py"]
    said = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=600).stdout
    marked = {each["range"]["start"]["line"] for each in json.loads(said)["generalDiagnostics"]}
    assert {script.splitlines()[number] for number in marked} == set(wrong)
