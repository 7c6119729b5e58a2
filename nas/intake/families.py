"""Families of published models: what llama.cpp calls them, and the architecture that a Hugging Face config.json describes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.intake.document import document
from search_spaces.architectures import Architectures, one
from search_spaces.columns import QK_NORMS


@dataclass(frozen=True)
class Family:
    """What a model_type of transformers fixes: llama.cpp's name, norms and biases, and what its keys default to."""

    llama_cpp: str
    qk_norm: str = "no"
    qkv_bias: bool = False
    norms: int = 2
    tied: bool = False
    experts: str = ""
    shared: bool = False

    def fits(self, architecture: Architectures) -> bool:
        """Whether an architecture can be of this family."""
        a = architecture
        return (
            QK_NORMS[int(a.qk_norm[0])] == self.qk_norm
            and bool(a.qkv_bias[0]) == self.qkv_bias
            and int(a.norms_per_layer[0]) == self.norms
            and (int(a.n_experts[0]) > 1) == bool(self.experts)
        )


#: By `model_type` of config.json; `experts` is the key of one expert's size.
FAMILIES = {
    "llama": Family("llama"),
    "mistral": Family("llama"),
    "mixtral": Family("llama", experts="intermediate_size"),
    "qwen2": Family("qwen2", qkv_bias=True),
    "qwen2_moe": Family("qwen2moe", qkv_bias=True, experts="moe_intermediate_size", shared=True),
    "qwen3": Family("qwen3", "head"),
    "qwen3_moe": Family("qwen3moe", "head", experts="moe_intermediate_size"),
    "phi3": Family("phi3"),
    "gemma2": Family("gemma2", norms=4, tied=True),
    "gemma3_text": Family("gemma3", "head", norms=4, tied=True),
    "olmoe": Family("olmoe", "full", experts="intermediate_size"),
}
#: Settings that change the operators, and what they must be.
PLAIN: dict[str, Any] = {"attention_bias": False, "mlp_bias": False, "decoder_sparse_step": 1, "mlp_only_layers": []}


def of_llama_cpp(name: str, architecture: Architectures) -> bool:
    """Whether llama.cpp would call an architecture so; True for a name that is not known here."""
    own = [family for family in FAMILIES.values() if family.llama_cpp == name]
    return not own or any(family.fits(architecture) for family in own)


def known(name: str) -> bool:
    """Whether llama.cpp's name of a family is one of ours."""
    return any(family.llama_cpp == name for family in FAMILIES.values())


def read_config(path: Path) -> Architectures:
    """The architecture of a config.json.

    Raises:
        UsageError: no such file, another family, or a setting that changes the operators.
    """
    try:
        content = json.loads(document(path).text)
        text = content.get("text_config", content) if isinstance(content, dict) else None
        return architecture_of(text if isinstance(text, dict) else {})
    except (ValueError, RecursionError) as error:
        said = str(error).splitlines()[0] if type(error) is ValueError else "expected JSON, got something else"
        raise UsageError(f"{path}: {said}; give a Hugging Face config.json of a plain decoder") from None


def architecture_of(config: Mapping[str, Any]) -> Architectures:
    """The architecture that a config.json describes.

    Raises:
        ValueError: `key: expected X, got Y`.
    """
    kind = config.get("model_type")
    family = FAMILIES.get(str(kind))
    if family is None:
        raise ValueError(f"model_type: expected one of {', '.join(FAMILIES)}, got {str(kind)[:60]!r}")
    for key, plain in PLAIN.items():
        if key in config and config[key] != plain and not (key == "attention_bias" and family.qkv_bias):
            raise ValueError(f"{key}: expected {plain!r}, got {str(config[key])[:60]!r}")
    heads, width = _count(config, "num_attention_heads"), _count(config, "hidden_size")
    columns: dict[str, Any] = {
        "depth": _count(config, "num_hidden_layers"),
        "width": width,
        "head_dim": _count(config, "head_dim") if config.get("head_dim") else width // heads,
        "n_heads": heads,
        "n_kv_heads": _count(config, "num_key_value_heads") if config.get("num_key_value_heads") else heads,
        "expert_size": _count(config, family.experts or "intermediate_size"),
        "n_experts": _experts(config) if family.experts else 1,
        "top_k": _count(config, "num_experts_per_tok") if family.experts else 1,
        "qk_norm": family.qk_norm,
        "qkv_bias": family.qkv_bias,
        "norms_per_layer": family.norms,
        "tied": bool(config.get("tie_word_embeddings", family.tied)),
        "vocabulary": _count(config, "vocab_size"),
    }
    if family.shared:
        columns |= {"shared_expert_size": _count(config, "shared_expert_intermediate_size"), "shared_gate": True}
    return one(columns)


def _experts(config: Mapping[str, Any]) -> int:
    return _count(config, "num_experts" if "num_experts" in config else "num_local_experts")


def _count(config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{key}: expected a positive integer, got {str(value)[:60]!r}")
    return value
