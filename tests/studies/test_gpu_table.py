"""The table of one GPU: its lists are drawn as committed, the pilot's rules, and the table of what a run left."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studies.gpu_table.design import REPEATED, drawn
from studies.gpu_table.judging import lines_of, said, table_of
from studies.gpu_table.lists import designs, in_order
from studies.gpu_table.measuring import MODES, asked
from studies.gpu_table.pilot import PEAKS, SHAPES, best_peak, most_tokens, name_of
from studies.gpu_table.workers import NEEDS, answers, ended, started

TOKENS = 2**20


def test_the_lists_are_those_that_are_drawn() -> None:
    for path, content in drawn().items():
        assert path.read_text(encoding="utf-8") == content, path


@pytest.mark.slow
def test_order() -> None:
    """128 designs and some of them twice, then the others; at a rate that does not fall."""
    found = in_order(TOKENS, 1e-3)
    keys = [(job.model.id, job.model.seed) for job in found]
    assert len(set(keys)) == len(keys) == 192 + REPEATED
    first = found[: 128 + REPEATED]
    assert {int(job.model.architecture.expert_size[0]) // int(job.model.architecture.width[0]) for job in first} == {
        1,
        4,
    }
    assert sum(job.model.seed for job in first) == REPEATED
    assert all(job.model.schedule.peak == job.model.schedule.final for job in found)
    assert {job.tokens for job in found} == {TOKENS}


def test_every_design_is_timed_in_every_round() -> None:
    found = [(line["round"], line["id"], line["mode"]) for line in asked("cuda", None)]
    assert len(set(found)) == len(found) == 2 * 192 * len(MODES)
    assert not any(line["job"]["graphs"] for line in asked("cpu", 3))


def trial(shape: tuple[int, int, int], peak: float, loss: float, rate: float = 100.0) -> dict[str, Any]:
    """A trial of the pilot that made so many steps a second; its loss at every step."""
    ends = (4.0 + np.arange(1, 8 * rate) / rate).tolist()
    return {"shape": shape, "peak": peak, "begin": 0.0, "phase": 2.0, "ends": ends, "losses": [loss] * len(ends)}


def test_the_peak_of_the_lowest_sum_is_chosen() -> None:
    losses = dict(zip(PEAKS, (2.0, 1.9, 2.1), strict=True))
    found = [trial(shape, peak, losses[peak]) for shape in SHAPES for peak in PEAKS]
    assert best_peak(found)[0] == PEAKS[1]
    next(each for each in found if each["peak"] == PEAKS[1])["losses"] = [float("nan")] * 700
    assert best_peak(found)[0] == PEAKS[0]


@pytest.mark.parametrize(("rate", "millions"), [(1.0, 1), (10.0, 2), (20.0, 4), (1000.0, 12)])
def test_the_tokens_that_fit(rate: float, millions: int) -> None:
    """144 trainings side by side, 12 at once, in 85 % of 400 s, at 8,192 tokens a step."""
    found = [trial(shape, peak, 2.0, rate) for shape in SHAPES for peak in PEAKS]
    tokens, seconds = most_tokens(found, PEAKS[0], 400.0, 8192)
    assert seconds == pytest.approx(144 * tokens / (12 * rate * 8192), rel=0.01)
    assert tokens == millions * 2**20
    assert seconds <= 340 or millions == 1


def test_every_trial_is_of_a_design() -> None:
    _, ids = designs()
    assert {name_of(shape) for shape in SHAPES} <= set(ids)


def test_table(tmp_path: Path) -> None:
    """A row for each training, times are medians over the rounds; the half of a line that a kill left is not read."""
    times = [
        {"id": name, "mode": "graphs_b1", "result": {"prefill_ms": [k, k + 1.0], "decode_ms": [k], "engine": "e"}}
        for k, name in enumerate(("g-000", "g-000", "g-001"), 1)
    ]
    path = tmp_path / "lines.jsonl"
    path.write_text("\n".join(map(json.dumps, times)) + '\n{"id": "g-0')
    assert lines_of(path) == times
    trained = [
        {
            "id": name,
            "seed": seed,
            "status": "ok",
            "tokens": 800,
            "loss": loss,
            "loss_after_200": loss + 1,
            "loss_after_400": loss + 0.5,
        }
        | {"params_total": 10 - loss, "active_parameters": loss, "peak_bytes": 5e6}
        for name, seed, loss in (("g-000", 0, 2.0), ("g-001", 0, 1.5), ("g-002", 0, 1.0), ("g-155", 0, 1.0))
    ]
    table = table_of(trained, times).set_index(["id", "seed"])
    assert len(table) == 192 + REPEATED
    assert table.loc[("g-000", 0), "prefill_ms_graphs_b1"] == 2.0
    assert table.loc[("g-001", 0), ["loss_at_quarter", "loss_at_half", "training_peak_mb"]].tolist() == [2.5, 2.0, 5.0]
    assert (table["status"] == "not trained").sum() == len(table) - 4
    lines = "\n".join(said(table.reset_index()))
    assert "| −active parameters | loss | -1.000 | 4 |" in lines
    assert "fewer than two designs with two seeds" in lines


def square(number: int) -> dict[str, int]:
    """What a worker of the test does; nothing to divide by 0."""
    return {"is": 100 // number}


@pytest.mark.slow
def test_workers_answer_and_outlive_failures() -> None:
    for name in NEEDS[:2]:
        pytest.importorskip(name)
    workers = started(square, 2)
    try:
        for worker, number in zip(workers, (0, 5), strict=True):
            worker.ask(number, number)
        found = {}
        for worker, content in answers(workers, time.monotonic() + 60.0):
            found[worker.busy] = content
            worker.busy = None
        assert found[5] == {"is": 20}
        assert found[0] is not None
        assert found[0]["state"] == "failed"
        assert "ZeroDivisionError" in found[0]["reason"]
    finally:
        ended(workers)
