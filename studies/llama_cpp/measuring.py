"""Stages `files`, `machine` and `measure` of the llama.cpp measurement: GGUF files, this machine's rates, and the times."""

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nas.export.model import Model, Workload
from nas.export.recipe import load_recipe
from nas.export.tokenizer import byte_level
from nas.files.tables import csv_text, write
from plas_board.measure.machine import busy_cores
from plas_stacks.gguf import write_gguf
from studies.llama_cpp.design import COLUMNS, MODELS, architecture

FORMATS = ("f16", "q8_0", "q4_0")
LENGTHS = (16, 64, 256, 512, 2048)
STEPS, ROUNDS, SAMPLES, LONG_SAMPLES = 16, 2, 2, 1
BATCH, BATCH_LENGTH, BATCH_EVERY = 4, 128, 3  # every third model
BUSY = 0.15  # processors that other programs may have
Row = dict[str, str]


@dataclass(frozen=True)
class Plan:
    """Where everything is; `rehearsed`: the only models of a rehearsal, none in a run of record."""

    root: Path
    programs: Path
    minutes: float
    rehearsed: tuple[str, ...]

    @property
    def models(self) -> list[Row]:
        """The rows of the list that are measured."""
        with MODELS.open(newline="", encoding="utf-8") as file:
            return [row for row in csv.DictReader(file) if not self.rehearsed or row["id"] in self.rehearsed]

    @property
    def lengths(self) -> tuple[int, ...]:
        """Prompt lengths; a rehearsal takes the shortest two."""
        return LENGTHS[:2] if self.rehearsed else LENGTHS

    @property
    def board(self) -> Path:
        """The device file."""
        return self.root / "board.yaml"


@dataclass(frozen=True)
class Part:
    """One call of `plas measure`: a format, a prompt length and a batch of some models."""

    format: str
    length: int
    batch: int

    @property
    def name(self) -> str:
        """Its folder."""
        return f"{self.format}-p{self.length}-b{self.batch}"


def parts(plan: Plan) -> Iterator[Part]:
    """Every call, the short prompts of all formats first."""
    for length in plan.lengths:
        yield from (Part(kind, length, 1) for kind in FORMATS)
    yield from (Part(kind, BATCH_LENGTH, BATCH) for kind in FORMATS)


def of_part(plan: Plan, part: Part) -> list[Row]:
    """The models of a call."""
    return plan.models if part.batch == 1 else plan.models[::BATCH_EVERY]


def files(plan: Plan) -> None:
    """The GGUF file of every model in every format; those that are there stay."""
    recipe, workload = load_recipe("paper"), Workload(1, max(LENGTHS), STEPS)
    for row in plan.models:
        for kind in FORMATS:
            path = plan.root / "gguf" / kind / f"{row['id']}.gguf"
            if path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            model = Model(
                row["id"], row["id"], architecture(row), byte_level(), recipe, workload, weights=True, gguf=kind
            )
            write_gguf(path.with_suffix(".part"), model)
            path.with_suffix(".part").rename(path)
            print(f"{path.relative_to(plan.root)}: {path.stat().st_size / 1e6:.0f} MB", flush=True)


def machine(plan: Plan) -> None:
    """This machine's sustained rates as a device file, with its last-level cache."""
    if plan.board.exists():
        return
    refuse_busy(plan)
    if code := subprocess.run([*plas("measure"), "--hardware", "--out", str(plan.board)], check=False).returncode:
        sys.exit(f"plas measure --hardware ended with {code}")


def plas(command: str) -> list[str]:
    """The beginning of a command line."""
    return [sys.executable, "-m", f"nas.{command}"]


def measure(plan: Plan) -> None:
    """Every call of `plas measure` that has not ended, until the piece is over; then everything in one table."""
    until = time.monotonic() + 60 * plan.minutes
    for part in parts(plan):
        refuse_busy(plan)
        candidates = plan.root / "lists" / f"{part.name}.csv"
        write_list(candidates, of_part(plan, part))
        if not ended(command(plan, part, candidates), until):
            sys.exit(f"{plan.minutes:g} minutes are over at {part.name}; the same command goes on")
    gather(plan)


def write_list(path: Path, rows: list[Row]) -> None:
    """A candidate file of some models."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, csv_text({name: [row[name] for row in rows] for name in ("id", *COLUMNS)}))


def command(plan: Plan, part: Part, candidates: Path) -> list[str]:
    """The command line of a call."""
    samples = SAMPLES if part.length < max(LENGTHS) else LONG_SAMPLES
    engine = ["--backend", "llama-bench", "--interpreter", plan.programs / "llama-bench"]
    place = ["--models", plan.root / "gguf" / part.format, "--precision", part.format]
    work = ["--batch", part.batch, "--input-tokens", part.length, "--output-tokens", STEPS]
    how = ["--rounds", 1 if plan.rehearsed else ROUNDS, "--repetitions", samples, "--warmup", 1, "--power", "none"]
    out = ["--out", plan.root / "measured" / part.name]
    return [*plas("measure"), *(str(word) for word in (candidates, *engine, *place, *work, *how, *out))]


def ended(line: list[str], until: float) -> bool:
    """Whether a command came to its end in time; it is interrupted where not, and ends this program where it failed."""
    if time.monotonic() >= until:
        return False
    print("$ plas", line[2].removeprefix("nas."), *line[3:], flush=True)
    process = subprocess.Popen(line)
    try:
        code = process.wait(until - time.monotonic())
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait()
        return False
    if code:
        sys.exit(f"plas measure ended with {code}; the same stage again continues")
    return True


def refuse_busy(plan: Plan) -> None:
    """Refuse to take times of record while other programs have processors.

    Raises:
        SystemExit: they have.
    """
    busy = busy_cores()
    if not plan.rehearsed and busy is not None and busy > BUSY:
        sys.exit(
            f"expected an idle machine, got other programs with {busy:.2f} of {os.cpu_count()} processors; end them first"
        )


def gather(plan: Plan) -> None:
    """All rows of all calls in one table."""
    found: list[Row] = []
    for part in parts(plan):
        with (plan.root / "measured" / part.name / "measured.csv").open(newline="", encoding="utf-8") as file:
            found += csv.DictReader(file)
    if plan.rehearsed:  # times are thrown away: what matters is that the stages after this one run
        found = [row | {"contended": "no"} for row in found]
    names = list(dict.fromkeys(name for row in found for name in row))
    write(plan.root / "rows.csv", csv_text({name: [row.get(name, "") for row in found] for name in names}))
