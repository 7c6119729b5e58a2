"""torchtitan 0.3: a configuration for its transformers backend; training."""

import ast
from pathlib import Path
from typing import Any

from nas.export.model import Model
from nas.export.stack_files import (
    PIVOT_PATH,
    architecture_fields,
    assigned,
    literal,
    referred_architecture,
    training_fields,
)
from objectives import outside

FILE = "candidate.py"
LOAD_BALANCE = 1e-3
PLACE = "str(Path(__file__).resolve().parents[1] / 'hf')"
TEMPLATE = '''\
"""PLAS candidate for torchtitan 0.3's transformers backend.

PYTHONPATH=torchtitan torchrun --nproc-per-node GPUS -m torchtitan.train --module candidate --config candidate
"""

from pathlib import Path

from torchtitan.components.checkpoint import CheckpointManager
from torchtitan.components.loss import CrossEntropyLoss
from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw
from torchtitan.config import TrainingConfig
from torchtitan.experiments.transformers_modeling_backend import (
    HFTransformerModel,
    {model_class},
    model_registry,
)
from torchtitan.experiments.transformers_modeling_backend.configs import TransformersBackendConfig
from torchtitan.hf_datasets.text_datasets import HuggingFaceTextDataLoader

HF = str(Path(__file__).resolve().parents[1] / "hf")  # every shape is read from there
MODEL = {model}
OPTIMIZER = {optimizer}
SCHEDULE = {schedule}
TRAINING = {training}
CHECKPOINT = {checkpoint}


def candidate() -> TransformersBackendConfig:
    spec = model_registry("{flavor}")
    spec.flavor = "plas"
    spec.model = HFTransformerModel.Config(model_config={model_class}(**MODEL))
    return TransformersBackendConfig(
        loss=CrossEntropyLoss.Config(),
        hf_assets_path=HF,
        hf_model=HF,
        model_spec=spec,
        optimizer=default_adamw(**OPTIMIZER),
        lr_scheduler=LRSchedulersContainer.Config(**SCHEDULE),
        training=TrainingConfig(**TRAINING),
        dataloader=HuggingFaceTextDataLoader.Config(dataset="c4"),
        checkpoint=CheckpointManager.Config({initial}**CHECKPOINT),
    )
'''


def emit(model: Model, folder: Path) -> None:
    """candidate.py, whose numbers are plain dictionaries at its top.

    MODEL has no shapes: a width given here makes torchtitan derive FFN size and head size again, other than the directory's.
    """
    recipe, plan = model.recipe, model.schedule
    optimizer = {"lr": plan.peak, "betas": (recipe.beta1, recipe.beta2), "eps": recipe.epsilon}
    schedule = {"warmup_steps": plan.warmup_steps, "decay_type": "cosine", "min_lr_factor": plan.final / plan.peak}
    training = {
        "local_batch_size": 1,
        "global_batch_size": recipe.global_batch,
        "seq_len": recipe.sequence_length,
        "max_norm": recipe.gradient_clip,
        "steps": plan.steps,
    }
    start = {"initial_load_in_hf": True, "initial_load_model_only": True} if model.weights else {}
    text = TEMPLATE.format(
        model_class="TitanMoeModelConfig" if model.sparse else "TitanModelConfig",
        flavor="full_moe" if model.sparse else "full",
        model=literal({"load_balance_coeff": LOAD_BALANCE} if model.sparse else {}),
        optimizer=literal({**optimizer, "weight_decay": recipe.weight_decay}),
        schedule=literal(schedule),
        training=literal(training),
        checkpoint=literal({"enable": True, "interval": max(plan.steps // 10, 1), **start}),
        initial="initial_load_path=HF, " if model.weights else "",
    )
    (folder / FILE).write_text(text, encoding="utf-8")


def launch(_: Model) -> str:
    """Its module lies in the stack's folder."""
    return 'PYTHONPATH=torchtitan torchrun --nproc-per-node "$GPUS" -m torchtitan.train --module candidate --config candidate'


def size(_: Model) -> int:
    """No large files."""
    return 0


def cautions(model: Model) -> list[str]:
    """Class, load balancing, initialisation, dataset."""
    lines = ["dataset c4 is a placeholder: name yours"]
    if model.sparse:
        lines.append(
            f"balances experts by a bias on the router (load_balance_coeff {LOAD_BALANCE:g}), not by the recipe's auxiliary loss"
        )
    if not model.weights:
        lines.append("initialises as torchtitan does, not as the recipe says: --weights writes the recipe's")
    return lines


def fields(model: Model) -> dict[str, Any]:
    """The architecture and the recipe."""
    return {
        **architecture_fields(model.architecture),
        **training_fields(model),
        "starts_from_weights": model.weights,
        "load_balance": LOAD_BALANCE if model.sparse else None,
    }


def read(folder: Path) -> dict[str, Any]:
    """The same, from candidate.py without executing it, and from the directory that it names."""
    values = assigned(outside.text(folder / FILE, outside.MB))
    if ast.unparse(values["HF"]) != PLACE:
        raise ValueError(f"HF: expected {PLACE}, got {ast.unparse(values['HF'])}")
    names = ("MODEL", "OPTIMIZER", "SCHEDULE", "TRAINING", "CHECKPOINT")
    shape, optimizer, schedule, training, checkpoint = (ast.literal_eval(values[name]) for name in names)
    if overridden := sorted(set(shape) - {"load_balance_coeff"}):
        raise ValueError(f"MODEL: expected no shapes, got {', '.join(overridden)}")
    return {
        **referred_architecture(folder, PIVOT_PATH),
        "steps": training["steps"],
        "warmup_steps": schedule["warmup_steps"],
        "learning_rate": optimizer["lr"],
        "final_learning_rate": optimizer["lr"] * schedule["min_lr_factor"],
        "beta1": optimizer["betas"][0],
        "beta2": optimizer["betas"][1],
        "epsilon": optimizer["eps"],
        "weight_decay": optimizer["weight_decay"],
        "gradient_clip": training["max_norm"],
        "sequence_length": training["seq_len"],
        "global_batch": training["global_batch_size"],
        "starts_from_weights": checkpoint.get("initial_load_in_hf", False),
        "load_balance": shape.get("load_balance_coeff"),
    }
