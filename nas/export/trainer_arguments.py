"""The recipe in the words of transformers' TrainingArguments, which several stacks take."""

from typing import Any

from nas.export.model import Model

SCHEDULER = "cosine_with_min_lr"


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
