"""LLaMA-Factory: a YAML for pre-training from scratch; training."""

from pathlib import Path
from typing import Any

from nas import yaml_source
from nas.exporting.fields import architecture_fields, training_fields
from nas.exporting.model import Model
from nas.exporting.references import PIVOT_PATH, referred_architecture

FILE = "pretrain.yaml"
HEAD = """\
# Run in the candidate's folder, the one that holds hf: llamafactory-cli train llamafactory/pretrain.yaml
# On one GPU. On more, divide gradient_accumulation_steps by their number, so that the global batch stays.
"""


def emit(model: Model, folder: Path) -> None:
    """pretrain.yaml; the dataset is a name of LLaMA-Factory's to be replaced."""
    (folder / FILE).write_text(HEAD + yaml_source.dump(content(model)), encoding="utf-8")


def content(model: Model) -> dict[str, Any]:
    """The keys of pretrain.yaml.

    Stage pt packs by itself; `packing: true` besides would shorten every sequence by a token.
    """
    recipe, plan = model.recipe, model.schedule
    return {
        "model_name_or_path": PIVOT_PATH,
        "train_from_scratch": not model.weights,
        **({"moe_aux_loss_coef": recipe.auxiliary_loss} if model.sparse else {}),
        "stage": "pt",
        "do_train": True,
        "finetuning_type": "full",
        "dataset": "c4_demo",
        "cutoff_len": recipe.sequence_length,
        "output_dir": f"saves/{model.folder}",
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": recipe.global_batch,
        "max_steps": plan.steps,
        "learning_rate": plan.peak,
        "lr_scheduler_type": "cosine_with_min_lr",
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


def size(_: Model) -> int:
    """No large files."""
    return 0


def cautions(model: Model) -> list[str]:
    """The dataset, initialisation, evaluation with experts."""
    said = ["dataset c4_demo is a placeholder: name yours"]
    if not model.weights:
        said.append("trains from transformers' initialisation, without scaling by depth: --weights writes the recipe's")
    if model.sparse:
        said.append("an evaluation loss of its own contains the auxiliary loss: evaluate the saved model apart")
    return said


def fields(model: Model) -> dict[str, Any]:
    """The architecture behind the path, the recipe, how it starts."""
    return {
        **architecture_fields(model.architecture),
        **training_fields(model),
        "auxiliary_loss": model.recipe.auxiliary_loss if model.sparse else None,
        "from_scratch": not model.weights,
    }


def read(folder: Path) -> dict[str, Any]:
    """The same, from the YAML."""
    c, _ = yaml_source.read(folder / FILE)
    for key, value in {"stage": "pt", "finetuning_type": "full", "lr_scheduler_type": "cosine_with_min_lr"}.items():
        if c.get(key) != value:
            raise ValueError(f"{key}: expected {value!r}, got {c.get(key)!r}")
    if "packing" in c:
        raise ValueError("packing: expected nothing, which packs whole sequences, got a value")
    return {
        **referred_architecture(folder, c["model_name_or_path"]),
        "steps": c["max_steps"],
        "warmup_steps": c["warmup_steps"],
        "learning_rate": c["learning_rate"],
        "final_learning_rate": c["lr_scheduler_kwargs"]["min_lr"],
        "beta1": c["adam_beta1"],
        "beta2": c["adam_beta2"],
        "epsilon": c["adam_epsilon"],
        "weight_decay": c["weight_decay"],
        "gradient_clip": c["max_grad_norm"],
        "sequence_length": c["cutoff_len"],
        "global_batch": c["per_device_train_batch_size"] * c["gradient_accumulation_steps"],
        "auxiliary_loss": c.get("moe_aux_loss_coef"),
        "from_scratch": c["train_from_scratch"],
    }
