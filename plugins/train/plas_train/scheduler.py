"""Several trainings at once, each in a process of its own, until all have ended, time is up or a stop file appears."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nas.errors import PlasError, UsageError
from nas.record.process import Answer, Worker
from nas.terminal.console import OFTEN_S, SELDOM_S, ProgressLine, duration
from objectives import outside
from plas_train.jobs import Job, largest_first

SCRIPT = Path(__file__).parent / "workers" / "train_worker.py"
LOOK_S = 0.1
PATIENCE_S = 60.0  # for a worker that was asked to stop to write its checkpoint
STATES = {"out of memory": "out_of_memory", "killed": "killed"}


def result(out: str) -> dict[str, Any] | None:
    """The last line of JSON that says how a training ended; None where there is none."""
    content = last_line(out)
    return content if isinstance(content.get("state"), str) else None


def last_line(out: str) -> dict[str, Any]:
    """The last JSON object that a worker printed; empty where its last line is none."""
    with suppress(IndexError, ValueError):
        content = outside.parsed(out.splitlines()[-1])
        if isinstance(content, dict):
            return content
    return {}


def how_it_ended(answer: Answer) -> dict[str, Any]:
    """A worker's last report, with `status`, `reason` and `seconds` however it ended."""
    state_line = answer.content
    return {
        **state_line,
        "status": state_line.get("state", STATES.get(answer.state, "failed")),
        "reason": state_line.get("reason", answer.reason),
        "seconds": state_line.get("seconds", answer.seconds),
    }


@dataclass(eq=False)
class _Running:
    job: Job
    worker: Worker
    first: float | None = None  # share that was done when it began
    share: float = 0.0
    loss: float | None = None

    def look(self) -> None:
        """Read how far it is."""
        state_line = last_line(self.worker.output())
        if "step" in state_line:
            self.share, self.loss = state_line["step"] / state_line["steps"], state_line["loss"]
            self.first = self.share if self.first is None else self.first


@dataclass(eq=False)
class TrainingScheduler:
    """Trainings under way. `settle` gets each that ended with its status; `stop` is the file that asks workers to stop."""

    settings_of: Callable[[Job], Mapping[str, Any]]
    settle: Callable[[Job, dict[str, Any]], None]
    stop: Path
    workers: int
    deadline: float | None
    quiet: bool
    waiting: list[Job] = field(default_factory=list)
    running: list[_Running] = field(default_factory=list)
    done: float = 0.0  # FLOP of trainings that ended here
    ended: int = 0

    def run(self, jobs: Sequence[Job]) -> bool:
        """Train all, the costliest first; whether none is left.

        Raises:
            UsageError: the device is not there.
            PlasError: no space left.
            KeyboardInterrupt: stopped; what was under way has its checkpoints.
        """
        self.waiting = largest_first(jobs)
        shown = _Progress(self, len(jobs))
        self.stop.unlink(missing_ok=True)
        try:
            while self.waiting or self.running:
                if self.deadline is not None and time.monotonic() >= self.deadline:
                    return False
                self._start()
                self._look()
                shown.tick()
                time.sleep(LOOK_S)
            return True
        finally:
            shown.close()
            self._stop_all()

    def _start(self) -> None:
        while self.waiting and len(self.running) < self.workers:
            job = self.waiting.pop(0)
            try:
                worker = Worker([sys.executable, str(SCRIPT)], self.settings_of(job), parse=result)
            except OSError as error:
                raise PlasError(f"{sys.executable}: cannot be started ({error.strerror}); try again") from None
            self.running.append(_Running(job, worker))

    def _look(self) -> None:
        for training in list(self.running):
            training.look()
            if training.worker.wait(0.0):
                self.running.remove(training)
                self._end(training.job, training.worker.ended())

    def _end(self, job: Job, answer: Answer) -> None:
        """Record how a training ended; what is no fault of its own ends the command instead."""
        ended = how_it_ended(answer)
        if ended["status"] == "stopped":
            return
        if ended["status"] == "no_device":
            raise UsageError(f"--device: expected one that is here, got {ended['reason']}; name another, as cpu")
        if ended["status"] == "unwritable":
            raise PlasError(f"{ended['reason']}; free space or change the folder, then the same command with --resume")
        self.done += job.flops
        self.ended += 1
        self.settle(job, ended)

    def _stop_all(self) -> None:
        """Ask what runs to write its checkpoint, wait, and end what does not."""
        if not self.running:
            return
        with suppress(OSError):
            self.stop.touch()
        until = time.monotonic() + PATIENCE_S
        try:
            for training in self.running:
                if training.first is not None:  # one that has not trained yet has nothing to write
                    training.worker.wait(max(0.0, until - time.monotonic()))
        finally:
            for training in self.running:
                answer = training.worker.ended()
                if answer.content.get("state") in ("ok", "diverged"):
                    self._end(training.job, answer)
            self.running.clear()
            self.stop.unlink(missing_ok=True)


class _Progress(ProgressLine):
    """How many have ended, what runs, and the time left by the FLOP done so far."""

    def __init__(self, scheduler: TrainingScheduler, total: int) -> None:
        super().__init__(quiet=scheduler.quiet)
        self.scheduler, self.total = scheduler, total
        self.interval = OFTEN_S if self.terminal else SELDOM_S
        self.next = self.begin + self.interval

    def tick(self) -> None:
        """Show it when it is time."""
        now = time.monotonic()
        if self.quiet or now < self.next:
            return
        self.next = now + self.interval
        scheduler = self.scheduler
        here = scheduler.done + sum(
            training.job.flops * (training.share - (training.first or 0.0)) for training in scheduler.running
        )
        left = sum(job.flops for job in scheduler.waiting) + sum(
            training.job.flops * (1 - training.share) for training in scheduler.running
        )
        about = f", about {duration(left * (now - self.begin) / here)} left" if here > 0 else ""
        running = ", ".join(
            f"{training.job.model.id} s{training.job.model.seed} {training.share:.0%}"
            + ("" if training.loss is None else f" loss {training.loss:.3f}")
            for training in scheduler.running
        )
        self.show(f"{scheduler.ended:,} of {self.total:,} trained{about}; {running}")
