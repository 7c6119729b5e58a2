"""How other parts choose prior_guided: `auto` and comparisons."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core_tests import loaded
from plas_prior.prior_guided import Parameters

from nas.compare.configuration import comparison_studies, competing, planned

BOARD = """def ms(a):
    return 1.0 * a.depth * a.width


ms.PRIOR = "total_ms"
"""


def test_auto_takes_it_and_names_the_prior(inside: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "board.py").write_text(BOARD)
    line = ("run", "--algo", "auto", "--objectives", "loss,board:ms", "--set", "baselines=[]", "--evaluations", 12)
    answer = inside(*line, "--out", "run", "--json")
    assert answer.code == 0, answer.err
    assert (
        json.loads(answer.out)["auto"]
        == "prior_guided, since total_ms is a prior of board:ms and 12 evaluations are asked"
    )


def test_what_auto_sets_is_its_parameter() -> None:
    core = loaded("nas/search/test_choice.py")
    algo, parameters = core.picked(core.replace(core.PRIOR, at_once=64))
    assert algo == "prior_guided"
    assert set(parameters) <= set(Parameters.model_fields)


def test_a_comparison_takes_it_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(loaded("nas/compare/conftest.py").content(), encoding="utf-8")
    plan = planned(comparison_studies({"algos": "prior_guided,nsga2"}, {}, [], str(tmp_path / "small.yaml"), None))
    assert ("loose", "prior_guided") in plan.setups
    assert "prior_guided" not in competing()
