"""Pairs left out, and the costs as they ship."""

from pathlib import Path

import pytest
import yaml

from nas.terminal.console import Stages
from objectives.plugins import documents
from studies.layer_kinds.__main__ import Predicted, left_out, main
from studies.layer_kinds.estimate import public_pairs


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
def test_the_costs_are_shown_judged_and_written_as_they_ship(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", ["layer_kinds", "--write-costs", str(tmp_path / "costs.yaml")])
    main()
    shipped = yaml.safe_load(documents("objectives.layer_costs")["costs"].read_text())
    written = yaml.safe_load((tmp_path / "costs.yaml").read_text())
    for kind, cost in shipped["costs"].items():
        assert written["costs"][kind]["nats"] == pytest.approx(cost["nats"], abs=2e-4)
    shown = capsys.readouterr().out
    assert "each laboratory by the others" in shown
    assert "46 of 50 (92 %)" in shown
    assert "tied_experts*" in shown
