"""Validation loss after a training on so many tokens, nats per token; the key train says how. Takes minutes."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nas.errors import NotRunError, PlasError, UsageError
from nas.export.candidates import with_vocabulary
from nas.export.documents import STDLIB
from nas.export.hf_config import refuse_missing
from nas.export.recipe import Recipe, checked_recipe, load_recipe
from nas.export.tokenizer import Tokenizer, refuse_larger, tokenizer_for
from nas.files.faults import Faults
from nas.record.process import Worker
from nas.search.reading import refuse_layers, refuse_settings
from nas.study.configuration import StudyConfig
from nas.study.expensive_settings import TrainSettings
from plas_train import scheduler
from plas_train.corpus import DATA, Corpus, Sources, kept, text_of
from plas_train.jobs import CURVES, UNFINISHED, How, Job, job_settings, jobs_of, refuse_short, rounded_to_batches
from search_spaces.architectures import Architectures
from search_spaces.space import SearchSpace

UNIT, LOG_SCALE, PRIOR = "", False, "loss"
COST_S = 60.0  # of a small one; formulas come first whatever it is
LOOK_S = 0.2
NAMES = {
    "--data": "train.data",
    "--eval": "train.validation",
    "--tokens": "train.tokens",
    "--tokenizer": "train.tokenizer",
}
BEYOND_THE_DESIGN = ("no_device", "unwritable")  # states that any design would come to on this machine


@dataclass(frozen=True, eq=False)
class _Ready:
    """Data that every training in a process shares; `folder` holds the token files."""

    settings: TrainSettings
    recipe: Recipe
    tokenizer: Tokenizer
    folder: Path
    corpus: Corpus

    @property
    def how(self) -> How:
        """Device, precision, threads; no checkpoint before the end."""
        s = self.settings
        precision = s.precision or ("fp32" if s.device == "cpu" else "bf16")
        return How(s.device, precision, s.threads, s.last_steps, float("inf"))

    def job(self, architecture: Architectures, tokens: float) -> Job:
        """The training of one architecture on so many tokens."""
        dressed = with_vocabulary(architecture, None, self.tokenizer.size)
        return jobs_of(dressed, ["design"], [[self.settings.seed]], [int(tokens)], self.recipe, self.tokenizer)[0]


def resolved_settings(config: StudyConfig, space: SearchSpace) -> tuple[TrainSettings, str, list[str]]:
    """The study's settings with recipe and hash of the texts; the metric that approximates it; notices.

    Raises:
        UsageError: no settings, or what no training of this space could do.
    """
    given = config.train
    if given is None:
        raise UsageError(
            "train: expected how to train, got nothing; add for example train: {data: stdlib, tokens: 1e6}"
        )
    refuse_settings("train", space)
    refuse_layers("train", space)
    settings = given.model_copy(
        update={
            "data": [place if place == STDLIB else str(Path(place).absolute()) for place in given.data],
            "validation": [str(Path(place).absolute()) for place in given.validation],
            "tokenizer": given.tokenizer if given.tokenizer == "bytes" else str(Path(given.tokenizer).absolute()),
            "recipe": _recipe(given.recipe).model_dump(mode="json"),
        }
    )
    settings = settings.model_copy(update={"text": _text(settings, config.head[0])})
    bits = config.precision not in ("fp16", "bf16", "fp32")
    return (
        settings,
        PRIOR,
        [f"train: losses of weights that are not quantised, whatever {config.precision} costs"] * bits,
    )


def _recipe(given: str | dict[str, Any]) -> Recipe:
    """A recipe by name, file or content.

    Raises:
        UsageError: every fault in it.
    """
    try:
        return load_recipe(given) if isinstance(given, str) else checked_recipe(given, Faults({}))
    except UsageError as error:
        raise UsageError(f"train.{error}" if str(error).startswith("recipe: ") else f"train.recipe: {error}") from None


def _text(settings: TrainSettings, vocabulary: int) -> str:
    """The hash of texts that can be trained on, as token ids in files here.

    Raises:
        UsageError: they cannot be, or are others than the settings say.
    """
    try:
        tokenizer, recipe, sources = tokenizer_for(settings.tokenizer), _recipe(settings.recipe), _sources(settings)
        refuse_larger(tokenizer, vocabulary or tokenizer.size)
        rounded_to_batches(int(settings.least_tokens), recipe)
        text = text_of(sources, tokenizer)
        if settings.text not in (None, text):
            raise UsageError(
                f"train.data: expected the text {str(settings.text)[:12]} that the study names, got {text[:12]}; restore it, "
                "or train on this one in a new run without train.text"
            )
        refuse_short(kept(text, sources, tokenizer)[1], recipe)
    except UsageError as error:
        raise UsageError(_with_keys(str(error))) from None
    return text


def _with_keys(message: str) -> str:
    """A sentence about flags of the command train as one about the study's keys."""
    for flag, key in NAMES.items():
        message = (
            message.replace(f"{flag}:", f"{key}:")
            .replace(f"with {flag}", f"as {key}")
            .replace(f", or {flag} ", f", or {key}: ")
        )
    return message


def _sources(settings: TrainSettings) -> Sources:
    return Sources(settings.data, settings.validation, {}, settings.validation_tokens)


def refuse_here(settings: Mapping[str, Any]) -> None:
    """Refuse to begin without the packages that train.

    Raises:
        UsageError: naming what to install.
    """
    refuse_missing("train")


def train(architectures: Architectures, *, settings: Mapping[str, Any], fidelity: float | None = None) -> list[float]:
    """Validation loss of each architecture, nats per token, (n,), each trained in a process of its own, one after another.

    `fidelity` is the number of tokens, where the settings have several.

    Raises:
        NotRunError: this machine lacks the texts, the packages, the device, or space to write.
        PlasError: a training that ended without a loss, with its state and reason.
    """
    try:
        ready = _ready(json.dumps(dict(settings), sort_keys=True))
    except (UsageError, OSError) as error:
        raise NotRunError(str(error)) from None
    tokens = ready.settings.most_tokens if fidelity is None else fidelity
    return [_loss(ready, ready.job(architectures[i : i + 1], tokens)) for i in range(len(architectures))]


@lru_cache(maxsize=2)
def _ready(written: str) -> _Ready:
    settings = TrainSettings.model_validate_json(written)
    refuse_missing("train")
    tokenizer = tokenizer_for(settings.tokenizer)
    folder, corpus = kept(str(settings.text), _sources(settings), tokenizer)
    return _Ready(settings, _recipe(settings.recipe), tokenizer, folder, corpus)


def _loss(ready: _Ready, job: Job) -> float:
    with TemporaryDirectory(prefix="plas-train-") as scratch:
        folder = Path(scratch)
        (folder / DATA).symlink_to(ready.folder / DATA)
        for name in (CURVES, UNFINISHED):
            (folder / name).mkdir()
        ended = _trained(job_settings(job, ready.how, ready.corpus, folder))
    if ended["status"] in BEYOND_THE_DESIGN:
        raise NotRunError(f"{ended['status']}: {ended['reason']}")
    if ended["status"] != "ok":
        raise PlasError(f"{ended['status']}, {ended['reason']}")
    return float(ended["loss"])


def _trained(settings: Mapping[str, Any]) -> dict[str, Any]:
    """How a training ended; it is gone when this returns, and when this process is killed."""
    try:
        worker = Worker([sys.executable, str(scheduler.SCRIPT)], settings, parse=scheduler.result)
    except OSError as error:
        raise NotRunError(f"{sys.executable}: cannot be started ({error.strerror})") from None
    try:
        while not worker.wait(LOOK_S):
            pass
    finally:
        answer = worker.ended()
    return scheduler.how_it_ended(answer)
