"""Names that other tables give to our columns, also behind a tracker's prefix, and to how a run ended."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from search_spaces.columns import CALLED

ALSO_CALLED = {
    **CALLED,
    "parameters": ("params", "n_params", "num_params", "n_parameters", "num_parameters", "total_params"),
    "active_parameters": ("active_params", "n_active_params", "num_active_params", "activated_params"),
    "training_flops": ("train_flops", "training_flop"),
    "learning_rate": ("lr", "max_lr", "peak_lr", "max_learning_rate", "peak_learning_rate"),
    "batch": ("bs", "bsz", "batch_size", "global_batch_size"),
}
ALIAS = {alias: name for name, aliases in ALSO_CALLED.items() for alias in aliases}
PREFIX = re.compile(r"(?:(?:config|params|metrics|summary|hparams|model|model_config)[./])+")  # of a tracker
IN_UNITS = re.compile(r"\s*[(\[]([kKMBT])[)\]]$")  # at the end of a name: `Tokens (B)`
UNITS = {"k": "1e3", "K": "1e3", "M": "1e6", "B": "1e9", "T": "1e12"}
OUR_DONE = "ok"  # what a table of `plas train` calls a training that ended
DONE = {"finished", "completed", OUR_DONE}
STATES = DONE | {
    *("crashed", "failed", "killed", "running", "preempting", "preempted", "scheduled"),
    *("diverged", "out_of_memory", "timeout", "interrupted"),
}
STATUS = ("state", "status", "State", "Status")  # also as the pages of Weights & Biases and MLflow export them


def bare(name: str) -> str:
    """A column's name without a tracker's prefix: `config.hidden_size` is hidden_size."""
    prefix = PREFIX.match(name)
    return name[prefix.end() if prefix else 0 :].removesuffix(".value")


def inexact(unread: Iterable[str], read: Collection[str], known: Collection[str], path: Path) -> list[str]:
    """Faults of columns not read that but for case, blanks and hyphens have the name of a known one which is not read: else it were taken for absent."""
    faults = []
    for name, (meant, unit) in meant_by(unread, read, known).items():
        line = f'df["{meant}"] = df["{name}"] * {unit}' if unit else f'df = df.rename(columns={{"{name}": "{meant}"}})'
        faults.append(f"{path}:1: expected {meant} by an exact name, got {name}; {line}")
    return faults


def meant_by(unread: Iterable[str], read: Collection[str], choices: Collection[str]) -> dict[str, tuple[str, str]]:
    """Of columns not read that but for their spelling have the name of a known one: that name, and the factor of a unit behind it ("" of none)."""
    meant: dict[str, tuple[str, str]] = {}
    for name in unread:
        unit = IN_UNITS.search(name)
        written = in_small_letters(name if unit is None else name[: unit.start()])
        wanted = ALIAS.get(written, written)
        if wanted in choices and wanted not in read:
            meant[name] = (wanted, "" if unit is None else UNITS[unit[1]])
    return meant


def in_small_letters(name: str) -> str:
    """A name in small letters with underscores, without a tracker's prefix: `nLayer` is n_layer, `Val/Loss` val_loss."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", bare(name).replace("#", "n "))
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
