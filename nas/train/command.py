"""Runs `train`: candidates, data, a process each, and the table that `fit` reads."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas.errors import PlasError, UsageError
from nas.export.recipe import Recipe
from nas.export.sources import STDLIB, STDLIB_LICENCE
from nas.export.tokenizer import Tokenizer, tokenizer_for
from nas.export.transformers_check import refuse_missing
from nas.export.writing import folder_names
from nas.files.own_files import ENDING, inner_folder, made_folder
from nas.files.tables import write
from nas.record.folder import create, locked
from nas.record.jsonl_log import SETTINGS, Record
from nas.terminal.console import notice, say, say_json
from nas.terminal.program import command
from nas.terminal.progress import Stages
from nas.train.corpus import FOLDER as DATA
from nas.train.corpus import Corpus, Sources, prepared, tokenizer_digest
from nas.train.jobs import CURVES, STOP, UNFINISHED, How, Job, checkpoint_of, job_settings, key_of, refuse_short, row_of
from nas.train.meaning import how_of, planned, recipe_of, sources_of
from nas.train.request import TrainRequest
from nas.train.scheduler import TrainingScheduler
from nas.train.table import FILE, LOG, trainings_csv
from objectives.display_text import in_a_command

OWN = {".lock", SETTINGS, LOG, DATA, CURVES, UNFINISHED}  # what lies in a folder before anything is recorded
ENDED = ("ok", "diverged")  # the same again each time: nothing to go on from


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
        corpus = corpus_of(request, folder, sources, tokenizer)
        refuse_short(corpus, recipe)
        if not _begun(folder):
            (folder / SETTINGS).unlink(missing_ok=True)
        record = Record(folder, settings_of(recipe, tokenizer, corpus, how), "train", LOG)
        left = missing(jobs, record, retry=request.retry_failed)
        session = _Session(request, how, corpus, folder, record)
        whole = session.run(left, None if request.time_limit is None else begin + request.time_limit)
    _show(request, folder, jobs, record, corpus, recipe, whole=whole)


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
    if not begun and any(each.name not in OWN and not each.name.endswith(ENDING) for each in folder.iterdir()):
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


def corpus_of(request: TrainRequest, folder: Path, sources: Sources, tokenizer: Tokenizer) -> Corpus:
    """The token files."""
    stages = Stages(quiet=request.quiet)
    try:
        return prepared(folder, sources, tokenizer, stages)
    finally:
        stages.close()


def settings_of(recipe: Recipe, tokenizer: Tokenizer, corpus: Corpus, how: How) -> dict[str, Any]:
    """Settings that every training of a folder shares, so that their losses compare."""
    plain = recipe.model_dump(mode="json", exclude={"tokens", "description", "source", "accelerator", "utilisation"})
    return {
        **{f"recipe.{name}": value for name, value in plain.items()},
        "tokenizer": tokenizer_digest(tokenizer),
        "data": corpus.train.sha256,
        "validation": corpus.validation.sha256,
        **{f"text.{name}": told_of.sha256 for name, told_of in corpus.texts.items()},
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


def _show(
    request: TrainRequest,
    folder: Path,
    jobs: Sequence[Job],
    record: Record,
    corpus: Corpus,
    recipe: Recipe,
    *,
    whole: bool,
) -> None:
    """Print how the trainings ended, and the commands that read their files."""
    keys = {key_of(job.name) for job in jobs}
    own = {key_of(line["run"]): line for line in record.lines if key_of(line["run"]) in keys}
    good = [line for line in own.values() if line["status"] == "ok"]
    if request.json:
        say_json({"folder": str(folder), "asked": len(jobs), "whole": whole, "trainings": list(own.values())})
    else:
        _say(request, folder, jobs, list(own.values()), corpus, recipe)
    if whole and not good:
        raise PlasError(f"{folder}: expected losses, got {len(own):,} failed trainings; {folder / FILE} says why")


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


def _say(
    request: TrainRequest,
    folder: Path,
    jobs: Sequence[Job],
    lines: Sequence[dict[str, Any]],
    corpus: Corpus,
    recipe: Recipe,
) -> None:
    good = sorted((line for line in lines if line["status"] == "ok"), key=lambda line: line["loss"])
    failed = f", {len(lines) - len(good):,} without a loss" if len(good) < len(lines) else ""
    say(
        f"{len(lines):,} of {len(jobs):,} trained in {folder}{failed}; recipe {recipe.name}, "
        f"{recipe.global_batch:,} x {recipe.sequence_length:,} tokens a step"
    )
    licence = f" (Python's standard library, {STDLIB_LICENCE})" if STDLIB in request.data else ""
    say(
        f"Data: {corpus.train.tokens:,} tokens{licence}, {corpus.train.sha256[:12]}; "
        f"validated on {corpus.validation.tokens:,}, {corpus.validation.sha256[:12]}"
    )
    if line := unused_ids(jobs):
        say(line)
    if good:
        repeats = max(line["epochs"] for line in lines)
        if repeats > 1:
            say(f"Caution: the data is repeated up to {repeats:.3g} times (column epochs)")
        ends = [f"{line['loss']:.4f} (id {line['id']})" for line in (good if len(good) == 1 else (good[0], good[-1]))]
        say(f"Loss, nats per token: {' to '.join(ends)}")
        say(f"Next: {command('fit')} {in_a_command(folder / FILE)} fits a law to them")
    if len(lines) < len(jobs):
        say("The same command with --resume trains the rest")
