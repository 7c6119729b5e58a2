"""Coefficients of slow memory and of drafting: recovered from rows made with known ones, the device's own profile untouched."""

from dataclasses import replace

import numpy as np
import pytest

from objectives.assessment import Assessment
from objectives.device import Calibration, Device, SlowMemory
from objectives.loss_law.law import Law
from objectives.serving import Acceptance, typical_serving
from plas_board.calibrating.group import groups
from plas_board.calibrating.measurements import Measurement
from plas_board.calibrating.served import NO_MEMORY, refused, served_groups
from plas_board.calibrating.terms import scenario_of
from plugins.board.tests.calibrating.conftest import TRUE, shown

SPARSE = ("Qwen3-30B-A3B", "gpt-oss-20b", "OLMoE-1B-7B")
HOST = SlowMemory(bandwidth="50 GB/s", capacity="64 GB")


@pytest.fixture(scope="session")
def card(board: Device) -> Device:
    """The board with host memory beside its own."""
    return board.model_copy(update={"slow_memory": HOST})


def profile(engine: str = "") -> Calibration:
    """The profile that plain rows gave."""
    return TRUE.model_copy(update={"precision": "int4", "engine": engine, "expert_bandwidth": 0.9})


def served(card: Device, law: Law, models: tuple[str, ...], truth: Calibration, **served: float) -> list[Measurement]:
    """Decode steps of models as the card with `truth` shows them, by the model of a whole study."""
    found = []
    for m in (m for m in shown(card, law, models) if m.phase == "decode"):
        row = replace(m, **served)
        shares = Acceptance(shares={row.drafted: row.accepted})
        words = (
            {"experts_in": f"slow:{100 * row.slow_share:g}%"}
            if row.slow_share
            else {"speculation": f"mtp:{row.drafted}"}
        )
        serving = replace(typical_serving(), acceptance={"mtp": shares}, **words)
        scenario = scenario_of(row, card, law, truth).served(serving)
        ms = float(Assessment(row.architecture, scenario)["decode_ms"][0]) / row.generated
        found.append(replace(row, ms=ms))
    return found


@pytest.mark.parametrize("truth", [0.31, 0.8])
@pytest.mark.parametrize("host", [HOST, HOST.model_copy(update={"fp16": 5e11})])
def test_the_rate_of_slow_memory(truth: float, host: SlowMemory, card: Device, law: Law) -> None:
    """Where the host's processor computes, and where it does not."""
    device, base = card.model_copy(update={"slow_memory": host}), profile()
    known = base.model_copy(update={"slow_bandwidth_efficiency": truth})
    rows = [m for share in (0.5, 1.0) for m in served(device, law, SPARSE, known, slow_share=share)]
    (found,) = served_groups(rows, device, law, [base])
    assert found.coefficient == "slow_bandwidth_efficiency"
    assert found.value == pytest.approx(truth, rel=0.01)
    assert found.errors(found.in_sample)[0] < 0.01
    assert found.errors(found.held_out)[2] == 6
    assert found.errors(found.held_out)[0] < 0.01 < found.errors(found.before)[0]
    assert not found.doubts()


@pytest.mark.parametrize("truth", [0.05, 0.4])
def test_the_cost_of_a_further_position(truth: float, card: Device, law: Law) -> None:
    base = profile()
    known = base.model_copy(update={"position_cost": truth})
    models = ("Qwen3-1.7B", "Qwen3-4B")
    rows = [m for n in (1, 3) for m in served(card, law, models, known, drafted=n, accepted=0.7)]
    (found,) = served_groups(rows, card, law, [base])
    assert found.coefficient == "position_cost"
    assert found.value == pytest.approx(truth, rel=0.01)
    np.testing.assert_allclose(found.held_out, found.measured, rtol=0.01)


def test_one_model_is_not_held_out(card: Device, law: Law) -> None:
    rows = served(card, law, SPARSE[:1], profile(), slow_share=1.0)
    (found,) = served_groups(rows, card, law, [profile()])
    assert np.isnan(found.held_out).all()
    assert found.doubts() == ["no model was held out"]


def test_rows_that_say_nothing_of_it(card: Device, board: Device, law: Law) -> None:
    slow, *_ = served(card, law, SPARSE[:1], profile(), slow_share=1.0)
    drafted = replace(slow, slow_share=0.0, drafted=2, accepted=0.7)
    assert refused(slow, card, [profile()]) == refused(drafted, card, [profile()]) == ""
    assert refused(slow, board, [profile()]) == NO_MEMORY
    assert (
        refused(slow, card.model_copy(update={"slow_memory": SlowMemory(capacity="64 GB")}), [profile()]) == NO_MEMORY
    )
    assert "no profile of an unnamed engine at batch 1" in refused(slow, card, [profile("another")])
    assert "micro batch" in refused(replace(slow, phase="prefill"), card, [profile()])
    assert "reads it too" in refused(replace(drafted, phase="prefill"), card, [profile()])
    assert "a whole request" in refused(replace(drafted, phase="request"), card, [profile()])


def test_plain_rows_alone_are_the_devices(card: Device, law: Law) -> None:
    """Groups of the device's own efficiencies hold none of the others."""
    plain, slow = shown(card, law), served(card, law, SPARSE, profile(), slow_share=0.5)
    drafted = [replace(m, drafted=2, accepted=0.5) for m in plain]
    assert groups([*slow, *plain, *drafted]) == groups(plain)
