"""`evidence --layer-kinds`: the costs, pairs left out, the document that studies take, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from plas_evidence.layer_estimate import public_pairs
from plas_evidence.layer_kinds import Predicted, left_out

from nas.terminal.console import Stages
from objectives.plugins import documents

Inside = Callable[..., Any]


def test_a_pair_left_out_is_predicted_from_all_others_and_one_of_a_kind_of_its_own_has_no_sign() -> None:
    of = public_pairs()
    conv, linear = (next(pair for pair in of.fitted if kind in pair.change) for kind in ("conv", "deltanet"))
    alone, among = left_out(of, [(conv,), (linear,)], Stages(quiet=True))
    assert alone.predicted == 0
    assert not alone.known
    assert not alone.signed
    assert among.known
    assert among.interval[0] < among.predicted < among.interval[1]


@pytest.mark.parametrize(
    ("measured", "predicted", "signed", "right", "held"),
    [(0.02, 0.01, True, True, True), (0.02, -0.01, True, False, True), (0.005, 0.01, False, True, True), (0.09, 0.01, True, True, False)],
)  # fmt: skip
def test_signs_are_judged_of_differences_that_have_one(
    measured: float, predicted: float, signed: bool, right: bool, held: bool
) -> None:
    pair = public_pairs().fitted[0]
    each = Predicted(pair, "a", measured, predicted, (predicted - 0.04, predicted + 0.04), known=True)
    assert (each.signed, each.right, each.held) == (signed, right, held)


@pytest.mark.slow
def test_the_costs_are_shown_judged_and_written_as_they_ship(inside: Inside, tmp_path: Path) -> None:
    answer = inside("evidence", "--layer-kinds", "--write-costs", tmp_path / "costs.yaml", "--json")
    assert answer.code == 0, answer.err
    found, shipped = json.loads(answer.out), yaml.safe_load(documents("objectives.layer_costs")["costs"].read_text())
    written = yaml.safe_load((tmp_path / "costs.yaml").read_text())
    for kind, cost in shipped["costs"].items():
        assert written["costs"][kind]["nats"] == pytest.approx(cost["nats"], abs=2e-4)
        assert found["costs"][kind]["pairs"] == cost["pairs"]
    assert len(found["left_out"]["pair"]) == len(found["left_out"]["laboratory"]) == len(public_pairs().fitted)
    held = [low <= each["measured"] <= high for each in found["left_out"]["pair"] for low, high in [each["interval"]]]
    assert 0.8 < sum(held) / len(held) < 1
    shown = inside("evidence", "--layer-kinds")
    assert "each laboratory by the others" in shown.out
    assert "tied_experts*" in shown.out


@pytest.mark.parametrize("beside", [("--question", "shape"), ("--left-out",), ("--law", "routed")])
def test_questions_on_losses_are_refused_beside_it(inside: Inside, beside: tuple[str, ...]) -> None:
    answer = inside("evidence", "--layer-kinds", *beside)
    assert answer.code == 2
    assert "layer_kinds: expected no tables, laws or questions beside it" in answer.err
