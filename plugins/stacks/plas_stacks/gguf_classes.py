"""llama.cpp's names of classes, tensors and sizes, the classes whose layers it computes as transformers does, and the way back.

Source: `conversion/` and `src/models/` of llama.cpp 0.5.0 (llama-cpp-python 0.3.36).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas.export.checkpoint import Tensor
from nas.export.families import FULL, family_of, in_order
from nas.export.hf_config import NORM_EPSILON, ROPE_THETA, ROTARY_SHARE
from nas.export.model import Model
from search_spaces.architectures import Architectures, one

NAMES = {
    "qwen3": "qwen3",
    "qwen3_moe": "qwen3moe",
    "qwen2": "qwen2",
    "lfm2": "lfm2",
    "lfm2_moe": "lfm2moe",
    "mellum": "mellum",
    "granitemoehybrid": "granitehybrid",
    "qwen3_next": "qwen3next",
    "gemma3_text": "gemma3",
    "gemma4_text": "gemma4",
}
PARTS = {
    "input_layernorm.weight": "attn_norm.weight",
    "operator_norm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "ffn_norm.weight": "ffn_norm.weight",
    "pre_feedforward_layernorm.weight": "ffn_norm.weight",
    "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
    "layer_scalar": "layer_output_scale.weight",
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
    "mamba.in_proj.weight": "ssm_in.weight",
    "mamba.conv1d.weight": "ssm_conv1d.weight",
    "mamba.conv1d.bias": "ssm_conv1d.bias",
    "mamba.dt_bias": "ssm_dt.bias",
    "mamba.A_log": "ssm_a",
    "mamba.D": "ssm_d",
    "mamba.norm.weight": "ssm_norm.weight",
    "mamba.out_proj.weight": "ssm_out.weight",
    "block_sparse_moe.router.layer.weight": "ffn_gate_inp.weight",
    "linear_attn.in_proj_qkvz.weight": "ssm_in.weight",
    "linear_attn.in_proj_ba.weight": "ssm_ba.weight",
    "linear_attn.conv1d.weight": "ssm_conv1d.weight",
    "linear_attn.dt_bias": "ssm_dt.bias",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.norm.weight": "ssm_norm.weight",
    "linear_attn.out_proj.weight": "ssm_out.weight",
    **{f"mlp.shared_expert.{n}_proj.weight": f"ffn_{n}_shexp.weight" for n in ("gate", "up", "down")},
    "mlp.shared_expert_gate.weight": "ffn_gate_inp_shexp.weight",
}
#: Granite's FFN tensors: gate and up in one, the first of two halves of every expert the gate.
HALVES = {"shared_mlp.input_linear.weight": "", "block_sparse_moe.input_linear.weight": "_exps"}
DOWN = {"shared_mlp.output_linear.weight": "", "block_sparse_moe.output_linear.weight": "_exps"}
WHOLE = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "model.embedding_norm.weight": "token_embd_norm.weight",
    "lm_head.weight": "output.weight",
    "rope_freqs.weight": "rope_freqs.weight",
}
#: Classes whose post_attention_layernorm is no norm of the FFN.
AFTER_ATTENTION = ("qwen3next", "gemma3", "gemma4")
ABOUT_ZERO = ("qwen3next", "gemma3")  # classes whose checkpoints hold what norms add to 1
Floats = NDArray[np.float32]
CONVOLUTIONS = ("shortconv.conv.weight", "ssm_conv1d.weight")
SIGMOID = 2  # of llama.cpp's gating functions


@dataclass(frozen=True)
class Piece:
    """A checkpoint tensor as a GGUF tensor takes it: in so many groups of values, each changed (None: all as they are).

    share: of the tensor's elements that are left; column: whether each value is a row of its own.
    """

    name: str
    groups: int = 1
    change: Callable[[Floats], Floats] | None = None
    share: float = 1.0
    column: bool = False


def pieces(model: Model, tensor: Tensor) -> list[Piece]:
    """The GGUF tensors that a checkpoint tensor goes into; none of an empty one."""
    if class_name(model) == "granitehybrid" and tensor.name not in WHOLE:
        return _granites(model, tensor)
    name, whose = renamed(tensor.name), class_name(model)
    if whose in AFTER_ATTENTION and tensor.name.endswith("post_attention_layernorm.weight"):
        name = name.replace("ffn_norm", "post_attention_norm")
    if whose not in ABOUT_ZERO:
        return [Piece(name)]
    if tensor.name.endswith(".A_log"):
        return [Piece(name, change=rate)]
    if tensor.name.endswith("norm.weight") and not name.endswith("ssm_norm.weight"):
        return [Piece(name, change=one_more)]
    return [Piece(name)]


def _granites(model: Model, tensor: Tensor) -> list[Piece]:
    """The same of a layer of Granite, which keeps gate and up together."""
    _, _, layer, part = tensor.name.split(".", 3)
    if not tensor.size:
        return []
    shared = "_shexp" if model.sparse and part.startswith("shared_mlp") else ""
    if part in HALVES:
        groups, end = (tensor.shape[0] if len(tensor.shape) > 2 else 1), f"{HALVES[part]}{shared}.weight"
        return [
            Piece(f"blk.{layer}.ffn_{name}{end}", groups, partial(half, number), 0.5)
            for number, name in enumerate(("gate", "up"))
        ]
    if part in DOWN:
        return [Piece(f"blk.{layer}.ffn_down{DOWN[part]}{shared}.weight")]
    change: Callable[[Floats], Floats] | None = None
    if part in ("self_attn.q_proj.weight", "self_attn.k_proj.weight"):
        change = partial(interleaved, model.column("n_heads" if "q_proj" in part else "n_kv_heads"), tensor.shape)
    elif part == "mamba.A_log":
        change = rate
    return [Piece(renamed(tensor.name), change=change, column=part in ("mamba.A_log", "mamba.D"))]


def half(number: int, values: Floats) -> Floats:
    """One of two halves."""
    return values[number * (len(values) // 2) :][: len(values) // 2]


def interleaved(heads: int, shape: tuple[int, ...], values: Floats) -> Floats:
    """Rows of projected heads with the pairs that rotation turns beside each other, as Llama's kin have them in llama.cpp."""
    rows = values.reshape(heads, 2, shape[0] // heads // 2, shape[1])
    return np.ascontiguousarray(rows.swapaxes(1, 2)).ravel()


def rate(values: Floats) -> Floats:
    """Decays from their logarithms."""
    return -np.exp(values)


def one_more(values: Floats) -> Floats:
    """Weights of norms that a checkpoint keeps as what is added to 1."""
    return values + np.float32(1.0)


def shaped(name: str, shape: tuple[int, ...], piece: Piece) -> tuple[int, ...]:
    """The shape of a GGUF tensor that a checkpoint tensor of this shape goes into."""
    if name.endswith(CONVOLUTIONS):
        return shape[::2]  # of one channel in
    if name.endswith("ffn_gate_inp_shexp.weight"):
        return shape[1:]
    if piece.column:
        return (*shape, 1)
    return (*shape[:-2], int(shape[-2] * piece.share), shape[-1]) if piece.share < 1.0 else shape


def class_name(model: Model) -> str:
    """llama.cpp's name of the class."""
    return NAMES[family_of(model.architecture).model_type]


def renamed(name: str) -> str:
    """A checkpoint tensor's name in GGUF."""
    if name in WHOLE:
        return WHOLE[name]
    _, _, layer, part = name.split(".", 3)
    if ".experts." not in part:
        return f"blk.{layer}.{PARTS[part]}"
    place, _, projection = part.partition(".experts.")
    whole = PARTS[f"{place}.{projection.partition('.')[2]}"]
    return f"blk.{layer}.{whole.replace('.weight', '_exps.weight')}"


def further(model: Model) -> list[Tensor]:
    """Tensors that llama.cpp wants and the class lacks: LFM2-MoE's bias of routing, zeros; what slows Gemma 4's rotations, ones."""
    if class_name(model) == "gemma4":
        return [Tensor("rope_freqs.weight", (model.column("head_dim") // 2,), 0.0, 1.0)]
    if class_name(model) != "lfm2moe":
        return []
    layers = range(model.column("n_dense"), model.column("depth"))
    return [
        Tensor(f"model.layers.{layer}.feed_forward.expert_bias", (model.column("n_experts"),), 0.0) for layer in layers
    ]


def attention_layers(model: Model) -> list[int]:
    """Places of the layers with keys and values of their own."""
    owners = in_order(model.architecture)[: model.column("depth") - model.column("n_kv_shared")]
    return [place for place, kind in enumerate(owners) if kind in (FULL, "local")]


def sizes(model: Model) -> dict[str, Any]:
    """The metadata of the architecture, without the class's prefix; a list has a value for every layer."""
    q, kinds = model.column, in_order(model.architecture)
    heads = [q("n_kv_heads") * (kind in (FULL, "local")) for kind in kinds]
    whole = q("expert_size") if class_name(model) == "granitehybrid" else q("top_k") * q("expert_size")
    keys = {
        "vocab_size": q("vocabulary"),
        "context_length": model.context,
        "embedding_length": q("width"),
        "block_count": q("depth"),
        "feed_forward_length": q("dense_size") or whole,
        "attention.head_count": q("n_heads"),
        "attention.head_count_kv": heads if 0 in heads and "deltanet" not in kinds else q("n_kv_heads"),
        "attention.key_length": q("head_dim"),
        "attention.value_length": q("head_dim"),
        "attention.layer_norm_rms_epsilon": NORM_EPSILON,
        "rope.freq_base": float(ROPE_THETA),
    }
    if model.sparse:
        keys |= {
            "expert_count": q("n_experts"),
            "expert_used_count": q("top_k"),
            "expert_feed_forward_length": q("expert_size"),
        }
    if "conv" in kinds:
        keys["shortconv.l_cache"] = q("conv_kernel")
        keys |= {"leading_dense_block_count": q("n_dense"), "expert_gating_func": SIGMOID} if model.sparse else {}
    if "mamba2" in kinds or "deltanet" in kinds:
        keys |= _of_linear(model, kinds)
    if "local" in kinds:
        keys["attention.sliding_window"] = q("window")
        keys["attention.sliding_window_pattern"] = [kind == "local" for kind in kinds]
    return keys | _of_gemma(model)


def _of_gemma(model: Model) -> dict[str, Any]:
    """The same of layers within a window as Gemma has them, which llama.cpp would rotate otherwise, and of shared caches."""
    head, name = model.column("head_dim"), class_name(model)
    if name not in ("gemma3", "gemma4"):
        return {}
    rotations = {"rope.freq_base_swa": float(ROPE_THETA)}
    if name == "gemma3":
        return rotations
    lengths = (
        "attention.key_length_swa",
        "attention.value_length_swa",
        "rope.dimension_count",
        "rope.dimension_count_swa",
    )
    shared = {"attention.shared_kv_layers": model.column("n_kv_shared"), "embedding_length_per_layer_input": 0}
    return {**rotations, **dict.fromkeys(lengths, head), **shared}


def _of_linear(model: Model, kinds: list[str]) -> dict[str, Any]:
    """The same of layers of linear attention, with the shared expert that stands beside them."""
    q = model.column
    keys: dict[str, Any] = {
        "ssm.conv_kernel": q("linear_kernel"),
        "ssm.inner_size": q("linear_heads") * q("linear_value_dim"),
        "ssm.state_size": q("linear_key_dim"),
        "ssm.time_step_rank": q("linear_heads"),
        "ssm.group_count": q("linear_key_heads"),
    }
    if "deltanet" in kinds:
        keys["attention.recurrent_layers"] = [kind == "deltanet" for kind in kinds]
        keys["rope.dimension_count"] = int(q("head_dim") * ROTARY_SHARE)
    if q("shared_expert_size"):
        keys["expert_shared_feed_forward_length"] = q("shared_expert_size")
    return keys


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
