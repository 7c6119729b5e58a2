"""config.json of a Hugging Face directory: the keys of each class, written with both spellings of renamed ones, and read back.

transformers 5 writes num_local_experts, rope_parameters and dtype where 4 reads num_experts, rope_theta and torch_dtype;
either reader falls back to its defaults in silence (128 experts, theta 10,000), so a file holds both. Where transformers is
installed, a directory is built with it, without weights, and its parameters counted.
"""

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.export.families import FULL, Family, family_in, family_of, in_order
from nas.export.model import HEADS, Model
from nas.study import config_file
from nas.study.config_kinds import KIND_OF, Config
from objectives.plugins import packaged, version_of
from search_spaces.architectures import Architectures

SPELLINGS = (("num_experts", "num_local_experts"), ("torch_dtype", "dtype"))
ROPE_THETA = 1_000_000
NORM_EPSILON = 1e-6
NORM_KEYS = {"lfm2": "norm_eps", "lfm2_moe": "norm_eps"}
#: What layer_types calls a kind; GraniteMoeHybrid's older names, which newer readers take as well.
LAYER_TYPES = {
    FULL: "full_attention",
    "local": "sliding_attention",
    "deltanet": "linear_attention",
    "mamba2": "mamba",
    "conv": "conv",
}
FULL_TYPES = {"granitemoehybrid": "attention"}
#: Activation functions, by model_type; silu of the others.
ACTIVATIONS = dict.fromkeys(("gemma2", "gemma3_text", "gemma4_text"), ("hidden_activation", "gelu_pytorch_tanh"))
PER_KIND = ("mellum", "gemma3_text", "gemma4_text")  # classes with rope_parameters for each kind of attention
ROTARY_SHARE = 0.25  # of a head's features that Qwen3-Next rotates, which readers fall back to


@cache
def class_keys() -> dict[str, Any]:
    """Keys that classes have, by the columns that they hold, and those that must have one value: class_keys.yaml."""
    content: dict[str, Any] = packaged("nas.export", "class_keys")
    return content


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
    if (
        not (family.sparse or family.model_type == "granitemoehybrid") or family.model_type == "olmoe"
    ):  # whose experts have it
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
    """The architecture that a config.json of ours describes, as exported or as training has saved it again.

    Raises:
        ValueError: a key that its class does not read, or a setting that changes the model.
    """
    architecture = config_file.architecture_of(config)
    family, settings = _family(config), config_file.settings_of(config)
    refuse_contradictions(config, family, settings)
    if family.mixers != ("",):
        wanted = layer_types(family, in_order(architecture))
        kinds = [KIND_OF[name] for name in settings.get("layer_types") or wanted]
        if kinds != [KIND_OF[name] for name in wanted]:
            raise ValueError(
                "layer_types: expected a layer of full attention at the end of every period, got another order"
            )
    return architecture


def auxiliary_loss(config: Mapping[str, Any]) -> Any:
    """The weight of the routers' auxiliary loss; None without experts."""
    key = "router_aux_loss_coef"
    return config.get(key, config_file.settings_of(config).get(key)) if _family(config).sparse else None


def _family(config: Mapping[str, Any]) -> Family:
    """The class of a config.json; the kinds of its layers decide between classes with equal keys."""
    sparse = bool(config.get("num_experts") or config.get("num_local_experts"))
    return family_in(config.get("model_type"), sparse=sparse, windows=bool(config.get("use_sliding_window")))


def refuse_contradictions(config: Mapping[str, Any], family: Family, settings: Config) -> None:
    """Refuse settings by which some reader would build another model.

    Raises:
        ValueError: what contradicts what.
    """
    for old, new in SPELLINGS:
        if config.get(old, config.get(new)) != config.get(new, config.get(old)):
            raise ValueError(f"{new}: expected {config.get(old)!r} as {old} says, got {config.get(new)!r}")
    given = config.get("rope_parameters") or {}
    if config.get("rope_theta", ROPE_THETA) != ROPE_THETA or not _holds(given, rope(family)):
        raise ValueError(f"rope_parameters: expected {rope(family)}, got {given!r} and {config.get('rope_theta')!r}")
    top_k = settings.whole("num_experts_per_tok") if family.sparse else 1
    wanted = fixed(family, settings.whole("num_hidden_layers"), _head_size(settings), top_k)
    if settings.get("per_layer_config") is not None:
        wanted.pop("global_head_dim", None)  # which transformers 5 writes for each layer instead
    for key, value in wanted.items():
        if (got := settings.values.get(key, config.get(key, value))) != value:
            raise ValueError(f"{key}: expected {value!r}, got {got!r}")
    for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
        token = config.get(key)
        if token is not None and not 0 <= token < settings.whole("vocab_size"):
            raise ValueError(f"{key}: expected less than vocab_size {settings.whole('vocab_size')}, got {token}")


def _holds(given: Any, wanted: Any) -> bool:
    """Whether nested settings hold the wanted ones; what a class adds to them does no harm."""
    if not isinstance(wanted, dict):
        return bool(given == wanted)
    return isinstance(given, dict) and all(_holds(given.get(key), value) for key, value in wanted.items())


def _head_size(settings: Config) -> int:
    if settings.get("head_dim") is not None:
        return settings.whole("head_dim")
    return settings.whole("hidden_size") // settings.whole("num_attention_heads")


def column_keys(family: Family) -> dict[str, str]:
    """Key to column of everything that a class's config.json says of an architecture."""
    keys, kind = class_keys(), "experts" if family.sparse else "dense"
    ffn = keys["ffn"].get(family.model_type, {}).get(kind, keys[kind])
    sharing = {"num_kv_shared_layers": "n_kv_shared"} if family.kv_shared else {}
    return {**keys["shape"], **ffn, **keys["mixers"][family.mixers[0]], **sharing}


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
    keys: dict[str, Any] = dict(class_keys()["fixed"][family.model_type])
    if family.model_type == "qwen3":
        keys["use_sliding_window"] = family.mixers == ("local",)
    if family.model_type == "qwen3_next":
        keys["partial_rotary_factor"] = ROTARY_SHARE
    if family.model_type == "granitemoehybrid":
        keys["attention_multiplier"] = head_dim**-0.5
    if family.model_type in ("gemma2", "gemma3_text"):
        keys["query_pre_attn_scalar"] = head_dim
    if family.model_type == "gemma4_text":
        keys["global_head_dim"] = head_dim
    if not family.sparse:
        absent = {"qwen3_next": "num_experts", "granitemoehybrid": "num_local_experts"}
        return keys | ({absent[family.model_type]: 0} if family.model_type in absent else {})
    keys["output_router_logits"] = False
    if family.model_type != "granitemoehybrid":
        keys["norm_topk_prob"] = top_k > 1
    if family.model_type in ("qwen2_moe", "qwen3_moe", "qwen3_next"):
        keys |= {"decoder_sparse_step": 1, "mlp_only_layers": []}
    if family.model_type == "mellum":
        keys["mlp_layer_types"] = ["sparse"] * depth
    return keys


def transformers_version() -> str | None:
    """The version that can build models here, None without it or without torch."""
    if find_spec("torch") is None or find_spec("transformers") is None:
        return None
    return version_of("transformers")


def refuse_missing(command: str) -> None:
    """Refuse to begin without the packages that train and score models.

    Raises:
        UsageError: naming what to install.
    """
    absent = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if absent:
        text = f"expected torch and transformers, got no {' and no '.join(absent)}; pip install 'plas-codesign[hf]'"
        raise UsageError(f"{command}: {text}")


def built_parameters(folder: Path) -> dict[str, int]:
    """Total and active parameters of the model built on the meta device; of E experts K are active."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(config)
    count = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None) or 1
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    experts = sum(size for name, size in sizes.items() if ".experts." in name)
    total = sum(sizes.values())
    return {
        "params_total": total,
        "params_active": total - experts + experts * getattr(config, "num_experts_per_tok", 1) // count,
    }
