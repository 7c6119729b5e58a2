"""The models to compare with where a study names none: of those of today that fit the nearest to its limits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nas import load_study
from nas.study.published import NEAR, NEAREST, TODAY, label_of, missed_by, nearest, published
from objectives.published_models import trained_models

BOARD = {"device": "jetson_orin_nano_super_8gb", "precision": "int8"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "budgets", [{"total_ms": 500, "resident_gb": 4}, {"tpot_ms": 40}, {"resident_gb": 1}, {}], ids=str
)
def test_nothing_of_today_that_fits_is_nearer(budgets: dict[str, float]) -> None:
    problem = load_study(**BOARD, budgets=budgets).problem
    missed, taken = missed_by(problem, alike=True)
    near, fits = missed <= NEAR, missed <= 0.0
    trained, models = published()
    today = np.array([_months(each.date) >= _months(trained[0].date) - TODAY for each in trained])
    among = near & today & ~problem.scenario.law.extrapolates(models)
    assert among.any()
    limits = {budget.metric: budget.limit for budget in problem.limits}
    chosen = [known.label for known in nearest(problem)]
    wanted = [*[name for name in budgets if name.endswith("_ms")][:1], "resident_gb"]
    assert 1 <= len(chosen) <= len(wanted)
    for name, label in zip(wanted, chosen if len(chosen) == len(wanted) else chosen * 2, strict=False):
        (at,) = [i for i, each in enumerate(trained) if label_of(each) == label]
        distance = np.abs(np.log(taken[name] / limits[name]))
        first = among & fits & (distance <= np.log(1 + NEAR))
        assert (first if first.any() else among)[at]
        assert distance[at] == distance[first if first.any() else among].min()


def _months(date: str) -> int:
    year, month = map(int, date.split("-"))
    return 12 * year + month


def test_the_paper_keeps_its_model_and_whoever_names_one_gets_that_one() -> None:
    assert [known.label for known in load_study().assembled.baselines] == ["Qwen2.5-0.5B"]
    named = load_study(**BOARD, baselines=["smollm2_360m"]).assembled.baselines
    assert [known.label for known in named] == ["SmolLM2-360M"]
    both = load_study(**BOARD, baselines=["smollm2_360m", NEAREST]).assembled.baselines
    assert both[0].label == "SmolLM2-360M"
    assert len(both) > 1


@pytest.mark.slow
def test_a_recorded_study_holds_the_models_themselves(inside: Callable[..., Any]) -> None:
    line = ("--device", "raspberry_pi_5", "--algo", "random", "--evaluations", 20, "--quiet", "--no-plots")
    assert inside("run", *line, "--budget", "tpot_ms=200", "--out", "run").code == 0
    recorded = load_study("run/config.yaml").assembled
    assert NEAREST not in recorded.config.baselines
    own = load_study(device="raspberry_pi_5", budgets={"tpot_ms": 200}).assembled.baselines
    assert [known.label for known in recorded.baselines] == [known.label for known in own]


def test_every_row_of_the_catalogue_says_where_it_is_from() -> None:
    trained = trained_models()
    assert sum(each.tokens is not None for each in trained) >= 60
    assert sum(each.tokens is not None and each.date >= "2025" for each in trained) >= 40
    for each in trained:
        assert each.licence
        assert 1e9 < (each.tokens or 1e12) < 1e14
        assert 3.0 < (each.bytes_per_token or 4.0) < 5.0
        assert 2020 * 12 < _months(each.date) < 2030 * 12
        assert each.made_by in ("", "pruning", "distillation")
