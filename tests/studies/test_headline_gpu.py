"""The headline on one GPU: its lists are those that are drawn, pieces in order, what is kept and refused, and the answers."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.record.candidates import read_candidates
from studies.headline_gpu.design import BASELINES, LAWS, LIMITED, PREDICTIONS, ROLES, SHAPES, drawn
from studies.headline_gpu.judging import answers, losses_of, rows_of, verdict, welch
from studies.headline_gpu.running import (
    FACTORS,
    FULL,
    RESULTS,
    SEEDS,
    SHORT,
    SLACK,
    SUPPOSED,
    Piece,
    factor_of,
    job_of,
    miniature,
    pieces,
    predicted_s,
    read_lines,
    run,
    whole,
)


def test_the_lists_are_those_that_are_drawn() -> None:
    for path, content in drawn().items():
        assert path.read_text(encoding="utf-8") == content, path


def test_picks_take_at_most_what_their_baseline_takes_and_lose_less_by_their_law() -> None:
    rows = {row["id"]: row for row in rows_of(PREDICTIONS)}
    for role in rows_of(ROLES):
        pick, baseline = rows[role["id"]], rows[role["baseline"]]
        for name in LIMITED:
            assert float(pick[f"{name}_{role['board']}"]) <= float(baseline[f"{name}_{role['board']}"]), role
        if role["kind"] == "dense":
            assert float(pick[f"loss_{role['law']}"]) < float(baseline[f"loss_{role['law']}"])
    assert all(12e6 <= float(row["body"]) <= 40e6 for row in rows.values())
    assert {law for law in LAWS for role in rows_of(ROLES) if role["law"] == law} == set(LAWS)


def line(kind: str, name: str, factor: float, seed: int, loss: float | None, seconds: float = 10.0) -> dict[str, Any]:
    """What a run keeps of a piece."""
    status = "diverged" if loss is None else "ok"
    more = {"status": status, "n_experts": 1, "training_flops": 1e15, "seconds": seconds, "text": "a"}
    return {"kind": kind, "id": name, "factor": factor, "seed": seed, "loss": loss, **more}


def test_pieces_come_in_order_and_full_ones_with_the_best_factor() -> None:
    """Of equal losses the smaller factor; a shape whose short trainings all failed has no full one."""
    _, ids = read_candidates(SHAPES)
    losses: list[tuple[float | None, float | None, float | None]] = [
        (2.0, 1.9, 1.9),
        (None, None, None),
        (None, 2.0, 1.5),
    ]
    lines = [
        line(SHORT, name, factor, 0, loss)
        for name, own in zip(ids, losses, strict=False)
        for factor, loss in zip(FACTORS, own, strict=True)
    ]
    assert [factor_of(name, lines) for name in ids[:4]] == [1.0, None, 2.0, None]
    listed = list(pieces(lines))
    assert listed[: 3 * len(ids)] == [Piece(SHORT, name, factor, 0) for name in ids for factor in FACTORS]
    assert listed[3 * len(ids) :] == [
        Piece(FULL, name, factor, seed) for seed in SEEDS for name, factor in ((ids[0], 1.0), (ids[2], 2.0))
    ]


def test_seconds_are_predicted_by_the_slowest_of_a_kind() -> None:
    lines = [
        line(SHORT, "a", 1.0, 0, 2.0, 10.0),
        line(SHORT, "b", 1.0, 0, 2.0, 20.0),
        line(SHORT, "c", 1.0, 0, None, 99.0),
    ]
    assert predicted_s(Piece(SHORT, "d", 1.0, 0), 1e15, False, lines) == pytest.approx(SLACK * 20.0)
    assert predicted_s(Piece(SHORT, "d", 1.0, 0), 1e15, True, lines) == pytest.approx(SLACK * 1e15 / SUPPOSED)
    assert predicted_s(Piece(FULL, "d", 1.0, 0), 1e15, False, lines) == pytest.approx(SLACK * 1e15 / SUPPOSED)


def test_a_full_training_sees_100_million_bytes_at_the_chosen_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studies.headline_gpu.running.PACKAGES", ("numpy",))
    size = whole()
    assert size.text[0] == "stdlib"
    assert size.text[1].endswith("numpy/**/*.py")
    job = job_of(Piece(FULL, "qwen_like", 2.0, 1), size)
    assert (job.tokens, job.model.schedule.steps, job.model.seed) == (100_007_936, 3052, 1)
    assert job.model.schedule.peak == pytest.approx(2e-3)
    monkeypatch.setattr("studies.headline_gpu.running.PACKAGES", ("no_such_package",))
    with pytest.raises(SystemExit, match="got no no_such_package"):
        whole()


def test_a_cut_line_is_dropped_and_another_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / RESULTS
    kept = line(SHORT, "qwen_like", 0.5, 0, 2.0)
    path.write_text(json.dumps(kept) + '\n{"kind": "sh')
    assert read_lines(path) == [kept]
    assert path.read_text() == json.dumps(kept) + "\n"
    given = argparse.Namespace(out=tmp_path, data=tmp_path / "data", seconds=0.0, device="cpu", miniature=True)
    with pytest.raises(SystemExit, match="expected results of the text"):
        run(given)


def test_intervals() -> None:
    difference, low, high = welch([1.0, 1.1, 1.2], [2.0, 2.1, 2.2])
    assert (difference, high - difference) == pytest.approx((-1.0, 2.7764 * np.sqrt(2 * 0.01 / 3)), rel=1e-4)
    assert verdict(low, high) == "holds"
    assert verdict(*welch([2.0, 2.1, 2.2], [1.0, 1.1, 1.2])[1:]) == "fails"
    assert verdict(*welch([1.0, 1.1, 1.2], [1.0, 1.1, 1.2])[1:]) == "not decided"
    assert welch([1.0] * 3, [2.0] * 3) == (-1.0, -1.0, -1.0)


def test_answers_are_of_shapes_with_every_seed() -> None:
    """Trained as `evidence` predicts, with a little noise: its order is whole, its differences are off by the noise."""
    predicted = rows_of(PREDICTIONS)
    noise = np.random.default_rng(0).normal(0.0, 1e-5, (len(predicted), len(SEEDS)))
    lines = [
        line(FULL, row["id"], 1.0, seed, float(row["loss_evidence"]) + float(noise[i, seed]))
        for i, row in enumerate(predicted)
        for seed in SEEDS
    ]
    text = "\n".join(answers(lines))
    assert f"{len(predicted)} of {len(predicted)} shapes with 3 seeds; 0 trainings" in text
    assert "| evidence | 1.00 | 0.0000 |" in text
    assert text.count(": holds | holds |") >= 14
    assert "evidence experts (p-01) less evidence dense (p-00)" in text
    _, baselines = read_candidates(BASELINES)
    part = [each for each in lines if each["id"] not in baselines and (each["id"], each["seed"]) != ("p-00", 2)]
    assert set(losses_of(part)) == {row["id"] for row in predicted} - {*baselines, "p-00"}
    assert ": holds" not in "\n".join(answers(part))
    assert next(answers([])).startswith("0 of ")


@pytest.mark.slow
def test_miniature_trains_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pieces end whole, what has ended is not trained again, and what will not end in time is not begun."""
    pytest.importorskip("transformers", reason="needs the extra hf, which is not installed")
    given = argparse.Namespace(out=tmp_path, data=tmp_path / "data", seconds=1e5, device="cpu", miniature=True)
    _, ids = read_candidates(SHAPES)
    done = [line(SHORT, name, factor, 0, 3.0) for name in ids for factor in FACTORS][:-1]
    done += [line(FULL, name, FACTORS[0], seed, 3.0) for seed in SEEDS for name in ids][1:]
    run(argparse.Namespace(**{**vars(given), "seconds": 0.0}))
    assert "more than is left" in capsys.readouterr().out
    digest = json.loads((tmp_path / "data" / "data" / "data.json").read_text())["train"]["sha256"]
    (tmp_path / RESULTS).write_text("".join(json.dumps({**each, "text": digest}) + "\n" for each in done))
    run(given)
    added = read_lines(tmp_path / RESULTS)[len(done) :]
    assert [(each["kind"], each["id"], each["seed"]) for each in added] == [(SHORT, ids[-1], 0), (FULL, ids[0], 0)]
    run(given)
    assert "nothing is left" in capsys.readouterr().out
    assert len(read_lines(tmp_path / RESULTS)) == len(done) + 2
    assert all(each["status"] == "ok" and each["loss"] < 5.0 for each in added)
    assert added[1]["tokens"] == miniature().tokens[FULL]
