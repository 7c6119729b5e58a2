"""What files of several stacks have in common: fields to compare, shell commands, Python literals, TrainingArguments, the reference to hf."""

import ast
import shlex
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from nas.export.hf_config import architecture_of
from nas.export.model import Model
from objectives import outside
from search_spaces.architectures import Architectures
from search_spaces.columns import NOT_OF_A_MODEL

PIVOT_PATH = "hf"
HEAD = "#!/usr/bin/env bash\n# Run in the candidate's folder, the one that holds hf.\nset -euo pipefail\n"
SCHEDULER = "cosine_with_min_lr"


def referred_architecture(folder: Path, named: object) -> dict[str, Any]:
    """The architecture behind the path that a stack's file names, seen from the candidate's folder.

    Raises:
        ValueError: it names something else than the pivot.
        OSError: the pivot is not there.
    """
    if named != PIVOT_PATH:
        raise ValueError(f"model: expected {PIVOT_PATH!r}, got {named!r}")
    config = outside.json_of(folder.parent / PIVOT_PATH / "config.json", outside.MB)
    return architecture_fields(architecture_of(config))


def architecture_fields(architecture: Architectures) -> dict[str, Any]:
    """Every stored column of one architecture (n = 1) that a model's file holds: its tokens are in a trainer's steps."""
    names = [field.name for field in fields(Architectures) if field.name not in NOT_OF_A_MODEL]
    return {name: getattr(architecture, name)[0].item() for name in names}


def training_fields(model: Model) -> dict[str, Any]:
    """The recipe's figures that every trainer needs."""
    recipe, plan = model.recipe, model.schedule
    return {
        "steps": plan.steps,
        "warmup_steps": plan.warmup_steps,
        "learning_rate": plan.peak,
        "final_learning_rate": plan.final,
        "beta1": recipe.beta1,
        "beta2": recipe.beta2,
        "epsilon": recipe.epsilon,
        "weight_decay": recipe.weight_decay,
        "gradient_clip": recipe.gradient_clip,
        "sequence_length": recipe.sequence_length,
        "global_batch": recipe.global_batch,
    }


def differences(wanted: dict[str, Any], given: dict[str, Any]) -> list[str]:
    """`field: expected X, got Y` for every field that differs; floats must agree to 12 digits."""
    names = [*wanted, *(name for name in given if name not in wanted)]
    return [
        f"{name}: expected {wanted.get(name, 'nothing')!r}, got {given.get(name, 'nothing')!r}"
        for name in names
        if not _same(wanted.get(name), given.get(name))
    ]


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, (int, float)):
        return bool(abs(first - second) <= 1e-12 * max(abs(first), abs(second)))
    return bool(first == second)


def command(program: str, flags: Iterable[tuple[str, Any]]) -> str:
    """`program \\ --flag value \\ …`; True is a bare flag, False and None are left out."""
    parts = [program]
    for name, value in flags:
        if value is True:
            parts.append(name)
        elif value is not None and value is not False:
            parts.append(f"{name} {shlex.quote(value if isinstance(value, str) else repr(value))}")
    return " \\\n  ".join(parts) + "\n"


def parsed(script: str, program: str) -> list[dict[str, Any]]:
    """Flags of every command of a script that starts with this program, values as they stand."""
    skipped = len(shlex.split(program))
    lines = script.replace("\\\n", " ").splitlines()
    return [_flags(shlex.split(line)[skipped:]) for line in lines if line.startswith(program + " ")]


def _flags(words: list[str]) -> dict[str, Any]:
    flags: dict[str, Any] = {}
    name = ""
    for word in words:
        if word.startswith("-") and not word[1:2].isdigit():
            name = word
            flags[name] = True
        elif name and flags[name] is True:
            flags[name] = word
        elif word != "$@":
            raise ValueError(f"expected a flag, got {word!r}")
    return flags


def number(flags: dict[str, Any], name: str, otherwise: float | None = None) -> Any:
    """A flag's value as an integer where it is one, else as a float.

    Raises:
        ValueError: it is not there and there is nothing otherwise.
    """
    if name not in flags:
        if otherwise is None:
            raise ValueError(f"{name}: expected a value, got nothing")
        return otherwise
    text = str(flags[name])
    return int(text) if text.lstrip("-").isdigit() else float(text)


def literal(content: dict[str, Any]) -> str:
    """A dictionary as Python text, a key a line."""
    return "{\n" + "".join(f"    {key!r}: {value!r},\n" for key, value in content.items()) + "}"


def assigned(text: str) -> dict[str, ast.expr]:
    """Values that a file assigns to names at its top, as syntax."""
    values = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
    return values


def trainer_arguments(model: Model) -> dict[str, Any]:
    """Keys of TrainingArguments that the recipe decides, for one sequence a device and step."""
    recipe, plan = model.recipe, model.schedule
    return {
        "per_device_train_batch_size": 1,
        "max_steps": plan.steps,
        "learning_rate": plan.peak,
        "lr_scheduler_type": SCHEDULER,
        "lr_scheduler_kwargs": {"min_lr": plan.final},
        "warmup_steps": plan.warmup_steps,
        "optim": "adamw_torch",
        "adam_beta1": recipe.beta1,
        "adam_beta2": recipe.beta2,
        "adam_epsilon": recipe.epsilon,
        "weight_decay": recipe.weight_decay,
        "max_grad_norm": recipe.gradient_clip,
        "bf16": True,
        "logging_steps": 10,
        "save_steps": max(plan.steps // 10, 1),
    }


def recipe_fields(arguments: dict[str, Any]) -> dict[str, Any]:
    """The recipe's fields from such keys, all but the lengths.

    Raises:
        ValueError: another schedule.
        KeyError: a key is not there.
    """
    if arguments["lr_scheduler_type"] != SCHEDULER:
        raise ValueError(f"lr_scheduler_type: expected {SCHEDULER!r}, got {arguments['lr_scheduler_type']!r}")
    return {
        "steps": arguments["max_steps"],
        "warmup_steps": arguments["warmup_steps"],
        "learning_rate": arguments["learning_rate"],
        "final_learning_rate": arguments["lr_scheduler_kwargs"]["min_lr"],
        "beta1": arguments["adam_beta1"],
        "beta2": arguments["adam_beta2"],
        "epsilon": arguments["adam_epsilon"],
        "weight_decay": arguments["weight_decay"],
        "gradient_clip": arguments["max_grad_norm"],
    }
