"""Maps columns to the keys of a class's config.json, and says what the class's other keys must be."""

from typing import Any

from nas.export.families import Family
from nas.export.layer_order import FULL

ROPE_THETA = 1_000_000
NORM_EPSILON = 1e-6
NORM_KEYS = {"lfm2": "norm_eps", "lfm2_moe": "norm_eps"}
#: Of every class.
SHAPE = {
    "num_hidden_layers": "depth",
    "hidden_size": "width",
    "head_dim": "head_dim",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "vocab_size": "vocabulary",
    "tie_word_embeddings": "tied",
}
#: Sizes of a kind of layers beside full attention.
MIXER_KEYS = {
    "": {},
    "local": {"sliding_window": "window"},
    "deltanet": {
        "linear_num_value_heads": "linear_heads",
        "linear_num_key_heads": "linear_key_heads",
        "linear_key_head_dim": "linear_key_dim",
        "linear_value_head_dim": "linear_value_dim",
        "linear_conv_kernel_dim": "linear_kernel",
    },
    "mamba2": {
        "mamba_n_heads": "linear_heads",
        "mamba_n_groups": "linear_key_heads",
        "mamba_d_state": "linear_key_dim",
        "mamba_d_head": "linear_value_dim",
        "mamba_d_conv": "linear_kernel",
    },
    "conv": {"conv_L_cache": "conv_kernel"},
}
#: What layer_types calls a kind; GraniteMoeHybrid's older names, which newer readers take as well.
LAYER_TYPES = {
    FULL: "full_attention",
    "local": "sliding_attention",
    "deltanet": "linear_attention",
    "mamba2": "mamba",
    "conv": "conv",
}
FULL_TYPES = {"granitemoehybrid": "attention"}
COUNTS = {"local": "n_local", "deltanet": "n_linear", "mamba2": "n_linear", "conv": "n_conv"}
DENSE = {"intermediate_size": "expert_size"}
EXPERTS = {"num_experts": "n_experts", "num_experts_per_tok": "top_k", "moe_intermediate_size": "expert_size"}
SHARING = {"num_kv_shared_layers": "n_kv_shared"}
#: Keys of the FFN that are not those of the Qwen classes, by model_type, without and with experts.
FFN_KEYS = {
    ("qwen3_next", True): {**EXPERTS, "shared_expert_intermediate_size": "shared_expert_size"},
    # vLLM reads widths of convolutions and FFN of their own
    ("lfm2", False): {**DENSE, "block_ff_dim": "expert_size", "block_dim": "width", "conv_dim": "width"},
    ("qwen2_moe", True): {**EXPERTS, "shared_expert_intermediate_size": "shared_expert_size"},
    ("olmoe", True): {"num_experts": "n_experts", "num_experts_per_tok": "top_k", "intermediate_size": "expert_size"},
    ("lfm2_moe", True): {**EXPERTS, "num_dense_layers": "n_dense"},
    ("granitemoehybrid", False): {"shared_intermediate_size": "expert_size"},
    ("granitemoehybrid", True): {
        "num_local_experts": "n_experts",
        "num_experts_per_tok": "top_k",
        "intermediate_size": "expert_size",
        "shared_intermediate_size": "shared_expert_size",
    },
}
#: Keys that change the operators and must be so, by model_type.
FIXED: dict[str, dict[str, Any]] = {
    "qwen3": {"attention_bias": False},
    "qwen3_moe": {"attention_bias": False, "use_sliding_window": False},
    "qwen2": {"use_sliding_window": False},
    "qwen2_moe": {"use_sliding_window": False, "qkv_bias": True},
    "olmoe": {"attention_bias": False, "clip_qkv": None},
    "llama": {"attention_bias": False, "mlp_bias": False},
    "gemma2": {"attention_bias": False, "attn_logit_softcapping": None, "final_logit_softcapping": None},
    "mellum": {"attention_bias": False},
    "qwen3_next": {"attention_bias": False},
    "lfm2": {
        "conv_bias": False,
        "block_auto_adjust_ff_dim": False,
        "block_multiple_of": 1,
        "block_ffn_dim_multiplier": 1.0,
    },
    "lfm2_moe": {"conv_bias": False, "use_expert_bias": False, "routed_scaling_factor": 1.0},
    "gemma3_text": {
        "attention_bias": False,
        "use_bidirectional_attention": False,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
        "rope_local_base_freq": ROPE_THETA,
    },
    "gemma4_text": {
        "attention_bias": False,
        "attention_k_eq_v": False,
        "enable_moe_block": False,
        "use_double_wide_mlp": False,
        "hidden_size_per_layer_input": 0,
        "num_global_key_value_heads": None,
        # transformers 5.23 passes layers that share by in the prefill, which needs embeddings per layer, unless asked for such output
        "output_router_logits": True,
        "final_logit_softcapping": None,
    },
    "granitemoehybrid": {
        "attention_bias": False,
        "mamba_conv_bias": True,
        "mamba_proj_bias": False,
        "position_embedding_type": "rope",
        "embedding_multiplier": 1.0,
        "logits_scaling": 1.0,
        "residual_multiplier": 1.0,
    },
}
#: Activation functions, by model_type; silu of the others.
ACTIVATIONS = dict.fromkeys(("gemma2", "gemma3_text", "gemma4_text"), ("hidden_activation", "gelu_pytorch_tanh"))
PER_KIND = ("mellum", "gemma3_text", "gemma4_text")  # classes with rope_parameters for each kind of attention
ROTARY_SHARE = 0.25  # of a head's features that Qwen3-Next rotates, which readers fall back to


def column_keys(family: Family) -> dict[str, str]:
    """Key to column of everything that a class's config.json says of an architecture."""
    ffn = FFN_KEYS.get((family.model_type, family.sparse), EXPERTS if family.sparse else DENSE)
    return {**SHAPE, **ffn, **MIXER_KEYS[family.mixers[0]], **(SHARING if family.kv_shared else {})}


def layer_types(family: Family, kinds: list[str]) -> list[str]:
    """Kinds of layers in order as `layer_types` calls them."""
    return [
        FULL_TYPES.get(family.model_type, LAYER_TYPES[kind]) if kind == FULL else LAYER_TYPES[kind] for kind in kinds
    ]


def rope(family: Family) -> dict[str, Any]:
    """rope_parameters, which some classes have for each kind of attention."""
    plain: dict[str, Any] = {"rope_theta": ROPE_THETA, "rope_type": "default"}
    if family.model_type in PER_KIND:
        return {LAYER_TYPES[kind]: dict(plain) for kind in (FULL, "local")}
    return plain | ({"partial_rotary_factor": ROTARY_SHARE} if family.model_type == "qwen3_next" else {})


def fixed(family: Family, depth: int, head_dim: int, top_k: int) -> dict[str, Any]:
    """Keys of a class that must have one value: biases, multipliers, where experts are, routing that keeps its gradient.

    With one expert per token renormalised weights are all 1 and the router has no gradient: off for K = 1.
    With output_router_logits on, the auxiliary loss is part of every loss, validation's too: training turns it on.
    """
    found = dict(FIXED[family.model_type])
    if family.model_type == "qwen3":
        found["use_sliding_window"] = family.mixers == ("local",)
    if family.model_type == "qwen3_next":
        found["partial_rotary_factor"] = ROTARY_SHARE
    if family.model_type == "granitemoehybrid":
        found["attention_multiplier"] = head_dim**-0.5
    if family.model_type in ("gemma2", "gemma3_text"):
        found["query_pre_attn_scalar"] = head_dim
    if family.model_type == "gemma4_text":
        found["global_head_dim"] = head_dim
    if not family.sparse:
        absent = {"qwen3_next": "num_experts", "granitemoehybrid": "num_local_experts"}
        return found | ({absent[family.model_type]: 0} if family.model_type in absent else {})
    found["output_router_logits"] = False
    if family.model_type != "granitemoehybrid":
        found["norm_topk_prob"] = top_k > 1
    if family.model_type in ("qwen2_moe", "qwen3_moe", "qwen3_next"):
        found |= {"decoder_sparse_step": 1, "mlp_only_layers": []}
    if family.model_type == "mellum":
        found["mlp_layer_types"] = ["sparse"] * depth
    return found
