"""Runs `train`: its flags resolved, candidates trained in a process each, and the table that `fit` reads."""

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas.answer.carried_study import list_of, recorded_study, write_study
from nas.document.document import Document, Section
from nas.errors import PlasError, UsageError
from nas.export.candidates import chosen, with_vocabulary
from nas.export.documents import STDLIB, STDLIB_LICENCE
from nas.export.folder import folder_names
from nas.export.hf_config import refuse_missing
from nas.export.recipe import Recipe, load_recipe
from nas.export.tokenizer import Tokenizer, tokenizer_for
from nas.files.faults import unknown
from nas.files.own_files import ENDING, inner_folder, made_folder
from nas.files.tables import write
from nas.record.candidates import read_seeds
from nas.record.folder import create, locked
from nas.record.jsonl_log import SETTINGS, Record
from nas.terminal.console import Stages, notice
from nas.terminal.doors import command
from nas.terminal.tables import show
from objectives.display_text import in_a_command
from plas_train.corpus import DATA, Corpus, Sources, prepared, tokenizer_digest
from plas_train.jobs import (
    CURVES,
    FILE,
    LOG,
    STOP,
    UNFINISHED,
    How,
    Job,
    checkpoint_of,
    job_settings,
    jobs_of,
    key_of,
    refuse_short,
    row_of,
    trainings_csv,
)
from plas_train.request import TrainRequest
from plas_train.scheduler import TrainingScheduler

OWN = {".lock", SETTINGS, LOG, DATA, CURVES, UNFINISHED}  # what lies in a folder before anything is recorded
ENDED = ("ok", "diverged")  # the same again each time: nothing to go on from
PRECISIONS = ("fp32", "bf16")
NAME = re.compile(r"[A-Za-z0-9_]{1,40}")
MOST_TOKENS = 10**15


def carry_out(request: TrainRequest) -> None:
    """Train what the folder does not hold yet, and say what it holds.

    Raises:
        UsageError: anything asked for that cannot be done.
        PlasError: no space left, or every training failed.
    """
    begin = time.monotonic()
    refuse_missing("train")
    how, sources = how_of(request), sources_of(request)
    tokenizer = tokenizer_for(request.tokenizer)
    recipe = recipe_of(request)
    jobs = planned(request, recipe, tokenizer)
    folder = folder_of(request)
    with locked(folder):
        stages = Stages(quiet=request.quiet)
        try:
            corpus = prepared(folder, sources, tokenizer, stages)
        finally:
            stages.close()
        refuse_short(corpus, recipe)
        if not _begun(folder):
            (folder / SETTINGS).unlink(missing_ok=True)
        record = Record(folder, settings_of(recipe, tokenizer, corpus, how), "train", LOG)
        left = missing(jobs, record, retry=request.retry_failed)
        session = _Session(request, how, corpus, folder, record, recorded_study(request.source))
        whole = session.run(left, None if request.time_limit is None else begin + request.time_limit)
    keys = {key_of(job.name) for job in jobs}
    lines = list({key_of(line["run"]): line for line in record.lines if key_of(line["run"]) in keys}.values())
    data = {"folder": str(folder), "asked": len(jobs), "whole": whole, "trainings": lines}
    show(Document("", (_section(request, folder, jobs, lines, corpus, recipe),), data), as_json=request.json)
    if whole and not any(line["status"] == "ok" for line in lines):
        raise PlasError(f"{folder}: expected losses, got {len(lines):,} failed trainings; {folder / FILE} says why")


def folder_of(request: TrainRequest) -> Path:
    """The folder of the request: a new one, or with --resume the one that is there.

    What an earlier command left before it trained anything is no reason to refuse.

    Raises:
        UsageError: it holds trainings and --resume was not given, it holds something else, it cannot be made.
    """
    name = f"train-{folder_names([request.source.stem])[0]}"
    if request.out is None and not request.resume:
        return create(name, None)
    folder = made_folder(request.out or _latest(name))
    begun = _begun(folder)
    if begun and not request.resume:
        raise UsageError(f"--out: expected a new folder, got {folder} with trainings; --resume goes on with them")
    if not begun and any(path.name not in OWN and not path.name.endswith(ENDING) for path in folder.iterdir()):
        raise UsageError(f"--out: expected a new or empty folder, got {folder} with other files in it; name another")
    return folder


def _begun(folder: Path) -> bool:
    """Whether a training of a folder has ended: before that its settings may still change."""
    return (folder / LOG).is_file() and (folder / LOG).stat().st_size > 0


def _latest(name: str) -> Path:
    """The last folder of a name in runs, the one that is made where there is none."""
    n = 1
    while (Path("runs") / f"{name}-{n + 1}").is_dir():
        n += 1
    return Path("runs") / (name if n == 1 else f"{name}-{n}")


def settings_of(recipe: Recipe, tokenizer: Tokenizer, corpus: Corpus, how: How) -> dict[str, Any]:
    """Settings that every training of a folder shares, so that their losses compare."""
    plain = recipe.model_dump(mode="json", exclude={"tokens", "description", "source", "accelerator", "utilisation"})
    return {
        **{f"recipe.{name}": value for name, value in plain.items()},
        "tokenizer": tokenizer_digest(tokenizer),
        "data": corpus.train.sha256,
        "validation": corpus.validation.sha256,
        **{f"text.{name}": text.sha256 for name, text in corpus.texts.items()},
        "last_steps": how.last_steps,
        "precision": how.precision,
    }


def missing(jobs: Sequence[Job], record: Record, *, retry: bool) -> list[Job]:
    """Jobs that the record does not hold; failures count unless they are to be retried, what was killed does not."""
    held = {
        key_of(line["run"])
        for line in record.lines
        if line["status"] == "ok" or not (retry or line["status"] == "killed")
    }
    return [job for job in jobs if key_of(job.name) not in held]


@dataclass(frozen=True, eq=False)
class _Session:
    request: TrainRequest
    how: How
    corpus: Corpus
    folder: Path
    record: Record
    resolved: Mapping[str, Any] | None  # the study that the candidates were made under

    def run(self, jobs: Sequence[Job], deadline: float | None) -> bool:
        """Train; whether nothing is left."""
        try:
            inner_folder(self.folder, CURVES)
            unfinished = inner_folder(self.folder, UNFINISHED)
            self._write_table()
            scheduler = TrainingScheduler(
                lambda job: job_settings(job, self.how, self.corpus, self.folder),
                self._settle,
                unfinished / STOP,
                self.request.workers,
                deadline,
                self.request.quiet,
            )
            return scheduler.run(jobs)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"Interrupted; {self.folder} holds everything trained and checkpoints of the rest. "
                "The same command with --resume goes on"
            ) from None
        except OSError as error:
            raise PlasError(
                f"{self.folder}: cannot be written ({error.strerror}); free space or change the folder, then the same "
                "command with --resume"
            ) from None

    def _settle(self, job: Job, ended: dict[str, Any]) -> None:
        """Record a training; forget the checkpoint of one that nothing can be added to."""
        self.record.add(row_of(job, self.how, self.corpus, ended))
        self._write_table()
        if ended["status"] in ENDED:
            checkpoint_of(job, self.folder).unlink(missing_ok=True)
        if ended["status"] != "ok":
            notice(f"Warning: {job.name}: {ended['status']}, {ended['reason']}")

    def _write_table(self) -> None:
        if self.record.lines:
            write(self.folder / FILE, trainings_csv(self.record.lines))
            if self.resolved is not None:
                write_study(self.folder / FILE, self.resolved)


def unused_ids(jobs: Sequence[Job]) -> str:
    """That designs have larger vocabularies than the tokenizer, so that they were trained on the text of a smaller one; "" of none."""
    larger = {
        job.model.column("vocabulary") for job in jobs if job.model.column("vocabulary") > job.model.tokenizer.size
    }
    if not larger:
        return ""
    sizes = ", ".join(f"{size:,}" for size in sorted(larger))
    return (
        f"Caution: the tokenizer uses {jobs[0].model.tokenizer.size:,} ids of vocabularies of {sizes}: their losses say nothing of "
        "these vocabularies; train each with a tokenizer of its size"
    )


def _section(
    request: TrainRequest,
    folder: Path,
    jobs: Sequence[Job],
    lines: Sequence[dict[str, Any]],
    corpus: Corpus,
    recipe: Recipe,
) -> Section:
    """How the trainings ended, and the commands that read their files."""
    good = sorted((line for line in lines if line["status"] == "ok"), key=lambda line: line["loss"])
    failed = f", {len(lines) - len(good):,} without a loss" if len(good) < len(lines) else ""
    step = f"{recipe.global_batch:,} x {recipe.sequence_length:,} tokens a step"
    licence = f" (Python's standard library, {STDLIB_LICENCE})" if STDLIB in request.data else ""
    parts = [
        f"Data: {corpus.train.tokens:,} tokens{licence}, {corpus.train.sha256[:12]}; "
        f"validated on {corpus.validation.tokens:,}, {corpus.validation.sha256[:12]}",
        unused_ids(jobs),
    ]
    if good:
        repeats = max(line["epochs"] for line in lines)
        ends = [f"{line['loss']:.4f} (id {line['id']})" for line in (good if len(good) == 1 else (good[0], good[-1]))]
        parts += [
            f"Caution: the data is repeated up to {repeats:.3g} times (column epochs)" if repeats > 1 else "",
            f"Loss, nats per token: {' to '.join(ends)}",
            f"Next: {command('fit')} {in_a_command(folder / FILE)} fits a law to them",
        ]
    parts += ["The same command with --resume trains the rest"] if len(lines) < len(jobs) else []
    title = f"{len(lines):,} of {len(jobs):,} trained in {folder}{failed}; recipe {recipe.name}, {step}"
    return Section(title, tuple(part for part in parts if part))


def how_of(request: TrainRequest) -> How:
    """Device, precision, threads.

    Raises:
        UsageError: none of the choices.
    """
    if not re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", request.device):
        raise UsageError(f"--device: expected cpu, cuda or cuda:INDEX, got {request.device!r}; correct it")
    precision = request.precision or ("fp32" if request.device == "cpu" else "bf16")
    if precision not in PRECISIONS:
        raise UsageError(f"--precision: {unknown('a precision', precision, PRECISIONS)}")
    threads = request.threads or max(1, (os.cpu_count() or 1) // request.workers)
    between = whole_numbers("--losses-after", request.losses_after, 1, MOST_TOKENS) if request.losses_after else []
    return How(request.device, precision, threads, request.last_steps, request.checkpoint_s, between)


def sources_of(request: TrainRequest) -> Sources:
    """Paths of the data, further texts by name.

    Raises:
        UsageError: a text without a name, or one name twice.
    """
    texts: dict[str, str] = {}
    for pair in request.texts:
        name, sign, path = pair.partition("=")
        if not (sign and path and NAME.fullmatch(name)) or name in texts:
            raise UsageError(
                f"--text: expected NAME=PATH, a new name of letters, digits and underscores, got {pair!r}; correct it"
            )
        texts[name] = path
    return Sources(tuple(request.data), tuple(request.evaluation), texts, request.evaluation_tokens)


def recipe_of(request: TrainRequest) -> Recipe:
    """The recipe, with the lengths of the request."""
    given = {"sequence_length": request.sequence_length, "global_batch": request.batch}
    return load_recipe(request.recipe).model_copy(update={k: v for k, v in given.items() if v is not None})


def whole_numbers(flag: str, text: str, least: int, most: int) -> list[int]:
    """Numbers by comma, each once.

    Raises:
        UsageError: something else.
    """
    numbers: list[int] = []
    for part in text.split(","):
        try:
            number = float(part)
        except ValueError:
            number = float("nan")
        if not (least <= number <= most and number.is_integer()):
            raise UsageError(
                f"{flag}: expected whole numbers from {least} by comma, as 200000,1e6, got {text!r}; correct it"
            )
        numbers += [] if int(number) in numbers else [int(number)]
    return numbers


def planned(request: TrainRequest, recipe: Recipe, tokenizer: Tokenizer) -> list[Job]:
    """Every training of the request."""
    tokens = whole_numbers("--tokens", request.tokens, 1, MOST_TOKENS)
    candidates = chosen(request.source, request.how, None, [], {})
    source = list_of(request.source)
    own = {} if source.is_dir() else read_seeds(source)
    given = None if request.seeds is None else whole_numbers("--seeds", request.seeds, 0, 2**31)
    seeds = [given or own.get(name) or [0] for name in candidates.ids]
    architectures = with_vocabulary(candidates.architectures, request.vocabulary, tokenizer.size)
    return jobs_of(architectures, candidates.ids, seeds, tokens, recipe, tokenizer)
