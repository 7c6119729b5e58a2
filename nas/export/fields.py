"""Fields of an architecture and of a recipe as plain values, compared when an export is read back."""

from dataclasses import fields
from typing import Any

from nas.export.model import Model
from search_spaces.architectures import Architectures
from search_spaces.columns import NOT_OF_A_MODEL


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


def differences(wanted: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """`field: expected X, got Y` for every field that differs; floats must agree to 12 digits."""
    names = [*wanted, *(name for name in found if name not in wanted)]
    return [
        f"{name}: expected {wanted.get(name, 'nothing')!r}, got {found.get(name, 'nothing')!r}"
        for name in names
        if not _same(wanted.get(name), found.get(name))
    ]


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, (int, float)):
        return bool(abs(first - second) <= 1e-12 * max(abs(first), abs(second)))
    return bool(first == second)
