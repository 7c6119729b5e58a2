"""Predicted times against the operator model, and their slopes against differences."""

from dataclasses import replace

import numpy as np
import pytest

from objectives.device import Calibration, Device
from objectives.dimensions import Dimensions
from objectives.latency.roofline import latency_ms
from objectives.loss_law.law import Law
from plas_board.calibrating.efficiencies import PARAMETERS, Freedom, calibration
from plas_board.calibrating.held_out import Group, choose
from plas_board.calibrating.measurements import Measurement
from plas_board.calibrating.terms import predict, predict_with_slopes, scenario_of, terms
from plugins.board.tests.calibrating.conftest import MODELS, shown

WHOLE = Calibration(
    compute_efficiency=0.6,
    bandwidth_efficiency=0.7,
    overhead="9 us",
    prefill_bandwidth_efficiency=1.3,
    prefill_overhead="14 us",
    attention_compute=0.5,
    attention_bandwidth=0.8,
    decode_attention_compute=0.3,
    decode_compute=0.1,
    batched_compute=0.4,
    expert_compute=0.7,
    expert_bandwidth=0.85,
    routing_overlap=0.4,
    cache_efficiency=0.9,
)


@pytest.fixture
def cached(board: Device) -> Device:
    """The board with a cache that holds a part of the models."""
    return board.model_copy(update={"cache": 2e9, "cache_bandwidth": 8e11})


def mixed(board: Device, law: Law) -> list[Measurement]:
    """Dense models and one with experts, at two batches."""
    rows = shown(board, law, (*MODELS, "Qwen3-30B-A3B"))
    return rows + [replace(row, batch=8) for row in rows]


def test_times_are_those_of_the_operator_model(cached: Device, law: Law) -> None:
    """Prefill and decode under every coefficient, as a study with the same calibration prices them."""
    rows = mixed(cached, law)
    for m, ms in zip(rows, predict(terms(rows, cached, law), WHOLE), strict=True):
        prefill, decode = latency_ms(Dimensions(m.architecture), scenario_of(m, cached, law, WHOLE))
        expected = prefill[0] if m.phase == "prefill" else decode[0] / m.generated
        assert ms == pytest.approx(expected, rel=1e-9)


def test_slopes_are_those_of_differences(cached: Device, law: Law) -> None:
    """Milliseconds by the logarithm of every coefficient."""
    table, free = terms(mixed(cached, law), cached, law), Freedom(tuple(PARAMETERS), 1.0)
    free = replace(free, names=tuple(name for name in free.names if name != "second"))
    at = np.log([0.9 * PARAMETERS[name].prior for name in free.names])
    slopes = predict_with_slopes(table, *calibration(free, at, table.second))[1]
    for i, name in enumerate(free.names):
        step = np.zeros(len(at))
        step[i] = 1e-6
        above, below = (
            predict_with_slopes(table, *calibration(free, x, table.second))[0] for x in (at + step, at - step)
        )
        assert slopes[name] == pytest.approx((above - below) / 2e-6, rel=1e-4, abs=1e-6 * float(above.max())), name


def test_what_raises_held_out_errors_goes(board: Device, law: Law) -> None:
    """A prefill's own overhead stays where the times have one; rows beside join only where they help."""
    truth = WHOLE.model_copy(update={"cache_efficiency": None})
    rows = shown(board, law, (*MODELS, "Qwen3-8B"), truth=truth)
    group = Group(terms(rows, board, law), np.array([m.model for m in rows]), board)
    chosen = choose(group)
    assert chosen.kept
    assert not chosen.beside
    assert not set(chosen.kept) - set(group.free().optional)
