"""The architecture that a GGUF file says it holds."""

from typing import Any

from search_spaces.architectures import Architectures, one


def architecture_in(metadata: dict[str, Any], held: dict[str, tuple[int, tuple[int, ...]]]) -> Architectures:
    """The architecture that a file holds; flags are read from which tensors are there."""
    name = metadata["general.architecture"]
    q = {key.removeprefix(f"{name}."): value for key, value in metadata.items()}
    heads, locals_ = q["attention.head_count_kv"], q.get("attention.sliding_window_pattern", [])
    columns = {
        "depth": q["block_count"],
        "width": q["embedding_length"],
        "head_dim": q["attention.key_length"],
        "n_heads": q["attention.head_count"],
        "n_kv_heads": max(heads) if isinstance(heads, list) else heads,
        "n_experts": q.get("expert_count", 1),
        "top_k": q.get("expert_used_count", 1),
        "expert_size": q.get("expert_feed_forward_length", q["feed_forward_length"]),
        "qk_norm": "head" if any(key.endswith("attn_q_norm.weight") for key in held) else "no",
        "qkv_bias": "blk.0.attn_q.bias" in held,
        "tied": "output.weight" not in held,
        "norms_per_layer": 4 if "blk.0.post_ffw_norm.weight" in held else 2,
        "vocabulary": q["vocab_size"],
    }
    if "ssm.inner_size" in q:
        recurrent = q.get("attention.recurrent_layers", [])
        kind, count = ("deltanet", sum(recurrent)) if recurrent else ("mamba2", heads.count(0))
        columns |= {"attention_gate": bool(recurrent), "shared_gate": bool(recurrent)}
        columns |= {"linear_kind": kind, "n_linear": count, "linear_heads": q["ssm.time_step_rank"]}
        columns |= {"linear_key_heads": q["ssm.group_count"], "linear_key_dim": q["ssm.state_size"]}
        columns |= {"linear_value_dim": q["ssm.inner_size"] // q["ssm.time_step_rank"]}
        columns |= {"linear_kernel": q["ssm.conv_kernel"]}
        columns |= {"shared_expert_size": q.get("expert_shared_feed_forward_length", 0)}
    elif isinstance(heads, list):
        columns |= {"n_conv": heads.count(0), "conv_kernel": q["shortconv.l_cache"]}
    if any(locals_):
        columns |= {"n_local": sum(locals_), "window": q["attention.sliding_window"]}
    if shared := q.get("attention.shared_kv_layers"):
        columns |= {"n_kv_shared": shared, "n_kv_shared_local": sum(locals_[-shared:])}
    if q.get("leading_dense_block_count"):
        columns |= {"n_dense": q["leading_dense_block_count"], "dense_size": q["feed_forward_length"]}
    return one(columns)
