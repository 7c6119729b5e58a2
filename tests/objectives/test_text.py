"""Metrics of text: tokens of a vocabulary hold what a curve says; what a vocabulary costs."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from objectives.assessment import Assessment
from objectives.scenario import Scenario
from objectives.text.vocabulary_cost import VocabularyCost
from objectives.token_curve import Size, Source, Text, TokenCurve
from search_spaces.architectures import Architectures, one

CURVE = TokenCurve(
    name="made up",
    source=Source(),
    sizes=[
        Size(vocabulary=2048, bytes_per_token=2.6, unigram_nats=6.5),
        Size(vocabulary=16_384, bytes_per_token=3.7, unigram_nats=7.4),
        Size(vocabulary=131_072, bytes_per_token=4.2, unigram_nats=7.7),
    ],
)
COST = VocabularyCost(scale=0.03, exponent=0.5, fitted_on=(4096, 65_536), relative_to=16_384, source="made up")


@pytest.fixture
def scenario(case: Any) -> Scenario:
    found: Scenario = replace(case.scenario, text=Text(CURVE, COST))
    return found


def designs(*vocabularies: int) -> Architectures:
    body = one({"depth": 8, "width": 512, "n_kv_heads": 4, "expert_ffn_ratio": 4})
    return Architectures.concatenate([body.with_vocabulary(size) for size in vocabularies])


def test_metrics_of_text_follow_from_those_of_tokens_by_hand(scenario: Scenario) -> None:
    found = Assessment(designs(0, 2048, 131_072), scenario)
    held = [3.7, 2.6, 4.2]
    np.testing.assert_allclose(found["ms_per_kilobyte"], found["tpot_ms"] * 1000 / held, rtol=1e-12)
    costs = [1 + 0.03 * (size / 16_384) ** -0.5 for size in (16_384, 2048, 131_072)]
    expected = found["loss"] * np.array(costs) / 1.03 / (math.log(2) * 3.7)
    np.testing.assert_allclose(found["bits_per_byte"], expected, rtol=1e-12)


def test_where_vocabularies_differ_the_loss_has_their_cost_and_nothing_twice(scenario: Scenario) -> None:
    law = scenario.law.model_copy(update={"vocabulary_cost": COST})
    several = replace(scenario, law=law)
    found, alone = Assessment(designs(2048, 131_072), several), Assessment(designs(2048, 131_072), scenario)
    np.testing.assert_allclose(found["bits_per_byte"], alone["bits_per_byte"], rtol=1e-12)
    assert (found["loss"] != alone["loss"]).all()
    terms = law.terms(designs(2048, 131_072))
    np.testing.assert_allclose(sum(terms.values()), found["loss"], rtol=1e-12)
    assert terms["vocabulary"][0] > 0 > terms["vocabulary"][1]


def test_draws_of_the_cost_go_with_draws_of_the_law() -> None:
    cost = COST.model_copy(update={"draws": ((0.02, 0.4), (0.04, 0.6))})
    found = cost.drawn(np.ones((5, 2)), np.array([2048, 16_384]))
    np.testing.assert_allclose(found[:, 1], 1.0, rtol=1e-15)
    wide, narrow = (1 + s * 8.0**g for s, g in ((0.02, 0.4), (0.04, 0.6)))
    np.testing.assert_allclose(found[:, 0], [wide / 1.02, narrow / 1.04, wide / 1.02, narrow / 1.04, wide / 1.02])


def test_a_size_that_the_curve_does_not_count_is_refused(scenario: Scenario) -> None:
    with pytest.raises(
        ValueError, match=r"^vocabulary: expected 2,048 to 131,072 as the curve made up counts, got 300"
    ):
        _ = Assessment(designs(300), scenario)["ms_per_kilobyte"]
