"""LLaMA-Factory: a YAML for pre-training from scratch; training."""

from pathlib import Path
from typing import Any

from nas.export.model import Model
from nas.export.stack_files import (
    PIVOT_PATH,
    architecture_fields,
    recipe_fields,
    referred_architecture,
    trainer_arguments,
    training_fields,
)
from nas.files import yaml_source

FILE = "pretrain.yaml"
HEAD = """\
# For LLaMA-Factory 0.9.5.
# Run in the candidate's folder, the one that holds hf: llamafactory-cli train llamafactory/pretrain.yaml
# dataset is a name in dataset_info.json of the folder data, or of another that dataset_dir names; without a GPU add use_cpu=true.
# On one GPU. On more, divide gradient_accumulation_steps by their number, so that the global batch stays.
"""


def emit(model: Model, folder: Path) -> None:
    """pretrain.yaml; the dataset is a name of LLaMA-Factory's to be replaced."""
    (folder / FILE).write_text(HEAD + yaml_source.dump(content(model)), encoding="utf-8")


def content(model: Model) -> dict[str, Any]:
    """The keys of pretrain.yaml.

    Stage pt packs by itself; `packing: true` besides would shorten every sequence by a token.
    """
    recipe = model.recipe
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
        "gradient_accumulation_steps": recipe.global_batch,
        **trainer_arguments(model),
    }


def launch(_: Model) -> str:
    """After naming the dataset in the file."""
    return f"llamafactory-cli train llamafactory/{FILE}"


def size(_: Model) -> int:
    """No large files."""
    return 0


def cautions(model: Model) -> list[str]:
    """The dataset, initialisation, evaluation with experts."""
    lines = ["dataset c4_demo is a placeholder: name yours"]
    if not model.weights:
        lines.append(
            "trains from transformers' initialisation, without scaling by depth: --weights writes the recipe's"
        )
    if model.sparse:
        lines.append("an evaluation loss of its own contains the auxiliary loss: evaluate the saved model apart")
    return lines


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
    for key, value in {"stage": "pt", "finetuning_type": "full"}.items():
        if c.get(key) != value:
            raise ValueError(f"{key}: expected {value!r}, got {c.get(key)!r}")
    if "packing" in c:
        raise ValueError("packing: expected nothing, which packs whole sequences, got a value")
    return {
        **referred_architecture(folder, c["model_name_or_path"]),
        **recipe_fields(c),
        "sequence_length": c["cutoff_len"],
        "global_batch": c["per_device_train_batch_size"] * c["gradient_accumulation_steps"],
        "auxiliary_loss": c.get("moe_aux_loss_coef"),
        "from_scratch": c["train_from_scratch"],
    }
