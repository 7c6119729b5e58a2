"""Published models on devices: the figures of `explain`, the order, what fits, what the law cannot tell."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from nas.errors import UsageError
from nas.search.assembly import assemble
from nas.study.baselines import baseline
from nas.study.layers import layered
from objectives.published_models import model_ids
from plas_range.case_list import case_list
from plas_range.cases import priced_cases
from plas_range.models import ModelRow, Priced, ranked
from plas_range.request import DevicesRequest

Ask = Callable[..., DevicesRequest]


def rows_of(request: DevicesRequest, *, own: bool = True) -> list[list[ModelRow]]:
    """The models ranked in every case of a request."""
    wanted = case_list(request)
    return [
        list(rows)
        for rows in ranked(
            Priced.from_items(wanted.config.models), priced_cases(wanted.for_models()).cases, own_vocabulary=own
        )
    ]


@pytest.mark.slow
def test_figures_are_those_of_the_model_in_a_study_with_its_own_vocabulary(request_for: Ask) -> None:
    (rows,) = rows_of(request_for(devices="raspberry_pi_5", precisions="int4", workloads="512/64"))
    assert {row.id for row in rows} == set(model_ids())
    for row in rows:
        known = baseline(row.id)
        flags: dict[str, Any] = {
            "preset": "paper",
            "device": "raspberry_pi_5",
            "precision": "int4",
            "input_tokens": 512,
            "output_tokens": 64,
        }
        raw, _ = layered({**flags, "preset": "device", "algo": "random"}, [], None)
        problem = assemble({**raw, "baselines": [], "params": {}}, {}).problem
        found = problem.assess(known.architecture)
        for name, value in row.metrics.items():
            assert value == pytest.approx(float(found[name][0]), rel=1e-12), (row.id, name)
        assert row.tokens_per_second == pytest.approx(64e3 / float(found["decode_ms"][0]), rel=1e-12)
        assert row.fits == (float(found["resident_gb"][0]) <= 0.9 * 8)


def test_those_that_fit_come_first_then_the_faster(request_for: Ask) -> None:
    (rows,) = rows_of(request_for(devices="raspberry_pi_5", flags={"budgets": ["tpot_ms=100"]}))
    order = [(not row.fits, bool(row.missed), -row.tokens_per_second) for row in rows]
    assert order == sorted(order)
    assert len({state[:2] for state in order}) == 3
    slow = [row for row in rows if row.missed]
    assert {budget.metric for row in slow for budget in row.missed} == {"tpot_ms"}
    assert all(row.metrics["tpot_ms"] > 100 for row in slow)


@pytest.mark.slow
def test_chosen_conventions_are_kept_and_others_are_those_of_a_device(request_for: Ask) -> None:
    asked_for = [request_for(devices="l4"), request_for(devices="l4", flags={"preset": "paper"})]
    (device,), (paper,) = (rows_of(request) for request in asked_for)
    assert device[0].case.config.attention == "fused"
    assert paper[0].case.config.attention == "unfused"
    ((kept,),) = ([rows] for rows in rows_of(request_for(devices="l4", flags={"attention": "unfused"})))
    assert (kept[0].case.config.attention, kept[0].case.config.complete) == ("unfused", True)


def test_a_loss_is_given_only_where_the_law_can_tell_it(request_for: Ask) -> None:
    (rows,) = rows_of(
        request_for(devices="h100_sxm", models="qwen3_0.6b,qwen2.5_0.5b,smollm2_360m", flags={"preset": "paper"})
    )
    known = {row.id: row for row in rows}
    assert math.isnan(known["qwen3_0.6b"].loss)
    assert not known["qwen3_0.6b"].extrapolates
    assert known["qwen2.5_0.5b"].loss == pytest.approx(3.475358, abs=1e-6)
    assert known["qwen2.5_0.5b"].extrapolates
    assert not known["smollm2_360m"].extrapolates


def test_what_the_law_does_not_know_is_said(request_for: Ask) -> None:
    (rows,) = rows_of(request_for(devices="h100_sxm", models="gemma_3_1b"))
    assert any("Sliding window" in remark for remark in rows[0].remarks)
    with pytest.raises(UsageError, match="--models: expected a published model"):
        rows_of(request_for(devices="l4", models="gemma9"))


def test_cases_that_differ_in_their_application_alone_are_ranked_once(request_for: Ask) -> None:
    assert len(rows_of(request_for(devices="l4,raspberry_pi_5", applications="all"))) == 2
