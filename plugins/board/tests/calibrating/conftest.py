"""A board with known efficiencies, and times that it would show."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from nas.study.catalogue import load_law
from objectives.device import Calibration, Device
from objectives.loss_law.law import Law
from plas_board.calibrate.command import LAW, resolve
from plas_board.calibrating.measurements import Measurement, read
from plas_board.calibrating.terms import predict, terms

HEADER = "model,precision,batch,prompt_len,gen_len,metric,value"
TRUE = Calibration(compute_efficiency=0.6, bandwidth_efficiency=0.7, overhead="9 us")
MODELS = ("Qwen3-0.6B", "Qwen3-1.7B", "Qwen3-4B")


@pytest.fixture(scope="session")
def law() -> Law:
    """Any law: latency does not depend on it."""
    return load_law(LAW)


@pytest.fixture(scope="session")
def board() -> Device:
    """A board of round figures."""
    return Device(name="board", fp16=40, int8=80, bandwidth=200, memory=64, confidence="measured")


def shown(
    board: Device, law: Law, models: Sequence[str] = MODELS, precision: str = "int4", truth: Calibration = TRUE
) -> list[Measurement]:
    """Prefill and decode of the models as the board with `truth` shows them."""
    lines = [HEADER]
    for model in models:
        lines += [f"{model},{precision},1,1024,16,{metric},1" for metric in ("prefill_ms", "tpot_ms")]
    rows, left = read(lines, "board", resolve)
    assert not left
    times = predict(terms(rows, board, law), truth)
    return [replace(row, ms=float(ms)) for row, ms in zip(rows, times, strict=True)]
