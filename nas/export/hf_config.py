"""config.json of a Hugging Face directory: written with both spellings of renamed keys, and read back.

transformers 5 writes num_local_experts, rope_parameters and dtype where 4 reads num_experts, rope_theta and torch_dtype;
either reader falls back to its defaults in silence (128 experts, theta 10,000), so a file holds both.
"""

from collections.abc import Mapping
from typing import Any

from nas.export.class_keys import (
    ACTIVATIONS,
    COUNTS,
    LAYER_TYPES,
    NORM_EPSILON,
    NORM_KEYS,
    ROPE_THETA,
    column_keys,
    fixed,
    layer_types,
    rope,
)
from nas.export.families import Family, family_in, family_of
from nas.export.layer_order import in_order
from nas.export.model import Model
from nas.export.serving import HEADS
from search_spaces.architectures import Architectures, one

SPELLINGS = (("num_experts", "num_local_experts"), ("torch_dtype", "dtype"))


def config_of(model: Model) -> dict[str, Any]:
    """The content of config.json."""
    family, token, q = family_of(model.architecture), model.tokenizer, model.column
    columns = {key: bool(q(column)) if column == "tied" else q(column) for key, column in column_keys(family).items()}
    return {
        "architectures": [family.class_name],
        "model_type": family.model_type,
        **_unread(model, family),
        **columns,
        **_kinds(model, family),
        **(_experts(model, columns) if family.sparse else {}),
        **fixed(family, q("depth"), q("head_dim"), q("top_k")),
        "attention_dropout": 0.0,
        **dict([ACTIVATIONS.get(family.model_type, ("hidden_act", "silu"))]),
        NORM_KEYS.get(family.model_type, "rms_norm_eps"): NORM_EPSILON,
        "initializer_range": model.schedule.std,
        "max_position_embeddings": model.context,
        "rope_theta": ROPE_THETA,
        "rope_parameters": rope(family),
        "bos_token_id": token.bos,
        "eos_token_id": token.eos,
        "pad_token_id": token.pad,
        "use_cache": True,
        "torch_dtype": "bfloat16",
        "dtype": "bfloat16",
        **({HEADS[family.model_type]: 1} if model.served.drafter == "mtp" else {}),
    }


def _unread(model: Model, family: Family) -> dict[str, Any]:
    """The size of a dense FFN where no layer has one, which readers ask for all the same; of first dense layers it is theirs."""
    if not family.sparse and family.model_type != "granitemoehybrid":
        return {}
    if family.model_type == "olmoe":  # whose experts have that key
        return {}
    dense = model.column("dense_size")
    return {"intermediate_size": dense or model.column("top_k") * model.column("expert_size")}


def _kinds(model: Model, family: Family) -> dict[str, Any]:
    """The kind of each layer, of classes that have several."""
    if family.mixers == ("",):
        return {}
    types = {"layer_types": layer_types(family, in_order(model.architecture))}
    if family.mixers != ("mamba2",):
        return types
    q = model.column
    return {**types, "mamba_expand": q("linear_heads") * q("linear_value_dim") // q("width")}


def _experts(model: Model, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Both spellings of the number of experts, and the auxiliary loss of the recipe."""
    both = {name: model.column("n_experts") for name in SPELLINGS[0]} if "num_experts" in columns else {}
    return {**both, "router_aux_loss_coef": model.recipe.auxiliary_loss}


def architecture_of(config: Mapping[str, Any]) -> Architectures:
    """The architecture that a config.json describes, read from its keys alone.

    Raises:
        ValueError: a missing key, two spellings that differ, or a setting that changes the model.
    """
    family = _family(config)
    columns: dict[str, Any] = {column: _key(config, key) for key, column in column_keys(family).items()}
    columns |= {"qk_norm": family.qk_norm, "qkv_bias": family.qkv_bias, "attention_gate": family.gate}
    columns |= {"shared_gate": family.shared == ("gated",), "norms_per_layer": family.norms}
    if columns.get("n_dense"):
        columns["dense_size"] = _key(config, "intermediate_size")
    if kinds := config.get("layer_types") if family.mixers != ("",) else None:
        columns |= _mixer_columns(family, list(kinds))
        columns |= _sharing_columns(columns["n_kv_shared"], list(kinds)) if family.kv_shared else {}
    found = one(columns)
    refuse_contradictions(config)
    if kinds and list(kinds) != layer_types(family, in_order(found)):
        raise ValueError(
            "layer_types: expected a layer of full attention at the end of every period, got another order"
        )
    return found


def _family(config: Mapping[str, Any]) -> Family:
    """The class of a config.json; the kinds of its layers decide between classes with equal keys."""
    sparse = bool(config.get("num_experts") or config.get("num_local_experts"))
    return family_in(config.get("model_type"), sparse=sparse, windows=bool(config.get("use_sliding_window")))


def _mixer_columns(family: Family, kinds: list[str]) -> dict[str, Any]:
    """Counts of the layers beside full attention."""
    (mixer,) = family.mixers
    count = kinds.count(LAYER_TYPES[mixer])
    linear = {"linear_kind": mixer} if COUNTS[mixer] == "n_linear" else {}
    return {COUNTS[mixer]: count, **linear}


def _sharing_columns(shared: int, kinds: list[str]) -> dict[str, Any]:
    """How many of the last layers, which share KV caches, have the window."""
    return {"n_kv_shared_local": kinds[len(kinds) - shared :].count(LAYER_TYPES["local"])}


def refuse_contradictions(config: Mapping[str, Any]) -> None:
    """Refuse settings by which some reader would build another model.

    Raises:
        ValueError: what contradicts what.
    """
    for old, new in SPELLINGS:
        if config.get(old, config.get(new)) != config.get(new, config.get(old)):
            raise ValueError(f"{new}: expected {config.get(old)!r} as {old} says, got {config.get(new)!r}")
    family = _family(config)
    if _key(config, "rope_parameters") != rope(family) or _key(config, "rope_theta") != ROPE_THETA:
        raise ValueError(
            f"rope_parameters: expected rope_theta {config['rope_theta']!r}, got {config['rope_parameters']!r}"
        )
    top_k = _key(config, "num_experts_per_tok") if family.sparse else 1
    wanted = fixed(family, _key(config, "num_hidden_layers"), _key(config, "head_dim"), top_k)
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
