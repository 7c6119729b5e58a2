"""What llama.cpp calls a class, its tensors and its sizes, and the classes whose layers it computes as transformers does.

Source: `conversion/` and `src/models/` of llama.cpp 0.5.0 (llama-cpp-python 0.3.36).
"""

from typing import Any

from nas.exporting.class_keys import NORM_EPSILON, ROPE_THETA
from nas.exporting.families import family_of
from nas.exporting.layer_order import FULL, in_order
from nas.exporting.model import Model
from nas.exporting.tensors import Tensor
from search_spaces.architectures import Architectures, one

NAMES = {
    "qwen3": "qwen3",
    "qwen3_moe": "qwen3moe",
    "qwen2": "qwen2",
    "lfm2": "lfm2",
    "lfm2_moe": "lfm2moe",
    "mellum": "mellum",
}
PARTS = {
    "input_layernorm.weight": "attn_norm.weight",
    "operator_norm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "ffn_norm.weight": "ffn_norm.weight",
    **{f"self_attn.{n}_norm.weight": f"attn_{n}_norm.weight" for n in "qk"},
    **{f"self_attn.{n}_layernorm.weight": f"attn_{n}_norm.weight" for n in "qk"},
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.out_proj.weight": "attn_output.weight",
    **{f"self_attn.{n}_proj.{kind}": f"attn_{n}.{kind}" for n in "qkv" for kind in ("weight", "bias")},
    **{f"mlp.{n}_proj.weight": f"ffn_{n}.weight" for n in ("gate", "up", "down")},
    "mlp.gate.weight": "ffn_gate_inp.weight",
    **{f"feed_forward.{n}.weight": f"ffn_{part}.weight" for n, part in (("w1", "gate"), ("w3", "up"), ("w2", "down"))},
    "feed_forward.gate.weight": "ffn_gate_inp.weight",
    "feed_forward.expert_bias": "exp_probs_b.bias",
    "conv.conv.weight": "shortconv.conv.weight",
    "conv.in_proj.weight": "shortconv.in_proj.weight",
    "conv.out_proj.weight": "shortconv.out_proj.weight",
}
WHOLE = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "model.embedding_norm.weight": "token_embd_norm.weight",
    "lm_head.weight": "output.weight",
}
SIGMOID = 2  # of llama.cpp's gating functions


def class_name(model: Model) -> str:
    """What llama.cpp calls the class."""
    return NAMES[family_of(model.architecture).model_type]


def renamed(name: str) -> tuple[str, bool]:
    """A checkpoint tensor's name in GGUF, and whether it is one expert's part of it."""
    if name in WHOLE:
        return WHOLE[name], False
    _, _, layer, part = name.split(".", 3)
    if ".experts." not in part:
        return f"blk.{layer}.{PARTS[part]}", False
    place, _, projection = part.partition(".experts.")
    whole = PARTS[f"{place}.{projection.partition('.')[2]}"]
    return f"blk.{layer}.{whole.replace('.weight', '_exps.weight')}", True


def further(model: Model) -> list[Tensor]:
    """Tensors that llama.cpp wants and the class lacks: the bias of routing that LFM2-MoE is exported without, zeros."""
    if class_name(model) != "lfm2moe":
        return []
    layers = range(model.column("n_dense"), model.column("depth"))
    return [
        Tensor(f"model.layers.{layer}.feed_forward.expert_bias", (model.column("n_experts"),), 0.0) for layer in layers
    ]


def attention_layers(model: Model) -> list[int]:
    """Places of the layers with keys and values."""
    return [place for place, kind in enumerate(in_order(model.architecture)) if kind in (FULL, "local")]


def sizes(model: Model) -> dict[str, Any]:
    """The metadata of the architecture, without the class's prefix; a list has a value for every layer."""
    q, kinds = model.column, in_order(model.architecture)
    heads = [q("n_kv_heads") * (kind != "conv") for kind in kinds]
    found = {
        "vocab_size": q("vocabulary"),
        "context_length": model.context,
        "embedding_length": q("width"),
        "block_count": q("depth"),
        "feed_forward_length": q("dense_size") or q("top_k") * q("expert_size"),
        "attention.head_count": q("n_heads"),
        "attention.head_count_kv": heads if "conv" in kinds else q("n_kv_heads"),
        "attention.key_length": q("head_dim"),
        "attention.value_length": q("head_dim"),
        "attention.layer_norm_rms_epsilon": NORM_EPSILON,
        "rope.freq_base": float(ROPE_THETA),
    }
    if model.sparse:
        found |= {
            "expert_count": q("n_experts"),
            "expert_used_count": q("top_k"),
            "expert_feed_forward_length": q("expert_size"),
        }
    if "conv" in kinds:
        found["shortconv.l_cache"] = q("conv_kernel")
        found |= {"leading_dense_block_count": q("n_dense"), "expert_gating_func": SIGMOID} if model.sparse else {}
    if "local" in kinds:
        found["attention.sliding_window"] = q("window")
        found["attention.sliding_window_pattern"] = [kind == "local" for kind in kinds]
    return found


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
        "vocabulary": q["vocab_size"],
    }
    if isinstance(heads, list):
        columns |= {"n_conv": heads.count(0), "conv_kernel": q["shortconv.l_cache"]}
    if any(locals_):
        columns |= {"n_local": sum(locals_), "window": q["attention.sliding_window"]}
    if q.get("leading_dense_block_count"):
        columns |= {"n_dense": q["leading_dense_block_count"], "dense_size": q["feed_forward_length"]}
    return one(columns)
