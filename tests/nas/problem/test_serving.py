"""Served studies as people run them: doubt, budgets at a quantile, refusals, resuming, the way of a published model."""

import json
from pathlib import Path
from typing import Any

import pytest

from nas.errors import UsageError
from nas.problem.quantiles import measured_at, time_ranges
from nas.problem.wording import best_served, served_in_words
from nas.search.assembly import Study, assemble
from nas.study.baselines import model_named
from nas.study.layers import layered
from search_spaces.columns import CODES

CARD = {
    "name": "Card",
    "fp16": "40 TFLOP/s",
    "int8": "80 TOP/s",
    "bandwidth": "448 GB/s",
    "memory": "8 GB",
    "chip": "gpu",
    "slow_memory": {"capacity": "32 GB"},
}


def study(**keys: Any) -> Study:
    raw, origins = layered(
        {"preset": "device", "device": CARD, "precision": "q4_k_m", "algo": "exact", **keys}, [], None
    )
    return assemble({**raw, "params": {}}, origins)


def ends(made: Study, name: str = "tpot_ms") -> float:
    """How far above its prediction a measured time may be, of Qwen3-8B."""
    model = made.problem.headed(model_named("qwen3_8b").architecture)
    value = float(made.problem.assess(model)[name][0])
    return time_ranges(made.problem.pricing(model), model, {name: value, "prefill_ms": 1.0})[name][1] / value


def test_doubt_is_wider_with_what_no_profile_has() -> None:
    plain, own, public = (
        study(),
        study(serving={"speculation": "mtp:2", "acceptance": 0.8}),
        study(serving={"speculation": "mtp:2"}),
    )
    assert ends(plain) < ends(own) < ends(public)
    stated = CARD | {"slow_memory": {"capacity": "32 GB", "bandwidth": "30 GB/s"}}
    there, typical = study(serving={"experts_in": "slow:50%"}, device=stated), study(serving={"experts_in": "slow:50%"})
    assert ends(plain) < ends(there) < ends(typical)


def test_a_budget_at_a_quantile_is_each_designs_own() -> None:
    made = study(serving={"speculation": "none,mtp:2"}, budgets={"tpot_ms@q80": 20}).problem
    both = made.architectures(next(made.space.enumerate())[:2])
    assessment = made.assess(both)
    words = [CODES["speculation"][place] for place in both.speculation]
    factors = assessment["tpot_ms@q80"] / assessment["tpot_ms"]
    assert words == ["none", "mtp:2"]
    assert factors[0] < factors[1]
    assert measured_at(b.metric for b in made.budgets) == ["tpot_ms@q80"]


@pytest.mark.parametrize(
    ("serving", "device", "message"),
    [
        ({"speculation": "mtp:17"}, CARD, "mtp:N or draft:N"),
        ({"speculation": "draft:2"}, CARD, "draft: expected a model"),
        ({"speculation": "draft:2", "draft": "qwen3_0.6b"}, CARD, "acceptance: expected the probability"),
        ({"draft": "qwen3_0.6b"}, CARD, "draft: expected speculation draft:N"),
        ({"experts_in": "slow:50%"}, "rtx_3070", "slow_memory"),
        ({"experts_in": "slow:0.005"}, CARD, "whole per cent"),
        ({"experts_in": "auto", "speculation": "none,mtp:1"}, CARD, "got both"),
        ({"acceptance": 1.5}, CARD, "between 0 and 1"),
        ({"acceptance": "eagle=0.5"}, CARD, "mtp or draft"),
        ({"hot_experts": {"share": 0.2}}, CARD, "expected share and hits"),
        ({"speculation": "none,none"}, CARD, "each word once"),
    ],
)
def test_what_cannot_be_priced_is_refused_by_name(serving: dict[str, Any], device: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        study(serving=serving, device=device)


def test_the_closed_form_and_theory_refuse_serving() -> None:
    with pytest.raises(UsageError, match="serving"):
        study(serving={"speculation": "mtp:1"}, latency="closed_form", calibration="datasheet")


def test_what_is_said_of_serving() -> None:
    text = " ".join(
        served_in_words(study(serving={"speculation": "none,mtp:2", "phases": "prefill=rk3588_npu"}).problem)
    )
    assert "mtp:2 1.59" in text
    assert "of public rows" in text
    assert "RK3588" in text
    slow = served_in_words(study(serving={"experts_in": "auto"}).problem)
    assert "32 GB/s, as host memory" in slow[0]
    assert served_in_words(study().problem) == []


def test_slow_memory_limits_what_lies_there() -> None:
    limits = {b.metric: b.limit for b in study(serving={"experts_in": "slow:50%"}).problem.budgets}
    assert limits["slow_gb"] == 32.0
    assert "slow_gb" not in {b.metric for b in study().problem.budgets}


def test_a_published_model_is_served_so_that_it_fits() -> None:
    problem = study(serving={"experts_in": "auto"}).problem
    model = problem.headed(model_named("qwen3_30b_a3b").architecture)
    chosen = best_served(problem, model)
    word = CODES["experts_in"][chosen.experts_in[0]]
    limit = next(b.limit for b in problem.budgets if b.metric == "resident_gb")
    assert word == "slow:70%"
    assert problem.assess(chosen)["resident_gb"][0] <= limit
    small = best_served(problem, problem.headed(model_named("qwen3_1.7b").architecture))
    assert CODES["experts_in"][small.experts_in[0]] == "fast"


def test_a_resolved_study_repeats_itself(tmp_path: Path) -> None:
    """Recorded with what it used, so that a version with other public rows goes on as it began."""
    given = {
        "speculation": "none,mtp:2,draft:1",
        "draft": "qwen3_0.6b",
        "acceptance": {"draft": {1: 0.7}},
        "phases": {"prefill": "rk3588_npu", "link": "10 GB/s"},
    }
    first = study(serving=given)
    again = assemble(json.loads(json.dumps(first.resolved())), {})
    assert again.resolved() == first.resolved()
    assert first.resolved()["serving"]["acceptance"]["mtp"] == 0.87
    keys = next(first.problem.space.enumerate())[:6]
    for metric in ("loss", "total_ms", "resident_gb", "tpot_ms@q80"):
        before, after = (each.problem.assess(each.problem.architectures(keys))[metric] for each in (first, again))
        assert before.tolist() == after.tolist()
