"""Rates: a least rate is a greatest cost to the last bit, in budgets, objectives, answers and every way to ask."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nas.errors import UsageError
from nas.exact.solution import solve
from nas.problem.diagnosis import diagnose, lines
from nas.problem.evaluations import frontier_rows
from nas.problem.objective import Rate, as_costs, limit_on_cost, limits_of_costs
from nas.problem.picks import PickRule
from nas.problem.problem import METRIC_ORDER, Problem
from nas.search.assembly import assemble
from nas.study.metrics import parse_budget
from objectives.scenario import Requests

positive = st.floats(min_value=1e-300, max_value=1e300)
AXES = {"depth": [2, 4, 8], "width": [256, 512], "n_experts": [1, 4], "top_k": [1, 2], "n_kv_heads": [1, 2, 4]}
SPACE = {"axes": {**AXES, "expert_size": [64, 128, 512]}}


def study(**keys: Any) -> Problem:
    """The problem of a small study."""
    raw = {"space": SPACE, "algo": "random", "applications": {}, "baselines": [], "default_budget": "none", **keys}
    return assemble(raw, {}).problem


@given(amount=st.floats(min_value=1.0, max_value=1e18), least=positive)
def test_the_largest_cost_is_the_last_whose_rate_suffices(amount: float, least: float) -> None:
    rate = Rate("rate", "cost", amount)
    cost = rate.largest_cost(least)
    assert rate.at(cost) >= least
    beyond = math.nextafter(cost, math.inf)
    assert beyond == math.inf or rate.at(beyond) < least


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("algo", ["exact", "nsga2"])
def test_a_least_rate_is_met_by_exactly_the_designs_that_have_it(batch: int, algo: str) -> None:
    free = study(batch=batch, columns=["tokens_per_second"])
    everything = free.evaluate(free.space.genotypes(np.arange(free.space.size)))
    rates = everything.metrics["tokens_per_second"]
    np.testing.assert_array_equal(rates, 1e3 * batch / everything.metrics["tpot_ms"])
    for least in np.quantile(rates, [0.1, 0.5, 0.9], method="nearest").tolist():
        limited = study(batch=batch, algo=algo, budgets={"tokens_per_second": f">={least!r}"})
        found = limited.evaluate(limited.space.genotypes(np.arange(free.space.size)))
        np.testing.assert_array_equal(found.feasible, rates >= least)
        best = solve(limited, (PickRule(None),)).picks[0]
        assert best is not None
        assert best.metrics["loss"][0] == found.metrics["loss"][rates >= least].min()


def test_the_exact_solver_and_whole_enumeration_agree_on_rates_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.exact.solution.SMALL", 0)
    limited = study(budgets=["tokens_per_second>=400"], objectives=["loss", "tokens_per_second"])
    found = limited.evaluate(limited.space.genotypes(np.arange(limited.space.size)))
    solved = solve(limited)
    assert solved.way == "parts"
    np.testing.assert_array_equal(solved.frontier.keys, found[frontier_rows(found)].keys)
    np.testing.assert_array_equal(
        solved.frontier.metrics["tokens_per_second"], 1e3 / solved.frontier.metrics["tpot_ms"]
    )


def test_a_rate_as_an_objective_is_its_cost_and_a_column() -> None:
    names, said = as_costs(["loss", "tokens_per_second", "tpot_ms"])
    assert names == ["loss", "tpot_ms"]
    assert "the frontier is the same" in said[0]
    problem = study(objectives="loss,tokens_per_second")
    assert [objective.name for objective in problem.objectives] == ["loss", "tpot_ms"]
    assert problem.metric_names == (*METRIC_ORDER, "tokens_per_second")


def test_of_two_limits_on_one_cost_the_tighter_holds() -> None:
    one = Requests(1, 16)
    given_, wanted = {"tokens_per_second": 20.0, "tpot_ms": 10.0, "loss": 3.0}, {"tpot_ms": 10.0, "loss": 3.0}
    assert limits_of_costs(given_, one)[0] == wanted
    assert limits_of_costs({**given_, "tpot_ms": 80.0}, one)[0]["tpot_ms"] == 50.0
    assert limits_of_costs({"tokens_per_second@q90": 20.0}, Requests(4, 1))[0] == {"tpot_ms@q90": 200.0}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tokens_per_second<=20", "at least"),
        ("tokens_per_second>20", "write 'tokens_per_second>=20'"),
        ("decode_ms>=20", "only rates have a lower limit"),
        ("tokens_per_second>=0", "expected a positive quantity"),
        ("tokens_per_second>=", "expected metric=limit"),
    ],
)
def test_a_limit_on_the_wrong_side_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_budget(text, METRIC_ORDER, Requests(1, 16))
    with pytest.raises(UsageError, match=reason):
        study(budgets=[text])


def test_answers_say_the_rate_beside_its_cost() -> None:
    limited = study(budgets={"tokens_per_second": ">=1e6"}, objectives="loss")
    found = limited.evaluate(limited.space.genotypes(np.arange(limited.space.size)))
    said = "\n".join(lines(diagnose(found), True))
    fastest = found.metrics["tokens_per_second"].max()
    assert "tpot_ms <= 0.001 (tokens_per_second >= 1e+06): binds; at " in said
    assert f"(tokens_per_second {fastest:.4g})" in said
    assert str(limit_on_cost("loss", 3.0, Requests(1, 1))) == "loss <= 3"


def test_every_command_takes_a_least_rate(inside: Callable[..., Any], tmp_path: Path) -> None:
    limits = {"budgets": {"tokens_per_second": ">=100"}, "applications": {"chat": {"tokens_per_second": ">=200"}}}
    config = {"preset": "paper", "space": SPACE, "algo": "random", "evaluations": 60, **limits}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(config))
    done = inside("run", "--config", "study.yaml", "--out", "run", "--no-plots", "--quiet")
    assert done.code == 0, done.err
    assert (tmp_path / "run" / "frontier.csv").read_text().splitlines()[0].endswith(",tokens_per_second")
    chosen = inside("select", "run", "--select", "budget:tokens_per_second>=300", "--json")
    assert json.loads(chosen.out)[0]["tokens_per_second"] >= 300
    explained = inside("explain", "run", "--select", "budget:tokens_per_second>=300")
    assert " of at least 100" in explained.out
    assert inside("run", "--resume", "run", "--evaluations", "70", "--no-plots", "--quiet").code == 0
    refused = inside("select", "run", "--sweep", "tokens_per_second=5:50:5")
    assert (refused.code, "sweep tpot_ms" in refused.err) == (2, True)


def test_a_device_study_takes_a_least_rate_and_repeats_itself(inside: Callable[..., Any], tmp_path: Path) -> None:
    config = {
        "preset": "paper",
        "space": SPACE,
        "budgets": {"tokens_per_second": ">=100"},
        "columns": ["tokens_per_second"],
    }
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(config))
    devices = ("devices", "--devices", "jetson_agx_orin_64gb@all", "--models", "qwen3_0.6b", "--no-plots")
    assert inside(*devices, "--config", "study.yaml", "--out", "first").code == 0
    assert inside("devices", "--config", "first/config.yaml", "--no-plots", "--out", "again").code == 0
    tables = [(tmp_path / folder / "cases.csv").read_text() for folder in ("first", "again")]
    assert tables[0] == tables[1]
    assert ",tokens_per_second" in (tmp_path / "first" / "picks.csv").read_text().splitlines()[0]
