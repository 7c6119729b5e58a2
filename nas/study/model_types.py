"""Families of published models by `model_type` of their config.json: norms, biases, experts, kinds of layers, and which keys count.

What a class takes for a key that is left out stands in model_classes.json, which `.ci/model_classes` writes from transformers' classes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from nas.study import config_kinds as kinds
from nas.study.config_kinds import Config
from objectives import outside
from search_spaces.architectures import Architectures
from search_spaces.columns import QK_NORMS

MIXERS = ("n_conv", "n_linear", "n_kv_shared", "latent_size", "full_head_dim")


@dataclass(frozen=True)
class Family:
    """Properties of a model_type: norms and biases, kinds of layers, and the keys that it has beside its class's.

    llama_cpp: llama.cpp's names of it. bias: which projections `attention_bias` adds one to, `qkv` or `qkvo`; "" refuses it.
    qkv_bias: q, k and v have one whatever the config says. experts: the key of one expert's size, "" of dense families. mixer: the first of `MIXERS` that is not 0. as_class: the class that reads it where transformers has none of
    that name. more: keys that the class takes beside its own, with what it takes for them. plain: keys that must have this value.
    """

    llama_cpp: tuple[str, ...] = ()
    qk_norm: str = "no"
    bias: str = "qkvo"
    qkv_bias: bool = False
    norms: int = 2
    experts: str = ""
    shared: bool = False
    mixer: str = ""
    kinds: Callable[[Config], dict[str, Any]] = kinds.full_attention
    as_class: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)
    plain: Mapping[str, Any] = field(default_factory=dict)

    def fits(self, architecture: Architectures) -> bool:
        """Whether an architecture can be of this family."""
        a = architecture
        return (
            QK_NORMS[int(a.qk_norm[0])] == self.qk_norm
            and bool(a.qkv_bias[0]) == self.qkv_bias
            and int(a.norms_per_layer[0]) == self.norms
            and (int(a.n_experts[0]) > 1) == bool(self.experts)
            and (int(a.shared_expert_size[0]) > 0) == self.shared
            and next((name for name in MIXERS if getattr(a, name)[0]), "") == self.mixer
        )


MOE = "moe_intermediate_size"
NO_BIAS = {"mlp_bias": False}
GATED = {"attn_output_gate": True}
SPARSE = {"decoder_sparse_step": 1, "mlp_only_layers": []}  # experts in every layer
LLAMA = Family(("llama",), plain=NO_BIAS, more={"head_dim": None})
WINDOWED = Family(more={"head_dim": None}, kinds=kinds.window_everywhere)
QWEN2 = Family(("qwen2",), bias="", qkv_bias=True, kinds=kinds.window_from_a_layer, more={"head_dim": None})
QWEN2_VL = replace(QWEN2, llama_cpp=("qwen2vl",), kinds=kinds.whole_heads)
QWEN3 = Family(("qwen3",), "head", kinds=kinds.window_from_a_layer)
QWEN3_MOE = Family(
    ("qwen3moe",), "head", experts=MOE, plain=SPARSE, kinds=kinds.window_if_switched_on, more={"head_dim": None}
)
DELTANET = Family(
    (), "head", bias="", mixer="n_linear", kinds=kinds.deltanet, more={"full_attention_interval": 4}, plain=GATED
)
DELTANET_MOE = replace(DELTANET, experts=MOE, shared=True, plain={**SPARSE, **GATED})
LATENT = Family(
    ("deepseek2",),
    bias="",
    experts=MOE,
    shared=True,
    mixer="latent_size",
    kinds=kinds.latent,
    more={"qk_head_dim": None},
    plain={**NO_BIAS, "moe_layer_freq": 1},
)
GEMMA = Family((), norms=4)
FAMILIES = {
    "llama": LLAMA,
    "mistral": replace(WINDOWED, llama_cpp=("llama", "mistral3")),
    "ministral": Family(("mistral3",), kinds=kinds.ministral, more={"head_dim": None}),
    "ministral3": replace(WINDOWED, llama_cpp=("mistral3",)),
    "mixtral": replace(WINDOWED, llama_cpp=("llama",), experts="intermediate_size"),
    "qwen2": QWEN2,
    "qwen2_vl_text": QWEN2_VL,
    "qwen2_5_vl_text": QWEN2_VL,
    "mimo": replace(QWEN2, llama_cpp=(), as_class="qwen2"),
    "qwen2_moe": replace(QWEN2, llama_cpp=("qwen2moe",), experts=MOE, shared=True, plain=SPARSE, kinds=kinds.qwen2_moe),
    "qwen3": QWEN3,
    "qwen3_vl_text": replace(QWEN3, llama_cpp=("qwen3vl",), kinds=kinds.full_attention),
    "qwen3_moe": QWEN3_MOE,
    "qwen3_vl_moe_text": replace(QWEN3_MOE, llama_cpp=("qwen3vlmoe",), kinds=kinds.full_attention),
    "qwen3_next": replace(DELTANET_MOE, llama_cpp=("qwen3next",)),
    "qwen3_5_text": replace(DELTANET, llama_cpp=("qwen35",)),
    "qwen3_5_moe_text": replace(DELTANET_MOE, llama_cpp=("qwen35moe",), plain=GATED),
    "mellum": Family((), "head", experts=MOE, kinds=kinds.mellum),
    "minimax_m2": Family(
        ("minimax-m2",),
        "full",
        experts="intermediate_size",
        kinds=kinds.minimax_m2,
        more={"attn_type_list": None},
        plain={"use_qk_norm": True, "qk_norm_type": "per_layer", "shared_intermediate_size": 0},
    ),
    "phi3": replace(WINDOWED, llama_cpp=("phi3",)),
    "smollm3": Family(("smollm3",), plain=NO_BIAS, kinds=kinds.smollm3, more={"head_dim": None}),
    "gemma": Family(("gemma",)),
    "gemma2": replace(GEMMA, llama_cpp=("gemma2",), kinds=kinds.windows(2)),
    "gemma3_text": replace(
        GEMMA, llama_cpp=("gemma3",), qk_norm="head", kinds=kinds.windows(6), more={"sliding_window_pattern": 6}
    ),
    "gemma3n_text": replace(GEMMA, llama_cpp=("gemma3n",), qk_norm="head", mixer="n_kv_shared", kinds=kinds.gemma3n),
    "gemma4_text": replace(
        GEMMA,
        llama_cpp=("gemma4",),
        bias="",
        qk_norm="head",
        mixer="n_kv_shared",
        kinds=kinds.gemma4,
        more={
            "global_head_dim": 512,
            "num_global_key_value_heads": None,
            "per_layer_config": None,
            "expert_intermediate_size": None,
        },
        plain={"use_double_wide_mlp": False},
    ),
    "gpt_oss": Family(
        ("gpt-oss",),
        bias="",
        qkv_bias=True,
        experts="intermediate_size",
        kinds=kinds.gpt_oss,
        plain={"attention_bias": True},
    ),
    "lfm2": Family(("lfm2",), "head", mixer="n_conv", kinds=kinds.lfm2, more=kinds.LFM2_OLDER),
    "lfm2_moe": Family(
        ("lfm2moe",),
        "head",
        experts=MOE,
        mixer="n_conv",
        kinds=kinds.lfm2_moe,
        more={"head_dim": None, "tie_embedding": None},
    ),
    "granite": Family(("granite",), plain=NO_BIAS, more={"head_dim": None}),
    "granitemoe": Family(("granitemoe",), experts="intermediate_size", more={"head_dim": None}),
    "granitemoeshared": Family(
        ("granitemoe",), experts="intermediate_size", shared=True, kinds=kinds.granite_shared, more={"head_dim": None}
    ),
    "granitemoehybrid": Family(
        ("granitehybrid",), bias="", mixer="n_linear", kinds=kinds.granite_hybrid, more={"head_dim": None}
    ),
    "olmo2": Family(("olmo2",), "full", more={"head_dim": None}),
    "olmo3": Family(("olmo3",), "full", kinds=kinds.windows(4), more={"head_dim": None}),
    "olmoe": Family(("olmoe",), "full", experts="intermediate_size", kinds=kinds.whole_heads, more={"head_dim": None}),
    "exaone4": Family(("exaone4",), "head", bias="", kinds=kinds.exaone4, more={"head_dim": None}),
    "glm4": Family(("glm4",), bias="qkv", norms=4),
    "glm4_moe": Family(
        ("glm4moe",),
        bias="qkv",
        experts=MOE,
        shared=True,
        kinds=kinds.glm4_moe,
        more={"head_dim": None},
        plain={"moe_layer_freq": 1},
    ),
    "dots1": Family(
        ("dots1",),
        "head",
        experts=MOE,
        shared=True,
        kinds=kinds.dots1,
        more={"head_dim": None},
    ),
    "ernie4_5": Family(("ernie4_5",), bias="", plain={"use_bias": False}),
    "ernie4_5_moe": Family(
        ("ernie4_5-moe",),
        bias="",
        experts=MOE,
        shared=True,
        kinds=kinds.ernie4_5_moe,
        more={"head_dim": None},
        plain={"use_bias": False, "moe_layer_interval": 1},
    ),
    "hunyuan_v1_dense": Family(("hunyuan-dense",), "head", more={"head_dim": None}),
    "seed_oss": Family(("seed_oss",), bias="qkv", qkv_bias=True, plain={**NO_BIAS, "attention_out_bias": False}),
    "deepseek_v2": LATENT,
    "deepseek_v3": LATENT,
    "kimi_k2": replace(LATENT, as_class="deepseek_v3"),
    "glm4_moe_lite": replace(LATENT, kinds=kinds.glm4_moe_lite),
}
#: Further shapes that one of these classes, and llama.cpp's name of it, stands for.
VARIANTS = (
    Family(("gemma4",), "head", norms=4, mixer="full_head_dim"),
    Family(("gemma4",), "head", norms=7, experts=MOE, shared=True, mixer="full_head_dim"),
    Family(("granitehybrid",), experts="intermediate_size", shared=True, mixer="n_linear"),
)
#: The text part of models that also see or hear, where their config.json does not name it.
TEXT_OF = {
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "qwen2_vl": "qwen2_vl_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "llava": "llama",
    "llava_next": "llama",
    "mistral3": "mistral",
    "lfm2_vl": "lfm2",
    "smolvlm": "llama",
    "idefics3": "llama",
    "internvl": "qwen2",
    "kimi_k25": "kimi_k2",
}
INDEXED = "an indexer that chooses which tokens are attended to"
ALONE = "layers of a mixer or of an FFN alone"
#: Families that no columns hold, and why.
OUTSIDE = {
    "openelm": "widths that differ from layer to layer",
    "nemotron-nas": "blocks that differ from layer to layer",
    "falcon_h1": "attention and Mamba side by side in a layer",
    "nemotron_h": ALONE,
    "nemotron_h_moe": ALONE,
    "mamba2": "layers without an FFN",
    "llama4_text": "attention within chunks, and experts in some layers only",
    "deepseek_v32": INDEXED,
    "glm_moe_dsa": INDEXED,
    "deepseek_v4": "keys and values of several tokens in one",
    "deepseek_ref": "keys and values of several tokens in one",
    "minimax_m3": "attention to chosen blocks of tokens",
    "minimax_m3_vl": "attention to chosen blocks of tokens",
    "kimi_linear": "latent attention beside linear attention",
    "mimo_v2_flash": "windows with heads of their own",
    "step3p7": "windows with heads of their own",
    "hunyuan_v1_moe": "layers that use the KV cache of others as they stand",
    "jamba": "Mamba of the first kind, and experts in some layers only",
    "phi": "an FFN of two matrices",
    "cohere2": "attention and FFN side by side in a layer",
    "nemotron": "an FFN of two matrices",
    "arcee": "an FFN of two matrices",
    "gpt2": "an FFN of two matrices",
    "gpt_neox": "an FFN of two matrices",
    "starcoder2": "an FFN of two matrices",
}


@dataclass(frozen=True)
class ModelClass:
    """What a class of transformers takes for keys that are left out, and which older spellings it takes for which key."""

    defaults: Mapping[str, Any]
    renamed: Mapping[str, str]


@cache
def model_classes() -> Mapping[str, ModelClass]:
    """Every class of model_classes.json."""
    content = outside.json_of(Path(__file__).with_name("model_classes.json"), outside.MB)
    return {name: ModelClass(**entry) for name, entry in content.items()}
