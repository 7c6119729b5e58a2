"""Reads a Hugging Face config.json as an architecture. The reader is closed: a key that no family knows is refused by its name."""

import contextlib
import difflib
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.study.config_blocks import BY_LAYER, blocks_by_layer, openelm, typical_sizes
from nas.study.config_kinds import Columns, Config, written
from nas.study.model_types import Family, model_classes, model_types
from nas.study.towers import BYTES, beside
from objectives import outside
from search_spaces.architectures import Architectures, one
from search_spaces.columns import names_of
from search_spaces.formats import FORMATS

MOST_BYTES = 10_000_000
TIED = "tie_word_embeddings"
#: Keys of how many experts there are; a class has one of them.
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
#: Sizes that must be sizes also where this family does not use them.
SIZES = ("intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size")
#: Of models that see or hear: those whose class ties tables by the text part's key, and those that do by either; others by the whole's.
TIED_BY_TEXT, TIED_BY_EITHER = ("llama4",), ("qwen2_vl", "qwen2_5_vl", "llava")
#: Keys that say by a period what layer_types says layer by layer.
PATTERNS = (
    *("sliding_window_pattern", "full_attention_interval", "global_attn_every_n_layers"),
    *("max_window_layers", "full_attn_idxs"),
)
SHARE = "partial_rotary_factor"
OFF: tuple[Any, ...] = (None, False, 0, "", [], {})
WINDOWS = ("sliding_window", "attention_chunk_size")
TOWERS = ("vision_config", "audio_config")
MLA = "latent attention (MLA) beside something else"


def read_config(path: Path, *, towers: bool = False) -> Architectures:
    """The architecture of a config.json, of its text part where the model also sees or hears; with `towers` what is beside it takes memory.

    Raises:
        UsageError: no such file, a family or a key that is not read, or a value that no columns hold.
    """
    try:
        content = content_of(path)
        architecture = architecture_of(text_part(content))
        sizes = left_out(content) if towers else {}
        if unknown := [name for name, size in sizes.items() if size is None]:
            raise ValueError(f"towers: expected towers of a known kind, got its {' and its '.join(unknown)}")
        held = architecture.table_parameters + sum(size or 0 for size in sizes.values())
        return replace(architecture, table_parameters=held)
    except OSError as error:
        raise UsageError(f"{path}: expected a Hugging Face config.json, got {error.strerror}; check the path") from None
    except ValueError as error:
        message = str(error).splitlines()[0]
        raise UsageError(f"{path}: {message}; give a Hugging Face config.json of a decoder that columns hold") from None


def content_of(path: Path) -> Mapping[str, Any]:
    """A config.json as it is, with what a file of ModelOpt beside it says of the weights' format.

    Raises:
        OSError: it cannot be read.
        ValueError: no JSON, no mapping, or a key that stands there twice.
    """
    try:
        content = outside.parsed(outside.text(path, MOST_BYTES, encoding="utf-8-sig"), once=True)
    except json.JSONDecodeError as error:
        raise ValueError(f"expected JSON, got a fault in line {error.lineno}: {error.msg}") from None
    except UnicodeDecodeError:
        raise ValueError("expected JSON, got something else") from None
    if not isinstance(content, dict):
        raise ValueError(f"expected the keys of a config.json, got {written(content)}")
    beside = path.with_name(f"{MODELOPT}.json")
    if path == beside or not beside.is_file():
        return content
    return {**content, MODELOPT: content_of(beside).get("quantization")}


def text_part(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of the decoder of text: those of its `text_config`, or the file's own without the towers beside them.

    Raises:
        ValueError: a text part that holds no keys.
    """
    text, kind = content.get("text_config", content.get("llm_config")), str(content.get("model_type"))
    text_of = model_types().text_of
    if text is None and kind in text_of:
        return {key: value for key, value in content.items() if key not in TOWERS} | {"model_type": text_of[kind]}
    if text is None:
        return content
    if not isinstance(text, dict):
        raise ValueError(f"text_config: expected the keys of a decoder, got {written(text)}")
    own = {**text, "model_type": text.get("model_type") or text_of.get(kind, kind)}
    tied = _tie(content, own)[0]
    return own if tied is None else {**own, TIED: tied}


def _tie(content: Mapping[str, Any], text: Mapping[str, Any]) -> tuple[Any, str]:
    """Whether tables are tied where a file has a text part, and which rule says so where its keys or classes disagree.

    What one of the two parts states counts. Of two that differ the class of the whole model chooses. Without either they are tied where both
    classes tie them: a default of one class may be that of one of its models (Mistral 3's is that of Ministral 3 3B, not of Mistral Small).
    """
    kind, named = str(content.get("model_type")), str(text["model_type"])
    classes, family = model_classes(), model_types().families.get(named)
    whole, own = content.get(TIED), text.get(TIED)
    if whole is not None and own is not None and whole != own:
        tied, by = (own, "text_config") if kind in TIED_BY_TEXT else (whole, "the whole file")
        if kind in TIED_BY_EITHER:
            tied, by = True, "either part, where one is true"
        return tied, f"{TIED} is {whole} for the whole file and {own} in its text_config: {by} decides in {kind}"
    if kind not in model_types().text_of or family is None:
        return (whole if own is None else own), ""
    of_whole, of_text = (classes[name].defaults.get(TIED, False) for name in (kind, family.as_class or named))
    if whole is None and own is None:
        tied = of_whole and of_text
        line = (
            f"{TIED} is in neither part: taken as {tied}, though by default {kind} has {of_whole} and {named} {of_text}"
        )
        return tied, "" if of_whole == of_text else line
    stated, read = (own, of_whole) if whole is None else (whole, of_text)
    unread = kind not in TIED_BY_EITHER and (whole is None) != (kind in TIED_BY_TEXT) and stated != read
    part = "text_config alone" if whole is None else "the whole file alone"
    return stated, f"{TIED} is {stated} in {part}: taken so, though {kind}'s class has {read} there" if unread else ""


def deciding(content: Mapping[str, Any]) -> list[str]:
    """Which rule decided where keys of a config.json disagree: on tied tables, on windows."""
    text, own = content.get("text_config", content.get("llm_config")), text_part(content)
    lines = [] if text is None else [_tie(content, {**text, "model_type": own["model_type"]})[1]]
    design, window = architecture_of(own), own.get("sliding_window")
    windowed = "window=" in names_of(design.layers[:1])[0] or bool(design.n_local[0])
    if isinstance(window, int) and window and not windowed:
        off = "use_sliding_window" in {*own, *settings_of(own).values} and not own.get("use_sliding_window")
        why = "use_sliding_window is off" if off else "no layer of it is said to have one"
        lines.append(f"sliding_window is {window:,}, which no layer has: {why}")
    if own.get("layer_types") and any(own.get(key) is not None for key in PATTERNS):
        with contextlib.suppress(ValueError):
            other = architecture_of({key: value for key, value in own.items() if key != "layer_types"})
            if str(other.columns()) != str(design.columns()):
                lines.append("layer_types decides which layers there are, against the pattern beside it")
    return [f"Its config.json: {line}." for line in lines if line]


#: Keys that state how weights are stored, the first that is given counts; then that of experts alone, of the KV cache, and the type of all.
MODELOPT = "hf_quant_config"  # a file of NVIDIA's ModelOpt beside config.json, which may say nothing of it
FORMAT_KEYS = ("quantization_config", "compression_config", "quantization", "weight_quantization", MODELOPT)
BITS = ("bits", "w_bit", "num_bits")
KV_KEYS = ("kv_cache_scheme", "kv_cache_quant_algo")
DTYPES = ("dtype", "torch_dtype")


def stored_format(content: Mapping[str, Any]) -> tuple[str, str]:
    """How a config.json says its weights are stored, in its words, and as a format of ours; "" where it says nothing or we have none."""
    parts = [content, *(part for key in ("text_config", "llm_config") if isinstance(part := content.get(key), dict))]
    given = {key: part[key] for key in FORMAT_KEYS for part in reversed(parts) if part.get(key)}
    found = {key: _stated(value) for key, value in given.items()}
    words, name = next(iter(found.values()), ("", ""))
    for key, (other, theirs) in [*found.items()][1:]:
        if theirs != name:
            words += f" in {next(iter(found))}, which counts, and {other} in {key}"
    dtype = next((str(part[key]) for part in parts for key in DTYPES if part.get(key)), "").removeprefix("torch.")
    if not words and dtype.startswith("float8"):
        words, name = dtype, "fp8"
    for key in ("expert_dtype", *KV_KEYS):
        said = next((of[key] for of in (*parts, *given.values()) if isinstance(of, dict) and of.get(key)), None)
        if said is not None and str(said).lower().removeprefix("torch.") not in (*BYTES, "auto", "none"):
            words, name = _beside(key, said, words, name)
    return words, name


def _beside(key: str, said: Any, words: str, name: str) -> tuple[str, str]:
    """A format with one of experts alone, which ours have in mxfp4 and nvfp4 alone, or with one of the KV cache."""
    bits = said.get("num_bits") if isinstance(said, dict) else {"fp8": 8, "int8": 8, "nvfp4": 4}.get(str(said).lower())
    of_cache = f"{bits} bits" if key in KV_KEYS and bits else written(said)
    stated, words = words, f"{words or 'in 16 bits'}, {'KV cache' if key in KV_KEYS else 'experts'} in {of_cache}"
    whole = f"{name or 'fp16'}_kv{bits}" if name or not stated else ""
    return words, whole if key in KV_KEYS and whole in FORMATS else ""


def _stated(said: Any) -> tuple[str, str]:
    """What one of these keys says, in its words and as a format of ours."""
    if not isinstance(said, dict):
        return str(said).lower()[:60], model_types().stored.get(str(said).lower(), "")
    method = str(said.get("quant_method", "")).lower()
    stated = next((said[key] for key in BITS if said.get(key) is not None), None)
    bits = 4 if said.get("load_in_4bit") else 8 if said.get("load_in_8bit") else stated
    if not method and "group_size" in said and bits:
        return _mlx(said, bits)
    name = str(said.get("quant_algo") or (said.get("format") if method == "compressed-tensors" else method)).lower()
    words = (f"{name}, {bits} bits" if bits else name) or written(said)
    if method in ("gptq", "awq") and bits == 4:
        return words, "w4a16"
    if method == "compressed-tensors" and name not in model_types().stored:
        return _compressed(said, name)
    return words, model_types().stored.get(name, "")


def _mlx(said: Mapping[str, Any], bits: Any) -> tuple[str, str]:
    """MLX's format of all layers, in groups of 64; none of ours where some layers but routers have another."""
    mode, group = str(said.get("mode", "affine")), said["group_size"]
    others = [
        name
        for name, own in said.items()
        if isinstance(own, dict) and own.get("bits", bits) != bits and not name.endswith(("gate", "router"))
    ]
    words = f"MLX's {mode}, {bits} bits in groups of {group}" + (" and others" if others else "")
    ours = mode if mode in model_types().stored else f"mlx_{bits}bit" if (mode, group) == ("affine", 64) else ""
    return words, ours if ours in FORMATS and not others else ""


def _compressed(said: Mapping[str, Any], name: str) -> tuple[str, str]:
    """The format of compressed tensors, where all groups of layers have one of integers."""
    groups = said.get("config_groups")
    of_group = [group for group in (groups.values() if isinstance(groups, dict) else ()) if isinstance(group, dict)]
    weights = [(own, bool(g.get("input_activations"))) for g in of_group if isinstance(own := g.get("weights"), dict)]
    found: set[Any] = {(own.get("num_bits"), own.get("type"), inputs) for own, inputs in weights}
    known = {(4, "int", False): "w4a16", (8, "int", True): "int8"}
    kinds = [f"{bits} bits {kind}" for bits, kind, _ in found]
    return " and ".join([name, *kinds]), known.get(next(iter(found)), "") if len(found) == 1 else ""


def left_out(content: Mapping[str, Any]) -> dict[str, int | None]:
    """Parameters of what a config.json describes beside the decoder of text, by its name; None where they are not known."""
    text = text_part(content)
    return beside(content, text, architecture_of(text))


def architecture_of(content: Mapping[str, Any]) -> Architectures:
    """The architecture that the keys of a decoder describe.

    Raises:
        ValueError: `key: expected X, got Y`.
    """
    content = openelm(content) if content.get("model_type") == "openelm" else content
    family = family_named(str(content.get("model_type")), content)
    by_layer = {} if "per_layer_config" in family.more else {key: content[key] for key in BY_LAYER if content.get(key)}
    plain = {key: value for key, value in content.items() if key not in by_layer}
    config = settings_of({**plain, **typical_sizes(content)} if by_layer else plain)
    for key, plain in family.plain.items():
        if config.get(key) not in (None, plain):
            raise ValueError(f"{key}: expected {plain!r}, got {written(config.get(key))}")
    counted = [key for key in EXPERTS if key in config.values]
    experts = next((key for key in counted if config.get(key) is not None), *counted[:1] or [""])
    none = config.get(experts) == 0 and type(config.get(experts)) is int
    if none and family.experts and not family.dense_at_zero:
        raise ValueError(f"{experts}: expected a positive integer, as its class builds no FFN without experts, got 0")
    sparse = bool(family.experts) and not none
    own = family.kinds(config)
    columns: Columns = {
        "depth": own["depth"] if "depth" in own else config.whole("num_hidden_layers"),
        "width": config.whole("hidden_size"),
        "n_heads": config.whole("num_attention_heads"),
        **_key_value_heads(config),
        "n_experts": config.whole(experts) if sparse else 1,
        "top_k": config.whole(_chosen(config)) if sparse else 1,
        "qk_norm": family.qk_norm,
        **_biases(config, family),
        "norms_per_layer": family.norms,
        "tied": _tied(config),
        "vocabulary": config.whole("vocab_size"),
    }
    if family.shared and sparse and config.get("shared_expert_intermediate_size") is not None:
        columns |= {"shared_expert_size": config.whole("shared_expert_intermediate_size"), "shared_gate": True}
    further = columns.pop("further_parameters", 0) + own.get("further_parameters", 0)
    columns |= own | {"further_parameters": further}
    if "expert_size" not in columns:
        columns["expert_size"] = config.whole(family.experts if sparse else "intermediate_size")
    for key in SIZES:
        config.count(key)
    found = one(columns)
    return one({**columns, **blocks_by_layer(by_layer, found, config)}) if by_layer else found


def family_named(name: str, content: Mapping[str, Any]) -> Family:
    """The family of a model_type.

    Raises:
        ValueError: none that columns hold, with the reason or the nearest one.
    """
    types = model_types()
    found = types.families.get(name)
    mixed = found is None and bool(content.get("kv_lora_rank"))
    if why := types.outside.get(name, MLA if mixed else ""):
        raise ValueError(f"model_type: expected layers that columns hold, got {name[:60]!r}, which has {why}")
    if found is None:
        raise ValueError(
            f"model_type: expected a family that is read (docs/search-spaces.md), got {name[:60]!r}; the nearest is {_nearest(name, content)}"
        )
    if found.mixer not in ("latent_size", "layers") and content.get("kv_lora_rank") and content.get("use_mla", True):
        raise ValueError(f"model_type: expected layers that columns hold, got {name!r}, which has {MLA}")
    return found


def _nearest(name: str, content: Mapping[str, Any]) -> str:
    """The family whose class knows most of the keys that say something of layers; among equals a name that is nearly the same, or few other keys."""
    types, classes = model_types(), model_classes()
    given = {key for key in content if key not in types.harmless and key not in types.harmless_at}

    def rank(kind: str) -> tuple[int, bool, int, float]:
        of = classes[types.families[kind].as_class or kind]
        known = {*of.defaults, *of.renamed, *types.families[kind].more}
        alike = difflib.SequenceMatcher(None, name, kind).ratio()
        return len(given & known), alike > 0.75, -len({*of.defaults} - types.harmless - given), alike

    return max(types.families, key=rank)


def settings_of(content: Mapping[str, Any]) -> Config:
    """The keys of a file, spelt as its class spells them, over what the class takes for those that are left out.

    Raises:
        ValueError: no family of ours, a key that no class knows, or two spellings of one key that differ.
    """
    name = str(content.get("model_type"))
    family = family_named(name, content)
    of = model_classes()[family.as_class or name]
    values, given = {TIED: False, "layer_types": None, "head_dim": None, **family.more, **of.defaults}, dict[str, str]()
    for key, value in content.items():
        spelt = of.renamed.get(key, key)
        if spelt in given and value != values[spelt]:
            raise ValueError(f"{key}: expected {written(values[spelt])}, as {given[spelt]} says, got {written(value)}")
        known = spelt in values or spelt in family.plain
        off = model_types().harmless_at
        if not known and key in off and value is not None and value not in off[key]:
            raise ValueError(f"{key}: expected {' or '.join(map(written, off[key]))}, got {written(value)}")
        if not known and key not in model_types().harmless and key not in off and not _unread(key, value, family):
            raise ValueError(
                f"{key}: expected keys of a {name} model, got one that is not read and may change its layers; "
                "remove it if it does not"
            )
        if known:
            values[spelt], given[spelt] = value, key
    _refuse_windows_of_engines(content, {*of.defaults, *family.plain, *family.more})
    for key in family.listed:
        values[key] = _of_all_layers(key, values.get(key), values.get("num_hidden_layers"))
    return Config(values)


def _refuse_windows_of_engines(content: Mapping[str, Any], read: Collection[str]) -> None:
    """Refuse a window that a class without windows does not read, and caches of engines keep all the same.

    Raises:
        ValueError: one that is shorter than the positions, and not switched off.
    """
    most = content.get("max_position_embeddings")
    for key in () if "layer_types" in read or content.get("use_sliding_window") is False else WINDOWS:
        size = content.get(key)
        if key not in read and size and not (isinstance(most, int) and isinstance(size, int) and size >= most > 0):
            raise ValueError(f"{key}: expected null, as the class reads none but caches do, got {written(size)}")


def _of_all_layers(key: str, value: Any, depth: Any) -> Any:
    """The one value of a key whose class takes a list, one a layer.

    Raises:
        ValueError: another number of values, or several.
    """
    if not isinstance(value, list):
        return value
    if len(value) != depth:
        raise ValueError(f"{key}: expected one value or {depth}, one a layer, got {len(value)}")
    if value.count(value[0]) < depth:
        raise ValueError(f"{key}: expected one value for all layers, got several; such layers have no columns here")
    return value[0]


def _unread(key: str, value: Any, family: Family) -> bool:
    """Whether a family's class does not read a key: one that is off, or another family's, left there by whoever made the file.

    What has a number or a list may size layers of a class that transformers does not have.
    """
    if value in OFF:
        return True
    sizes = bool(family.as_class) and type(value) in (int, list, dict)
    return not sizes and any(key in of.defaults or key in of.renamed for of in model_classes().values())


def _key_value_heads(config: Config) -> Columns:
    """KV heads, and the size of a head where it is not that of latent attention.

    Raises:
        ValueError: no head_dim, and a width that the heads do not divide; features that positions cannot turn pair by pair.
    """
    heads, width = config.whole("num_attention_heads"), config.whole("hidden_size")
    kv_heads = heads if config.get("num_key_value_heads") is None else config.whole("num_key_value_heads")
    if "kv_lora_rank" in config.values:
        return {"n_kv_heads": kv_heads}
    if config.get("head_dim") is None and width % heads:
        raise ValueError(f"head_dim: expected it where {heads} heads do not divide hidden_size {width}, got nothing")
    size = width // heads if config.get("head_dim") is None else config.whole("head_dim")
    if (turned := _turned(config, size)) % 2:
        raise ValueError(f"head_dim: expected heads of which positions turn pairs of features, got {turned} of {size}")
    return {"n_kv_heads": kv_heads, "head_dim": size}


def _turned(config: Config, size: int) -> int:
    """How many of a head's features positions turn; 0 where its class turns none."""
    if "rope_parameters" not in config.values or config.values.get("position_embedding_type", "rope") != "rope":
        return 0
    if SHARE not in config.values:  # its class turns whole heads, whatever the file says
        return size
    rope = config.get("rope_parameters")
    share = (rope if isinstance(rope, dict) else {}).get(SHARE, config.get(SHARE))
    return size if share is None else int(size * Config({SHARE: share}).factor(SHARE))


def _chosen(config: Config) -> str:
    """The key of how many experts a token takes."""
    return next(key for key in ("num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts") if key in config.values)


def _biases(config: Config, family: Family) -> Columns:
    """Biases of q, k and v, and of the projection behind attention, as further parameters.

    Raises:
        ValueError: a bias where this family's has no columns.
    """
    asked = config.get("qkv_bias" if "qkv_bias" in config.values else "attention_bias")
    if asked not in (None, True, False):
        raise ValueError(f"attention_bias: expected true or false, got {written(asked)}")
    if "qkv_bias" in config.values:
        return {"qkv_bias": bool(asked)}
    if not family.bias:
        if asked and not family.qkv_bias:
            raise ValueError(f"attention_bias: expected False, got {written(asked)}")
        return {"qkv_bias": family.qkv_bias}
    further = config.whole("num_hidden_layers") * config.whole("hidden_size") if asked and "o" in family.bias else 0
    return {"qkv_bias": bool(asked), "further_parameters": further}


def _tied(config: Config) -> bool:
    """Whether embedding and LM head are one table.

    Raises:
        ValueError: the config says something else than true or false.
    """
    older = config.get("tie_embedding")
    value = config.get(TIED) if older is None else older
    if not isinstance(value, bool):
        raise ValueError(f"{TIED}: expected true or false, got {written(value)}")
    return value
