"""What runs on the machine with the GPU: the pilot, and the run of the table; rules in studies/gpu_table/__main__.py."""

import argparse
import json
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from plas_board.measure.machine import machine
from plas_train.corpus import Corpus, held_in
from plas_train.jobs import How, Job, job_settings, row_of
from studies.gpu_table.lists import MACHINE, TRAININGS, in_order
from studies.gpu_table.measuring import measured
from studies.gpu_table.pilot import pilot
from studies.gpu_table.workers import Worker, answers, ended, started

FRACTIONS = (4, 2)  # losses after a quarter and a half of the tokens
MEASURED = 0.2  # of the seconds at most
LAST_S = 4.0  # kept for ending
SEEN = ("torch", "transformers", "numpy")


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """One training by the worker of `plas train`, in this process."""
    import torch

    from plas_train.workers import train_worker

    found: dict[str, Any] = train_worker.answer(job)
    if job["device"] != "cpu":
        found["peak_bytes"] = torch.cuda.max_memory_allocated()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return found


def run(given: argparse.Namespace) -> None:
    """Measure every design, then train until the time is over."""
    end = time.monotonic() + given.seconds - LAST_S
    corpus = corpus_in(given.data)
    describe(given)
    workers = started(answer, given.workers)
    say("workers are ready")
    count = measured(given.out, given.device, MEASURED * given.seconds, given.few)
    say(f"{count} measurements")
    try:
        done = train(given, corpus, workers, end)
        say(f"{done} trainings ended")
    finally:
        ended(workers)


def train(given: argparse.Namespace, corpus: Corpus, workers: list[Worker], end: float) -> int:
    """Train in the committed order until a time of the monotonic clock; how many ended."""
    waiting = in_order(given.tokens, given.peak)[: given.few]
    precision = "fp32" if given.device == "cpu" else "bf16"
    between = [given.tokens // n for n in FRACTIONS]
    how = How(given.device, precision, 1, 1, float("inf"), between)
    done = 0
    with (given.out / TRAININGS).open("a", encoding="utf-8") as file:
        for worker in workers:
            ask(worker, waiting, how, corpus, given.data)
        for worker, content in answers(workers, end):
            job, worker.busy = worker.busy, None
            file.write(json.dumps(line_of(job, how, corpus, content)) + "\n")
            file.flush()
            done += 1
            if content is not None:
                ask(worker, waiting, how, corpus, given.data)
    return done


def ask(worker: Worker, waiting: list[Job], how: How, corpus: Corpus, folder: Path) -> None:
    """Begin the next training, where one is left."""
    if waiting:
        job = waiting.pop(0)
        told = job_settings(job, how, corpus, folder)
        worker.ask(job, {**told, "stop": "", "checkpoint": "", "curve": f"{folder}/curve-{worker.process.pid}"})


def line_of(job: Job, how: How, corpus: Corpus, content: Any) -> dict[str, Any]:
    """A line of the record: the row that `plas train` would write, and the memory that it took."""
    found = {"state": "killed", "reason": "the worker died"} if content is None else dict(content)
    found = {"reason": "", "seconds": 0.0, **found, "status": found["state"]}
    return {**row_of(job, how, corpus, found), "peak_bytes": found.get("peak_bytes"), "ended": time.time()}


def corpus_in(folder: Path) -> Corpus:
    """The token files."""
    found = held_in(folder)
    if found is None:
        sys.exit(f"--data: expected a folder with the token files of plas train, got {folder}; make them there")
    return found


def describe(given: argparse.Namespace) -> None:
    """Keep what the machine is."""
    given.out.mkdir(parents=True, exist_ok=True)
    query = [
        "nvidia-smi",
        "--query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,power.limit",
        "--format=csv",
    ]
    gpu = ""
    if given.device == "cuda":
        gpu = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    asked = {name: value if isinstance(value, (int, float)) else str(value) for name, value in vars(given).items()}
    content = {**machine(), "gpu": gpu, "python": sys.version, "asked": asked, **{name: release(name) for name in SEEN}}
    (given.out / MACHINE).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def release(name: str) -> str:
    """The version of a package; "" where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def say(what: str) -> None:
    """A line with the time, at once."""
    print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)


def main() -> None:
    """The pilot or the run."""
    parser = argparse.ArgumentParser(description=__doc__)
    stages = parser.add_subparsers(dest="stage", required=True)
    for name in ("pilot", "run"):
        stage = stages.add_parser(name)
        stage.add_argument("--out", type=Path, required=True)
        stage.add_argument("--data", type=Path, required=True)
        stage.add_argument("--seconds", type=float, required=True)
        stage.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
        stage.add_argument("--workers", type=int, default=14)
        stage.add_argument("--few", type=int, help="the first alone, to try it out")
    stages.choices["run"].add_argument("--tokens", type=int, required=True)
    stages.choices["run"].add_argument("--peak", type=float, required=True)
    stages.choices["pilot"].add_argument(
        "--training-seconds", type=float, default=300.0, help="of the run that is planned"
    )
    given = parser.parse_args()
    if given.stage == "run":
        run(given)
    else:
        describe(given)
        pilot(given, corpus_in(given.data))


if __name__ == "__main__":
    main()
