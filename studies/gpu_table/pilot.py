"""The pilot of the GPU table: how fast trainings go alone and beside each other, which peak learning rate, and so how many tokens."""

import argparse
import json
import math
import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from plas_train.corpus import Corpus
from plas_train.jobs import How, job_settings
from studies.gpu_table.lists import ORDER, PILOT, designs, jobs, rows_of
from studies.gpu_table.measuring import measured
from studies.gpu_table.workers import Worker, answers, ended, started

PEAKS, USUAL = (2e-3, 4e-3, 8e-3), 4e-3
#: Depth, width, experts; FFN of four widths and as many KV heads as heads.
SHAPES = ((2, 128, 1), (8, 128, 4), (2, 384, 4), (8, 384, 1))
BESIDE = ((6, 256, 1), (4, 192, 4))  # at the usual peak; the first trains alone at first
TOKENS = (1, 2, 3, 4, 6, 8, 12)  # times 2^20
SHARE = 0.85  # of the training time that the trainings of the first part are predicted to take
AT_ONCE = (1, 8, None)  # trainings at once in a sixth, a sixth and the rest of the time
FIRST = 3  # steps that are not timed
PATIENCE_S = 60.0
kept: dict[str, Any] = {}  # of a worker: the training under way


def pilot(given: argparse.Namespace, corpus: Corpus) -> None:
    """Measure a few designs, train the trials, and say what follows for the run."""
    workers = started(trial, len(trials()))
    count = measured(given.out, given.device, given.seconds, given.few or 3)
    print(f"{count} measurements", flush=True)
    try:
        found = trained(given, corpus, workers)
    finally:
        ended(workers)
    (given.out / PILOT).write_text(json.dumps(found) + "\n", encoding="utf-8")
    print(*said(found, given.training_seconds), sep="\n", flush=True)


def trials() -> list[tuple[tuple[int, int, int], float]]:
    """Shape and peak of each trial, the one that trains alone first."""
    return [*((shape, USUAL) for shape in BESIDE), *product(SHAPES, PEAKS)]


def trained(given: argparse.Namespace, corpus: Corpus, workers: list[Worker]) -> list[dict[str, Any]]:
    """When each trial's steps ended, s since the first began, and their losses."""
    precision = "fp32" if given.device == "cpu" else "bf16"
    how = How(given.device, precision, 1, 1, float("inf"))
    for worker, (shape, peak) in zip(workers, trials(), strict=True):
        (job,) = jobs([name_of(shape)], [0], 2**20 * TOKENS[-1], peak)
        told = job_settings(job, how, corpus, given.data)
        worker.ask((shape, peak), {"job": {**told, "stop": "", "checkpoint": ""}})
    prepared = said_by(workers, time.monotonic() + PATIENCE_S, "prepared_s")
    begin = time.monotonic() + 0.5
    phase = given.seconds / 6
    for i, worker in enumerate(workers):
        if prepared[worker.busy].get("state") == "died":
            continue
        after = next(k for k, most in enumerate(AT_ONCE) if most is None or i < most)
        worker.ask(worker.busy, {"begin": begin + after * phase, "end": begin + given.seconds})
    found = said_by(workers, begin + given.seconds + PATIENCE_S, "ends")
    return [
        {"shape": shape, "peak": peak, "begin": begin, "phase": phase, **prepared[shape, peak], **found[shape, peak]}
        for shape, peak in trials()
    ]


def said_by(workers: list[Worker], until: float, wanted: str) -> dict[Any, dict[str, Any]]:
    """What each worker answers: waited for is an answer that has `wanted` or says how it failed."""
    found: dict[Any, dict[str, Any]] = {key: {} for key in trials()}
    left = list(workers)
    for worker, content in answers(left, until):
        found[worker.busy].update(content or {"state": "died"})
        if content is None or wanted in content or "state" in content:
            left = [each for each in left if each is not worker]
        if not left:
            break
    return found


def trial(told: Mapping[str, Any]) -> dict[str, Any]:
    """In a worker: build a training and make its first steps, or go on with it for some time."""
    from plas_train.workers import train_worker

    if "job" in told:
        train_worker.torch.set_num_threads(told["job"]["threads"])
        begin = time.monotonic()
        training = kept["training"] = train_worker.Training(told["job"])
        for _ in range(FIRST):
            training.advance()
        return {"prepared_s": time.monotonic() - begin}
    training, ends = kept["training"], []
    time.sleep(max(0.0, told["begin"] - time.monotonic()))
    while time.monotonic() < told["end"]:
        training.advance()
        ends.append(time.monotonic())
    return {"state": "ok", "ends": ends, "losses": training.losses}


def name_of(shape: tuple[int, int, int]) -> str:
    """The design of a trial."""
    found, ids = designs()
    depth, width, experts = shape
    same = (found.depth == depth) & (found.width == width) & (found.n_experts == experts)
    same &= (found.expert_size == 4 * width) & (found.n_kv_heads == found.n_heads)
    return ids[int(np.flatnonzero(same)[0])]


def rate(found: Mapping[str, Any], phase: int, batch: int) -> float:
    """Tokens per second of a trial in a phase (0, 1, 2); not a number where it made no step."""
    length = found["phase"]
    begin = found["begin"] + phase * length
    end = math.inf if phase == len(AT_ONCE) - 1 else begin + length
    ends = [t for t in found.get("ends", ()) if begin < t <= end]
    return batch * (len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 else math.nan


def late_loss(found: Mapping[str, Any], steps: int) -> float:
    """The mean training loss over the last tenth of so many steps."""
    return float(np.mean(found["losses"][steps - max(1, steps // 10) : steps]))


def best_peak(found: Sequence[Mapping[str, Any]]) -> tuple[float, dict[float, float]]:
    """The peak of the lowest sum over the shapes, and every peak's sum, nats."""
    sums = dict.fromkeys(PEAKS, 0.0)
    for shape in SHAPES:
        own = {each["peak"]: each for each in found if tuple(each["shape"]) == shape}
        steps = min(len(each.get("losses", ())) for each in own.values())
        for peak, each in own.items():
            sums[peak] += late_loss(each, steps) if steps else math.nan
    usable = {peak: total for peak, total in sums.items() if math.isfinite(total)}
    return (min(usable, key=lambda peak: usable[peak]) if usable else USUAL), sums


def most_tokens(found: Sequence[Mapping[str, Any]], peak: float, seconds: float, batch: int) -> tuple[int, float]:
    """Tokens of each training by the rule, and the seconds that the first part is predicted to take with them."""
    rates = [rate(e, len(AT_ONCE) - 1, batch) for e in found if e["peak"] == peak and tuple(e["shape"]) in SHAPES]
    trainings = sum(row["part"] == "core" for row in rows_of(ORDER))
    each = trainings * float(np.mean([1.0 / (len(found) * rate) for rate in rates]))
    fitting = [n for n in TOKENS if n * 2**20 * each <= SHARE * seconds]
    tokens = 2**20 * (fitting[-1] if fitting else TOKENS[0])
    return tokens, tokens * each


def said(found: Sequence[Mapping[str, Any]], seconds: float) -> list[str]:
    """The pilot in lines: rates, sums by peak, and the choice."""
    batch = 32 * 256
    lines = []
    for each in found:
        rates = " ".join(f"{rate(each, phase, batch):10,.0f}" for phase in range(len(AT_ONCE)))
        losses = each.get("losses") or [math.nan]
        lines.append(
            f"{each['shape']} peak {each['peak']:g}: {rates} tokens/s with 1, 8, all at once; {len(losses)} steps, loss {losses[-1]:.3f}; "
            f"prepared in {each.get('prepared_s', math.nan):.1f} s {each.get('reason', '')}"
        )
    total = sum(r for r in (rate(each, len(AT_ONCE) - 1, batch) for each in found) if math.isfinite(r))
    peak, sums = best_peak(found)
    tokens, predicted = most_tokens(found, peak, seconds, batch)
    return [
        *lines,
        f"{total:,.0f} tokens/s with all at once",
        "sums of losses: " + ", ".join(f"{p:g} {total:.4f}" for p, total in sums.items()),
        f"chosen: --tokens {tokens} --peak {peak:g} (first part in {predicted:.0f} s of {seconds:.0f})",
    ]
