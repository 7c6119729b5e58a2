"""Layers that differ from each other, as a config.json lists them: sizes by layer, and layers with a mixer or an FFN alone.

Source: the configuration and modelling classes of transformers 5.23; NVIDIA's DeciLM and Puzzletron for `block_configs`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nas.study.config_kinds import (
    MAMBA_KEYS,
    Columns,
    Config,
    dense_first,
    dense_layers,
    exaone4,
    latent_sizes,
    local,
    mamba2,
    one_each,
    refuse_other,
    whole_heads,
    window_everywhere,
    written,
)
from search_spaces.architectures import Architectures
from search_spaces.layer_kinds import KIND_DEFAULTS, Block, written_blocks

#: Keys of a config.json that list layers one by one, beside those of its family.
BY_LAYER = ("per_layer_config", "block_configs")
COLUMN_OF = {
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "head_dim": "head_dim",
    "intermediate_size": "expert_size",
}
OF_ATTENTION = ("num_attention_heads", "num_key_value_heads", "head_dim")
DENSE = {"n_experts": 1, "top_k": 1, "shared_expert_size": 0}
SKIPPED = {"attention": "mixer", "self_attn": "mixer", "mlp": "ffn"}


def blocks_by_layer(given: Mapping[str, Any], base: Architectures, config: Config) -> Columns:
    """The column `layers` of a model whose config.json gives its layers own sizes.

    Raises:
        ValueError: layers of several kinds besides, a layer or a key that is not read.
    """
    key = next(iter(given))
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)}: expected one of them, got both")
    plain = ("further_parameters", "ungated_ffn")
    mixed = [name for name in KIND_DEFAULTS if name not in plain and getattr(base, name)[0]]
    if mixed or base.n_experts[0] > 1 or base.further_parameters[0]:
        raise ValueError(f"{key}: expected layers of full attention and a dense FFN beside it, got others")
    depth, of = config.whole("num_hidden_layers"), {"per_layer_config": _overrides, "block_configs": _blocks}[key]
    norms = int(base.norms_per_layer[0]) // 2
    return {"layers": written_blocks([_with_norms(each, norms) for each in of(given[key], depth, config)])}


def _with_norms(block: Block, norms: int) -> Block:
    return Block(block.place, block.count, {**block.columns, "norms_per_layer": norms})


def _overrides(given: Any, depth: int, config: Config) -> Iterator[Block]:
    """The blocks of `per_layer_config`: own sizes of some layers, by their number."""
    if not isinstance(given, dict) or not all(isinstance(entry, dict) for entry in given.values()):
        raise ValueError(f"per_layer_config: expected sizes by the number of a layer, got {written(given)}")
    by_layer = {str(number): dict(entry) for number, entry in given.items()}
    for layer in range(depth):
        own = by_layer.pop(str(layer), {})
        skipped = own.pop("skip", [])
        if not isinstance(skipped, list) or not {*map(str, skipped)} <= SKIPPED.keys():
            raise ValueError(f"per_layer_config: expected skip of {', '.join(SKIPPED)}, got {written(skipped)}")
        if other := [key for key in own if key not in COLUMN_OF]:
            raise ValueError(f"per_layer_config: expected {', '.join(COLUMN_OF)} or skip, got {other[0]}")
        sizes = Config({**config.values, **own})
        for place in ("mixer", "ffn"):
            if place not in {SKIPPED[name] for name in skipped}:
                keys = [key for key in own if (key in OF_ATTENTION) == (place == "mixer")]
                yield Block(place, 1, {COLUMN_OF[key]: sizes.whole(key) for key in keys})
    if by_layer:
        raise ValueError(f"per_layer_config: expected numbers from 0 to {depth - 1}, got {next(iter(by_layer))!r}")


def _blocks(given: Any, depth: int, config: Config) -> Iterator[Block]:
    """The blocks of `block_configs`: attention and FFN of every layer, each with its size or left out."""
    if not isinstance(given, list) or len(given) != depth:
        raise ValueError(f"block_configs: expected {depth} layers, got {written(given)}")
    heads, width = config.whole("num_attention_heads"), config.whole("hidden_size")
    for entry in given:
        if not isinstance(entry, dict) or not {*entry} <= {"attention", "ffn"}:
            raise ValueError(f"block_configs: expected attention and ffn of each layer, got {written(entry)}")
        attention, ffn = (_part(entry.get(name)) for name in ("attention", "ffn"))
        if attention is not None:
            kv_heads, group = attention.pop("num_key_value_heads", None), attention.pop("n_heads_in_group", None)
            if kv_heads is None and group is not None:
                kv_heads = heads // Config({"n_heads_in_group": group}).whole("n_heads_in_group")
            _refuse(attention)
            yield Block("mixer", 1, _size("num_key_value_heads", kv_heads))
        if ffn is not None:
            size, mult = ffn.pop("intermediate_size", None), ffn.pop("ffn_mult", None)
            if size is None and mult is not None:
                size = -(-int(2 * Config({"ffn_mult": mult}).factor("ffn_mult") * width / 3) // 256) * 256
            _refuse(ffn)
            yield Block("ffn", 1, _size("intermediate_size", size))


def _part(given: Any) -> dict[str, Any] | None:
    """The keys of an attention or FFN that say something; None of one that is left out."""
    if not isinstance(given, dict):
        raise ValueError(f"block_configs: expected keys of attention and of ffn, got {written(given)}")
    return None if given.get("no_op") else {key: value for key, value in given.items() if value not in (None, False)}


def _refuse(rest: Mapping[str, Any]) -> None:
    if rest:
        raise ValueError(f"block_configs: expected sizes, got {next(iter(rest))}, which is not read")


def _size(key: str, value: Any) -> Columns:
    return {COLUMN_OF[key]: Config({key: value}).whole(key)}


def typical_sizes(content: Mapping[str, Any]) -> Columns:
    """Sizes that `block_configs` gives in place of the model's own keys, from the first layer that has them."""
    if "block_configs" not in content or content.get("intermediate_size") is not None:
        return {}
    depth, first = Config(content).whole("num_hidden_layers"), Columns()
    for block in _blocks(content["block_configs"], depth, Config(content)):
        first = {**block.columns, **first}
    sizes = {key: first[column] for key, column in COLUMN_OF.items() if column in first}
    if missing := {"num_key_value_heads", "intermediate_size"} - sizes.keys():
        raise ValueError(f"block_configs: expected one layer with {missing.pop()} at least, got none")
    return sizes


OPENELM = {
    "model_dim": "hidden_size",
    "num_transformer_layers": "num_hidden_layers",
    "share_input_output_layers": "tie_word_embeddings",
}
OF_OPENELM = {  # keys that lead to the sizes above, or size nothing
    *("ffn_dim_divisor", "ffn_multipliers", "num_query_heads", "num_kv_heads", "num_gqa_groups", "qkv_multipliers"),
    *("activation_fn_name", "normalization_layer_name", "max_context_length", "rope_freq_constant", "rope_max_length"),
}


def openelm(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """An OpenELM file in the keys of Llama, with the sizes of its layers as `per_layer_config`.

    Raises:
        ValueError: a list that has not one entry a layer.
    """
    config = Config(content)
    depth, width, step = (config.whole(key) for key in ("num_transformer_layers", "model_dim", "ffn_dim_divisor"))
    layers: dict[str, list[Any]] = {}
    for key in ("num_query_heads", "num_kv_heads", "ffn_multipliers"):
        given = content.get(key)
        if not isinstance(given, list) or len(given) != depth:
            raise ValueError(f"{key}: expected {depth} numbers, got {written(given)}")
        layers[key] = given
    for key in ("ffn_with_glu", "normalize_qk_projections"):
        if content.get(key) is not True:
            raise ValueError(f"{key}: expected True, got {written(content.get(key))}")
    factors = [Config({"ffn_multipliers": m}).factor("ffn_multipliers") for m in layers["ffn_multipliers"]]
    sizes = [max(step, int(m * width + step / 2) // step * step) for m in factors]
    sizes = [n + step if n < 0.9 * m * width else n for n, m in zip(sizes, factors, strict=True)]
    names = ("num_attention_heads", "num_key_value_heads", "intermediate_size")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*[*layers.values()][:2], sizes, strict=True)]
    read = {*OF_OPENELM, "ffn_with_glu", "normalize_qk_projections", *OPENELM}
    renamed = {new: content[old] for old, new in OPENELM.items() if old in content}
    own = {key: value for key, value in content.items() if key not in read}
    return {**own, **renamed, **rows[0], "per_layer_config": {str(i): row for i, row in enumerate(rows)}}


NEMOTRON_LAYERS = {
    **dict.fromkeys(("M", "mamba", "linear_attention"), "mamba"),
    **dict.fromkeys(("*", "attention", "full_attention"), "attention"),
    "-": "mlp",
    "mlp": "mlp",
    "E": "moe",
    "moe": "moe",
}


def nemotron_h(config: Config) -> Columns:
    """Layers of Mamba2, of attention, of an FFN or of experts alone; experts may work on fewer features than the model."""
    refuse_other(config, "attention_head_dim", config.whole("head_dim"))
    types, pattern = config.get("layers_block_type"), config.get("hybrid_override_pattern")
    listed = types if types is not None else list(pattern) if isinstance(pattern, str) else [*"ME*-"]
    if not isinstance(listed, list) or not listed or not {*map(str, listed)} <= NEMOTRON_LAYERS.keys():
        raise ValueError(f"layers_block_type: expected {', '.join(NEMOTRON_LAYERS)}, got {written(listed)}")
    names = [NEMOTRON_LAYERS[str(name)] for name in listed]
    count = {name: names.count(name) for name in ("mamba", "attention", "mlp", "moe")}
    keys = ("mamba_num_heads", "n_groups", "ssm_state_size", "mamba_head_dim", "conv_kernel")
    blocks = []
    if count["mamba"]:
        if not config.get("use_conv_bias"):
            raise ValueError(f"use_conv_bias: expected True, got {written(config.get('use_conv_bias'))}")
        blocks += [Block("mixer", count["mamba"], mamba2(config, keys, count=count["mamba"]))]
    if count["attention"]:
        blocks += [Block("mixer", count["attention"], {})]
    routed = _routed(config) if count["moe"] else DENSE | {"expert_size": config.whole("intermediate_size")}
    if count["mlp"]:
        blocks += [Block("ffn", count["mlp"], {**DENSE, "expert_size": config.whole("intermediate_size")})]
    if count["moe"]:
        blocks += _experts_of_nemotron(config, count["moe"])
    return {**routed, "depth": len(names), "ungated_ffn": True, "layers": written_blocks(blocks)}


def _routed(config: Config) -> Columns:
    """Routed experts by DeepSeek's keys."""
    return {
        "n_experts": config.whole("n_routed_experts"),
        "top_k": config.whole("num_experts_per_tok"),
        "expert_size": config.whole("moe_intermediate_size"),
    }


def _experts_of_nemotron(config: Config, count: int) -> list[Block]:
    """Routed experts, on the model's features or on latent ones between two projections, beside a shared one."""
    shared, width = config.whole("moe_shared_expert_intermediate_size"), config.whole("hidden_size")
    routed = _routed(config)
    if config.get("moe_latent_size") is None:
        return [Block("ffn", count, {**routed, "shared_expert_size": shared})]
    latent = config.whole("moe_latent_size")
    # the router reads the model's features; each block but the first has no norm of its own
    routed |= {
        "width": latent,
        "norms_per_layer": 0,
        "further_parameters": count * (width - latent) * routed["n_experts"],
    }
    return [
        Block("ffn", count, routed),
        Block("ffn", count, {**DENSE, "expert_size": shared}),
        Block("ffn", count, {**DENSE, "expert_size": latent, "norms_per_layer": 0}),
    ]


def falcon_h1(config: Config) -> Columns:
    """Attention and Mamba2 side by side in every layer, before a dense FFN."""
    depth, heads = config.whole("num_hidden_layers"), config.whole("mamba_n_heads")
    expanded = config.whole("mamba_expand") * config.whole("hidden_size")
    inner = expanded if config.get("mamba_d_ssm") is None else config.whole("mamba_d_ssm")
    auto = config.get("mamba_d_head") == "auto"
    size = inner // heads if auto else config.whole("mamba_d_head")
    if size * heads != inner:
        raise ValueError(f"mamba_n_heads: expected heads that divide mamba_d_ssm {inner:,}, got {heads}")
    if not config.get("mamba_conv_bias"):
        raise ValueError(f"mamba_conv_bias: expected True, got {written(config.get('mamba_conv_bias'))}")
    sized = Config({**config.values, "mamba_d_head": size})
    normless = 0 if config.get("mamba_rms_norm") else depth * inner  # the norm that other Mamba2 layers have
    mamba = mamba2(sized, MAMBA_KEYS, count=depth)
    beside = Block("mixer", depth, {**mamba, "norms_per_layer": 0, "further_parameters": -normless})
    return {"layers": written_blocks([beside, Block("mixer", depth, {}), Block("ffn", depth, {})])}


def sparse_latent(config: Config) -> Columns:
    """Latent attention to the tokens that an indexer chooses, its own or the last one's before it (DeepSeek V3.2, GLM-5)."""
    depth, heads = config.whole("num_hidden_layers"), config.whole("num_attention_heads")
    types = config.get("indexer_types")
    pattern, given = config.get("index_topk_pattern"), config.get("num_experts")
    if types is None and pattern is not None:
        types = [
            {"F": "full", "S": "shared"}.get(str(each), each)
            for each in (pattern if isinstance(pattern, (str, list)) else [pattern])
        ]
    if types is None:
        every, first = max(config.count("index_topk_freq"), 1), config.count("index_skip_topk_offset")
        types = ["shared" if max(i - first + 1, 0) % every else "full" for i in range(depth)]
    owners = one_each("indexer_types", types, depth, ("full", "shared")).count("full")
    if not owners:
        raise ValueError("indexer_types: expected a layer with an indexer, got none")
    mlps, dense = config.get("mlp_layer_types"), min(config.count("first_k_dense_replace"), depth)
    if mlps is not None:
        dense = one_each("mlp_layer_types", mlps, depth, ("dense", "sparse")).count("dense")
    experts = _routed(config if given is None else Config({**config.values, "n_routed_experts": given}))
    experts["shared_expert_size"] = config.count("n_shared_experts") * experts["expert_size"]
    sizes = {**latent_sizes(config), "n_heads": heads}
    index = {"index_heads": config.whole("index_n_heads"), "index_dim": config.whole("index_head_dim")}
    chosen = config.whole("index_topk")
    counted = [
        Block("mixer", owners, {**sizes, **index, "n_local": owners, "window": chosen}),
        Block("mixer", depth - owners, {**sizes, "n_local": depth - owners, "window": chosen}),
        Block("ffn", depth - dense, experts),
        Block("ffn", dense, {**DENSE, "expert_size": config.whole("intermediate_size")}),
    ]
    blocks = [block for block in counted if block.count]
    return {**sizes, **experts, "layers": written_blocks(blocks)}


def step3p5(config: Config) -> Columns:
    """Windows in layers with another number of heads, a gate per head, first layers with a dense FFN, shared experts."""
    depth, d = config.whole("num_hidden_layers"), config.whole("hidden_size")
    kinds = config.layers(lambda i: "full")
    other = config.get("attention_other_setting") or {}
    if not isinstance(other, dict):
        raise ValueError(f"attention_other_setting: expected keys of layers with a window, got {written(other)}")
    stated = config.get("num_sliding_attention_heads") or other.get("num_attention_heads")
    heads = config.whole("num_attention_heads")
    of_local = heads if stated is None else Config({"heads": stated}).whole("heads")
    full, local = kinds.count("full"), kinds.count("local")
    types = config.listed("mlp_layer_types", depth)
    dense = types.count("dense") if types else 3
    if not 0 <= dense < depth:
        raise ValueError(f"mlp_layer_types: expected sparse layers too, got {written(types)}")
    sparse = {**_routed(config), "shared_expert_size": config.whole("share_expert_dim")}
    blocks = [Block("ffn", depth - dense, sparse)]
    if dense:
        blocks += [Block("ffn", dense, {**DENSE, "expert_size": config.whole("intermediate_size")})]
    if full:
        blocks += [Block("mixer", full, {"further_parameters": full * d * heads})]
    if local:
        window = {"n_local": local, "window": config.whole("sliding_window"), "n_heads": of_local}
        blocks += [Block("mixer", local, {**window, "further_parameters": local * d * of_local})]
    return {"layers": written_blocks(blocks)}


def laguna(config: Config) -> Columns:
    """The same by Laguna's keys."""
    gates = [config.get("gating"), *config.listed("gating_types")]
    if any(gate not in (True, "per-head", "per_head") for gate in gates):
        raise ValueError(f"gating: expected one gate per head, got {written(gates)}")
    depth = config.whole("num_hidden_layers")
    heads = config.listed("num_attention_heads_per_layer", depth) or [config.whole("num_attention_heads")] * depth
    kinds = config.layers(lambda i: "full")
    by_kind = dict(zip(kinds, heads, strict=True))
    if [by_kind[kind] for kind in kinds] != heads:
        raise ValueError(f"num_attention_heads_per_layer: expected one number for each kind, got {written(heads)}")
    names = {"n_routed_experts": "num_experts", "share_expert_dim": "shared_expert_intermediate_size"}
    own = {name: config.get(key) for name, key in names.items()} | {"num_sliding_attention_heads": by_kind.get("local")}
    ffns = config.listed("mlp_layer_types", depth) or ["dense", *["sparse"] * (depth - 1)]
    own |= {"num_attention_heads": by_kind.get("full", heads[0]), "mlp_layer_types": ffns}
    further = config.whole("num_experts") * ffns.count("sparse")  # a bias of each expert
    of_full = {"n_heads": own["num_attention_heads"], "further_parameters": further}
    return {**step3p5(Config({**config.values, **own})), **of_full}


def phimoe(config: Config) -> Columns:
    """Windows, norms with a bias, and a bias of the LM head where lm_head_bias says so."""
    of_head = config.whole("vocab_size") * bool(config.get("lm_head_bias"))
    norms = (2 * config.whole("num_hidden_layers") + 1) * config.whole("hidden_size")
    return {**window_everywhere(config), "further_parameters": norms + of_head}


def llama4(config: Config) -> Columns:
    """Attention within chunks, priced as windows of their size; experts in every so many layers beside a shared one, others dense."""
    depth, size = config.whole("num_hidden_layers"), config.whole("intermediate_size")
    step, given = config.whole("interleave_moe_layer_step"), config.get("moe_layers")
    sparse = list(range(step - 1, depth, step)) if given is None else given
    if not isinstance(sparse, list) or not sparse or not all(isinstance(i, int) and 0 <= i < depth for i in sparse):
        raise ValueError(f"moe_layers: expected numbers from 0 to {depth - 1}, got {written(given)}")
    dense = depth - len(set(sparse))
    every, types = config.whole("no_rope_layer_interval"), config.get("layer_types")
    rope = config.listed("no_rope_layers") or [(i + 1) % every for i in range(depth)]
    if types is None:
        types = ["chunked_attention" if each else "full_attention" for each in rope]
    if not isinstance(types, list) or len(types) != depth or not {*types} <= {"chunked_attention", "full_attention"}:
        raise ValueError(f"layer_types: expected {depth} of chunked_attention or full_attention, got {written(types)}")
    local = types.count("chunked_attention") if config.get("attention_chunk_size") is not None else 0
    columns: Columns = {"shared_expert_size": size}
    columns |= {"n_dense": dense, "dense_size": config.whole("intermediate_size_mlp")} if dense else {}
    return columns | ({"n_local": local, "window": config.whole("attention_chunk_size")} if local else {})


def hunyuan(config: Config) -> Columns:
    """Full attention in every layer."""
    if config.get("head_dim") is not None:
        refuse_other(config, "attention_head_dim", config.whole("head_dim"))
    return {}


def hunyuan_moe(config: Config) -> Columns:
    """The same with experts beside a shared one of the same size."""
    for key, size in (("num_shared_expert", 1), ("moe_intermediate_size", config.whole("intermediate_size"))):
        if config.get(key) is not None and config.whole(key) != size:
            raise ValueError(f"{key}: expected {size}, as the class has it, got {written(config.get(key))}")
    return {**hunyuan(config), "shared_expert_size": config.whole("intermediate_size")}


def two_matrices(config: Config) -> Columns:
    """An FFN of two matrices, with biases where mlp_bias says so."""
    return {"ungated_ffn": True, "further_parameters": _ffn_biases(config) if config.get("mlp_bias") else 0}


def _ffn_biases(config: Config) -> int:
    return config.whole("num_hidden_layers") * (config.whole("intermediate_size") + config.whole("hidden_size"))


def norm_biases(config: Config) -> Columns:
    """Two norms a layer and a last one that have a bias (StableLM)."""
    if config.get("use_parallel_residual") or config.get("qk_layernorm"):
        raise ValueError("use_parallel_residual, qk_layernorm: expected False, got True")
    whole_heads(config)
    further = (2 * config.whole("num_hidden_layers") + 1) * config.whole("hidden_size")
    return {"qkv_bias": bool(config.get("use_qkv_bias")), "further_parameters": further}


def nemotron(config: Config) -> Columns:
    """Norms with a bias, an FFN of two matrices."""
    of_ffn, norms = two_matrices(config), (2 * config.whole("num_hidden_layers") + 1) * config.whole("hidden_size")
    return of_ffn | {"further_parameters": of_ffn["further_parameters"] + norms}


def starcoder2(config: Config) -> Columns:
    """Norms with a bias, an FFN of two matrices, and biases everywhere where use_bias says so."""
    biased, depth, d = bool(config.get("use_bias")), config.whole("num_hidden_layers"), config.whole("hidden_size")
    of_matrices = _ffn_biases(config) + depth * d if biased else 0
    own: Columns = {"ungated_ffn": True, "qkv_bias": biased, "further_parameters": (2 * depth + 1) * d + of_matrices}
    return {**own, **window_everywhere(config)}


def gpt2(config: Config) -> Columns:
    """Full attention of as many KV heads as heads, norms, biases everywhere, an FFN of two matrices, a table of positions."""
    depth, d = config.whole("num_hidden_layers"), config.whole("hidden_size")
    size = 4 * d if config.get("n_inner") is None else config.whole("n_inner")
    further = (2 * depth + 1) * d + depth * (size + d) + depth * d
    apart = {"further_parameters": further, "table_parameters": config.whole("max_position_embeddings") * d}
    return {**whole_heads(config), "ungated_ffn": True, "expert_size": size, **apart}


def gpt_neox(config: Config) -> Columns:
    """Full attention of as many KV heads as heads, norms and an FFN of two matrices with a bias."""
    depth, d, biased = (
        config.whole("num_hidden_layers"),
        config.whole("hidden_size"),
        bool(config.get("attention_bias")),
    )
    further = (2 * depth + 1) * d + _ffn_biases(config) + depth * d * biased
    whole_heads(config)
    return {"ungated_ffn": True, "qkv_bias": biased, "further_parameters": further}


def phi(config: Config) -> Columns:
    """One norm a layer, an FFN of two matrices, and biases everywhere, the LM head's too."""
    depth, d = config.whole("num_hidden_layers"), config.whole("hidden_size")
    further = (depth + 1) * d + _ffn_biases(config) + depth * d + config.whole("vocab_size")
    return {"ungated_ffn": True, "further_parameters": further}


def apertus(config: Config) -> Columns:
    """An FFN of two matrices whose activation has two parameters."""
    return {"ungated_ffn": True, "further_parameters": 2 * config.whole("num_hidden_layers")}


def exaone_moe(config: Config) -> Columns:
    """Windows, first layers with a dense FFN, shared experts."""
    dense = config.count("first_k_dense_replace")
    shared = config.count("num_shared_experts") * config.whole("moe_intermediate_size")
    return {**exaone4(config), "shared_expert_size": shared, **dense_first(config, dense_layers(config, dense))}


def afmoe(config: Config) -> Columns:
    """Windows, attention with a gate, first layers with a dense FFN, shared experts; a bias of each expert as further parameters."""
    depth, dense = config.whole("num_hidden_layers"), config.count("num_dense_layers")
    every = config.whole("global_attn_every_n_layers")
    kinds = config.layers(lambda i: "local" if (i + 1) % every else "full")
    shared = config.count("num_shared_experts") * config.whole("moe_intermediate_size")
    biases = max(depth - dense, 0) * config.whole("num_experts")
    own: Columns = {"attention_gate": True, "shared_expert_size": shared, "further_parameters": biases}
    return {**local(config, kinds), **own, **dense_first(config, dense)}


def latent_alone(config: Config) -> Columns:
    """Latent attention before a dense FFN (MiniCPM 3, Youtu)."""
    heads = config.whole("num_attention_heads")
    value = config.get("v_head_dim") or config.whole("hidden_size") // heads
    return latent_sizes(Config({**config.values, "v_head_dim": value}))
