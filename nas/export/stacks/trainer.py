"""Hugging Face Trainer: a script that pre-trains from text or token ids; training."""

import ast
from pathlib import Path
from typing import Any

from nas.export.model import Model
from nas.export.stack_files import PIVOT_PATH, architecture_fields, referred_architecture
from objectives import outside

FILE = "train.py"
SCHEDULER = "cosine_with_min_lr"
PLACE = f'Path(__file__).resolve().parents[1] / "{PIVOT_PATH}"'
TEMPLATE = '''\
"""Pre-train this candidate with the Trainer of transformers 4.57 or 5 (needs torch, transformers, accelerate).

torchrun --nproc-per-node GPUS trainer/train.py corpus.txt …   UTF-8 text, tokenised whole in memory
torchrun --nproc-per-node GPUS trainer/train.py ids.npy …      token ids, each file a one-dimensional NumPy array

One sequence a GPU at a time: gradients accumulate to the global batch. --eval FILE gives a validation loss.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

HF = {place}
WEIGHTS = {weights}  # whether hf holds weights to start from
EXPERTS = {experts}  # whether a loss of balance is added, in training only
SEQUENCE_LENGTH = {sequence_length}
GLOBAL_BATCH = {global_batch}
SEED = {seed}
ARGUMENTS = {arguments}


class Sequences(torch.utils.data.Dataset):
    """Token ids of all files in a row, cut into sequences; the rest is left out."""

    def __init__(self, files):
        self.ids = [np.load(file, mmap_mode="r") if file.suffix == ".npy" else tokenised(file) for file in files]
        self.counts = [len(ids) // SEQUENCE_LENGTH for ids in self.ids]
        if not sum(self.counts):
            raise SystemExit(f"expected at least {{SEQUENCE_LENGTH}} tokens in a file, got fewer; name more data")

    def __len__(self):
        return sum(self.counts)

    def __getitem__(self, number):
        for ids, count in zip(self.ids, self.counts):
            if number < count:
                part = ids[number * SEQUENCE_LENGTH : (number + 1) * SEQUENCE_LENGTH]
                sequence = torch.from_numpy(np.asarray(part).astype(np.int64))
                return {{"input_ids": sequence, "labels": sequence}}
            number -= count
        raise IndexError(number)


def tokenised(file):
    """Ids of a text and an end token."""
    tokenizer = AutoTokenizer.from_pretrained(HF)
    text = file.read_text(encoding="utf-8")
    return np.array([*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id])


class Pretraining(Trainer):
    """The loss of balance belongs to training; a validation loss with it would not compare with a dense model's."""

    def compute_loss(self, model, inputs, *args, **kwargs):
        more = {{"output_router_logits": model.training}} if EXPERTS else {{}}
        return super().compute_loss(model, {{**inputs, **more}}, *args, **kwargs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--eval", nargs="+", type=Path, default=[])
    parser.add_argument("--out", default="saved")
    parser.add_argument("--steps", type=int, default=ARGUMENTS["max_steps"])
    parser.add_argument("--fp32", action="store_true", help="where the device has no bfloat16")
    given = parser.parse_args()
    devices = int(os.environ.get("WORLD_SIZE", "1"))
    if GLOBAL_BATCH % devices:
        raise SystemExit(f"expected a number of GPUs that divides {{GLOBAL_BATCH}}, got {{devices}}; take another")
    torch.manual_seed(SEED)
    config = AutoConfig.from_pretrained(HF)
    model = AutoModelForCausalLM.from_pretrained(HF) if WEIGHTS else AutoModelForCausalLM.from_config(config)
    own = {{
        "output_dir": given.out,
        "max_steps": given.steps,
        "gradient_accumulation_steps": GLOBAL_BATCH // devices,
        "bf16": not given.fp32,
        "seed": SEED,
        "report_to": [],
    }}
    trainer = Pretraining(
        model=model.float(),
        args=TrainingArguments(**{{**ARGUMENTS, **own}}),
        train_dataset=Sequences(given.data),
        eval_dataset=Sequences(given.eval) if given.eval else None,
    )
    trainer.train()
    if given.eval:
        print(trainer.evaluate())
    trainer.save_model(given.out)


if __name__ == "__main__":
    main()
'''


def emit(model: Model, folder: Path) -> None:
    """train.py, whose numbers are plain literals at its top."""
    text = TEMPLATE.format(
        place=PLACE,
        weights=model.weights,
        experts=model.sparse,
        sequence_length=model.recipe.sequence_length,
        global_batch=model.recipe.global_batch,
        seed=model.seed,
        arguments=_literal(_arguments(model)),
    )
    (folder / FILE).write_text(text, encoding="utf-8")


def _literal(content: dict[str, Any]) -> str:
    """A dictionary as Python text, a key a line."""
    return "{\n" + "".join(f"    {key!r}: {value!r},\n" for key, value in content.items()) + "}"


def _arguments(model: Model) -> dict[str, Any]:
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


def launch(_: Model) -> str:
    """Text or token ids follow."""
    return 'torchrun --nproc-per-node "$GPUS" trainer/train.py corpus.txt'


def size(_: Model) -> int:
    """No large files."""
    return 0


def cautions(model: Model) -> list[str]:
    """Initialisation."""
    if model.weights:
        return []
    return ["trains from transformers' initialisation, without scaling by depth: --weights writes the recipe's"]


def fields(model: Model) -> dict[str, Any]:
    """The architecture behind the path, the recipe, how it starts."""
    return {
        **architecture_fields(model.architecture),
        **_of_recipe(_arguments(model)),
        "sequence_length": model.recipe.sequence_length,
        "global_batch": model.recipe.global_batch,
        "starts_from_weights": model.weights,
        "auxiliary_loss": model.sparse,
        "seed": model.seed,
    }


def read(folder: Path) -> dict[str, Any]:
    """The same, from train.py without executing it."""
    values = _assigned(outside.text(folder / FILE, outside.MB))
    if ast.unparse(values["HF"]) != ast.unparse(ast.parse(PLACE, mode="eval").body):
        raise ValueError(f"HF: expected {PLACE}, got {ast.unparse(values['HF'])}")
    names = ("ARGUMENTS", "WEIGHTS", "EXPERTS", "SEQUENCE_LENGTH", "GLOBAL_BATCH", "SEED")
    arguments, weights, experts, length, batch, seed = (ast.literal_eval(values[name]) for name in names)
    return {
        **referred_architecture(folder, PIVOT_PATH),
        **_of_recipe(arguments),
        "sequence_length": length,
        "global_batch": batch,
        "starts_from_weights": weights,
        "auxiliary_loss": experts,
        "seed": seed,
    }


def _assigned(text: str) -> dict[str, ast.expr]:
    """Values that a file assigns to names at its top, as syntax."""
    values = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
    return values


def _of_recipe(arguments: dict[str, Any]) -> dict[str, Any]:
    """The recipe's fields that such keys hold.

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
