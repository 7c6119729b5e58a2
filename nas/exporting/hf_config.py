"""config.json of a Hugging Face directory: written with both spellings of renamed keys, and read back.

transformers 5 writes num_local_experts, rope_parameters and dtype where 4 reads num_experts, rope_theta and torch_dtype;
either reader falls back to its defaults in silence (128 experts, theta 10,000), so a file holds both.
"""

from collections.abc import Mapping
from typing import Any

from nas.exporting.families import family_named, family_of
from nas.exporting.model import Model
from search_spaces.architectures import Architectures, one

ROPE_THETA = 1_000_000
NORM_EPSILON = 1e-6
SPELLINGS = (("num_experts", "num_local_experts"), ("torch_dtype", "dtype"))


def config_of(model: Model) -> dict[str, Any]:
    """The content of config.json."""
    family, token, q = family_of(model.architecture), model.tokenizer, model.column
    return {
        "architectures": [family.class_name],
        "model_type": family.model_type,
        "num_hidden_layers": q("depth"),
        "hidden_size": q("width"),
        "head_dim": q("head_dim"),
        "num_attention_heads": q("n_heads"),
        "num_key_value_heads": q("n_kv_heads"),
        "intermediate_size": q("top_k") * q("expert_size"),
        **(_experts(model) if family.sparse else {}),
        "vocab_size": q("vocabulary"),
        "tie_word_embeddings": bool(model.architecture.tied[0]),
        **({} if family.qkv_bias else {"attention_bias": False}),
        "attention_dropout": 0.0,
        **({"mlp_bias": False} if family.model_type == "llama" else {"use_sliding_window": False}),
        "hidden_act": "silu",
        "rms_norm_eps": NORM_EPSILON,
        "initializer_range": model.schedule.std,
        "max_position_embeddings": model.context,
        "rope_theta": ROPE_THETA,
        "rope_parameters": {"rope_theta": ROPE_THETA, "rope_type": "default"},
        "bos_token_id": token.bos,
        "eos_token_id": token.eos,
        "pad_token_id": token.pad,
        "use_cache": True,
        "torch_dtype": "bfloat16",
        "dtype": "bfloat16",
    }


def _experts(model: Model) -> dict[str, Any]:
    """Keys of the experts.

    With one expert per token renormalised weights are all 1 and the router has no gradient: off for K = 1.
    With output_router_logits on, the auxiliary loss is part of every loss, validation's too: training turns it on.
    """
    experts = model.column("n_experts")
    return {
        "num_experts": experts,
        "num_local_experts": experts,
        "num_experts_per_tok": model.column("top_k"),
        "moe_intermediate_size": model.column("expert_size"),
        "norm_topk_prob": model.column("top_k") > 1,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "router_aux_loss_coef": model.recipe.auxiliary_loss,
        "output_router_logits": False,
    }


def architecture_of(config: Mapping[str, Any]) -> Architectures:
    """The architecture that a config.json describes, read from its keys alone.

    Raises:
        ValueError: a missing key, two spellings that differ, or a setting that changes the model.
    """
    family = family_named(config.get("model_type"))
    refuse_contradictions(config)
    columns: dict[str, Any] = {
        "depth": _key(config, "num_hidden_layers"),
        "width": _key(config, "hidden_size"),
        "head_dim": _key(config, "head_dim"),
        "n_heads": _key(config, "num_attention_heads"),
        "n_kv_heads": _key(config, "num_key_value_heads"),
        "expert_size": _key(config, "moe_intermediate_size" if family.sparse else "intermediate_size"),
        "n_experts": _key(config, "num_experts") if family.sparse else 1,
        "top_k": _key(config, "num_experts_per_tok") if family.sparse else 1,
        "qk_norm": family.qk_norm,
        "qkv_bias": family.qkv_bias,
        "tied": _key(config, "tie_word_embeddings"),
        "vocabulary": _key(config, "vocab_size"),
    }
    return one(columns)


def refuse_contradictions(config: Mapping[str, Any]) -> None:
    """Refuse settings by which some reader would build another model.

    Raises:
        ValueError: what contradicts what.
    """
    for old, new in SPELLINGS:
        if config.get(old) != config.get(new):
            raise ValueError(f"{new}: expected {config.get(old)!r} as {old} says, got {config.get(new)!r}")
    rope = _key(config, "rope_parameters")
    if not isinstance(rope, Mapping) or rope.get("rope_theta") != _key(config, "rope_theta"):
        raise ValueError(f"rope_parameters: expected rope_theta {config['rope_theta']!r}, got {rope!r}")
    wanted: dict[str, Any] = {"attention_bias": False, "use_sliding_window": False, "mlp_bias": False}
    if family_named(config.get("model_type")).sparse:
        renormalised = _key(config, "num_experts_per_tok") > 1
        wanted |= {"decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": renormalised}
        wanted |= {"output_router_logits": False}
    for key, value in wanted.items():
        if config.get(key, value) != value:
            raise ValueError(f"{key}: expected {value!r}, got {config[key]!r}")
    for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
        token = config.get(key)
        if token is not None and not 0 <= token < _key(config, "vocab_size"):
            raise ValueError(f"{key}: expected less than vocab_size {config['vocab_size']}, got {token}")


def _key(config: Mapping[str, Any], key: str) -> Any:
    if key not in config:
        raise ValueError(f"{key}: expected a value, got nothing")
    return config[key]
