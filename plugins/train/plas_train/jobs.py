"""One training: an architecture, its number of tokens and a seed, all that its worker needs, and its row of `trainings.csv`."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.export.families import TRAIN, refuse_stack
from nas.export.folder import folder_names
from nas.export.hf_config import config_of
from nas.export.model import Model, Workload
from nas.export.recipe import Recipe, training_flops
from nas.export.tokenizer import Tokenizer, refuse_larger
from nas.files.tables import csv_text
from objectives import counts
from objectives.loss_law.features import feature
from objectives.metrics.perplexity import of_losses
from plas_train.corpus import DATA, Corpus, TokenFile
from search_spaces.architectures import Architectures
from search_spaces.arrays import python_value

CURVES, UNFINISHED, STOP = "curves", "unfinished", "stop"
AT_ONCE, MOST_AT_ONCE = 16_384, 65_536  # tokens whose gradients are worked out at once; on a GPU, of small models
ACTIVATIONS = 4.1e8  # tokens x depth x width of these, about 45 GB where layers are not compiled
FILE = "trainings.csv"
LOG = "trainings.jsonl"


@dataclass(frozen=True, eq=False)
class Job:
    """One training; `name` identifies architecture, tokens and seed, whatever the candidate is called."""

    name: str
    model: Model

    @property
    def tokens(self) -> int:
        """Tokens of all steps."""
        return self.model.schedule.steps * self.model.recipe.step_tokens

    @property
    def flops(self) -> float:
        """FLOP of the whole training."""
        return float(training_flops(self.model.architecture, self.model.recipe)[0])


@dataclass(frozen=True)
class How:
    """Settings that all trainings share."""

    device: str
    precision: str
    threads: int
    last_steps: int
    checkpoint_s: float
    between: Sequence[int] = ()  # tokens after which the validation loss is kept too


def jobs_of(
    architectures: Architectures,
    ids: Sequence[str],
    seeds: Sequence[Sequence[int]],
    tokens: Sequence[int],
    recipe: Recipe,
    tokenizer: Tokenizer,
) -> list[Job]:
    """Every architecture with each number of tokens and each of its seeds; the same training twice is one.

    Raises:
        UsageError: an architecture that no class holds, a tokenizer that does not fit, fewer tokens than a batch.
    """
    jobs: dict[str, Job] = {}
    architectures = architectures.with_tokens(0)  # what a search chose for each is not what is asked for here
    for total in tokens:
        whole = recipe.model_copy(update={"tokens": float(rounded_to_batches(total, recipe))})
        for i, identity in enumerate(ids):
            for seed in seeds[i]:
                workload = Workload(1, recipe.sequence_length, 1)
                model = Model(identity, "", architectures[i : i + 1], tokenizer, whole, workload, False, seed)
                _refuse_impossible(model)
                name = name_of(model)
                jobs.setdefault(name, Job(name, model))
    return list(jobs.values())


def rounded_to_batches(tokens: int, recipe: Recipe) -> int:
    """Tokens rounded up to whole batches of a recipe.

    Raises:
        UsageError: less than one batch.
    """
    batch = recipe.step_tokens
    if tokens < batch:
        raise UsageError(
            f"--tokens: expected at least a batch of {recipe.global_batch:,} x {recipe.sequence_length:,} = {batch:,}, "
            f"got {tokens:,}; train longer, or take a recipe with smaller batches"
        )
    return math.ceil(tokens / batch) * batch


def _refuse_impossible(model: Model) -> None:
    try:
        refuse_stack(model.architecture, TRAIN)
        refuse_larger(model.tokenizer, model.column("vocabulary"))
    except UsageError as error:
        raise UsageError(f"{model.id}: {error}") from None


def architecture_columns(architecture: Architectures) -> dict[str, Any]:
    """One architecture's columns as files name them, plain numbers."""
    return {name: python_value(column[0]) for name, column in architecture.columns().items()}


def name_of(model: Model) -> str:
    """A file name: the candidate's id, a hash of its architecture, tokens, seed."""
    columns = json.dumps(architecture_columns(model.architecture), sort_keys=True)
    digest = hashlib.sha256(columns.encode()).hexdigest()[:10]
    short = folder_names([model.id])[0][:40]
    return f"{short}-{digest}-t{model.recipe.tokens:.0f}-s{model.seed}"


def key_of(name: str) -> str:
    """The part of a name that identifies the training itself: not the candidate's name."""
    return "-".join(name.rsplit("-", 3)[1:])


def job_settings(job: Job, how: How, corpus: Corpus, folder: Path) -> dict[str, Any]:
    """The worker's job."""
    model, plan, recipe = job.model, job.model.schedule, job.model.recipe
    config = {
        name: value for name, value in config_of(model).items() if name not in ("dtype", "torch_dtype", "architectures")
    }
    learnt = {
        "config": config,
        "params_total": int(counts.total(model.architecture)[0]),
        **{
            name: getattr(plan, name)
            for name in ("steps", "warmup_steps", "peak", "final", "std", "residual_std", "expert_std")
        },
        **{name: getattr(recipe, name) for name in ("sequence_length", "global_batch", "beta1", "beta2", "epsilon")},
        **{name: getattr(recipe, name) for name in ("weight_decay", "gradient_clip", "auxiliary_loss")},
        "seed": model.seed,
        "last_steps": min(how.last_steps, plan.steps),
        "precision": how.precision,
        "data": _file(corpus.train, folder),
        "validation": _file(corpus.validation, folder),
    }
    if how.between:
        learnt["between_steps"] = between_steps(job, how)
    room = 0.0 if how.device == "cpu" else ACTIVATIONS / (model.column("depth") * model.column("width"))
    parts = math.ceil(recipe.step_tokens / max(AT_ONCE, min(MOST_AT_ONCE, room)))
    identity = {**learnt, **{name: learnt[name]["sha256"] for name in ("data", "validation")}}
    return {
        **learnt,
        "identity": hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
        "texts": {name: _file(text, folder) for name, text in corpus.texts.items()},
        "device": how.device,
        "flops": job.flops,
        "micro_batch": math.ceil(recipe.global_batch / parts),
        "threads": how.threads,
        "checkpoint_s": how.checkpoint_s,
        "checkpoint": str(checkpoint_of(job, folder)),
        "curve": str((folder / CURVES / f"{job.name}.csv").absolute()),
        "stop": str((folder / UNFINISHED / STOP).absolute()),
    }


def between_steps(job: Job, how: How) -> list[int]:
    """Steps before the last after which `How.between` tokens have been seen."""
    batch = job.model.recipe.step_tokens
    steps = sorted({math.ceil(tokens / batch) for tokens in how.between})
    return [step for step in steps if step < job.model.schedule.steps]


def checkpoint_of(job: Job, folder: Path) -> Path:
    """Where a training keeps what it needs to go on."""
    return (folder / UNFINISHED / f"{key_of(job.name)}.pt").absolute()


def _file(of: TokenFile, folder: Path) -> dict[str, Any]:
    return {"path": str((folder / DATA / of.name).absolute()), "dtype": of.dtype, "sha256": of.sha256}


def refuse_short(corpus: Corpus, recipe: Recipe) -> None:
    """Refuse texts that are shorter than one sequence.

    Raises:
        UsageError: with how many tokens there are.
    """
    flags = {"--data": corpus.train, "--eval": corpus.validation}
    flags |= {f"--text {name}": text for name, text in corpus.texts.items()}
    for flag, file in flags.items():
        if file.tokens <= recipe.sequence_length:
            hint = ", or name a validation text with --eval" if flag == "--eval" else ""
            raise UsageError(
                f"{flag}: expected more than {recipe.sequence_length:,} tokens, one sequence, got {file.tokens:,}; "
                f"name more text{hint}"
            )


def row_of(job: Job, how: How, corpus: Corpus, ended: dict[str, Any]) -> dict[str, Any]:
    """A line of the record: the training, and how it ended (`status`, `reason`, `loss`, `texts`, `seconds`)."""
    model, recipe = job.model, job.model.recipe
    of_sequences = (corpus.train.tokens - 1) // recipe.sequence_length * recipe.sequence_length
    return {
        "id": model.id,
        "run": job.name,
        "tokens": job.tokens,
        "seed": model.seed,
        "status": ended["status"],
        "reason": ended["reason"],
        **_losses(ended, corpus),
        **_between(job, how, ended),
        "learning_rate": model.schedule.peak,
        **{name: int(feature(model.architecture, name)[0]) for name in ("parameters", "active_parameters")},
        "params_total": int(counts.total(model.architecture)[0]),
        "training_flops": job.flops,
        "seconds": round(ended["seconds"], 3),
        "epochs": round(job.tokens / of_sequences, 4),
        "steps": model.schedule.steps,
        "recipe": recipe.name,
        "device": how.device,
        "threads": how.threads,
        "engine": ended.get("engine", ""),
        **architecture_columns(model.architecture),
    }


def _losses(ended: dict[str, Any], corpus: Corpus) -> dict[str, Any]:
    """Nats per token and bits per byte of the validation set, then of each further text with its perplexity."""
    loss, texts = ended.get("loss"), ended.get("texts") or {}
    columns: dict[str, Any] = {"loss": loss, "bits_per_byte": bits_per_byte(loss, corpus.validation)}
    for name, text in corpus.texts.items():
        own = texts.get(name)
        columns[f"loss_{name}"] = own
        columns[f"bits_per_byte_{name}"] = bits_per_byte(own, text)
        columns[f"perplexity_{name}"] = None if own is None else float(of_losses(own))
    return columns


def _between(job: Job, how: How, ended: dict[str, Any]) -> dict[str, float]:
    """Validation losses on the way, nats per token, by the tokens seen until then; only those that were reached."""
    batch = job.model.recipe.step_tokens
    steps, losses = between_steps(job, how), ended.get("between") or []
    return {f"loss_after_{step * batch}": loss for step, loss in zip(steps, losses, strict=False)}


def bits_per_byte(loss: float | None, of: TokenFile) -> float | None:
    """loss / ln 2 · tokens / bytes: nats per token as bits per byte of the text."""
    return None if loss is None else loss / math.log(2.0) * of.tokens / of.bytes


def largest_first(jobs: Iterable[Job]) -> list[Job]:
    """The costliest first, so that the end is not one straggler."""
    return sorted(jobs, key=lambda job: (-job.flops, job.name))


def trainings_csv(lines: Sequence[dict[str, Any]]) -> str:
    """The last line of each training, by name with numbers in their order; what a row does not have is empty."""
    last = {line["run"]: line for line in lines}
    rows = sorted(last.values(), key=lambda row: _natural(row["run"]))
    names = list(dict.fromkeys(name for row in rows for name in row))
    return csv_text({name: ["" if row.get(name) is None else row[name] for row in rows] for name in names})


def _natural(name: str) -> list[tuple[bool, int, str]]:
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"([0-9]+)", name) if part]
