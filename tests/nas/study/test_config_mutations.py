"""config.json of every family with keys changed, left out or added: what transformers builds and caches of it, or a refusal that names the key."""

import contextlib
import copy
import logging
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nas.search.assembly import assemble
from nas.study.config_file import architecture_of, deciding, left_out, read_config, text_part
from nas.study.model_types import model_classes, model_types
from objectives import counts, memory
from objectives.counts import total
from objectives.dimensions import Dimensions
from objectives.precision import precision
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.layer_kinds import read_blocks
from tests.sources import ROOT

Content = dict[str, Any]
SMALL: Content = {
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 96,
    "intermediate_size": 96,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LOCAL = {"num_local_experts": 4, "num_experts_per_tok": 2}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
SHARED = {"shared_expert_intermediate_size": 48}
ROUTED = {"n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
DELTANET = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 16,
}
SHARING = {"num_kv_shared_layers": 5, "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 50}
MAMBA = {"shared_intermediate_size": 48, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 12}
LATENT = ROUTED | {
    "num_key_value_heads": 4,
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 12,
    "n_group": 2,
    "topk_group": 1,
}
DENSE_FIRST = {"first_k_dense_replace": 1}
CONV = {"layer_types": ["conv", "full_attention"] * 2}
#: Keys of a small model beside those of all.
OWN: dict[str, Content] = {
    "mixtral": LOCAL,
    "ministral": {"head_dim": 16},
    "qwen2_moe": EXPERTS | SHARED,
    "qwen3_moe": EXPERTS,
    "qwen3_vl_moe_text": EXPERTS,
    "qwen3_next": EXPERTS | SHARED | DELTANET,
    "qwen3_5_text": DELTANET,
    "qwen3_5_moe_text": EXPERTS | SHARED | DELTANET,
    "mellum": EXPERTS,
    "minimax_m2": LOCAL,
    "gemma3n_text": SHARING | {"num_hidden_layers": 10, "laurel_rank": 4},
    "gemma4_text": SHARING | {"num_hidden_layers": 12, "global_head_dim": 32},
    "gpt_oss": LOCAL,
    "lfm2": CONV,
    "lfm2_moe": EXPERTS | CONV,
    "granitemoe": LOCAL,
    "granitemoeshared": LOCAL | {"shared_intermediate_size": 48},
    "granitemoehybrid": LOCAL | MAMBA | {"layer_types": ["mamba", "attention"] * 2},
    "olmoe": {"num_experts": 4, "num_experts_per_tok": 2},
    "glm4_moe": ROUTED | DENSE_FIRST,
    "dots1": ROUTED | DENSE_FIRST,
    "ernie4_5_moe": {"moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 32},
    "hunyuan_v1_dense": {"head_dim": 16},
    "deepseek_v2": LATENT | DENSE_FIRST,
    "deepseek_v3": LATENT | DENSE_FIRST,
    "glm4_moe_lite": LATENT,
    "deepseek_v32": LATENT | DENSE_FIRST,
    "glm_moe_dsa": LATENT | DENSE_FIRST | {"index_topk_freq": 2},
    "llama4_text": LOCAL | {"head_dim": 16, "intermediate_size_mlp": 80, "interleave_moe_layer_step": 2},
    "hunyuan_v1_moe": {"num_experts": 4, "moe_topk": 2, "head_dim": 16},
    "nemotron_h": ROUTED
    | {"mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 12, "n_groups": 2, "head_dim": 16}
    | {"moe_shared_expert_intermediate_size": 40, "moe_latent_size": 24, "hybrid_override_pattern": "ME*-"},
    "exaone_moe": EXPERTS | DENSE_FIRST,
    "solar_open": ROUTED | {"head_dim": 16},
    "afmoe": EXPERTS | {"head_dim": 16, "num_shared_experts": 1},
    "helium": {"head_dim": 16},
    "youtu": {key: value for key, value in LATENT.items() if key not in ROUTED},
    "minicpm3": {key: value for key, value in LATENT.items() if key not in ROUTED},
    "cwm": {"head_dim": 16},
    "internlm3": {"head_dim": 16},
    "iquestcoder": {"head_dim": 16},
    "vaultgemma": {"head_dim": 16},
    "flex_olmo": {"num_experts": 4, "num_experts_per_tok": 2},
    "lfm3": {"head_dim": 16, "num_hidden_layers": 6},
    "gemma4_unified_text": {"num_hidden_layers": 12, "global_head_dim": 32},
    "gpt2": {"n_inner": 96, "pad_token_id": None},
    "phi": {"rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 1.0}},
    "laguna": EXPERTS | {"head_dim": 16, "shared_expert_intermediate_size": 48},
    "phimoe": LOCAL,
    "granitemoe_swa": LOCAL | {"head_dim": 16},
    "falcon_h1": {"mamba_d_ssm": 128, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 12},
}
FURTHER = {
    "per_layer_config",
    "block_configs",
    "attn_type_list",
    *(key for f in model_types().families.values() for key in (*f.more, *f.plain)),
}
KEYS = sorted(FURTHER | {key for of in model_classes().values() for key in (*of.defaults, *of.renamed)})
LISTS: dict[str, list[Any]] = {
    "layer_types": [["full_attention"] * 4, ["sliding_attention", "full_attention"] * 2],
    "per_layer_config": [
        {"1": {"intermediate_size": 48}},
        {"1": {"num_key_value_heads": 1}, "2": {"skip": ["mlp"]}, "3": {"skip": ["attention"], "head_dim": 32}},
    ],
    "hybrid_override_pattern": ["M*E-", "MM-*EE"],
    "layers_block_type": [["linear_attention", "full_attention", "mlp", "mlp"]],
    "moe_layers": [[0, 3]],
    "indexer_types": [["full", "shared", "shared", "full"]],
    "no_rope_layers": [[1, 0, 1, 1]],
    "block_configs": [[{"ffn": {"intermediate_size": 48}}] * 4],
    "mlp_layer_types": [["dense"] * 3 + ["sparse"]],
    "mlp_only_layers": [[1]],
    "attn_type_list": [[0, 1, 0, 1]],
    "num_attention_heads_per_layer": [[2] * 4, [2, 4, 2, 4]],
}
SIZED = (
    "num",
    "size",
    "dim",
    "rank",
    "layer",
    "expert",
    "interval",
    "window",
    "_k",
    "pattern",
    "step",
    "index",
    "freq",
)


#: Keys that say windows together, tried where a family's class has one of them.
TOGETHER: tuple[Content, ...] = (
    {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2},
    {"use_sliding_window": False, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"] * 2},
    {"use_sliding_window": True, "sliding_window": 8, "layer_types": ["full_attention", "sliding_attention"] * 2},
    {"sliding_window": None, "layer_types": ["full_attention", "sliding_attention"] * 2},
    {"sliding_window": None},
    {"attention_chunk_size": 8, "layer_types": ["chunked_attention", "full_attention"] * 2},
)


def changes(kind: str, base: Content) -> Iterator[tuple[str, Content]]:
    """The small model with one of its family's keys left out or changed, or with several that belong together."""
    defaults = model_classes()[kind].defaults
    for key in KEYS:
        if key in base:
            yield f"without {key}", {name: value for name, value in base.items() if name != key}
        if key in base or key in defaults:
            for value in values(key, base.get(key, defaults.get(key)), own=True):
                yield f"{key}={value}", base | {key: value}
    for keys in TOGETHER:
        if own := {key: value for key, value in keys.items() if key in defaults}:
            yield f"{own}", base | own


def additions(kind: str, base: Content) -> Content:
    """Keys of other families that a model of this one may have without a refusal."""
    added: Content = {}
    for key in KEYS:
        if key not in base and key not in model_classes()[kind].defaults:
            for value in values(key, None, own=False):
                with contextlib.suppress(ValueError):
                    architecture_in(kind, base | {key: value})
                    added[key] = value
    return added


def values(key: str, now: Any, *, own: bool) -> list[Any]:
    """Other values of a key: of one that the family does not have, one is enough."""
    if key in LISTS:
        return LISTS[key]
    if isinstance(now, bool):
        return [not now]
    if isinstance(now, int) and any(part in key for part in SIZED):
        return [2 * now, max(now // 2, 1), 0, [now] * 3] if own else [2 * now]
    if now is None and any(part in key for part in SIZED):
        return [2, 16, 0] if own else [2]
    return [True] if now is None and (key.startswith(("use_", "tie_")) or key.endswith("bias")) else []


TABLES = ("embed_tokens_per_layer", "wpe")  # of which a token takes one row
TOWERS = ("visual", "vision_tower", "multi_modal_projector")  # in the names of a model's weights


@dataclass(frozen=True)
class Facts:
    """What is compared: parameters, those that a token uses, windows of layers with a cache, elements of keys and values of TOKENS tokens."""

    parameters: int
    active: int
    windows: tuple[int, ...]
    cached: int


TOKENS = 64
EXPERTS_OF = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
CHOSEN_OF = ("num_experts_per_tok", "top_k_experts", "moe_k", "moe_topk")
_CACHED: dict[Any, tuple[tuple[int, ...], int]] = {}  # by what attention is made of


def of_transformers(kind: str, content: Content) -> Facts:
    """The decoder that transformers builds, and its cache after a prompt, on the meta device.

    Raises:
        Exception: transformers does not build it, or it cannot run.
    """
    import torch
    import transformers

    keys = copy.deepcopy(content)
    whole = next(
        (name for name, text in model_types().text_of.items() if text == kind and kind.endswith("vl_text")), None
    )
    whole = {"qwen3_vl_moe_text": "qwen3_vl_moe", "mistral4": "mistral3"}.get(kind, whole)
    if whole is None:
        config, builder = transformers.AutoConfig.for_model(kind, **keys), transformers.AutoModelForCausalLM
    else:
        if kind == "mistral4":
            keys.setdefault("tie_word_embeddings", False)  # the text's default, which the whole ties
        tied = {key: keys.pop(key) for key in ("tie_word_embeddings",) if key in keys}
        if kind.startswith("qwen2"):  # which wants sections that fit the head
            half = keys.get("hidden_size", 64) // keys.get("num_attention_heads", 4) // 2
            keys.setdefault("rope_parameters", {"rope_type": "default", "mrope_section": [half, 0, 0]})
        config = transformers.AutoConfig.for_model(whole, text_config={"model_type": kind, **keys}, **tied)
        builder = transformers.AutoModelForImageTextToText
    with torch.device("meta"):
        model = builder.from_config(config, dtype=torch.bfloat16).eval()
    text = config.get_text_config(decoder=True)
    sizes = {name: p for name, p in model.named_parameters() if not any(part in name for part in TOWERS)}
    total = sum(p.numel() for p in sizes.values())
    experts = sum(p.numel() for name, p in sizes.items() if ".experts." in name)
    own = [[key for key in of if key in model_classes()[kind].defaults] for of in (EXPERTS_OF, CHOSEN_OF)]
    count, chosen = (next((n for key in keys_of if (n := getattr(text, key, None))), 1) for keys_of in own)
    tables = sum(p.numel() for name, p in sizes.items() if any(part in name for part in TABLES))
    active = total - tables - experts + experts * (chosen[0] if isinstance(chosen, list) else chosen) // count
    return Facts(total, active, *cache_of(model, config, sizes))


def cache_of(model: Any, config: Any, sizes: Content) -> tuple[tuple[int, ...], int]:
    """Windows of the layers that keep keys and values of a prompt, and how many elements they keep of it."""
    import torch
    import transformers

    cache, text = transformers.DynamicCache(config=config), config.get_text_config(decoder=True)
    windows = [(type(layer).__name__, getattr(layer, "sliding_window", None)) for layer in cache.layers]
    attention = [(name, p.shape[0]) for name, p in sizes.items() if "attn" in name or "attention" in name]
    heads = [str(text.to_dict().get(key)) for key in ("num_attention_heads", "num_key_value_heads", "head_dim")]
    made_of = (text.model_type, str(windows), str(attention), str(getattr(text, "rope_parameters", None)), *heads)
    if made_of not in _CACHED:
        with torch.device("meta"), torch.no_grad():
            model(input_ids=torch.zeros((1, TOKENS), dtype=torch.long), past_key_values=cache, use_cache=True)
        kept = [layer for layer in cache.layers if getattr(layer, "keys", None) is not None and layer.keys.numel()]
        spans = [(layer, getattr(layer, "sliding_window", None)) for layer in kept]
        elements = sum(
            (part.shape[1] * part.shape[3]) * min(TOKENS, window or TOKENS)
            for layer, window in spans
            for part in (layer.keys, layer.values)
        )
        indexers = sum(name.endswith(".indexer") for name, _ in model.named_modules())  # which engines cache, too
        elements += TOKENS * indexers * getattr(text, "index_head_dim", 0) if indexers else 0
        _CACHED[made_of] = tuple(sorted(window for _, window in spans if window)), elements
    return _CACHED[made_of]


def ours(kind: str, content: Content) -> Facts:
    """The architecture that we read, and its cache."""
    design = architecture_in(kind, content)
    listed = str(design.columns().get("layers", [""])[0])
    windows = [int(design.window[0])] * int(design.n_local[0] - design.n_kv_shared_local[0])
    for block in read_blocks(listed) if listed and not design.latent_size[0] else ():
        windows += [block.columns.get("window", 0)] * block.columns.get("n_local", 0) if block.place == "mixer" else []
    elements = memory.kv_cache_of(Dimensions(design), _scenario()) / 4  # bytes
    return Facts(
        int(counts.total(design)[0]), round(float(counts.active(design)[0])), tuple(sorted(windows)), round(elements[0])
    )


@cache
def _scenario() -> Scenario:
    scenario = assemble({}, {}).problem.scenario
    return replace(scenario, precision=precision("fp32"), batch=1, input_tokens=TOKENS - 1, output_tokens=1)


def architecture_in(kind: str, content: Content) -> Architectures:
    """The architecture that we read."""
    if kind in model_types().text_of.values() and "_vl_" in kind:
        whole = next(name for name, text in model_types().text_of.items() if text == kind)
        tied = {key: content[key] for key in ("tie_word_embeddings",) if key in content}
        return architecture_of(text_part({"model_type": whole, "text_config": content, **tied}))
    return architecture_of(content | {"model_type": kind})


NO_MODEL = ("step3p5",)  # families whose text part transformers builds within a larger model alone
BUILT = [kind for kind, family in model_types().families.items() if not family.as_class and kind not in NO_MODEL]


@pytest.mark.slow
@pytest.mark.parametrize("kind", BUILT)
def test_one_changed_key_is_counted_as_transformers_counts_it(kind: str) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    base = SMALL | OWN.get(kind, {})
    assert ours(kind, base) == of_transformers(kind, base)
    added = additions(kind, base)
    others = {key: value for key, value in added.items() if key not in ALONE}
    together = [("keys of other families", base | others)] if _alike(kind, base | others) else []
    one_by_one = [
        (f"{key}={added[key]}", base | {key: added[key]}) for key in (added.keys() & ALONE if together else added)
    ]
    tried, different = compared(kind, [*changes(kind, base), *together, *one_by_one])
    assert not different
    assert tried > 15
    assert len(added) > 30


@pytest.mark.parametrize(
    "pairs", [pytest.param(4, marks=pytest.mark.slow), pytest.param(150, marks=pytest.mark.extended)]
)
@pytest.mark.parametrize("kind", BUILT)
def test_two_changed_keys_are_counted_as_transformers_counts_them(kind: str, pairs: int) -> None:
    """Two of the changes above at once, drawn at random: with those above more than 6,000 files that both build."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    base = SMALL | OWN.get(kind, {})
    single, generator = list(changes(kind, base)), random.Random(kind)
    drawn = [generator.sample(single, 2) for _ in range(pairs)]
    merged = [(f"{one}, {other}", _merged(base, of_one, of_other)) for (one, of_one), (other, of_other) in drawn]
    assert not compared(kind, merged)[1]


def compared(kind: str, tries: Iterable[tuple[str, Content]]) -> tuple[int, list[str]]:
    """How many files transformers builds and we read, and in which of them a fact differs."""
    tried, different = 0, []
    logging.disable(logging.CRITICAL)
    for name, content in tries:
        try:
            mine, theirs = ours(kind, content), of_transformers(kind, content)
        except Exception:  # we refuse it, or transformers does not build it
            continue
        tried += 1
        if mine != theirs:
            different.append(f"{name}: {theirs} in transformers, {mine} here")
    logging.disable(logging.NOTSET)
    return tried, different


def _merged(base: Content, one: Content, other: Content) -> Content:
    """The small model with what two changes of it leave out and set; of a key that both set the second counts."""
    left = {key: value for key, value in base.items() if key in one and key in other}
    changed = [
        {key: value for key, value in of.items() if key not in base or base[key] != value} for of in (one, other)
    ]
    return left | changed[0] | changed[1]


#: Keys of other families with which transformers builds nothing where others stand beside them.
ALONE = {"mtp_layer_types", "per_layer_config", "attention_chunk_size", "layer_types"}


def _alike(kind: str, content: Content) -> bool:
    """Whether a model is built, and counted as transformers counts it."""
    try:
        return ours(kind, content) == of_transformers(kind, content)
    except Exception:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in BUILT if "_vl_" not in kind])
def test_what_transformers_saves_again_is_the_same_model(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    content = SMALL | OWN.get(kind, {})
    transformers.AutoConfig.for_model(kind, **copy.deepcopy(content)).save_pretrained(tmp_path)
    again = read_config(tmp_path / "config.json")
    assert str(again.columns()) == str(architecture_of(content | {"model_type": kind}).columns())


@pytest.mark.slow
def test_defaults_are_those_of_transformers() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    script = [sys.executable, str(ROOT / ".ci" / "model_classes"), "--check"]
    assert subprocess.run(script, capture_output=True, text=True, check=False).stderr == ""


@pytest.mark.parametrize("key", ["hybrid_override_patterns", "moe_layer_freqs", "my_own_width"])
def test_a_key_that_nobody_reads_is_refused_by_its_name(key: str) -> None:
    with pytest.raises(ValueError, match=f"{key}: expected keys of a llama model, got one that is not read"):
        architecture_of(SMALL | {"model_type": "llama", key: 3})


HALF = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}


@pytest.mark.parametrize(
    ("content", "turned"),
    [
        ({"model_type": "mistral", "num_attention_heads": None, "hidden_size": 32}, "1 of 1"),  # its class has 32 heads
        ({"model_type": "llama", "head_dim": 1}, "1 of 1"), ({"model_type": "qwen3", "head_dim": 7}, "7 of 7"),
        ({"model_type": "stablelm", "hidden_size": 24, "num_key_value_heads": 4}, "1 of 6"), ({"model_type": "glm", "head_dim": 2} | HALF, "1 of 2"),
        ({"model_type": "llama", "head_dim": 1} | HALF, "1 of 1"),  # whose class turns whole heads, whatever the file says
        ({"model_type": "gpt_neox", "num_key_value_heads": 4, "hidden_size": 48}, "3 of 12"),
    ],
)  # fmt: skip
def test_heads_that_positions_cannot_turn_are_refused(content: Content, turned: str) -> None:
    """transformers turns one feature as if it were two, so that its keys are wider than their weights, and three or more not at all."""
    given = {key: value for key, value in (SMALL | content).items() if value is not None}
    with pytest.raises(ValueError, match=f"head_dim: expected heads of which positions turn pairs .* got {turned}"):
        architecture_of(given)


def test_a_head_of_full_attention_is_turned_as_well() -> None:
    content = SMALL | OWN["gemma4_unified_text"] | {"model_type": "gemma4_unified_text", "global_head_dim": 1}
    with pytest.raises(ValueError, match="global_head_dim: expected an even size"):
        architecture_of(content)


@pytest.mark.parametrize(
    "content",
    [
        {"model_type": "gpt2", "num_key_value_heads": 4, "hidden_size": 12},  # its positions are a table
        {"model_type": "gpt_neox", "num_key_value_heads": 4, "hidden_size": 48, "rotary_pct": 1.0},
        {"model_type": "phi", "num_key_value_heads": 4, "hidden_size": 12, "partial_rotary_factor": 0.67},
        LATENT | DENSE_FIRST | {"model_type": "deepseek_v32", "hidden_size": 66},  # its heads have sizes of their own
        OWN["granitemoehybrid"] | {"model_type": "granitemoehybrid", "hidden_size": 60, "mamba_n_heads": 8, "mamba_d_head": 15},
    ],
)  # fmt: skip
def test_heads_that_positions_do_not_turn_may_have_any_size(content: Content) -> None:
    assert total(architecture_of(SMALL | content)) > 0


@pytest.mark.parametrize("kind", BUILT)
def test_a_value_of_another_type_is_refused_by_its_key(kind: str) -> None:
    """Of every key that a family reads: refused, or counted where nothing reads it; never another error."""
    family, base = model_types().families[kind], SMALL | OWN.get(kind, {}) | {"model_type": kind}
    for key in {*base, *model_classes()[kind].defaults, *family.more, *family.plain} - {"model_type"}:
        for value in (3, "x", [], [1], [[1]], {"a": 1}, float("inf")):
            with contextlib.suppress(ValueError):
                deciding(base | {key: value})
                left_out(base | {key: value})


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("llama4_text", "no_rope_layers", 3), ("lfm2", "full_attn_idxs", 3), ("lfm2", "block_ffn_dim_multiplier", []),
        ("minimax_m2", "attn_type_list", [[1]]), ("phi3", "partial_rotary_factor", float("inf")),
        ("step3p5", "attention_other_setting", 3), ("qwen3", "num_nextn_predict_layers", [1]),
    ],
)  # fmt: skip
def test_what_is_no_list_or_number_is_named(kind: str, key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{key}: expected"):
        left_out(SMALL | OWN.get(kind, {}) | {"model_type": kind, key: value})


def test_two_spellings_of_one_key_must_agree() -> None:
    content = SMALL | LOCAL | {"model_type": "mixtral", "num_experts": 8}
    with pytest.raises(ValueError, match="num_experts: expected 4, as num_local_experts says, got 8"):
        architecture_of(content)
    assert total(architecture_of(content | {"num_experts": 4})) == total(
        architecture_of(SMALL | LOCAL | {"model_type": "mixtral"})
    )


def test_a_key_of_another_family_counts_for_nothing() -> None:
    """DeepSeek's class reads n_routed_experts, whatever a pruned file still says of num_experts."""
    content = SMALL | LATENT | DENSE_FIRST | {"model_type": "deepseek_v3"}
    assert total(architecture_of(content | {"num_experts": 99})) == total(architecture_of(content))
