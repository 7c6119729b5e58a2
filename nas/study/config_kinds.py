"""Layer kinds that a Hugging Face config.json describes, family by family, as columns of an architecture.

Source: the configuration and modelling classes of transformers 5.23.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

Config = Mapping[str, Any]
Columns = dict[str, Any]
LARGEST = 10**9  # of any count or size, so that no product of them overflows
KIND_OF = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "local",
    "linear_attention": "linear",
    "mamba": "linear",
    "conv": "conv",
}


def whole(config: Config, key: str, default: int | None = None, least: int = 1) -> int:
    """A positive integer of a config.json, or one of at least 0.

    Raises:
        ValueError: another value, or one value a layer.
    """
    value = config.get(key, default)
    value = default if value is None else value
    if isinstance(value, list) and value:
        if len(set(map(str, value))) > 1:
            raise ValueError(f"{key}: expected one value for all layers, got several; such layers have no columns here")
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
        what = "a positive integer" if least else "0 or a positive integer"
        what = f"at most {LARGEST:,}" if isinstance(value, (int, float)) and value > LARGEST else what
        raise ValueError(f"{key}: expected {what}, got {str(value)[:60]!r}")
    return value


def layers(config: Config, otherwise: Callable[[int], str]) -> list[str]:
    """The mixer of each layer: full, local, linear or conv; `otherwise` says it where the config does not.

    Raises:
        ValueError: another kind, or not one a layer.
    """
    depth, given = whole(config, "num_hidden_layers"), config.get("layer_types")
    if given is None:
        return [otherwise(i) for i in range(depth)]
    if not isinstance(given, list) or len(given) != depth:
        raise ValueError(f"layer_types: expected {depth} names, got {str(given)[:60]!r}")
    for name in given:
        if name not in KIND_OF:
            raise ValueError(f"layer_types: expected some of {', '.join(KIND_OF)}, got {str(name)[:60]!r}")
    return [KIND_OF[name] for name in given]


def attention_alone(config: Config) -> Columns:
    """Full attention, but for windows that a config switches on (Qwen2 and 3) or has everywhere (Mistral, Phi-3)."""
    window, first = config.get("sliding_window"), config.get("max_window_layers", 0)
    switched = config.get("use_sliding_window", config.get("model_type") in ("mistral", "mixtral", "phi3"))
    if not switched or window is None:
        return {}
    return _local(config, layers(config, lambda i: "local" if i >= first else "full"), whole(config, "sliding_window"))


def windows(period: int, window: int) -> Callable[[Config], Columns]:
    """Every layer of a period within a window but the last one."""

    def read(config: Config) -> Columns:
        every = whole(config, "sliding_window_pattern", period)
        kinds = layers(config, lambda i: "local" if (i + 1) % every else "full")
        return _local(config, kinds, whole(config, "sliding_window", window))

    return read


def _local(config: Config, kinds: list[str], window: int) -> Columns:
    count = kinds.count("local")
    return {"n_local": count, "window": window} if count else {}


def gemma3n(config: Config) -> Columns:
    """Windows, KV caches that the last layers share, and AltUp, LAUREL and per-layer embeddings as further parameters."""
    kinds = layers(config, lambda i: "local" if (i + 1) % 5 else "full")
    shared = whole(config, "num_kv_shared_layers", 15, least=0)
    sharing = kinds[len(kinds) - shared :] if shared else []
    depth, d = len(kinds), whole(config, "hidden_size")
    n, rank = whole(config, "altup_num_inputs", 4), whole(config, "laurel_rank", 64)
    own, table = whole(config, "hidden_size_per_layer_input", 256), whole(config, "vocab_size_per_layer_input", 262_144)
    altup = d + n * n + n**3 + n * d + d
    laurel, inputs = 2 * d * rank + d, 2 * d * own + d
    once = table * depth * own + d * depth * own + own + 2 * (n - 1) * d * d
    return {
        **_local(config, kinds, whole(config, "sliding_window", 512)),
        "n_kv_shared": len(sharing),
        "n_kv_shared_local": sharing.count("local"),
        "further_parameters": once + depth * (altup + laurel + inputs),
    }


def gemma4(config: Config) -> Columns:
    """Windows, heads of full attention of their own, KV caches that the last layers share, and experts beside a dense FFN.

    Per-layer embeddings, and scales of routers, are further parameters.

    Raises:
        ValueError: an FFN of another size in some layers.
    """
    if config.get("use_double_wide_mlp"):
        raise ValueError(f"use_double_wide_mlp: expected False, got {str(config['use_double_wide_mlp'])[:60]}")
    shared = whole(config, "num_kv_shared_layers", 0, least=0)
    kinds = layers(config, lambda i: "local" if (i + 1) % 6 else "full")
    sharing = kinds[len(kinds) - shared :] if shared else []
    own, d = whole(config, "hidden_size_per_layer_input", 256, least=0), whole(config, "hidden_size")
    table = whole(config, "vocab_size_per_layer_input", 262_144)
    once, each = (table + d) * own * len(kinds) + own, 2 * d * own + d
    return {
        **_local(config, kinds, whole(config, "sliding_window", 512)),
        **_heads_of_full_attention(config),
        "n_kv_shared": len(sharing),
        "n_kv_shared_local": sharing.count("local"),
        "further_parameters": once + len(kinds) * each if own else 0,
        **(_experts_beside(config, len(kinds)) if config.get("enable_moe_block") else {}),
    }


def _heads_of_full_attention(config: Config) -> Columns:
    """Heads of Gemma 4's layers of full attention, where they differ from those of layers with a window."""
    head, heads = whole(config, "head_dim", 256), whole(config, "num_key_value_heads")
    size, alike = whole(config, "global_head_dim", 512), bool(config.get("attention_k_eq_v"))
    kv_heads = whole(config, "num_global_key_value_heads", heads) if alike else heads
    if (size, kv_heads, alike) == (head, heads, False):
        return {}
    return {"full_head_dim": size, "full_kv_heads": kv_heads, "keys_are_values": alike}


def _experts_beside(config: Config, depth: int) -> Columns:
    """Gemma 4's experts: the dense FFN is a shared expert without a gate, with three norms more and two scales of the router."""
    experts = whole(config, "num_experts")
    return {
        "n_experts": experts,
        "top_k": whole(config, "top_k_experts"),
        "expert_size": whole(config, "moe_intermediate_size"),
        "shared_expert_size": whole(config, "intermediate_size"),
        "norms_per_layer": 7,
        "further_parameters": depth * (whole(config, "hidden_size") + experts),
    }


def latent(config: Config) -> Columns:
    """Latent attention (MLA), first layers with a dense FFN, and shared experts without a gate (DeepSeek V2 and V3, GLM-4.7-Flash)."""
    rope, rank = whole(config, "qk_rope_head_dim"), config.get("q_lora_rank")
    dense = whole(config, "first_k_dense_replace", 0, least=0)
    size, shared = whole(config, "moe_intermediate_size"), whole(config, "n_shared_experts", 0, least=0)
    return {
        "head_dim": whole(config, "qk_nope_head_dim") + rope,
        "latent_size": whole(config, "kv_lora_rank"),
        "latent_rope": rope,
        "latent_queries": 0 if rank is None else whole(config, "q_lora_rank"),
        "value_dim": whole(config, "v_head_dim"),
        "shared_expert_size": shared * size,
        **({"n_dense": dense, "dense_size": whole(config, "intermediate_size")} if dense else {}),
    }


def gpt_oss(config: Config) -> Columns:
    """Windows; sinks and the biases of o_proj, router and experts as further parameters."""
    d, experts, size = (whole(config, key) for key in ("hidden_size", "num_local_experts", "intermediate_size"))
    small = whole(config, "num_attention_heads") + d + experts + experts * (2 * size + d)
    return {**windows(2, 128)(config), "further_parameters": whole(config, "num_hidden_layers") * small}


def mellum(config: Config) -> Columns:
    """Windows where layer_types says so, and first layers with a dense FFN.

    Raises:
        ValueError: dense layers behind those with experts.
    """
    local = _local(config, layers(config, lambda i: "full"), whole(config, "sliding_window", 1024))
    types = list(config.get("mlp_layer_types") or [])
    dense = types.count("dense")
    if types[:dense] != ["dense"] * dense:
        raise ValueError(
            "mlp_layer_types: expected dense layers first, got others before; such layers have no columns here"
        )
    return local | ({"n_dense": dense, "dense_size": whole(config, "intermediate_size")} if dense else {})


def qwen3_next(config: Config) -> Columns:
    """Gated DeltaNet in three layers of four, gated attention in the others."""
    every = whole(config, "full_attention_interval", 4)
    kinds = layers(config, lambda i: "linear" if (i + 1) % every else "full")
    return {
        "n_linear": kinds.count("linear"),
        "linear_kind": "deltanet",
        "linear_heads": whole(config, "linear_num_value_heads", 32),
        "linear_key_heads": whole(config, "linear_num_key_heads", 16),
        "linear_key_dim": whole(config, "linear_key_head_dim", 128),
        "linear_value_dim": whole(config, "linear_value_head_dim", 128),
        "linear_kernel": whole(config, "linear_conv_kernel_dim", 4),
        "attention_gate": True,
    }


def lfm2(config: Config) -> Columns:
    """Short convolutions beside attention, and the FFN size that the class makes of the configured one."""
    full = config.get("full_attn_idxs")
    kinds = layers(config, lambda i: "full" if full is None or i in full else "conv")
    size = whole(config, "block_ff_dim" if "block_ff_dim" in config else "intermediate_size")
    if config.get("block_auto_adjust_ff_dim", True):
        size, multiple = int(2 * size / 3), whole(config, "block_multiple_of", 256)
        if (factor := config.get("block_ffn_dim_multiplier", 1.0)) is not None:
            size = -(-int(factor * size) // multiple) * multiple
    return {**_convolutions(config, kinds), "expert_size": size}


def lfm2_moe(config: Config) -> Columns:
    """Short convolutions beside attention, and first layers with a dense FFN."""
    kinds, dense = layers(config, lambda i: "full"), whole(config, "num_dense_layers", 2, least=0)
    sizes = {"n_dense": dense, "dense_size": whole(config, "intermediate_size")} if dense else {}
    return {**_convolutions(config, kinds), **sizes}


def _convolutions(config: Config, kinds: list[str]) -> Columns:
    if config.get("conv_bias"):
        raise ValueError("conv_bias: expected False, got True")
    count = kinds.count("conv")
    return {"n_conv": count, "conv_kernel": whole(config, "conv_L_cache", 3)} if count else {}


def granite(config: Config) -> Columns:
    """Mamba2 beside attention; the FFN is experts and a shared one, or the shared one alone."""
    kinds = Counter(layers(config, lambda i: "linear"))
    experts = whole(config, "num_local_experts", 0, least=0)
    shared = 0 if experts and config.get("shared_intermediate_size") == 0 else whole(config, "shared_intermediate_size")
    ffn: Columns = {"expert_size": shared, "n_experts": 1, "top_k": 1}
    if experts:
        ffn = {"expert_size": whole(config, "intermediate_size"), "n_experts": experts, "shared_expert_size": shared}
        ffn["top_k"] = whole(config, "num_experts_per_tok")
    if not kinds["linear"]:
        return ffn
    for key, plain in (("mamba_conv_bias", True), ("mamba_proj_bias", False)):
        if config.get(key, plain) != plain:
            raise ValueError(f"{key}: expected {plain}, got {config[key]}")
    heads, inner = whole(config, "mamba_n_heads"), whole(config, "mamba_expand", 2) * whole(config, "hidden_size")
    size = config.get("mamba_d_head", "auto")
    return {
        **ffn,
        "n_linear": kinds["linear"],
        "linear_kind": "mamba2",
        "linear_heads": heads,
        "linear_key_heads": whole(config, "mamba_n_groups", 1),
        "linear_key_dim": whole(config, "mamba_d_state", 256),
        "linear_value_dim": inner // heads if size == "auto" else whole(config, "mamba_d_head"),
        "linear_kernel": whole(config, "mamba_d_conv", 4),
    }
