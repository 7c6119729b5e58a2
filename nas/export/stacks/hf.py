"""Hugging Face transformers: a model directory (of Qwen, Llama, LFM2, Mellum or Granite classes) that every other stack starts from."""

import json
from pathlib import Path
from typing import Any

from nas.export.checkpoint import read_headers, tensors, weight_bytes, write_weights
from nas.export.families import family_of
from nas.export.hf_config import ACTIVATIONS, ROTARY_SHARE, architecture_of, auxiliary_loss, config_of
from nas.export.model import HEADS, Model
from nas.export.stack_files import architecture_fields
from nas.study import config_file
from objectives import outside

GROUPED = 8  # elements of 16 bits to which grouped_mm aligns rows
TOKENS = ("bos_token_id", "eos_token_id", "pad_token_id")


def emit(model: Model, folder: Path) -> None:
    """Write config.json, generation_config.json, the tokenizer, and weights where chosen."""
    config = config_of(model)
    _write(folder / "config.json", config)
    _write(folder / "generation_config.json", {"do_sample": False, **{name: config[name] for name in TOKENS}})
    for name, content in model.tokenizer.files.items():
        (folder / name).write_bytes(content)
    if model.weights:
        write_weights(folder, model)


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def launch(model: Model) -> str:
    """A look at the model."""
    made = "from_pretrained('hf')" if model.weights else "from_config(AutoConfig.from_pretrained('hf'))"
    return f'python -c "from transformers import AutoConfig, AutoModelForCausalLM; print(AutoModelForCausalLM.{made})"'


def size(model: Model) -> int:
    """Bytes of the weights."""
    return weight_bytes(model) if model.weights else 0


def cautions(model: Model) -> list[str]:
    """Notes on what a class adds, the auxiliary loss, and initial weights that transformers would draw otherwise."""
    family, lines = family_of(model.architecture).model_type, []
    if family == "qwen3_next":
        lines.append(f"rotates {ROTARY_SHARE:g} of each head's features, as Qwen3-Next does")
    if model.served.drafter == "mtp":
        lines.append(
            "transformers leaves out the head that drafts: it is neither built nor trained there; --weights writes its tensors for vLLM"
        )
    if family in ACTIVATIONS:
        lines.append("its FFN activates by GELU, and embeddings are multiplied by sqrt(width), as Gemma's are")
    if family == "gemma4_text":
        lines.append(
            "needs transformers 5.5; scores are not scaled: the norm of queries starts at 1/sqrt(head_dim) with --weights"
        )
    if family == "lfm2_moe":
        lines.append("Lfm2MoeForCausalLM weighs experts by sigmoids and has no auxiliary loss: balance them otherwise")
    elif model.sparse:
        lines.append(
            "the auxiliary loss is off in config.json: train with output_router_logits=True, validate without it, "
            "or every loss reported contains it"
        )
    if model.sparse and model.column("expert_size") % GROUPED:
        lines.append(
            f"transformers' default kernel for experts takes sizes that are multiples of {GROUPED}, not {model.column('expert_size')}: "
            f"--expert-multiple {GROUPED} rounds them"
        )
    if not model.weights:
        lines.append(
            "no weights: transformers' own initialisation has no scaling by depth; --weights writes the recipe's"
        )
    return lines


def fields(model: Model) -> dict[str, Any]:
    """The architecture, special ids, initialisation and, with weights, every tensor's type and shape."""
    config = config_of(model)
    held = {tensor.name: ("BF16", tensor.shape) for tensor in tensors(model)} if model.weights else {}
    return {
        **architecture_fields(model.architecture),
        **{name: config[name] for name in (*TOKENS, "initializer_range", "max_position_embeddings")},
        **({"heads_that_draft": 1} if model.served.drafter == "mtp" else {}),
        "auxiliary_loss": model.recipe.auxiliary_loss if model.sparse else None,
        "tensors": held,
    }


def read(folder: Path) -> dict[str, Any]:
    """The same, from the files."""
    config = outside.json_of(folder / "config.json", outside.MB)
    generation = outside.json_of(folder / "generation_config.json", outside.MB)
    settings = {**config_file.settings_of(config).values, **{name: config.get(name) for name in TOKENS}}
    for name in TOKENS:
        if generation.get(name) != settings[name]:
            raise ValueError(f"generation_config.json: {name}: expected {settings[name]}, got {generation.get(name)}")
    heads = [config[key] for key in HEADS.values() if key in config]
    return {
        **architecture_fields(architecture_of(config)),
        **{name: settings.get(name) for name in (*TOKENS, "initializer_range", "max_position_embeddings")},
        "auxiliary_loss": auxiliary_loss(config),
        **({"heads_that_draft": heads[0]} if heads else {}),
        "tensors": read_headers(folder),
    }
