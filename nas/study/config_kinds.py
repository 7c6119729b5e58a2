"""Kinds of layers that a Hugging Face config.json describes, family by family, as columns of an architecture.

Source: the configuration and modelling classes of transformers 5.23.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from search_spaces.layer_kinds import LINEAR_KINDS

Columns = dict[str, Any]
MAMBA_KEYS = ("mamba_n_heads", "mamba_n_groups", "mamba_d_state", "mamba_d_head", "mamba_d_conv")
LARGEST = 10**9  # of any count or size, so that no product of them overflows
KIND_OF = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "local",
    "linear_attention": "linear",
    "mamba": "linear",
    "conv": "conv",
}


class Config:
    """The keys of a config.json, each with what its class takes where the file leaves it out."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def get(self, key: str) -> Any:
        """The value of a key; None of one that has none."""
        return self.values.get(key)

    def whole(self, key: str, *, least: int = 1) -> int:
        """A positive integer, or one of at least 0.

        Raises:
            ValueError: another value, as a list is.
        """
        value = self.values.get(key)
        if isinstance(value, list) and len(set(map(str, value))) > 1:
            raise ValueError(f"{key}: expected one value for all layers, got several; such layers have no columns here")
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
            what = "a positive integer" if least else "0 or a positive integer"
            what = f"at most {LARGEST:,}" if isinstance(value, (int, float)) and value > LARGEST else what
            raise ValueError(f"{key}: expected {what}, got {written(value)}")
        return value

    def count(self, key: str) -> int:
        """A number that may be 0, which null stands for too."""
        return 0 if self.values.get(key) is None else self.whole(key, least=0)

    def factor(self, key: str) -> float:
        """A positive number.

        Raises:
            ValueError: another value.
        """
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LARGEST:
            raise ValueError(f"{key}: expected a positive number, got {written(value)}")
        return value

    def listed(self, key: str, length: int = 0) -> list[Any]:
        """The entries of a list, of a given length if it is not 0; none of null.

        Raises:
            ValueError: no list, or one of another length.
        """
        value = self.values.get(key)
        if not isinstance(value, list | None) or (value and length not in (0, len(value))):
            raise ValueError(f"{key}: expected a list{f' of {length}' * bool(length)}, got {written(value)}")
        return value or []

    def layers(self, otherwise: Callable[[int], str], other: str = "local") -> list[str]:
        """The mixer of each layer, full or the other one: local, linear or conv; `otherwise` says it where the config does not.

        Raises:
            ValueError: another kind, or not one a layer.
        """
        depth, types = self.whole("num_hidden_layers"), self.get("layer_types")
        if types is None:
            return [otherwise(i) for i in range(depth)]
        known = [name for name, kind in KIND_OF.items() if kind in ("full", other)]
        return [KIND_OF[name] for name in one_each("layer_types", types, depth, known)]


def written(value: Any) -> str:
    """A value of a config.json, for a message."""
    return "null" if value is None else repr(value)[:60]


def one_each(key: str, given: Any, depth: int, known: Sequence[str] | Mapping[str, Any]) -> list[str]:
    """Names of layers, one each.

    Raises:
        ValueError: another number of them, or a name that is not known.
    """
    if not isinstance(given, list) or len(given) != depth:
        raise ValueError(f"{key}: expected {depth} names, got {written(given)}")
    for name in given:
        if name not in known:
            raise ValueError(f"{key}: expected some of {', '.join(known)}, got {written(name)}")
    return given


def full_attention(config: Config) -> Columns:
    """Full attention in every layer."""
    return _alike(config, "full")


def window_everywhere(config: Config) -> Columns:
    """A window in every layer where there is one (Mistral, Mixtral, Phi-3)."""
    return {} if config.get("sliding_window") is None else _alike(config, "local")


def _alike(config: Config, kind: str) -> Columns:
    """Layers of one kind.

    Raises:
        ValueError: layer_types says another one, which this family's class does not read.
    """
    if any(each != kind for each in config.layers(lambda i: kind)):
        names = " or ".join(name for name, each in KIND_OF.items() if each == kind)
        why = "in this family" if config.get("use_sliding_window") is None else "where use_sliding_window is off"
        raise ValueError(f"layer_types: expected {names} alone {why}, got {written(config.get('layer_types'))}")
    return local(config, [kind] * config.whole("num_hidden_layers"))


def ministral(config: Config) -> Columns:
    """A window in the layers that layer_types says, else in all."""
    windowed = config.get("sliding_window") is not None
    return local(config, config.layers(lambda i: "local" if windowed else "full"))


def window_if_switched_on(config: Config) -> Columns:
    """A window in every layer where use_sliding_window says so (Qwen3-MoE)."""
    return window_everywhere(config) if config.get("use_sliding_window") else full_attention(config)


def window_from_a_layer(config: Config) -> Columns:
    """A window from layer max_window_layers on where use_sliding_window says so (Qwen2, Qwen3)."""
    if not config.get("use_sliding_window") or config.get("sliding_window") is None:
        return full_attention(config)
    first = config.count("max_window_layers")
    return local(config, config.layers(lambda i: "local" if i >= first else "full"))


def qwen2_moe(config: Config) -> Columns:
    """A window in every other layer below max_window_layers where use_sliding_window says so."""
    if not config.get("use_sliding_window") or not config.get("sliding_window"):
        return full_attention(config)
    last = config.count("max_window_layers")
    return local(config, config.layers(lambda i: "local" if (i + 1) % 2 and i < last else "full"))


def smollm3(config: Config) -> Columns:
    """A window in the layers that know positions where use_sliding_window says so."""
    if not config.get("use_sliding_window") or config.get("sliding_window") is None:
        return full_attention(config)
    depth, every = config.whole("num_hidden_layers"), config.whole("no_rope_layer_interval")
    has_rope = config.listed("no_rope_layers", depth) or [bool((i + 1) % every) for i in range(depth)]
    return local(config, config.layers(lambda i: "full" if has_rope[i] else "local"))


def windows(period: int) -> Callable[[Config], Columns]:
    """Every layer of a period within a window but the last one."""

    def read(config: Config) -> Columns:
        every = config.whole("sliding_window_pattern") if "sliding_window_pattern" in config.values else period
        return local(config, config.layers(lambda i: "local" if (i + 1) % every else "full"))

    return read


def full_first(config: Config) -> Columns:
    """Full attention in the first layer of four, a window in the others (CWM)."""
    return local(config, config.layers(lambda i: "local" if i % 4 else "full"))


def granite_swa(config: Config) -> Columns:
    """The same with sinks as further parameters."""
    sinks = config.whole("num_hidden_layers") * config.whole("num_attention_heads")
    return {**full_first(config), "further_parameters": sinks}


def hyperclovax(config: Config) -> Columns:
    """Full attention, and two norms a layer more where use_post_norm says so."""
    return {**full_attention(config), "norms_per_layer": 4 if config.get("use_post_norm") else 2}


def bitnet(config: Config) -> Columns:
    """Full attention, and a norm before o_proj and before down_proj as further parameters."""
    sizes = config.whole("hidden_size") + config.whole("intermediate_size")
    return {**full_attention(config), "further_parameters": config.whole("num_hidden_layers") * sizes}


def exaone4(config: Config) -> Columns:
    """Windows in three layers of four, where there is a window; a pattern may be a number of layers or letters, LLLG."""
    pattern = config.get("sliding_window_pattern")
    if config.get("sliding_window") is None:
        return full_attention(config)
    if isinstance(pattern, str) and pattern and {*pattern} <= {"L", "G"}:
        return local(config, config.layers(lambda i: "local" if pattern[i % len(pattern)] == "L" else "full"))
    return local(
        config, config.layers(lambda i: "local" if (i + 1) % config.whole("sliding_window_pattern") else "full")
    )


def local(config: Config, kinds: Sequence[str]) -> Columns:
    count = list(kinds).count("local")
    return {"n_local": count, "window": config.whole("sliding_window")} if count else {}


def _sharing(config: Config, kinds: list[str]) -> Columns:
    """The last layers, which use the KV caches of others.

    Raises:
        ValueError: all of them would.
    """
    shared = config.count("num_kv_shared_layers")
    if shared >= len(kinds):
        raise ValueError(f"num_kv_shared_layers: expected fewer than the {len(kinds)} layers, got {shared}")
    last = kinds[len(kinds) - shared :] if shared else []
    return {"n_kv_shared": len(last), "n_kv_shared_local": last.count("local")}


def gemma3n(config: Config) -> Columns:
    """Windows, KV caches that the last layers share, tables of per-layer embeddings; AltUp and LAUREL as further parameters."""
    kinds = config.layers(lambda i: "local" if (i + 1) % 5 else "full")
    depth, d = len(kinds), config.whole("hidden_size")
    n, rank = config.whole("altup_num_inputs"), config.whole("laurel_rank")
    own, table = config.whole("hidden_size_per_layer_input"), config.whole("vocab_size_per_layer_input")
    altup = d + n * n + n**3 + n * d + d
    laurel, inputs = 2 * d * rank + d, 2 * d * own + d
    once = d * depth * own + own + 2 * (n - 1) * d * d
    return {
        **local(config, kinds),
        **_sharing(config, kinds),
        "further_parameters": once + depth * (altup + laurel + inputs),
        "table_parameters": table * depth * own,
    }


def gemma4(config: Config) -> Columns:
    """Windows, heads of full attention of their own, KV caches that the last layers share, and experts beside a dense FFN.

    Projections of per-layer embeddings, and scales of routers, are further parameters.
    """
    kinds = config.layers(lambda i: "local" if (i + 1) % 6 else "full")
    kinds[-1] = "full"  # as the class makes it
    own, d = config.count("hidden_size_per_layer_input"), config.whole("hidden_size")
    table = config.whole("vocab_size_per_layer_input") * own * len(kinds) if own else 0
    further = d * own * len(kinds) + own + len(kinds) * (2 * d * own + d) if own else 0
    experts = _experts_beside(config, len(kinds)) if config.get("enable_moe_block") else {}
    return {
        **local(config, kinds),
        **_heads_of_full_attention(config, kinds),
        **_sharing(config, kinds),
        **experts,
        **_double_wide(config),
        "further_parameters": further + experts.get("further_parameters", 0),
        "table_parameters": table,
    }


def _double_wide(config: Config) -> Columns:
    """FFNs twice as wide in the layers that share KV caches (Gemma 4 E2B).

    Raises:
        ValueError: experts beside them.
    """
    shared = config.count("num_kv_shared_layers")
    if not config.get("use_double_wide_mlp") or not shared:
        return {}
    if config.get("enable_moe_block"):
        raise ValueError("use_double_wide_mlp: expected False beside experts, got True")
    return {"n_dense": shared, "dense_size": 2 * config.whole("intermediate_size")}


def _heads_of_full_attention(config: Config, kinds: list[str]) -> Columns:
    """Heads of Gemma 4's layers of full attention, where they differ from those of layers with a window.

    Raises:
        ValueError: of a size that positions cannot turn pair by pair.
    """
    head, heads = config.whole("head_dim"), config.whole("num_key_value_heads")
    alike = bool(config.get("attention_k_eq_v"))
    if (apart := config.get("per_layer_config")) is not None:
        size, kv_heads = _of_full_layers(apart, kinds, head, heads)
    else:
        size = config.whole("global_head_dim")
        own = config.get("num_global_key_value_heads") if alike else None
        kv_heads = heads if own is None else config.whole("num_global_key_value_heads")
    if size % 2:
        raise ValueError(f"global_head_dim: expected an even size, as positions turn pairs of features, got {size}")
    if (size, kv_heads, alike) == (head, heads, False):
        return {}
    return {"full_head_dim": size, "full_kv_heads": kv_heads, "keys_are_values": alike}


def _of_full_layers(apart: Any, kinds: list[str], head: int, heads: int) -> tuple[int, int]:
    """Head size and KV heads that per_layer_config gives the layers of full attention.

    Raises:
        ValueError: it gives something else, or not the same to all of them.
    """
    own = {"head_dim": head, "num_key_value_heads": heads}
    entries = {int(layer): entry for layer, entry in apart.items()} if isinstance(apart, dict) else {}
    found = [own | dict(entries.pop(i, {})) for i, kind in enumerate(kinds) if kind == "full"]
    if entries or any(entry != found[0] or len(entry) > len(own) for entry in found):
        raise ValueError(
            "per_layer_config: expected one head_dim and num_key_value_heads for all layers of full attention, got "
            f"{written(apart)}; such layers have no columns here"
        )
    size, kv_heads = found[0].values()
    if not all(isinstance(value, int) and not isinstance(value, bool) and value > 0 for value in (size, kv_heads)):
        raise ValueError(f"per_layer_config: expected positive integers, got {written(found[0])}")
    return size, kv_heads


def _experts_beside(config: Config, depth: int) -> Columns:
    """Gemma 4's experts: the dense FFN is a shared expert without a gate, with three norms more and two scales of the router."""
    experts = config.whole("num_experts")
    return {
        "n_experts": experts,
        "top_k": config.whole("top_k_experts"),
        "expert_size": config.whole("moe_intermediate_size"),
        "shared_expert_size": config.whole("intermediate_size"),
        "norms_per_layer": 7,
        "further_parameters": depth * (config.whole("hidden_size") + experts),
    }


def latent(config: Config) -> Columns:
    """Latent attention (MLA), first layers with a dense FFN, and shared experts without a gate (DeepSeek V2 and V3)."""
    return {
        **latent_sizes(config),
        **shared_experts(config),
        **dense_first(config, config.count("first_k_dense_replace")),
    }


def glm4_moe_lite(config: Config) -> Columns:
    """The same with its dense layers in mlp_layer_types (GLM-4.7-Flash)."""
    dense = dense_layers(config, otherwise=1)
    first = config.get("first_k_dense_replace")
    if first not in (None, dense):
        raise ValueError(f"first_k_dense_replace: expected {dense}, as mlp_layer_types says, got {written(first)}")
    return {**latent_sizes(config), **shared_experts(config), **dense_first(config, dense)}


def latent_sizes(config: Config) -> Columns:
    rope = config.whole("qk_rope_head_dim")
    size = config.whole("qk_nope_head_dim") + rope
    refuse_other(config, "qk_head_dim", size)
    return {
        "head_dim": size,
        "latent_size": config.whole("kv_lora_rank"),
        "latent_rope": rope,
        "latent_queries": 0 if config.get("q_lora_rank") is None else config.whole("q_lora_rank"),
        "value_dim": config.whole("v_head_dim"),
        # its keys and values come of the latent vector, so this key sizes nothing
        "n_kv_heads": config.whole("num_attention_heads"),
    }


def shared_experts(config: Config) -> Columns:
    """Full attention, shared experts without a gate."""
    return {"shared_expert_size": config.count("n_shared_experts") * config.whole("moe_intermediate_size")}


def dense_first(config: Config, dense: int) -> Columns:
    return {"n_dense": dense, "dense_size": config.whole("intermediate_size")} if dense else {}


def dense_layers(config: Config, otherwise: int) -> int:
    """How many first layers mlp_layer_types says have a dense FFN.

    Raises:
        ValueError: dense layers behind those with experts, or none with experts.
    """
    if config.get("mlp_layer_types") is None:
        return otherwise
    depth = config.whole("num_hidden_layers")
    types = one_each("mlp_layer_types", config.get("mlp_layer_types"), depth, ("dense", "sparse"))
    dense = types.count("dense")
    if types[:dense] != ["dense"] * dense or dense == depth:
        raise ValueError(
            "mlp_layer_types: expected dense layers first, then sparse ones, got another order; it has no columns here"
        )
    return dense


def glm4_moe(config: Config) -> Columns:
    """First layers with a dense FFN, shared experts without a gate, and norms of heads where use_qk_norm says so."""
    norm = "head" if config.get("use_qk_norm") else "no"
    dense = config.count("first_k_dense_replace")
    return {**full_attention(config), "qk_norm": norm, **shared_experts(config), **dense_first(config, dense)}


def dots1(config: Config) -> Columns:
    """Windows from a layer on, first layers with a dense FFN, shared experts without a gate."""
    first, windowed = config.count("max_window_layers"), config.get("sliding_window") is not None
    windowed_layers = local(config, config.layers(lambda i: "local" if windowed and i >= first else "full"))
    return {**windowed_layers, **shared_experts(config), **dense_first(config, config.count("first_k_dense_replace"))}


def ernie4_5_moe(config: Config) -> Columns:
    """First layers with a dense FFN, shared experts without a gate; a bias of each router as further parameters.

    Raises:
        ValueError: dense layers behind those with experts.
    """
    depth, experts = config.whole("num_hidden_layers"), config.whole("moe_num_experts")
    first, last = config.count("moe_layer_start_index"), config.get("moe_layer_end_index")
    if last not in (-1, depth - 1):
        raise ValueError(f"moe_layer_end_index: expected -1 or {depth - 1}, the last layer, got {written(last)}")
    shared = config.count("moe_num_shared_experts") * config.whole("moe_intermediate_size")
    dense = dense_first(config, min(first, depth))
    return {"shared_expert_size": shared, "further_parameters": (depth - first) * experts, **dense}


def minimax_m2(config: Config) -> Columns:
    """Full attention in every layer.

    Raises:
        ValueError: attn_type_list says another kind.
    """
    types = config.listed("attn_type_list")
    if any(each != 1 for each in types):
        raise ValueError(f"attn_type_list: expected 1, full attention, alone, got {written(types)}")
    return full_attention(config)


def gpt_oss(config: Config) -> Columns:
    """Windows; sinks and biases as further parameters, those of experts that a token does not use as tables, of which it takes some rows."""
    keys = ("num_hidden_layers", "hidden_size", "num_local_experts", "intermediate_size", "num_experts_per_tok")
    depth, d, experts, size, chosen = (config.whole(key) for key in keys)
    bias = 2 * size + d
    small = config.whole("num_attention_heads") + d + experts + chosen * bias
    apart = {"further_parameters": depth * small, "table_parameters": depth * (experts - chosen) * bias}
    return {**windows(2)(config), **apart}


def mellum(config: Config) -> Columns:
    """Windows where layer_types says so, and first layers with a dense FFN."""
    windowed = local(config, config.layers(lambda i: "full"))
    return windowed | dense_first(config, dense_layers(config, otherwise=0))


def deltanet(config: Config) -> Columns:
    """Gated DeltaNet in three layers of four, gated attention in the others (Qwen3-Next, Qwen3.5)."""
    every = config.whole("full_attention_interval")
    kinds = config.layers(lambda i: "linear" if (i + 1) % every else "full", "linear")
    if not kinds.count("linear"):
        return {"attention_gate": True}
    return {
        "n_linear": kinds.count("linear"),
        "linear_kind": "deltanet",
        "linear_heads": config.whole("linear_num_value_heads"),
        "linear_key_heads": config.whole("linear_num_key_heads"),
        "linear_key_dim": config.whole("linear_key_head_dim"),
        "linear_value_dim": config.whole("linear_value_head_dim"),
        "linear_kernel": config.whole("linear_conv_kernel_dim"),
        "attention_gate": True,
    }


def qwen2_vl(config: Config) -> Columns:
    """Heads that fill the width, and a window from a layer on, as in Qwen2."""
    return {**whole_heads(config), **window_from_a_layer(config)}


def whole_heads(config: Config) -> Columns:
    """Full attention whose heads fill the width, whatever head_dim says (OLMoE, Qwen2-VL)."""
    refuse_other(config, "head_dim", config.whole("hidden_size") // config.whole("num_attention_heads"))
    return full_attention(config)


def refuse_other(config: Config, key: str, size: int) -> None:
    """Refuse a size that the class takes from other keys.

    Raises:
        ValueError: the config gives another one.
    """
    if config.get(key) not in (None, size):
        raise ValueError(f"{key}: expected {size}, as the other keys have it, got {written(config.get(key))}")


def lfm2(config: Config) -> Columns:
    """Short convolutions beside attention, and the FFN size that the class makes of the configured one."""
    for key in ("block_dim", "conv_dim", "conv_dim_out"):
        refuse_other(config, key, config.whole("hidden_size"))
    refuse_other(config, "num_heads", config.whole("num_attention_heads"))
    full = config.listed("full_attn_idxs")
    kinds = config.layers(lambda i: "full" if config.get("full_attn_idxs") is None or i in full else "conv", "conv")
    size = config.whole("intermediate_size" if config.get("block_ff_dim") is None else "block_ff_dim")
    if config.get("block_auto_adjust_ff_dim"):
        size, multiple = int(2 * size / 3), config.whole("block_multiple_of")
        if config.get("block_ffn_dim_multiplier") is not None:
            size = -(-int(config.factor("block_ffn_dim_multiplier") * size) // multiple) * multiple
    return {**_convolutions(config, kinds), "expert_size": size}


def lfm2_moe(config: Config) -> Columns:
    """Short convolutions beside attention, and first layers with a dense FFN."""
    kinds = config.layers(lambda i: "full", "conv")
    return {**_convolutions(config, kinds), **dense_first(config, config.count("num_dense_layers"))}


def lfm3(config: Config) -> Columns:
    """Short convolutions beside windows and full attention, whose heads have a gate each, as further parameters as a bias of o_proj is."""
    depth, types = config.whole("num_hidden_layers"), config.get("layer_types")
    if types is None:
        of_four = ("conv", "conv", "full_attention", "conv")
        types = ["sliding_attention" if i and i % 4 == 0 else of_four[i % 4] for i in range(depth)]
    names = ("full_attention", "sliding_attention", "conv")
    kinds = [KIND_OF[name] for name in one_each("layer_types", types, depth, names)]
    gates = config.whole("num_attention_heads") * bool(config.get("use_attention_gate"))
    of_attention = config.whole("hidden_size") * (gates + bool(config.get("attention_bias")))
    return {
        **_convolutions(config, kinds),
        **local(config, kinds),
        "norms_per_layer": 4 if config.get("use_sandwich_norm") else 2,
        "further_parameters": of_attention * (depth - kinds.count("conv")),
    }


def _convolutions(config: Config, kinds: list[str]) -> Columns:
    if config.get("conv_bias"):
        raise ValueError("conv_bias: expected False, got True")
    count = kinds.count("conv")
    return {"n_conv": count, "conv_kernel": config.whole("conv_L_cache")} if count else {}


def granite_shared(config: Config) -> Columns:
    """A shared expert without a gate, where its size is not 0."""
    return {**full_attention(config), "shared_expert_size": config.count("shared_intermediate_size")}


def granite_hybrid(config: Config) -> Columns:
    """Mamba2 beside attention; the FFN is experts and a shared one, or the shared one alone."""
    kinds = config.layers(lambda i: "linear", "linear")
    experts, shared = config.count("num_local_experts"), config.count("shared_intermediate_size")
    if not experts and not shared:
        raise ValueError("shared_intermediate_size: expected a positive integer without experts, got 0")
    ffn: Columns = {"expert_size": shared, "n_experts": 1, "top_k": 1}
    if experts:
        ffn = {"expert_size": config.whole("intermediate_size"), "n_experts": experts, "shared_expert_size": shared}
        ffn["top_k"] = config.whole("num_experts_per_tok")
    if "linear" not in kinds:
        return ffn
    for key, plain in (("mamba_conv_bias", True), ("mamba_proj_bias", False)):
        if config.get(key) != plain:
            raise ValueError(f"{key}: expected {plain}, got {written(config.get(key))}")
    heads, inner = config.whole("mamba_n_heads"), config.whole("mamba_expand") * config.whole("hidden_size")
    size = inner // heads if config.get("mamba_d_head") == "auto" else config.whole("mamba_d_head")
    if size * heads != inner:
        raise ValueError(f"mamba_n_heads: expected heads that divide mamba_expand x hidden_size {inner:,}, got {heads}")
    sized, count = Config({**config.values, "mamba_d_head": size}), kinds.count("linear")
    return {**ffn, **mamba2(sized, MAMBA_KEYS, count=count), "linear_kind": "mamba2"}


def mamba2(config: Config, keys: Sequence[str], *, count: int) -> Columns:
    """Columns of `count` layers of Mamba2 from the keys of heads, groups, state, head size and kernel."""
    heads, groups, state, size, kernel = (config.whole(key) for key in keys)
    return {
        "n_linear": count,
        "linear_kind": LINEAR_KINDS.index("mamba2"),
        "linear_heads": heads,
        "linear_key_heads": groups,
        "linear_key_dim": state,
        "linear_value_dim": size,
        "linear_kernel": kernel,
    }
